// What the graph knows of an operator: how its results' types follow, and its gradient. Kernels are elsewhere
// (ops/operator.h), since the graph never sees a backend.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/attrs.h"
#include "graph/type.h"

namespace hierarchos {

class Graph;
struct Value;

// Thrown for operands that do not fit; Graph::emit adds scope, operator and all shapes to the message.
class ShapeError : public UserError {
 public:
  using UserError::UserError;
};

enum class OpKind : uint8_t {
  Pointwise,  // the "pointwise" operator: an expression over broadcast operands
  View,       // reshape, permute, slice, expand: no computation, resolved when planning
  Compute,    // everything else that has kernels
  Control,    // call, scan, predicate
  Host,       // a host step between segments of a program
};

// How the precision pass treats an operator's floating operands.
enum class Precision : uint8_t {
  Follow,   // computes in the type it is given; results have it too (views, pointwise)
  Compute,  // wants the policy's compute type (products, attention)
  Full,     // wants fp32 whatever the policy (statistics, softmax, router, scan state, loss, optimizer)
};

struct InferContext {
  const Attrs& attrs;
  std::span<const Type> inputs;

  // Reports a misfit: throws ShapeError.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw ShapeError(fmt::format(format, std::forward<Args>(args)...));
  }
};

// Work of one execution, for explain, perf and MFU.
struct Cost {
  double flops = 0;
  double bytes = 0;  // each operand read once, each result written once
};

struct VjpContext;  // graph/vjp.h

struct OpDef {
  std::string name;
  OpKind kind = OpKind::Compute;
  Precision precision = Precision::Follow;
  // Types of the results. Throws through InferContext::fail.
  std::vector<Type> (*infer)(const InferContext&) = nullptr;
  // Gradients with respect to each input; nullopt is an absent gradient (not the same as zero). Null: no input has one.
  std::vector<std::optional<Value>> (*vjp)(VjpContext&) = nullptr;
  // Results that must take over an input's memory: pairs (result, input). The old version is dead afterwards; the
  // planner refuses a graph that reads it later.
  std::vector<std::pair<int, int>> updates;
  // Whether an input may be a strided view; null: contiguous only (the planner inserts a copy).
  bool (*accepts_strides)(const Attrs&, int input, const Shape& shape, std::span<const int64_t> strides) = nullptr;
  // Whether counted dims are honoured (rows past the count are zero in every result). Others refuse such operands.
  bool honours_counts = false;
  // Results whose forward value the gradient reads. Autodiff saves or recomputes them.
  Cost (*cost)(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) = nullptr;
  // Cheap to compute again: autodiff recomputes it in backward rather than save its results (pointwise, views).
  bool recompute = false;
};

}  // namespace hierarchos
