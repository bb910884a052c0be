#include "ops/index/scatter_rows/scatter_rows.h"

#include "ops/common.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 3, 3, "buffer, rows and slots");
  const Type &buffer = c.inputs[0], &rows = c.inputs[1];
  for (const Type& t : c.inputs)
    if (!t.plain()) c.fail("operands must be plain, one is {}", t.to_string());
  const bool floats = computable(buffer.dtype) && computable(rows.dtype);
  if (!floats && !(buffer.dtype == rows.dtype && buffer.dtype == DType::I32))
    c.fail("buffer and rows must both be floating or both i32, they are {} and {}", buffer.to_string(), rows.to_string());
  if (buffer.shape.rank() < 1) c.fail("buffer has no rows");
  Shape wanted = buffer.shape;
  wanted[0] = rows.shape.rank() > 0 ? rows.shape[0] : 0;
  if (rows.shape != wanted) c.fail("rows must be {} for any T, they are {}", wanted.to_string(), rows.to_string());
  expect(c, 2, "slots", DType::I32, Shape{rows.shape[0]});
  return {Type(buffer.dtype, buffer.shape)};
}

// rows: any distance between rows, each row contiguous.
bool accepts_strides(const Attrs&, int input, const Shape& shape, std::span<const int64_t> strides) {
  if (input != 1) return false;
  int64_t expected = 1;
  for (int a = shape.rank() - 1; a >= 1; --a) {
    if (shape[a] > 1 && strides[static_cast<size_t>(a)] != expected) return false;
    expected *= shape[a];
  }
  return true;
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type>) {
  const auto elements = static_cast<double>(inputs[1].shape.elements());
  return {0, bytes_moved(inputs.subspan(1), {}) + elements * static_cast<double>(size_of(inputs[0].dtype))};
}

}  // namespace

Value scatter_rows(Value buffer, Value rows, Value slots) {
  return buffer.graph().emit1(scatter_rows_def(), {buffer, rows, slots});
}

const OpDef& scatter_rows_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "scatter_rows";
    d.infer = infer;
    d.updates = {{0, 0}};
    d.accepts_strides = accepts_strides;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
