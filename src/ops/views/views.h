// Views: other shapes over the same memory. They cost nothing: the planner resolves them to offsets and strides, and
// copies only where a consumer needs contiguous rows.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

Value reshape(Value x, Shape shape);                                    // same elements
Value permute(Value x, const std::vector<int64_t>& axes);               // result axis i is input axis axes[i]
Value transpose(Value x);                                               // last two axes swapped
Value slice(Value x, int axis, int64_t begin, int64_t end);             // [begin, end) of one axis; negative axis from the end
Value expand(Value x, Shape shape);                                     // broadcasts extents of 1 (numpy rules, leading axes added)
std::vector<Value> split(Value x, int axis, const std::vector<int64_t>& sizes);  // slices that cover the axis
Value concat(const std::vector<Value>& xs, int axis);                   // an operator with kernels (attr axis)

const OpDef& reshape_def();  // attr shape
const OpDef& permute_def();  // attr axes
const OpDef& slice_def();    // attrs axis, begin, end
const OpDef& expand_def();   // attr shape
const OpDef& concat_def();   // attr axis

}  // namespace hierarchos::ops
