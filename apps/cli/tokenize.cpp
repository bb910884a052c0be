// hierarchos tokenize: ids, pieces and places of a text, or how many tokens files have.
#include <fmt/format.h>

#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/os/file.h"
#include "commands.h"
#include "tokenizer/tokenizer.h"

namespace hierarchos::cli {
namespace {

struct Options {
  std::string model, text;
  std::vector<std::string> files;
  bool count = false, ids = false, json = false, no_special = false;
};

// A folder with a tokenizer's files, a tokenizer.json or tokenizer.model alone, or a GGUF file: weights are not needed.
std::shared_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return Tokenizer::from_folder(path);
  if (path.extension() == ".json") return Tokenizer::from_json(read_text_file(path), path.string());
  if (path.extension() == ".model") return Tokenizer::from_sentencepiece(read_text_file(path), path.string());
  return Tokenizer::from_gguf(*formats::GgufFile::open(path));
}

// As it can stand on one line of a terminal.
std::string shown(std::string_view text) {
  std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return quoted;
}

void show(const Tokenizer& tokenizer, const std::string& text, const Options& o) {
  const tokenizers::Pipeline& pipeline = tokenizer.pipeline();
  const tokenizers::Encoding encoding = pipeline.encode(text, {.add_special = !o.no_special, .limits = false});
  if (o.json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (size_t i = 0; i < encoding.size(); ++i)
      rows.push_back({{"id", encoding.ids[i]},
                      {"piece", pipeline.token(encoding.ids[i]).value_or("")},
                      {"begin", encoding.offsets[i].begin},
                      {"end", encoding.offsets[i].end},
                      {"special", encoding.special_mask[i] != 0}});
    fmt::print("{}\n", rows.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  if (o.ids) {
    fmt::print("{}\n", fmt::join(encoding.ids, " "));
    return;
  }
  fmt::print("{:>8}  {:>11}  {}\n", "id", "characters", "piece");
  for (size_t i = 0; i < encoding.size(); ++i) {
    const auto [begin, end] = encoding.offsets[i];
    const std::string place = encoding.special_mask[i] ? "added" : fmt::format("{}-{}", begin, end);
    fmt::print("{:>8}  {:>11}  {}\n", encoding.ids[i], place, shown(pipeline.token(encoding.ids[i]).value_or("")));
  }
  fmt::print("{} tokens\n", encoding.size());
}

std::string readable(const std::string& path) {
  std::string text = path == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_text_file(path);
  return unicode::is_valid(text) ? text : unicode::repaired(text);
}

void run(const Options& o) {
  const auto tokenizer = open_tokenizer(o.model);
  if (o.files.empty()) return show(*tokenizer, unicode::repaired(o.text), o);
  size_t all = 0;
  for (const std::string& path : o.files) {
    const std::string text = readable(path);
    if (!o.count) {
      show(*tokenizer, text, o);
      continue;
    }
    const size_t tokens = tokenizer->encode(text, !o.no_special).size();
    all += tokens;
    fmt::print("{:>12} tokens {:>12} bytes  {}\n", tokens, text.size(), path);
  }
  if (o.count && o.files.size() > 1) fmt::print("{:>12} tokens in all\n", all);
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("tokenize", "Shows a text's tokens, or counts those of files");
  command
      ->add_option("--model,--tokenizer", o->model,
                   "folder of a model, a tokenizer.json, a tokenizer.model or a GGUF file")
      ->required()
      ->check(CLI::ExistingPath);
  auto* text = command->add_option("--text", o->text, "the text");
  auto* file = command->add_option("--file", o->files, "files with the text; - is standard input");
  text->excludes(file);
  command->add_flag("--count", o->count, "only count the tokens of each file")->needs(file);
  auto* ids = command->add_flag("--ids", o->ids, "ids alone, on one line");
  command->add_flag("--json", o->json, "ids, pieces and places as JSON")->excludes(ids);
  command->add_flag("--no-special", o->no_special, "without the tokens that the model wants around a text");
  command->callback([o, text, file] {
    if (text->count() == 0 && file->count() == 0) throw UserError("Nothing to tokenize: give --text or --file");
    run(*o);
  });
}

}  // namespace hierarchos::cli
