#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

#include "base/os/file.h"
#include "formats/shown.h"

namespace hierarchos::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr int kMaxNesting = 8;

// Types of metadata values, as the format numbers them.
enum Kind : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
// Bytes of a value; of strings and arrays, of the smallest.
constexpr size_t kLeastBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
bool has_fixed_size(uint32_t kind) { return kind != kString && kind != kArray; }

struct TensorType {
  uint32_t number;
  const char* name;
  std::optional<std::pair<DType, Storage>> ours;
  int64_t elements, bytes;  // a block
};
constexpr std::pair<DType, Storage> plain(DType dtype) { return {dtype, Storage::Plain}; }
constexpr std::pair<DType, Storage> blocks(Storage storage) { return {DType::F32, storage}; }
constexpr TensorType kTypes[] = {
    {0, "F32", plain(DType::F32), 1, 4},
    {1, "F16", plain(DType::F16), 1, 2},
    {2, "Q4_0", blocks(Storage::Q4_0), 32, 18},
    {3, "Q4_1", blocks(Storage::Q4_1), 32, 20},
    {6, "Q5_0", blocks(Storage::Q5_0), 32, 22},
    {7, "Q5_1", blocks(Storage::Q5_1), 32, 24},
    {8, "Q8_0", blocks(Storage::Q8_0), 32, 34},
    {9, "Q8_1", {}, 32, 36},
    {10, "Q2_K", blocks(Storage::Q2_K), 256, 84},
    {11, "Q3_K", blocks(Storage::Q3_K), 256, 110},
    {12, "Q4_K", blocks(Storage::Q4_K), 256, 144},
    {13, "Q5_K", blocks(Storage::Q5_K), 256, 176},
    {14, "Q6_K", blocks(Storage::Q6_K), 256, 210},
    {15, "Q8_K", {}, 256, 292},
    {16, "IQ2_XXS", {}, 256, 66},
    {17, "IQ2_XS", {}, 256, 74},
    {18, "IQ3_XXS", {}, 256, 98},
    {19, "IQ1_S", {}, 256, 50},
    {20, "IQ4_NL", blocks(Storage::IQ4_NL), 32, 18},
    {21, "IQ3_S", {}, 256, 110},
    {22, "IQ2_S", {}, 256, 82},
    {23, "IQ4_XS", {}, 256, 136},
    {24, "I8", plain(DType::I8), 1, 1},
    {25, "I16", plain(DType::I16), 1, 2},
    {26, "I32", plain(DType::I32), 1, 4},
    {27, "I64", plain(DType::I64), 1, 8},
    {28, "F64", plain(DType::F64), 1, 8},
    {29, "IQ1_M", {}, 256, 56},
    {30, "BF16", plain(DType::BF16), 1, 2},
    {34, "TQ1_0", {}, 256, 54},
    {35, "TQ2_0", {}, 256, 66},
    {39, "MXFP4", {}, 32, 17},
};

const TensorType* type_of(uint32_t number) {
  for (const TensorType& t : kTypes)
    if (t.number == number) return &t;
  return nullptr;
}

}  // namespace

void GgufFile::fail(const std::string& what) const { throw DataError("{}: {}", where_, what); }

// Reads fields one after another, each checked against what is left. `field` names them in errors.
class GgufFile::Reader {
 public:
  Reader(const GgufFile& file, std::span<const std::byte> bytes) : file_(file), bytes_(bytes) {}

  template <typename T>
  T number(std::string_view field) {
    T v;
    std::memcpy(&v, take(sizeof(T), field).data(), sizeof(T));
    return v;
  }

  std::string_view string(std::string_view field) {
    const auto length = number<uint64_t>(field);
    if (length > left())
      file_.fail(fmt::format("{}: a string of {} bytes where {} are left", shown(field), length, left()));
    const auto bytes = take(static_cast<size_t>(length), field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  GgufValue value(uint32_t kind, std::string_view key, int depth = 0) {
    switch (kind) {
      case kU8:
        return {static_cast<int64_t>(number<uint8_t>(key))};
      case kI8:
        return {static_cast<int64_t>(number<int8_t>(key))};
      case kU16:
        return {static_cast<int64_t>(number<uint16_t>(key))};
      case kI16:
        return {static_cast<int64_t>(number<int16_t>(key))};
      case kU32:
        return {static_cast<int64_t>(number<uint32_t>(key))};
      case kI32:
        return {static_cast<int64_t>(number<int32_t>(key))};
      case kI64:
        return {number<int64_t>(key)};
      case kU64: {
        const auto v = number<uint64_t>(key);
        if (v > INT64_MAX) return {v};
        return {static_cast<int64_t>(v)};
      }
      case kF32:
        return {static_cast<double>(number<float>(key))};
      case kF64:
        return {number<double>(key)};
      case kBool: {
        const auto v = number<uint8_t>(key);
        if (v > 1) file_.fail(fmt::format("{}: {} is no boolean", shown(key), v));
        return {v == 1};
      }
      case kString:
        return {std::string(string(key))};
      case kArray:
        return {array(key, depth)};
      default:
        file_.fail(fmt::format("{}: unknown value type {}", shown(key), kind));
    }
  }

  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const std::byte> take(size_t count, std::string_view field) {
    if (left() < count) file_.fail(fmt::format("the file ends inside {}", shown(field)));
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }

  GgufArray array(std::string_view key, int depth) {
    GgufArray out;
    out.kind = number<uint32_t>(key);
    out.count = number<uint64_t>(key);
    if (out.kind > kF64) file_.fail(fmt::format("{}: unknown value type {}", shown(key), out.kind));
    if (depth >= kMaxNesting) file_.fail(fmt::format("{}: arrays nested more than {} deep", shown(key), kMaxNesting));
    if (out.count > left() / kLeastBytes[out.kind])
      file_.fail(fmt::format("{}: an array of {} elements where {} bytes are left", shown(key), out.count, left()));
    const size_t begin = at_;
    if (has_fixed_size(out.kind)) {
      out.bytes = take(static_cast<size_t>(out.count) * kLeastBytes[out.kind], key);
      if (out.kind == kBool &&
          std::any_of(out.bytes.begin(), out.bytes.end(), [](std::byte b) { return b > std::byte{1}; }))
        file_.fail(fmt::format("{}: an element is no boolean", shown(key)));
      return out;
    }
    for (uint64_t i = 0; i < out.count; ++i) {
      if (out.kind == kString)
        string(key);
      else
        array(key, depth + 1);
    }
    out.bytes = bytes_.subspan(begin, at_ - begin);
    return out;
  }

  const GgufFile& file_;
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

std::shared_ptr<const GgufFile> GgufFile::open(const std::filesystem::path& path) {
  auto map = std::make_shared<MappedFile>(path);
  return parse(path.string(), map->bytes(), map);
}

std::shared_ptr<const GgufFile> GgufFile::parse(std::string where, std::span<const std::byte> bytes,
                                                std::shared_ptr<const void> owner) {
  auto file = std::make_shared<GgufFile>();
  file->where_ = std::move(where);
  file->bytes_ = bytes;
  file->owner_ = std::move(owner);
  file->read();
  return file;
}

void GgufFile::read() {
  Reader in(*this, bytes_);
  if (in.number<uint32_t>("the magic number") != kMagic) fail("this is no GGUF file");
  const auto version = in.number<uint32_t>("the version");
  if (version == __builtin_bswap32(2) || version == __builtin_bswap32(3))
    throw UnsupportedError("{}: a big-endian GGUF file; convert it with gguf-convert-endian", where_);
  if (version != 2 && version != 3) throw UnsupportedError("{}: GGUF version {}; 2 and 3 are read", where_, version);
  const auto tensors = in.number<uint64_t>("the tensor count"), pairs = in.number<uint64_t>("the metadata count");
  // The smallest entries take 24 and 13 bytes.
  if (tensors > in.left() / 24) fail(fmt::format("{} tensors in {} bytes", tensors, in.left()));
  if (pairs > in.left() / 13) fail(fmt::format("{} metadata entries in {} bytes", pairs, in.left()));
  for (uint64_t i = 0; i < pairs; ++i) {
    std::string key(in.string("a metadata key"));
    const auto kind = in.number<uint32_t>(key);
    GgufValue v = in.value(kind, key);
    if (!metadata_.emplace(key, std::move(v)).second) fail(fmt::format("metadata key {} occurs twice", shown(key)));
  }
  const int64_t alignment = integer("general.alignment", 32);
  if (alignment < 8 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0)
    fail(fmt::format("general.alignment is {}, not a power of two from 8 to 1048576", alignment));
  read_tensor_infos(in, tensors, static_cast<uint64_t>(alignment));
}

void GgufFile::read_tensor_infos(Reader& in, uint64_t count, uint64_t alignment) {
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name(in.string("a tensor name"));
    const auto bad = [&](const std::string& what) { fail(fmt::format("tensor {}: {}", shown(name), what)); };
    const auto rank = in.number<uint32_t>(name);
    if (rank > 4) bad(fmt::format("{} axes; ggml has at most 4", rank));
    std::vector<int64_t> dims(rank);
    int64_t elements = 1, reach = 1;  // reach: the product without extents of 0; Shape wants it to fit too
    for (uint32_t d = 0; d < rank; ++d) {
      const auto extent = in.number<uint64_t>(name);
      if (extent > INT64_MAX ||
          __builtin_mul_overflow(reach, std::max<int64_t>(static_cast<int64_t>(extent), 1), &reach))
        bad("its extents are too large");
      elements *= static_cast<int64_t>(extent);
      dims[rank - 1 - d] = static_cast<int64_t>(extent);  // ggml names the innermost first
    }
    Entry e;
    e.type = in.number<uint32_t>(name);
    e.begin = in.number<uint64_t>(name);
    e.shape = Shape(dims);
    if (const TensorType* type = type_of(e.type)) {
      e.readable = type->ours.has_value();
      if (type->ours) std::tie(e.dtype, e.storage) = *type->ours;
      const int64_t row = rank == 0 ? 1 : dims.back();
      if (row % type->elements != 0)
        bad(fmt::format("rows of {} do not divide into {} blocks of {}", row, type->name, type->elements));
      int64_t bytes;
      if (__builtin_mul_overflow(elements / type->elements, type->bytes, &bytes)) bad("its extents are too large");
      e.bytes = static_cast<size_t>(bytes);
    }
    if (e.begin % alignment != 0) bad(fmt::format("its offset {} is not a multiple of {}", e.begin, alignment));
    if (!entries_.emplace(name, e).second) fail(fmt::format("tensor {} occurs twice", shown(name)));
  }

  const size_t data = (in.at() + alignment - 1) / alignment * alignment, size = bytes_.size();
  std::vector<std::pair<const std::string, Entry>*> order;
  for (auto& entry : entries_) {
    Entry& e = entry.second;
    if (data > size || e.begin > size - data || e.bytes > size - data - e.begin)
      fail(fmt::format("tensor {} ends beyond the file's {} bytes: the file is cut off", shown(entry.first), size));
    e.begin += data;
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::tie(a->second.begin, a->second.bytes) < std::tie(b->second.begin, b->second.bytes);
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->second.begin + order[i - 1]->second.bytes > order[i]->second.begin)
      fail(fmt::format("tensors {} and {} overlap", shown(order[i - 1]->first), shown(order[i]->first)));
}

const GgufValue& GgufFile::value(const std::string& key) const {
  auto found = metadata_.find(key);
  if (found == metadata_.end()) fail(fmt::format("metadata key {} is absent", key));
  return found->second;
}

int64_t GgufFile::integer(const std::string& key) const {
  const auto* v = std::get_if<int64_t>(&value(key).data);
  if (!v) fail(fmt::format("metadata key {} is no integer that fits", key));
  return *v;
}

double GgufFile::number(const std::string& key) const {
  const GgufValue& v = value(key);
  if (const auto* i = std::get_if<int64_t>(&v.data)) return static_cast<double>(*i);
  const auto* d = std::get_if<double>(&v.data);
  if (!d) fail(fmt::format("metadata key {} is no number", key));
  return *d;
}

bool GgufFile::flag(const std::string& key, bool fallback) const {
  if (!has(key)) return fallback;
  const auto* v = std::get_if<bool>(&value(key).data);
  if (!v) fail(fmt::format("metadata key {} is no boolean", key));
  return *v;
}

std::string GgufFile::text(const std::string& key) const {
  const auto* v = std::get_if<std::string>(&value(key).data);
  if (!v) fail(fmt::format("metadata key {} is no string", key));
  return *v;
}

std::vector<GgufValue> GgufFile::elements(const GgufArray& array) const {
  Reader in(*this, array.bytes);
  std::vector<GgufValue> out;
  out.reserve(static_cast<size_t>(array.count));
  for (uint64_t i = 0; i < array.count; ++i) out.push_back(in.value(array.kind, "an array"));
  return out;
}

template <typename T, typename Convert>
std::vector<T> GgufFile::array(const std::string& key, const char* kind, Convert convert) const {
  const auto* array = std::get_if<GgufArray>(&value(key).data);
  if (!array) fail(fmt::format("metadata key {} is no array", key));
  Reader in(*this, array->bytes);
  std::vector<T> out;
  out.reserve(static_cast<size_t>(array->count));
  for (uint64_t i = 0; i < array->count; ++i) {
    GgufValue v = in.value(array->kind, key);
    std::optional<T> converted = convert(v);
    if (!converted) fail(fmt::format("metadata key {} holds something that is no {}", key, kind));
    out.push_back(std::move(*converted));
  }
  return out;
}

std::vector<std::string> GgufFile::texts(const std::string& key) const {
  return array<std::string>(key, "string", [](GgufValue& v) -> std::optional<std::string> {
    if (auto* s = std::get_if<std::string>(&v.data)) return std::move(*s);
    return {};
  });
}

std::vector<int64_t> GgufFile::integers(const std::string& key) const {
  return array<int64_t>(key, "integer that fits", [](const GgufValue& v) -> std::optional<int64_t> {
    if (const auto* i = std::get_if<int64_t>(&v.data)) return *i;
    return {};
  });
}

std::vector<double> GgufFile::numbers(const std::string& key) const {
  return array<double>(key, "number", [](const GgufValue& v) -> std::optional<double> {
    if (const auto* d = std::get_if<double>(&v.data)) return *d;
    if (const auto* i = std::get_if<int64_t>(&v.data)) return static_cast<double>(*i);
    return {};
  });
}

HostTensor GgufFile::tensor(const std::string& name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError("{}: there is no tensor {}", where_, name);
  const Entry& e = found->second;
  if (!e.readable) {
    const TensorType* type = type_of(e.type);
    throw UnsupportedError("{}: tensor {} has ggml's type {}, which is not read", where_, name,
                           type ? type->name : std::to_string(e.type));
  }
  return HostTensor(e.dtype, e.shape, e.storage, bytes_.subspan(e.begin, e.bytes), shared_from_this());
}

}  // namespace hierarchos::formats
