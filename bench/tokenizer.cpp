// Times loading and encoding, for tools/tokenizer_bench.py.
//   tokenizer_bench TOKENIZER.json TEXTS.json...     each TEXTS.json is an array of documents
// Prints a line of JSON: seconds to load (the best of 5), then for each file the bytes, the tokens, and the seconds
// (the best of 5 passes, one thread) for ids alone and for ids with offsets.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/os/file.h"
#include "tokenizer/pipeline.h"

namespace {

using namespace hierarchos;

template <typename F>
double best_of(int times, F run) {
  double best = 1e9;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string path = argv[1];
  std::unique_ptr<tokenizers::Pipeline> pipeline;
  const double load = best_of(5, [&] { pipeline = tokenizers::Pipeline::from_json(read_text_file(path), path); });
  nlohmann::ordered_json out = {{"load", load}, {"texts", nlohmann::ordered_json::array()}};
  for (int i = 2; i < argc; ++i) {
    const auto documents = nlohmann::json::parse(read_text_file(argv[i])).get<std::vector<std::string>>();
    size_t bytes = 0, tokens = 0;
    for (const std::string& document : documents) bytes += document.size();
    const double ids = best_of(5, [&] {
      tokens = 0;
      std::vector<int32_t> got;
      for (const std::string& document : documents) {
        got.clear();
        pipeline->encode_ids(document, false, got);
        tokens += got.size();
      }
    });
    const double offsets = best_of(5, [&] {
      for (const std::string& document : documents) pipeline->encode(document, {.add_special = false, .limits = false});
    });
    out["texts"].push_back({{"bytes", bytes}, {"tokens", tokens}, {"ids", ids}, {"offsets", offsets}});
  }
  fmt::print("{}\n", out.dump());
}
