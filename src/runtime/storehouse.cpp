#include <algorithm>

#include "runtime/session.h"

namespace hierarchos {
namespace {

constexpr int64_t kBlockBytes = int64_t{256} << 20;

}  // namespace

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
      throw UserError("{} lies on the device as {} and is wanted as {}", name, found->second.type.to_string(), type.to_string());
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
  const Type given(value.dtype(), value.shape(), value.storage());
  const Address at = get(name, given);
  backend_.upload(at, value.bytes());
}

HostTensor Storehouse::download(const std::string& name) const {
  const Type& t = type(name);
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
