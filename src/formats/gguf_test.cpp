#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <limits>

#include "formats/testing/gguf_builder.h"

namespace hierarchos::formats {
namespace {

using Builder = testing::GgufBuilder;

// The error of parsing, or "".
template <typename E = DataError>
std::string error_of(const std::string& bytes) {
  try {
    Builder::parse(bytes);
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find("test.gguf"), std::string::npos);
    return e.what();
  }
  return "";
}
std::string error_of(const Builder& b) { return error_of(b.bytes()); }
#define EXPECT_ERROR(builder, text) EXPECT_NE(error_of(builder).find(text), std::string::npos) << error_of(builder)

TEST(Gguf, AllKindsOfMetadata) {
  Builder b;
  b.pair("u8", Builder::U8, Builder::raw(uint8_t{200})).pair("i8", Builder::I8, Builder::raw(int8_t{-3}));
  b.pair("u16", Builder::U16, Builder::raw(uint16_t{60000})).pair("i16", Builder::I16, Builder::raw(int16_t{-300}));
  b.pair("u32", uint32_t{4000000000}).pair("i32", Builder::I32, Builder::raw(int32_t{-5}));
  b.pair("u64", Builder::U64, Builder::raw(uint64_t{7})).pair("i64", Builder::I64, Builder::raw(int64_t{-8}));
  b.pair("big", Builder::U64, Builder::raw(std::numeric_limits<uint64_t>::max()));
  b.pair("f32", 0.5f).pair("f64", Builder::F64, Builder::raw(0.1)).pair("yes", Builder::Bool, Builder::raw(uint8_t{1}));
  b.pair("text", "a\nb").pair("texts", Builder::Array, Builder::array<std::string>(Builder::String, {"x", "", "yz"}));
  b.pair("ints", Builder::Array, Builder::array<int16_t>(Builder::I16, {1, -2}));
  b.pair("floats", Builder::Array, Builder::array<float>(Builder::F32, {0.25f}));
  b.pair("none", Builder::Array, Builder::array<float>(Builder::F32, {}));
  b.pair("nested", Builder::Array,
         Builder::raw(uint32_t{Builder::Array}) + Builder::raw(uint64_t{2}) +
             Builder::array<uint8_t>(Builder::U8, {1, 2}) + Builder::array<std::string>(Builder::String, {"deep"}));
  for (uint32_t version : {2u, 3u}) {
    b.version = version;
    const auto f = b.parse();
    EXPECT_EQ(f->integer("u8"), 200);
    EXPECT_EQ(f->integer("i8"), -3);
    EXPECT_EQ(f->integer("u16"), 60000);
    EXPECT_EQ(f->integer("i16"), -300);
    EXPECT_EQ(f->integer("u32"), 4000000000);
    EXPECT_EQ(f->integer("i32"), -5);
    EXPECT_EQ(f->integer("u64"), 7);
    EXPECT_EQ(f->integer("i64"), -8);
    EXPECT_EQ(std::get<uint64_t>(f->metadata().at("big").data), std::numeric_limits<uint64_t>::max());
    EXPECT_THROW(f->integer("big"), DataError);
    EXPECT_EQ(f->number("f32"), 0.5);
    EXPECT_EQ(f->number("f64"), 0.1);
    EXPECT_EQ(f->number("i8"), -3);
    EXPECT_TRUE(f->flag("yes", false));
    EXPECT_TRUE(f->flag("absent", true));
    EXPECT_EQ(f->text("text"), "a\nb");
    EXPECT_EQ(f->texts("texts"), (std::vector<std::string>{"x", "", "yz"}));
    EXPECT_EQ(f->integers("ints"), (std::vector<int64_t>{1, -2}));
    EXPECT_EQ(f->numbers("floats"), (std::vector<double>{0.25}));
    EXPECT_TRUE(f->integers("none").empty());
    const auto nested = f->elements(std::get<GgufArray>(f->metadata().at("nested").data));
    ASSERT_EQ(nested.size(), 2u);
    EXPECT_EQ(std::get<int64_t>(f->elements(std::get<GgufArray>(nested[0].data))[1].data), 2);
    EXPECT_EQ(std::get<std::string>(f->elements(std::get<GgufArray>(nested[1].data))[0].data), "deep");
    EXPECT_EQ(f->integer("absent", 9), 9);
    EXPECT_THROW(f->integer("absent"), DataError);
    EXPECT_THROW(f->integer("text"), DataError);
    EXPECT_THROW(f->number("yes"), DataError);
    EXPECT_THROW(f->text("u8"), DataError);
    EXPECT_THROW(f->flag("u8", false), DataError);
    EXPECT_THROW(f->texts("ints"), DataError);
    EXPECT_THROW(f->integers("text"), DataError);
  }
}

TEST(Gguf, Tensors) {
  Builder b;
  std::string floats, q8(68, '\0');
  for (float v : {1, 2, 3, 4, 5, 6}) floats += Builder::raw(v);
  q8[1] = 0x3C;  // the first block's scale is 1
  q8[2 + 31] = 5;
  b.tensor("plain", {3, 2}, 0, floats).tensor("scalar", {}, 0, Builder::raw(7.0f)).tensor("blocks", {32, 2}, 8, q8);
  b.tensor("empty", {0, 2}, 0, "").tensor("iq", {256}, 16, std::string(66, '\0')).tensor("new", {5}, 99, "12345");
  const auto f = b.parse();
  EXPECT_EQ(f->tensor("plain").shape(), Shape({2, 3}));
  EXPECT_EQ(f->tensor("plain").to_doubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(f->tensor("scalar").to_doubles(), (std::vector<double>{7}));
  EXPECT_EQ(f->tensor("blocks").storage(), Storage::Q8_0);
  EXPECT_EQ(f->tensor("blocks").to_doubles()[31], 5);
  EXPECT_EQ(f->tensor("empty").bytes().size(), 0u);
  EXPECT_THROW(f->tensor("absent"), UserError);
  EXPECT_THROW(f->tensor("iq"), UnsupportedError);
  EXPECT_THROW(f->tensor("new"), UnsupportedError);
  EXPECT_EQ(f->entries().at("iq").shape, Shape({256}));
}

TEST(Gguf, TensorsOutliveTheFile) {
  Builder b;
  auto f = b.tensor("x", {2}, 0, Builder::raw(1.0f) + Builder::raw(2.0f)).parse();
  const HostTensor x = f->tensor("x");
  f.reset();
  EXPECT_EQ(x.to_doubles(), (std::vector<double>{1, 2}));
}

TEST(Gguf, EveryCutIsAnError) {
  Builder b;
  b.pair("a", "text").pair("list", Builder::Array, Builder::array<std::string>(Builder::String, {"p", "q"}));
  b.tensor("x", {8}, 0, std::string(32, 'x'));
  const std::string whole = b.bytes();
  ASSERT_EQ(error_of(whole), "");
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(error_of(whole.substr(0, n)), "") << n;
}

TEST(Gguf, Malformed) {
  const auto with = [](auto change) {
    Builder b;
    change(b);
    return b;
  };
  EXPECT_ERROR(with([](Builder& b) { b.magic = 1; }), "no GGUF file");
  EXPECT_ERROR(with([](Builder& b) { b.pair_count = UINT64_MAX; }), "metadata entries");
  EXPECT_ERROR(with([](Builder& b) { b.tensor_count = UINT64_MAX / 2; }), "tensors in");
  EXPECT_ERROR(with([](Builder& b) { b.pair("k", 1u).pair("k", 2u); }), "metadata key k occurs twice");
  EXPECT_ERROR(with([](Builder& b) { b.pair("k", Builder::Kind(77), ""); }), "k: unknown value type 77");
  EXPECT_ERROR(with([](Builder& b) { b.pair("k", Builder::Bool, "\2"); }), "k: 2 is no boolean");
  EXPECT_ERROR(with([](Builder& b) { b.pair("k", Builder::String, Builder::raw(UINT64_MAX)); }), "k: a string of");
  EXPECT_ERROR(
      with([](Builder& b) { b.pair("k", Builder::Array, Builder::raw(5u) + Builder::raw(UINT64_MAX / 4 + 2)); }),
      "k: an array of");
  EXPECT_ERROR(with([](Builder& b) { b.pair("k", Builder::Array, Builder::raw(13u) + Builder::raw(uint64_t{0})); }),
               "unknown value type 13");
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += Builder::raw(uint32_t{Builder::Array}) + Builder::raw(uint64_t{1});
  EXPECT_ERROR(with([&](Builder& b) { b.pair("k", Builder::Array, deep); }), "nested more than");
  EXPECT_ERROR(with([](Builder& b) { b.pair("general.alignment", 48u); }), "general.alignment is 48");
  EXPECT_ERROR(with([](Builder& b) { b.pair("general.alignment", 0u); }), "general.alignment is 0");
  EXPECT_ERROR(with([](Builder& b) { b.pair("general.alignment", "32"); }), "general.alignment is no integer");

  const std::string data(64, 'x');
  EXPECT_ERROR(with([&](Builder& b) { b.tensor("x", {4}, 0, data).tensor("x", {4}, 0, data); }),
               "tensor x occurs twice");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor("x", {1, 1, 1, 1, 1}, 0, data); }), "5 axes");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor("x", {17}, 0, data); }), "cut off");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor("x", {33}, 8, data); }), "do not divide");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor("x", {uint64_t{1} << 32, uint64_t{1} << 32}, 0, data); }), "too large");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor("x", {uint64_t{1} << 62}, 0, data); }), "too large");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor("x", {UINT64_MAX}, 0, data); }), "too large");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor_at("x", {4}, 0, 4, data); }), "not a multiple of 32");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor_at("x", {4}, 0, 0ull - 32, data); }), "cut off");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor("x", {16}, 0, data).tensor_at("y", {4}, 0, 32, data); }),
               "x and y overlap");
  EXPECT_ERROR(with([&](Builder& b) { b.tensor("x\x1b[2J", {17}, 0, data); }), "x\\x1b[2J");
}

TEST(Gguf, OtherVersions) {
  for (uint32_t version : {1u, 4u, 0x03000000u}) {
    Builder b;
    b.version = version;
    EXPECT_NE(error_of<UnsupportedError>(b.bytes()), "") << version;
  }
}

TEST(Gguf, Alignment) {
  Builder b;
  b.alignment = 64;
  b.pair("general.alignment", 64u).tensor("x", {1}, 0, Builder::raw(1.0f)).tensor("y", {1}, 0, Builder::raw(2.0f));
  const auto f = b.parse();
  EXPECT_EQ(f->tensor("y").to_doubles()[0], 2);
  EXPECT_EQ(f->entries().at("y").begin - f->entries().at("x").begin, 64u);
}

}  // namespace
}  // namespace hierarchos::formats
