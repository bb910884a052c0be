// --serve: answers requests, one JSON a line, so that a fuzzer in another language can compare. A request has "file"
// (the text of a tokenizer.json), "texts", "pairs", "ids" (to decode) and "streams" (ids to decode one by one).
#include "serve.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/pipeline.h"

namespace hierarchos::text_golden {
namespace {

using namespace tokenizers;
using nlohmann::json;

json to_json(const Encoding& e) {
  json offsets = json::array(), over = json::array();
  for (const Offsets& o : e.offsets) offsets.push_back(o.begin), offsets.push_back(o.end);
  for (const Encoding& window : e.overflowing) over.push_back(to_json(window));
  return {{"ids", e.ids},
          {"off", offsets},
          {"types", e.type_ids},
          {"mask", e.special_mask},
          {"att", e.attention_mask},
          {"seq", e.sequence_ids()},
          {"over", over}};
}

// What `run` gives, or {"error": …}.
template <typename F>
json attempt(F run) {
  try {
    return run();
  } catch (const Error& e) {
    return {{"error", e.what()}};
  }
}

json stream(const Pipeline& p, const std::vector<int32_t>& ids) {
  json out = json::array();
  DecodeStream s(p, false);
  for (const int32_t id : ids) {
    const auto more = s.step(id);
    out.push_back(more ? json(*more) : json());
  }
  return out;
}

json answer(const json& request) {
  const auto p = Pipeline::from_json(request["file"].get<std::string>(), "file");
  json out = {{"texts", json::array()}, {"pairs", json::array()}, {"ids", json::array()}, {"streams", json::array()}};
  const EncodeOptions options{.special_as_text = request.value("special_as_text", false)};
  EncodeOptions plain = options;
  plain.add_special = false;
  for (const json& row : request.value("texts", json::array())) {
    const auto text = row.get<std::string>();
    out["texts"].push_back(attempt([&] { return to_json(p->encode(text, plain)); }));
    out["texts"].push_back(attempt([&] { return to_json(p->encode(text, options)); }));
  }
  for (const json& row : request.value("pairs", json::array()))
    out["pairs"].push_back(attempt(
        [&] { return to_json(p->encode_pair(row[0].get<std::string>(), row[1].get<std::string>(), options)); }));
  for (const json& row : request.value("ids", json::array()))
    for (const bool skip : {true, false})
      out["ids"].push_back(attempt([&] { return json(p->decode(row.get<std::vector<int32_t>>(), skip)); }));
  for (const json& row : request.value("streams", json::array()))
    out["streams"].push_back(attempt([&] { return stream(*p, row.get<std::vector<int32_t>>()); }));
  return out;
}

}  // namespace

void serve() {
  for (std::string line; std::getline(std::cin, line);) {
    const json out = attempt([&] { return answer(json::parse(line)); });
    fmt::print("{}\n", out.dump(-1, ' ', true, json::error_handler_t::replace));
    std::fflush(stdout);
  }
}

}  // namespace hierarchos::text_golden
