#include "graph/view.h"

namespace hierarchos {

StridedView StridedView::contiguous(const Shape& shape) {
  StridedView view;
  view.shape = shape;
  const auto strides = shape.contiguous_strides();
  std::copy(strides.begin(), strides.end(), view.strides.begin());
  return view;
}

bool StridedView::is_contiguous() const {
  int64_t expected = 1;
  for (int a = shape.rank() - 1; a >= 0; --a) {
    if (shape[a] == 0) return true;
    if (shape[a] != 1 && strides[static_cast<size_t>(a)] != expected) return false;
    expected *= shape[a];
  }
  return true;
}

namespace {

// Splits and merges axes without moving elements, where the strides allow it.
bool reshape_view(const StridedView& in, const Shape& out, StridedView* result) {
  result->shape = out;
  result->offset = in.offset;
  if (in.is_contiguous()) {
    const auto strides = out.contiguous_strides();
    std::copy(strides.begin(), strides.end(), result->strides.begin());
    return true;
  }
  // Walk both shapes from the outside, matching groups of axes with the same number of elements.
  int i = 0, o = 0;
  const int in_rank = in.shape.rank(), out_rank = out.rank();
  while (i < in_rank || o < out_rank) {
    const int i0 = i, o0 = o;
    int64_t ni = i < in_rank ? in.shape[i++] : 1;
    int64_t no = o < out_rank ? out[o++] : 1;
    while (ni != no) {
      if (ni < no) {
        if (i == in_rank) return false;
        ni *= in.shape[i++];
      } else {
        if (o == out_rank) return false;
        no *= out[o++];
      }
    }
    // The group's input axes must be one run of memory.
    int64_t stride = 0;
    bool first = true;
    int64_t expected = 0;
    for (int a = i - 1; a >= i0; --a) {
      if (in.shape[a] == 1) continue;
      const int64_t s = in.strides[static_cast<size_t>(a)];
      if (first) {
        stride = s;
        first = false;
      } else if (s != expected) {
        return false;
      }
      expected = s * in.shape[a];
    }
    for (int a = o - 1; a >= o0; --a) {
      result->strides[static_cast<size_t>(a)] = stride;
      stride *= out[a];
    }
  }
  return true;
}

}  // namespace

bool apply_view(const OpDef& op, const Attrs& attrs, const StridedView& in, const Shape& out, StridedView* result) {
  *result = in;
  result->shape = out;
  if (op.name == "reshape") return reshape_view(in, out, result);
  if (op.name == "permute") {
    const auto& axes = attrs.ints("axes");
    for (size_t a = 0; a < axes.size(); ++a) result->strides[a] = in.strides[static_cast<size_t>(axes[a])];
    return true;
  }
  if (op.name == "slice") {
    result->offset += attrs.i("begin") * in.strides[static_cast<size_t>(attrs.i("axis"))];
    return true;
  }
  if (op.name == "expand") {
    const int lead = out.rank() - in.shape.rank();
    for (int a = 0; a < out.rank(); ++a) {
      const int from = a - lead;
      result->strides[static_cast<size_t>(a)] =
          from < 0 || (in.shape[from] == 1 && out[a] != 1) ? 0 : in.strides[static_cast<size_t>(from)];
    }
    return true;
  }
  throw UnsupportedError("{} is no view", op.name);
}

}  // namespace hierarchos
