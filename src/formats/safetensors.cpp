#include "formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "base/json.h"
#include "base/os/file.h"
#include "formats/shown.h"

namespace hierarchos::formats {
namespace {

// The reference's own limit; a larger header is an attack or an accident.
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr const char* kMetadata = "__metadata__";

struct TypeName {
  std::string_view name;
  int bits;
  std::optional<DType> ours;
};
constexpr TypeName kTypes[] = {
    {"F64", 64, DType::F64}, {"F32", 32, DType::F32},  {"F16", 16, DType::F16}, {"BF16", 16, DType::BF16},
    {"I64", 64, DType::I64}, {"I32", 32, DType::I32},  {"I16", 16, DType::I16}, {"I8", 8, DType::I8},
    {"U8", 8, DType::U8},    {"BOOL", 8, DType::Bool}, {"U64", 64, {}},         {"U32", 32, {}},
    {"U16", 16, {}},         {"F8_E4M3", 8, {}},       {"F8_E5M2", 8, {}},      {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},  {"F8_E5M2FNUZ", 8, {}},   {"F6_E2M3", 6, {}},      {"F6_E3M2", 6, {}},
    {"F4", 4, {}},           {"C64", 64, {}},
};

const TypeName* type_of(std::string_view name) {
  for (const TypeName& t : kTypes)
    if (t.name == name) return &t;
  return nullptr;
}

std::string_view spelling(DType dtype) {
  for (const TypeName& t : kTypes)
    if (t.ours == dtype) return t.name;
  return {};
}

bool is_natural(const nlohmann::json& v) { return v.is_number_unsigned(); }

}  // namespace

void SafetensorsFile::fail(const std::string& what) const { throw DataError("{}: {}", where_, what); }

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  auto map = std::make_shared<MappedFile>(path);
  return parse(path.string(), map->bytes(), map);
}

std::shared_ptr<const SafetensorsFile> SafetensorsFile::parse(std::string where, std::span<const std::byte> bytes,
                                                              std::shared_ptr<const void> owner) {
  auto file = std::make_shared<SafetensorsFile>();
  file->where_ = std::move(where);
  file->bytes_ = bytes;
  file->owner_ = std::move(owner);
  file->read();
  return file;
}

void SafetensorsFile::read() {
  uint64_t length = 0;
  if (bytes_.size() < sizeof(length)) fail(fmt::format("{} bytes are too few for a safetensors file", bytes_.size()));
  std::memcpy(&length, bytes_.data(), sizeof(length));
  if (length > kMaxHeader)
    fail(fmt::format("a header of {} bytes; the format allows {}. Is this a safetensors file?", length, kMaxHeader));
  if (length > bytes_.size() - sizeof(length))
    fail(fmt::format("the header of {} bytes is cut off: the file has {} bytes", length, bytes_.size()));
  data_ = sizeof(length) + static_cast<size_t>(length);
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + sizeof(length),
                              static_cast<size_t>(length));
  if (text.empty() || text[0] != '{') fail("the header does not begin with {");
  const nlohmann::json header = parse_json(text, where_ + " (header)");
  if (!header.is_object()) fail("the header is no object");
  for (const auto& [name, value] : header.items()) {
    if (name != kMetadata) {
      read_entry(name, value, bytes_.size() - data_);
      continue;
    }
    if (!value.is_object()) fail("__metadata__ is no object");
    for (const auto& [key, v] : value.items()) {
      if (!v.is_string()) fail(fmt::format("__metadata__ has a {} that is no string", shown(key)));
      metadata_[key] = v.get<std::string>();
    }
  }
  check_layout(bytes_.size() - data_);
}

void SafetensorsFile::read_entry(const std::string& name, const nlohmann::json& value, size_t size) {
  const auto bad = [&](const std::string& what) { fail(fmt::format("tensor {}: {}", shown(name), what)); };
  if (!value.is_object()) bad("its entry is no object");
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!value.contains(key)) bad(fmt::format("{} is missing", key));
  const auto &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  if (!dtype.is_string()) bad("dtype is no string");
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_natural))
    bad("shape is no list of natural numbers");
  if (!offsets.is_array() || offsets.size() != 2 || !is_natural(offsets[0]) || !is_natural(offsets[1]))
    bad("data_offsets are no two natural numbers");

  Entry e;
  e.dtype = dtype.get<std::string>();
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > size)
    bad(fmt::format("data_offsets {} to {} in a file that has {} bytes after the header", begin, end, size));
  e.begin = static_cast<size_t>(begin);
  e.end = static_cast<size_t>(end);
  uint64_t elements = 1;
  int64_t reach = 1;  // the product without extents of 0: Shape wants it to fit too
  for (const auto& d : shape) {
    const auto extent = d.get<uint64_t>();
    if (extent > INT64_MAX || __builtin_mul_overflow(reach, std::max<int64_t>(static_cast<int64_t>(extent), 1), &reach))
      bad("its extents are too large");
    elements *= extent;
    e.shape.push_back(static_cast<int64_t>(extent));
  }
  if (const TypeName* type = type_of(e.dtype)) {  // of a type that is not known, the size cannot be checked
    e.known = type->ours;
    uint64_t bits;
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(type->bits), &bits)) bad("its extents are too large");
    if (bits % 8 != 0 || bits / 8 != end - begin)
      bad(fmt::format("type {} and shape {} need {} bytes, data_offsets give {}", e.dtype, shape.dump(),
                      static_cast<double>(bits) / 8, end - begin));
  }
  entries_.emplace(name, std::move(e));
}

// The tensors lie one after another and fill the file.
void SafetensorsFile::check_layout(size_t size) const {
  std::vector<const std::pair<const std::string, Entry>*> order;
  for (const auto& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  size_t at = 0;
  for (const auto* entry : order) {
    const size_t begin = entry->second.begin;
    if (begin != at)
      fail(fmt::format("tensor {} begins at byte {} where {} is expected: {}", shown(entry->first), begin, at,
                       begin < at ? "tensors overlap" : "there is a hole"));
    at = entry->second.end;
  }
  if (at != size) fail(fmt::format("{} bytes after the last tensor belong to none", size - at));
}

HostTensor SafetensorsFile::tensor(const std::string& name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError("{}: there is no tensor {}", where_, name);
  const Entry& e = found->second;
  if (!e.known) throw UnsupportedError("{}: tensor {} has type {}, which is not read", where_, name, shown(e.dtype));
  if (e.shape.size() > Shape::kMaxRank)
    throw UnsupportedError("{}: tensor {} has {} axes; at most {} are read", where_, name, e.shape.size(),
                           Shape::kMaxRank);
  const auto bytes = bytes_.subspan(data_ + e.begin, e.end - e.begin);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % size_of(*e.known) == 0)
    return HostTensor(*e.known, Shape(e.shape), Storage::Plain, bytes, shared_from_this());
  HostTensor copy(*e.known, Shape(e.shape));
  std::copy(bytes.begin(), bytes.end(), copy.mutable_bytes().begin());
  return copy;
}

void write_safetensors(const std::filesystem::path& path,
                       const std::vector<std::pair<std::string, HostTensor>>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const std::pair<std::string, HostTensor>*> order;
  std::set<std::string_view> names = {kMetadata};
  for (const auto& entry : tensors) {
    const auto& [name, tensor] = entry;
    if (tensor.storage() != Storage::Plain)
      throw UserError("{}: tensor {}: {} blocks cannot be written to safetensors", path.string(), name,
                      name_of(tensor.storage()));
    if (!names.insert(name).second)
      throw UserError("{}: the name {} is given to two tensors or reserved", path.string(), shown(name));
    order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });

  std::string text = "{";  // written piece by piece: an ordered object would search its keys for each new one
  const auto quoted = [&](const std::string& s) {
    try {
      return nlohmann::json(s).dump();
    } catch (const nlohmann::json::exception&) {
      throw UserError("{}: the name or text {} is not UTF-8", path.string(), shown(s));
    }
  };
  if (!metadata.empty()) {
    for (const auto& [key, value] : metadata)
      text += (text.size() == 1 ? "\"__metadata__\":{" : ",") + quoted(key) + ":" + quoted(value);
    text += "}";
  }
  size_t at = 0;
  for (const auto* entry : order) {
    const HostTensor& tensor = entry->second;
    text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}", text.size() == 1 ? "" : ",",
                        quoted(entry->first), spelling(tensor.dtype()),
                        nlohmann::json(tensor.shape().to_vector()).dump(), at, at + tensor.bytes().size());
    at += tensor.bytes().size();
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  if (length > kMaxHeader) throw UserError("{}: {} tensors are too many for one file", path.string(), tensors.size());
  AtomicFileWriter file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const auto* entry : order) file.write(entry->second.bytes());
  file.commit();
}

std::map<std::string, HostTensor> read_safetensors(const std::filesystem::path& path) {
  const auto file = SafetensorsFile::open(path);
  std::map<std::string, HostTensor> out;
  for (const auto& [name, entry] : file->entries()) out.emplace(name, file->tensor(name));
  return out;
}

}  // namespace hierarchos::formats
