#include <algorithm>

#include "formats/gguf_model.h"
#include "quant/blocks.h"

namespace hierarchos::formats {
namespace {

using Change = GgufTensor::Change;

// The tensor whose row r is row from(r) of this one.
template <typename From>
HostTensor rows_moved(const HostTensor& tensor, int64_t rows, From from) {
  HostTensor out(tensor.dtype(), tensor.shape(), tensor.storage());
  const auto source = tensor.bytes();
  const auto target = out.mutable_bytes();
  const int64_t bytes = static_cast<int64_t>(source.size()) / rows;
  for (int64_t r = 0; r < rows; ++r) std::copy_n(source.begin() + from(r) * bytes, bytes, target.begin() + r * bytes);
  return out;
}

int64_t leading(const Shape& shape) { return shape.rank() == 0 ? 0 : shape[0]; }

HostTensor rotation_order_undone(const HostTensor& tensor, int64_t heads) {
  const int64_t rows = leading(tensor.shape());
  if (heads < 1 || rows == 0 || rows % heads != 0 || rows / heads % 2 != 0)
    throw DataError("a tensor of shape {} does not divide into {} heads of even width", tensor.shape().to_string(),
                    heads);
  const int64_t width = rows / heads, half = width / 2;
  return rows_moved(tensor, rows, [&](int64_t r) {
    const int64_t head = r / width, within = r % width;  // row i of half j, which the file has as row 2 i + j
    return head * width + within % half * 2 + within / half;
  });
}

HostTensor qkv_grouped(const HostTensor& tensor, int64_t heads, int64_t kv_heads) {
  const int64_t rows = leading(tensor.shape()), parts = heads + 2 * kv_heads;
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || rows == 0 || rows % parts != 0)
    throw DataError("a tensor of shape {} does not divide into {} heads of queries and {} of keys and values",
                    tensor.shape().to_string(), heads, kv_heads);
  const int64_t width = rows / parts, queries = heads / kv_heads;
  return rows_moved(tensor, rows, [&](int64_t r) {
    const int64_t group = r / (width * (queries + 2)), part = r / width % (queries + 2), within = r % width;
    int64_t head = group * queries + part;                // a query
    if (part >= queries) head = heads + group;            // the group's key
    if (part > queries) head = heads + kv_heads + group;  // and value
    return head * width + within;
  });
}

HostTensor transposed(const HostTensor& tensor) {
  if (tensor.shape().rank() != 2) throw DataError("a tensor of shape {} is no matrix", tensor.shape().to_string());
  const HostTensor plain = dequantized(tensor);
  const int64_t rows = plain.shape()[0], columns = plain.shape()[1];
  HostTensor out(plain.dtype(), Shape{columns, rows});
  const auto size = static_cast<int64_t>(size_of(plain.dtype()));
  const auto source = plain.bytes();
  const auto target = out.mutable_bytes();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::copy_n(source.begin() + (r * columns + c) * size, size, target.begin() + (c * rows + r) * size);
  return out;
}

HostTensor minus_one(const HostTensor& tensor) {
  HostTensor out = dequantized(tensor).cast(DType::F32);
  if (out.bytes().data() == tensor.bytes().data()) {  // the file's own memory
    HostTensor copy(DType::F32, out.shape());
    std::ranges::copy(out.bytes(), copy.mutable_bytes().begin());
    out = std::move(copy);
  }
  for (float& v : out.mutable_data<float>()) v -= 1;
  return out;
}

Shape without_first(const Shape& shape) {
  std::vector<int64_t> rest;
  for (int a = 1; a < shape.rank(); ++a) rest.push_back(shape[a]);
  return Shape(rest);
}

HostTensor slice(const HostTensor& tensor, int64_t index) {
  if (index >= leading(tensor.shape()))
    throw DataError("a tensor of shape {} has no entry {}", tensor.shape().to_string(), index);
  const size_t bytes = tensor.bytes().size() / static_cast<size_t>(tensor.shape()[0]);
  HostTensor out(tensor.dtype(), without_first(tensor.shape()), tensor.storage());
  std::ranges::copy(tensor.bytes().subspan(static_cast<size_t>(index) * bytes, bytes), out.mutable_bytes().begin());
  return out;
}

}  // namespace

HostTensor as_published(const HostTensor& tensor, const GgufTensor& how) {
  switch (how.change) {
    case Change::None:
      return tensor;
    case Change::RotationOrder:
      return rotation_order_undone(tensor, how.heads);
    case Change::MinusOne:
      return minus_one(tensor);
    case Change::GroupedQkv:
      return qkv_grouped(tensor, how.heads, how.kv_heads);
    case Change::Transposed:
      return transposed(tensor);
    case Change::Slice:
      return slice(tensor, how.index);
  }
  return tensor;
}

TensorInfo published_info(const GgufFile::Entry& entry, const GgufTensor& how) {
  const DType decoded = entry.storage == Storage::Plain ? entry.dtype : DType::F32;
  switch (how.change) {
    case Change::MinusOne:
      return {DType::F32, Storage::Plain, entry.shape};
    case Change::Transposed:
      if (entry.shape.rank() != 2) break;
      return {decoded, Storage::Plain, Shape{entry.shape[1], entry.shape[0]}};
    case Change::Slice:
      return {entry.dtype, entry.storage, without_first(entry.shape)};
    default:
      break;
  }
  return {entry.dtype, entry.storage, entry.shape};
}

}  // namespace hierarchos::formats
