#include <algorithm>

#include "base/threads.h"
#include "quant/layout.h"
#include "runtime/session.h"

namespace hierarchos {
namespace {

constexpr int64_t kBlockBytes = int64_t{256} << 20;

}  // namespace

HostTensor values_of_layout(const Type& type, Address at, Backend& backend) {
  std::vector<std::byte> raw(static_cast<size_t>(type.bytes()));
  backend.download(at, raw);
  HostTensor out(DType::F32, type.shape);
  const int64_t columns = type.shape.back();
  for (int64_t row = 0; row < type.shape.rows(); ++row)
    decode_row16(type.storage, raw.data(), columns, row, out.mutable_data<float>().data() + row * columns);
  return out;
}

Address Storehouse::place(int64_t bytes) {
  const int64_t alignment = backend_.alignment();
  const int64_t need = std::max((bytes + alignment - 1) / alignment * alignment, alignment);
  for (Block& block : blocks_)
    if (block.buffer->size() - block.used >= need) {
      const Address at = block.buffer->address() + static_cast<Address>(block.used);
      block.used += need;
      return at;
    }
  const int64_t limit = backend_.info().max_allocation;
  if (limit > 0 && need > limit)
    throw DeviceError("a tensor of {} bytes is larger than this device allocates at once ({} bytes)", bytes, limit);
  int64_t size = std::max(need, kBlockBytes);
  if (limit > 0) size = std::min(size, limit);
  // A small model should not take a large block.
  if (bytes_ + need < kBlockBytes) size = std::max(need, std::min(size, std::max<int64_t>(bytes_ + need, 1 << 20)));
  blocks_.push_back({backend_.allocate(size, "weights"), need});
  return blocks_.back().buffer->address();
}

Address Storehouse::get(const std::string& name, const Type& type) {
  auto found = entries_.find(name);
  if (found != entries_.end()) {
    if (found->second.type != type)
      throw UserError("{} lies on the device as {} and is wanted as {}", name, found->second.type.to_string(),
                      type.to_string());
    return found->second.address;
  }
  const Address address = place(type.bytes());
  bytes_ += type.bytes();
  entries_.emplace(name, Entry{type, address});
  if (type.bytes() > 0) backend_.fill_zero(address, type.bytes());
  return address;
}

const Type& Storehouse::type(const std::string& name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError("{} is not on the device", name);
  return found->second.type;
}

void Storehouse::upload(const std::string& name, const HostTensor& value) {
  Type given(value.dtype(), value.shape(), value.storage());
  // A tensor that was declared in a layout of the device's is brought into it.
  if (const auto found = entries_.find(name); found != entries_.end()) given.layout = found->second.type.layout;
  const Address at = get(name, given);
  if (given.layout == kRows16)
    upload_rows16(at, value);
  else
    backend_.upload(at, value.bytes());
}

// Groups of rows on all threads, some at a time, so that little memory is needed beside the file and the device.
void Storehouse::upload_rows16(Address at, const HostTensor& value) {
  const int64_t columns = value.shape().back(), rows = value.shape().rows();
  const int64_t bytes = rows16_group_bytes(value.storage(), columns), groups = (rows + kGroupRows - 1) / kGroupRows;
  const int64_t some =
      std::clamp<int64_t>((int64_t{4} << 20) / std::max<int64_t>(bytes, 1), 1, std::max<int64_t>(groups, 1));
  std::vector<std::byte> staging(static_cast<size_t>(some * bytes));
  for (int64_t first = 0; first < groups; first += some) {
    const int64_t count = std::min(some, groups - first);
    default_pool().parallel_for(count, [&](int64_t g, int) {
      interleave_group(value.storage(), value.bytes(), rows, columns, first + g, staging.data() + g * bytes);
    });
    backend_.upload(at + static_cast<Address>(first * bytes), {staging.data(), static_cast<size_t>(count * bytes)});
  }
}

HostTensor Storehouse::download(const std::string& name) const {
  const Type& t = type(name);
  if (t.layout != kRowMajor) return values_of_layout(t, entries_.at(name).address, backend_);
  HostTensor out(t.dtype, t.shape, t.storage);
  backend_.download(entries_.at(name).address, out.mutable_bytes());
  return out;
}

void Storehouse::zero(const std::string& name) {
  const Type& t = type(name);
  if (t.bytes() > 0) backend_.fill_zero(entries_.at(name).address, t.bytes());
}

std::vector<std::string> Storehouse::names() const {
  std::vector<std::string> out;
  for (const auto& [name, entry] : entries_) out.push_back(name);
  return out;
}

}  // namespace hierarchos
