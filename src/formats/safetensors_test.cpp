#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/os/file.h"

namespace hierarchos::formats {
namespace {

std::shared_ptr<const SafetensorsFile> parse_bytes(const std::string& bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes.size());
  std::transform(bytes.begin(), bytes.end(), owner->begin(), [](char c) { return static_cast<std::byte>(c); });
  return SafetensorsFile::parse("test.safetensors", *owner, owner);
}
std::string file_of(const std::string& header, size_t data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data, '\0');
}
std::shared_ptr<const SafetensorsFile> parse(const std::string& header, size_t data) {
  return parse_bytes(file_of(header, data));
}
void expect_error(const std::string& header, size_t data, const std::string& text) {
  try {
    parse(header, data);
    ADD_FAILURE() << header;
  } catch (const DataError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("test.safetensors"), std::string::npos) << what;
    EXPECT_NE(what.find(text), std::string::npos) << what;
  }
}
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "a.safetensors";
  std::vector<std::pair<std::string, HostTensor>> tensors = {
      {"bytes", HostTensor::from<uint8_t>(DType::U8, {3}, {1, 2, 3})},
      {"a \"quoted\" ü", HostTensor::from<float>(DType::F32, {2, 1}, {0.5f, -1})},
      {"scalar", HostTensor::from<int64_t>(DType::I64, {}, {-9})},
      {"half", HostTensor::from<uint16_t>(DType::BF16, {1}, {0x3F80})},
      {"empty", HostTensor(DType::F64, {0, 4})},
      {"truth", HostTensor::from<uint8_t>(DType::Bool, {2}, {0, 1})},
  };
  write_safetensors(path, tensors, {{"format", "pt"}, {"key\n", "täxt"}});
  auto f = SafetensorsFile::open(path);
  EXPECT_EQ(f->metadata(), (std::map<std::string, std::string>{{"format", "pt"}, {"key\n", "täxt"}}));
  EXPECT_EQ(f->entries().size(), tensors.size());
  for (const auto& [name, t] : tensors) {
    const HostTensor got = f->tensor(name);
    EXPECT_EQ(got.dtype(), t.dtype());
    EXPECT_EQ(got.shape(), t.shape());
    EXPECT_EQ(got.to_doubles(), t.to_doubles());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(got.bytes().data()) % size_of(t.dtype()), 0u);
  }
  const HostTensor kept = f->tensor("bytes");
  f.reset();
  EXPECT_EQ(kept.to_doubles(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(read_safetensors(path).size(), tensors.size());
  write_safetensors(path, {});
  EXPECT_TRUE(SafetensorsFile::open(path)->entries().empty());
}

TEST(Safetensors, WriterRefuses) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "a.safetensors";
  const HostTensor x(DType::F32, {1});
  EXPECT_THROW(write_safetensors(path, {{"x", x}, {"x", x}}), UserError);
  EXPECT_THROW(write_safetensors(path, {{"__metadata__", x}}), UserError);
  EXPECT_THROW(write_safetensors(path, {{"\xff", x}}), UserError);
  EXPECT_THROW(write_safetensors(path, {{"x", HostTensor(DType::F32, {32}, Storage::Q4_0)}}), UserError);
  EXPECT_FALSE(file_exists(path));
}

TEST(Safetensors, UnalignedTensorsAreCopied) {
  const auto f = parse("{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "F32", "[2]", "[1,9]") + "}", 9);
  EXPECT_EQ(f->tensor("b").to_doubles(), (std::vector<double>{0, 0}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(f->tensor("b").bytes().data()) % 4, 0u);
}

TEST(Safetensors, ForeignTypesAreRefusedWhenAskedFor) {
  const auto f = parse("{" + entry("ours", "F32", "[1]", "[0,4]") + "," + entry("f8", "F8_E4M3", "[3]", "[4,7]") + "," +
                           entry("f4", "F4", "[2]", "[7,8]") + "," + entry("new", "F3_X", "[9]", "[8,10]") + "," +
                           entry("deep", "U8", "[1,1,1,1,1,1,1]", "[10,11]") + "}",
                       11);
  EXPECT_EQ(f->tensor("ours").to_doubles()[0], 0);
  for (const char* name : {"f8", "f4", "new", "deep"}) {
    try {
      f->tensor(name);
      ADD_FAILURE() << name;
    } catch (const UnsupportedError& e) {
      EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(f->tensor("absent"), UserError);
}

TEST(Safetensors, MalformedHeaders) {
  EXPECT_THROW(parse_bytes(""), DataError);
  EXPECT_THROW(parse_bytes(std::string(7, '\0')), DataError);
  EXPECT_THROW(parse_bytes(std::string(8, '\0')), DataError);
  EXPECT_THROW(parse_bytes(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)), DataError);
  EXPECT_THROW(parse_bytes(std::string("\3\0\0\0\0\0\0\0{}", 10)), DataError);
  EXPECT_THROW(parse_bytes(std::string("\1\xe1\xf5\5\0\0\0\0{}", 10)), DataError);  // 100,000,001
  expect_error("", 0, "does not begin with {");
  expect_error(" {}", 0, "does not begin with {");
  expect_error("[]", 0, "does not begin with {");
  expect_error("{", 0, "");
  expect_error("{}}", 0, "");
  expect_error("{\"a\":1}", 0, "tensor a: its entry is no object");
  expect_error("{\"__float__\":\"NaN\"}", 0, "no object");
  expect_error("{\"a\":{\"shape\":[],\"data_offsets\":[0,0]}}", 0, "tensor a: dtype is missing");
  expect_error("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("a", "F32", "[1]", "[0,4]") + "}", 4,
               "stands twice");
  expect_error("{\"__metadata__\":3}", 0, "__metadata__");
  expect_error("{\"__metadata__\":{\"k\":3}}", 0, "no string");
  expect_error("{\"\xff\":1}", 0, "");
  EXPECT_NO_THROW(parse("{}   \n", 0));
  for (const char* shape : {"[-1]", "[1.0]", "[\"1\"]", "1", "null", "[[1]]"})
    expect_error("{" + entry("a", "F32", shape, "[0,4]") + "}", 4, "tensor a: shape");
  for (const char* offsets : {"[0]", "[0,4,4]", "[-4,0]", "[0,4.0]", "{}", "[0,null]"})
    expect_error("{" + entry("a", "F32", "[1]", offsets) + "}", 4, "tensor a: data_offsets");
}

TEST(Safetensors, MalformedLayouts) {
  expect_error("{" + entry("a", "F32", "[1]", "[0,4]") + "}", 3, "data_offsets 0 to 4");
  expect_error("{" + entry("a", "F32", "[1]", "[4,0]") + "}", 4, "data_offsets 4 to 0");
  expect_error("{" + entry("a", "F32", "[1]", "[0,18446744073709551615]") + "}", 4, "data_offsets");
  expect_error("{" + entry("a", "F32", "[2]", "[0,4]") + "}", 4, "need 8 bytes, data_offsets give 4");
  expect_error("{" + entry("a", "F4", "[3]", "[0,2]") + "}", 2, "need 1.5 bytes");
  expect_error("{" + entry("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}", 0, "too large");
  expect_error("{" + entry("a", "F32", "[0,4294967296,4294967296]", "[0,0]") + "}", 0, "too large");
  expect_error("{" + entry("a", "F32", "[4611686018427387904]", "[0,0]") + "}", 0, "too large");
  expect_error("{" + entry("a", "F32", "[18446744073709551615]", "[0,4]") + "}", 4, "too large");
  expect_error("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[0,4]") + "}", 4, "overlap");
  expect_error("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[2,6]") + "}", 6, "overlap");
  expect_error("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[5,9]") + "}", 9, "hole");
  expect_error("{" + entry("a", "F32", "[1]", "[1,5]") + "}", 5, "hole");
  expect_error("{" + entry("a", "F32", "[1]", "[0,4]") + "}", 5, "1 bytes after the last tensor");
  expect_error("{}", 1, "1 bytes after the last tensor");
  EXPECT_NO_THROW(parse("{" + entry("b", "F32", "[1]", "[4,8]") + "," + entry("a", "F32", "[1]", "[0,4]") + "," +
                            entry("z", "F32", "[0]", "[4,4]") + "}",
                        8));
}

}  // namespace
}  // namespace hierarchos::formats
