#include "base/json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/os/file.h"

namespace hierarchos {
namespace {

using nlohmann::json;

std::string error_of(std::string_view text) {
  try {
    parse_json(text, "x.json");
  } catch (const DataError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Json, ParsesWhatTheLibraryParses) {
  for (const char* text :
       {"null", "true", " -12 ", "18446744073709551615", "-9223372036854775808", "1.5e-3", "\"\\u00e9\\ud83d\\ude00\\\\\\\"\"", "[]",
        "{}", "[1,[2,[3,{}]],\"\"]", "{\"a\":{\"b\":[null,false]},\"c\":\"NaN, Infinity\"}", "\xEF\xBB\xBF{\"bom\":1}",
        "{\"back\\\\\":1,\"q\\\"\":\"-Infinity\\\"\"}"}) {
    const json ours = parse_json(text, "x.json"), theirs = json::parse(text);
    EXPECT_EQ(ours, theirs) << text;
    EXPECT_EQ(ours.type(), theirs.type()) << text;
    EXPECT_EQ(parse_ordered_json(text, "x.json"), nlohmann::ordered_json::parse(text)) << text;
  }
}

TEST(Json, NonFiniteNumbers) {
  const double inf = std::numeric_limits<double>::infinity();
  const json j = parse_json(R"({"a": Infinity, "b": [-Infinity,NaN], "c": {"__float__": "-Infinity"},
                                "NaN": "Infinity", "d": -1, "e": {"__float__": "NaN"}})", "x.json");
  EXPECT_EQ(j["a"], inf);
  EXPECT_EQ(j["b"][0], -inf);
  EXPECT_TRUE(std::isnan(j["b"][1].get<double>()));
  EXPECT_TRUE(j["c"].is_number_float());
  EXPECT_EQ(j["c"], -inf);
  EXPECT_EQ(j["NaN"], "Infinity");
  EXPECT_EQ(j["d"], -1);
  EXPECT_TRUE(std::isnan(j["e"].get<double>()));
  EXPECT_TRUE(std::isnan(parse_json("NaN", "x").get<double>()));
  for (const double value : {inf, -inf, 0.1, -0.0, 1e300}) {
    const json back = parse_json(json_number(value).dump(), "x");
    EXPECT_EQ(back.get<double>(), value);
    EXPECT_TRUE(back.is_number_float());
  }
  EXPECT_TRUE(std::isnan(parse_json(json_number(std::nan("")).dump(), "x").get<double>()));
  // An object with more in it is an object.
  EXPECT_TRUE(parse_json(R"({"__float__": "NaN", "x": 1})", "x").is_object());
}

TEST(Json, ErrorsNameThePlace) {
  EXPECT_EQ(error_of("{\n  \"a\": 1,\n  \"a\": 2\n}"), "x.json:3:5: key 'a' stands twice in the same object");
  EXPECT_EQ(error_of("[{\"a\":1,\"b\":{\"a\":1},\"a\":3}]").substr(0, 12), "x.json:1:23:");
  EXPECT_EQ(error_of("{\n \"a\": NaN,\n \"b\": nope}").substr(0, 12), "x.json:3:8: ");
  EXPECT_EQ(error_of("[NaN, Infinity, -Infinity, x]").substr(0, 12), "x.json:1:28:");
  EXPECT_NE(error_of("{\"a\": 1").find("unexpected end of input"), std::string::npos);
  EXPECT_NE(error_of("").find("unexpected end of input"), std::string::npos);
  EXPECT_NE(error_of("1e999").find("number overflow"), std::string::npos);
  EXPECT_NE(error_of("{\"a\": {\"__float__\": \"big\"}}").find("must be \"NaN\", \"Infinity\""), std::string::npos);
  for (const char* text : {"[1,]", "{\"a\":1,}", "[1] 2", "NaNs", "Infinity1", "-NaN", "Inf", "--Infinity", "{NaN: 1}",
                           "'a'", "\"\x01\"", "\"\xff\"", "\"\\ud800\"", "01", "[", "\"abc", "\"abc\\", "tru", "// c\n1",
                           "-", "I", "N"})
    EXPECT_EQ(error_of(text).substr(0, 7), "x.json:") << text;
  const std::string deep(100000, '[');
  EXPECT_NE(error_of(deep).find("nested more than 500 deep"), std::string::npos);
}

TEST(Json, OrderIsKept) {
  EXPECT_EQ(parse_ordered_json(R"({"z":1,"a":[{"y":2,"b":3}]})", "x").dump(), R"({"z":1,"a":[{"y":2,"b":3}]})");
}

TEST(Json, LargeObjectsTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 100000; ++i) text += (i > 0 ? ",\"key" : "\"key") + std::to_string(i) + "\":" + std::to_string(i);
  text += "}";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_ordered_json(text, "x").size(), 100000u);
  EXPECT_EQ(parse_json(text, "x")["key777"], 777);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Json, Files) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "config.json";
  EXPECT_THROW(read_json_file(path), UserError);
  write_file_atomic(path, "{\"a\": [1, Infinity]}\n");
  EXPECT_EQ(read_json_file(path)["a"].size(), 2u);
  EXPECT_EQ(read_ordered_json_file(path)["a"][0], 1);
  write_file_atomic(path, "{\"a\" 1}\n");
  try {
    read_json_file(path);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_EQ(std::string(e.what()).find(path.string() + ":1:6: "), 0u) << e.what();
  }
}

}  // namespace
}  // namespace hierarchos
