#include "formats/safetensors.h"

#include <algorithm>
#include <cstring>

#include "base/json.h"

namespace hierarchos::formats {
namespace {

// The reference's own limit; a larger header is an attack or an accident.
constexpr uint64_t kMaxHeader = 100'000'000;

struct TypeName {
  const char* name;
  DType dtype;
};
constexpr TypeName kTypes[] = {{"F64", DType::F64}, {"F32", DType::F32}, {"F16", DType::F16}, {"BF16", DType::BF16}, {"I64", DType::I64},
                               {"I32", DType::I32}, {"I16", DType::I16}, {"I8", DType::I8},   {"U8", DType::U8},     {"BOOL", DType::Bool}};
// Types of the format that we do not read: bits an element.
constexpr std::pair<const char*, int> kForeign[] = {{"U64", 64}, {"U32", 32}, {"U16", 16}, {"F8_E4M3", 8}, {"F8_E5M2", 8},
                                                    {"F8_E8M0", 8}, {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"C64", 64}};

}  // namespace

void SafetensorsFile::fail(const std::string& what) const { throw DataError("{}: {}", path_.string(), what); }

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  auto file = std::make_shared<SafetensorsFile>();
  file->path_ = path;
  file->file_ = MappedFile(path);
  file->parse();
  return file;
}

void SafetensorsFile::parse() {
  const auto bytes = file_.bytes();
  uint64_t length = 0;
  if (bytes.size() < sizeof(length)) fail(fmt::format("{} bytes are too few for a safetensors file", bytes.size()));
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMaxHeader) fail(fmt::format("a header of {} bytes is larger than the format allows", length));
  if (length > bytes.size() - sizeof(length)) fail(fmt::format("the header of {} bytes is cut off: the file has {}", length, bytes.size()));
  data_ = sizeof(length) + static_cast<size_t>(length);
  const size_t size = bytes.size() - data_;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof(length), static_cast<size_t>(length));
  if (text.empty() || text[0] != '{') fail("the header does not begin with {");
  const nlohmann::json header = parse_json(text, path_.string() + " (header)");
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) fail("__metadata__ is no object");
      for (const auto& [key, v] : value.items()) {
        if (!v.is_string()) fail(fmt::format("__metadata__ has a {} that is no string", key));
        metadata_[key] = v.get<std::string>();
      }
      continue;
    }
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
      fail(fmt::format("tensor {} lacks dtype, shape or data_offsets", name));
    const auto &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
    const auto natural = [](const nlohmann::json& v) { return v.is_number_unsigned(); };
    if (!dtype.is_string() || !shape.is_array() || !std::all_of(shape.begin(), shape.end(), natural) || !offsets.is_array() ||
        offsets.size() != 2 || !std::all_of(offsets.begin(), offsets.end(), natural))
      fail(fmt::format("tensor {}: dtype, shape or data_offsets are not of their kinds", name));
    Entry e;
    e.dtype = dtype.get<std::string>();
    uint64_t bits = 0;
    for (const TypeName& t : kTypes)
      if (e.dtype == t.name) {
        e.known = t.dtype;
        bits = 8 * size_of(t.dtype);
      }
    for (const auto& [foreign, width] : kForeign)
      if (e.dtype == foreign) bits = static_cast<uint64_t>(width);
    if (bits == 0) fail(fmt::format("tensor {} has the unknown type {}", name, e.dtype));
    const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
    if (begin > end || end > size) fail(fmt::format("tensor {} ends at byte {} of {}", name, end, size));
    for (const auto& d : shape) {
      const auto extent = d.get<uint64_t>();
      if (__builtin_mul_overflow(bits, extent, &bits) || extent > INT64_MAX) fail(fmt::format("tensor {} is too large", name));
    }
    if (bits % 8 != 0 || bits / 8 != end - begin)
      fail(fmt::format("tensor {}: {} with {} dims of type {} has {} bytes, data_offsets give {}", name, shape.dump(), shape.size(), e.dtype,
                       bits / 8, end - begin));
    if (shape.size() > Shape::kMaxRank) fail(fmt::format("tensor {} has {} axes; at most {} are read", name, shape.size(), Shape::kMaxRank));
    e.shape = Shape(shape.get<std::vector<int64_t>>());
    e.begin = begin;
    e.end = end;
    entries_.emplace(name, std::move(e));
  }
  std::vector<const std::pair<const std::string, Entry>*> order;
  for (const auto& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  size_t at = 0;
  for (const auto* entry : order) {
    if (entry->second.begin != at)
      fail(fmt::format("tensor {} begins at byte {} where {} is expected: the tensors {}", entry->first, entry->second.begin, at,
                       entry->second.begin < at ? "overlap" : "leave a hole"));
    at = entry->second.end;
  }
  if (at != size) fail(fmt::format("{} bytes after the last tensor belong to none", size - at));
}

HostTensor SafetensorsFile::tensor(const std::string& name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError("{}: there is no tensor {}", path_.string(), name);
  const Entry& e = found->second;
  if (!e.known) throw UnsupportedError("{}: tensor {} has type {}, which is not read", path_.string(), name, e.dtype);
  return HostTensor(*e.known, e.shape, Storage::Plain, file_.bytes().subspan(data_ + e.begin, e.end - e.begin), shared_from_this());
}

void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, HostTensor>>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.storage() != Storage::Plain) throw UserError("{}: {} blocks cannot be written to safetensors", name, name_of(tensor.storage()));
    if (header.contains(name)) throw UserError("{}: tensor {} is given twice", path.string(), name);
    const char* dtype = "";
    for (const TypeName& t : kTypes)
      if (t.dtype == tensor.dtype()) dtype = t.name;
    header[name] = {{"dtype", dtype}, {"shape", tensor.shape().to_vector()}, {"data_offsets", {at, at + tensor.bytes().size()}}};
    at += tensor.bytes().size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // readers map the tensors: keep them aligned
  const uint64_t length = text.size();
  AtomicFileWriter file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const auto& [name, tensor] : tensors) file.write(tensor.bytes());
  file.commit();
}

std::map<std::string, HostTensor> read_safetensors(const std::filesystem::path& path) {
  const auto file = SafetensorsFile::open(path);
  std::map<std::string, HostTensor> out;
  for (const auto& [name, entry] : file->entries()) out.emplace(name, file->tensor(name));
  return out;
}

}  // namespace hierarchos::formats
