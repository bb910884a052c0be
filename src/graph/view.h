// How view operators map to offsets and strides.
#pragma once

#include <array>

#include "graph/graph.h"

namespace hierarchos {

struct StridedView {
  Shape shape;
  std::array<int64_t, Shape::kMaxRank> strides{};  // elements
  int64_t offset = 0;                              // elements

  static StridedView contiguous(const Shape& shape);
  bool is_contiguous() const;  // extents of 1 are ignored; offset may be anything
};

// The view that `node` (a View operator) gives over `in`. False where a reshape of a strided view needs a copy first.
bool apply_view(const OpDef& op, const Attrs& attrs, const StridedView& in, const Shape& out, StridedView* result);

}  // namespace hierarchos
