// Which instruction sets Highway compiles our kernels for. Include before hwy/foreach_target.h.
#pragma once

// Fewer copies build faster; the portable one serves what is older than AVX2.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
