#pragma once
#include "graph/vjp.h"
#include "passes/autodiff.h"
