#include "formats/gguf.h"

#include <bit>
#include <cstring>

namespace hierarchos::formats {
namespace {

enum Kind : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

struct TensorType {
  uint32_t number;
  const char* name;
  bool readable;
  DType dtype;
  Storage storage;
  int64_t elements, bytes;  // a block
};
constexpr TensorType kTypes[] = {
    {0, "F32", true, DType::F32, Storage::Plain, 1, 4},       {1, "F16", true, DType::F16, Storage::Plain, 1, 2},
    {2, "Q4_0", true, DType::F32, Storage::Q4_0, 32, 18},     {3, "Q4_1", true, DType::F32, Storage::Q4_1, 32, 20},
    {6, "Q5_0", true, DType::F32, Storage::Q5_0, 32, 22},     {7, "Q5_1", true, DType::F32, Storage::Q5_1, 32, 24},
    {8, "Q8_0", true, DType::F32, Storage::Q8_0, 32, 34},     {9, "Q8_1", false, DType::F32, Storage::Plain, 32, 36},
    {10, "Q2_K", true, DType::F32, Storage::Q2_K, 256, 84},   {11, "Q3_K", true, DType::F32, Storage::Q3_K, 256, 110},
    {12, "Q4_K", true, DType::F32, Storage::Q4_K, 256, 144},  {13, "Q5_K", true, DType::F32, Storage::Q5_K, 256, 176},
    {14, "Q6_K", true, DType::F32, Storage::Q6_K, 256, 210},  {20, "IQ4_NL", true, DType::F32, Storage::IQ4_NL, 32, 18},
    {24, "I8", true, DType::I8, Storage::Plain, 1, 1},        {25, "I16", true, DType::I16, Storage::Plain, 1, 2},
    {26, "I32", true, DType::I32, Storage::Plain, 1, 4},      {27, "I64", true, DType::I64, Storage::Plain, 1, 8},
    {28, "F64", true, DType::F64, Storage::Plain, 1, 8},      {30, "BF16", true, DType::BF16, Storage::Plain, 1, 2},
};

const TensorType* type_of(uint32_t number) {
  for (const TensorType& t : kTypes)
    if (t.number == number) return &t;
  return nullptr;
}

}  // namespace

void GgufFile::fail(const std::string& what) const { throw DataError("{}: {}", path_.string(), what); }

// Reads little-endian fields, each checked against what is left.
class GgufFile::Reader {
 public:
  explicit Reader(const GgufFile& file) : file_(file), bytes_(file.file_.bytes()) {}

  template <typename T>
  T number(const char* field) {
    if (left() < sizeof(T)) file_.fail(fmt::format("the file ends inside {}", field));
    T v;
    std::memcpy(&v, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return v;
  }

  std::string string(const char* field) {
    const auto length = number<uint64_t>(field);
    if (length > left()) file_.fail(fmt::format("{}: a string of {} bytes in a file that has {} left", field, length, left()));
    std::string s(reinterpret_cast<const char*>(bytes_.data()) + at_, static_cast<size_t>(length));
    at_ += static_cast<size_t>(length);
    return s;
  }

  GgufValue value(uint32_t kind, const std::string& key, int depth) {
    const char* field = key.c_str();
    switch (kind) {
      case kU8: return {static_cast<int64_t>(number<uint8_t>(field))};
      case kI8: return {static_cast<int64_t>(number<int8_t>(field))};
      case kU16: return {static_cast<int64_t>(number<uint16_t>(field))};
      case kI16: return {static_cast<int64_t>(number<int16_t>(field))};
      case kU32: return {static_cast<int64_t>(number<uint32_t>(field))};
      case kI32: return {static_cast<int64_t>(number<int32_t>(field))};
      case kI64: return {number<int64_t>(field)};
      case kU64: {
        const auto v = number<uint64_t>(field);
        if (v > INT64_MAX) file_.fail(fmt::format("{}: {} is too large", key, v));
        return {static_cast<int64_t>(v)};
      }
      case kF32: return {static_cast<double>(number<float>(field))};
      case kF64: return {number<double>(field)};
      case kBool: {
        const auto v = number<uint8_t>(field);
        if (v > 1) file_.fail(fmt::format("{}: {} is no boolean", key, v));
        return {v == 1};
      }
      case kString: return {string(field)};
      case kArray: {
        if (depth > 8) file_.fail(fmt::format("{}: arrays nested more than 8 deep", key));
        const auto inner = number<uint32_t>(field);
        const auto count = number<uint64_t>(field);
        if (inner > kF64) file_.fail(fmt::format("{}: unknown value type {}", key, inner));
        constexpr size_t kLeast[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // bytes of the smallest element
        if (count > left() / kLeast[inner]) file_.fail(fmt::format("{}: an array of {} elements in a file that has {} bytes left", key, count, left()));
        GgufValue::Array array;
        array.reserve(static_cast<size_t>(count));
        for (uint64_t i = 0; i < count; ++i) array.push_back(value(inner, key, depth + 1));
        return {std::move(array)};
      }
      default: file_.fail(fmt::format("{}: unknown value type {}", key, kind));
    }
  }

  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

 private:
  const GgufFile& file_;
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

std::shared_ptr<const GgufFile> GgufFile::open(const std::filesystem::path& path) {
  auto file = std::make_shared<GgufFile>();
  file->path_ = path;
  file->file_ = MappedFile(path);
  file->parse();
  return file;
}

void GgufFile::parse() {
  static_assert(std::endian::native == std::endian::little);
  Reader in(*this);
  if (in.number<uint32_t>("the magic number") != 0x46554747) fail("this is no GGUF file");
  const auto version = in.number<uint32_t>("the version");
  if (version != 2 && version != 3) {
    if (version == __builtin_bswap32(2) || version == __builtin_bswap32(3)) throw UnsupportedError("{}: a big-endian GGUF file", path_.string());
    throw UnsupportedError("{}: GGUF version {}; 2 and 3 are read", path_.string(), version);
  }
  const auto tensors = in.number<uint64_t>("the tensor count"), pairs = in.number<uint64_t>("the metadata count");
  // The smallest entries take 12 and 24 bytes.
  if (pairs > in.left() / 12) fail(fmt::format("{} metadata entries in {} bytes", pairs, in.left()));
  if (tensors > in.left() / 24) fail(fmt::format("{} tensors in {} bytes", tensors, in.left()));
  for (uint64_t i = 0; i < pairs; ++i) {
    std::string key = in.string("a metadata key");
    const auto kind = in.number<uint32_t>(key.c_str());
    GgufValue value = in.value(kind, key, 0);
    if (!metadata_.emplace(key, std::move(value)).second) fail(fmt::format("metadata key {} occurs twice", key));
  }
  const int64_t alignment = integer("general.alignment", 32);
  if (alignment < 8 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0) fail(fmt::format("general.alignment is {}", alignment));
  for (uint64_t i = 0; i < tensors; ++i) {
    std::string name = in.string("a tensor name");
    const auto rank = in.number<uint32_t>(name.c_str());
    if (rank > 4) fail(fmt::format("tensor {} has {} axes", name, rank));
    std::vector<int64_t> dims;
    for (uint32_t d = 0; d < rank; ++d) {
      const auto extent = in.number<uint64_t>(name.c_str());
      if (extent > INT64_MAX) fail(fmt::format("tensor {} has an extent of {}", name, extent));
      dims.insert(dims.begin(), static_cast<int64_t>(extent));  // ggml names the innermost first
    }
    Entry e;
    e.type = in.number<uint32_t>(name.c_str());
    const auto offset = in.number<uint64_t>(name.c_str());
    const TensorType* type = type_of(e.type);
    e.shape = Shape(dims);
    int64_t elements = 1;
    for (int64_t d : dims)
      if (__builtin_mul_overflow(elements, d, &elements)) fail(fmt::format("tensor {} is too large", name));
    if (type) {
      e.readable = type->readable;
      e.dtype = type->dtype;
      e.storage = type->storage;
      const int64_t row = rank == 0 ? 1 : dims.back();
      if (row % type->elements != 0) fail(fmt::format("tensor {}: rows of {} do not divide into {} blocks", name, row, type->name));
      int64_t bytes;
      if (__builtin_mul_overflow(elements / type->elements, type->bytes, &bytes)) fail(fmt::format("tensor {} is too large", name));
      e.bytes = static_cast<size_t>(bytes);
    }
    if (offset % static_cast<uint64_t>(alignment) != 0) fail(fmt::format("tensor {} lies at {}, which is not a multiple of {}", name, offset, alignment));
    e.begin = offset;
    if (!entries_.emplace(name, std::move(e)).second) fail(fmt::format("tensor {} occurs twice", name));
  }
  const auto a = static_cast<size_t>(alignment);
  const size_t data = (in.at() + a - 1) / a * a, size = file_.bytes().size();
  for (auto& [name, e] : entries_) {
    if (data > size || e.begin > size - data || e.bytes > size - data - e.begin)
      fail(fmt::format("tensor {} ends beyond the file's {} bytes: the file is cut off", name, size));
    e.begin += data;
  }
}

const GgufValue* GgufFile::find(const std::string& key) const {
  auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

namespace {

template <typename T>
const T* as(const GgufValue* value) {
  return value ? std::get_if<T>(&value->data) : nullptr;
}

}  // namespace

int64_t GgufFile::integer(const std::string& key) const {
  const auto* v = as<int64_t>(find(key));
  if (!v) fail(fmt::format("metadata key {} is absent or no integer", key));
  return *v;
}

double GgufFile::number(const std::string& key) const {
  if (const auto* i = as<int64_t>(find(key))) return static_cast<double>(*i);
  const auto* v = as<double>(find(key));
  if (!v) fail(fmt::format("metadata key {} is absent or no number", key));
  return *v;
}

bool GgufFile::flag(const std::string& key, bool fallback) const {
  if (!find(key)) return fallback;
  const auto* v = as<bool>(find(key));
  if (!v) fail(fmt::format("metadata key {} is no boolean", key));
  return *v;
}

std::string GgufFile::text(const std::string& key) const {
  const auto* v = as<std::string>(find(key));
  if (!v) fail(fmt::format("metadata key {} is absent or no string", key));
  return *v;
}

std::vector<std::string> GgufFile::texts(const std::string& key) const {
  const auto* array = as<GgufValue::Array>(find(key));
  if (!array) fail(fmt::format("metadata key {} is absent or no array", key));
  std::vector<std::string> out;
  out.reserve(array->size());
  for (const GgufValue& v : *array) {
    const auto* s = as<std::string>(&v);
    if (!s) fail(fmt::format("metadata key {} holds something that is no string", key));
    out.push_back(*s);
  }
  return out;
}

std::vector<int64_t> GgufFile::integers(const std::string& key) const {
  const auto* array = as<GgufValue::Array>(find(key));
  if (!array) fail(fmt::format("metadata key {} is absent or no array", key));
  std::vector<int64_t> out;
  out.reserve(array->size());
  for (const GgufValue& v : *array) {
    const auto* i = as<int64_t>(&v);
    if (!i) fail(fmt::format("metadata key {} holds something that is no integer", key));
    out.push_back(*i);
  }
  return out;
}

HostTensor GgufFile::tensor(const std::string& name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError("{}: there is no tensor {}", path_.string(), name);
  const Entry& e = found->second;
  if (!e.readable) {
    const TensorType* type = type_of(e.type);
    throw UnsupportedError("{}: tensor {} has ggml's type {}, which is not read", path_.string(), name,
                           type ? type->name : std::to_string(e.type));
  }
  return HostTensor(e.dtype, e.shape, e.storage, file_.bytes().subspan(e.begin, e.bytes), shared_from_this());
}

}  // namespace hierarchos::formats
