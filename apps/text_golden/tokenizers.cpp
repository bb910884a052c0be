// Tokenizers: whole ones, single components, and files that the reference loads or refuses.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/os/file.h"
#include "rows.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/sentencepiece.h"

namespace hierarchos::text_golden {
namespace {

using namespace tokenizers;
using nlohmann::json;
namespace fs = std::filesystem;
using Report = std::function<void(FileReport)>;
using Texts = std::map<int, std::string>;

std::unique_ptr<Pipeline> load(const fs::path& path) {
  return Pipeline::from_json(read_text_file(path), path.filename().string());
}

json flat(const std::vector<Offsets>& offsets) {
  json out = json::array();
  for (const Offsets& o : offsets) out.push_back(o.begin), out.push_back(o.end);
  return out;
}

void check_encoding(const std::string& what, const Encoding& got, const json& want) {
  const size_t n = want["ids"].size();
  same(what + " ids", got.ids, want["ids"]);
  if (want.contains("off")) same(what + " off", flat(got.offsets), want["off"]);
  if (want.contains("offsum")) {
    uint64_t begin = 0, end = 0;
    for (const Offsets& o : got.offsets) begin += o.begin, end += o.end;
    same(what + " offsum", {begin, end}, want["offsum"]);
  }
  same(what + " types", got.type_ids, want.value("types", json(std::vector<int>(n, 0))));
  same(what + " mask", got.special_mask, want.value("mask", json(std::vector<int>(n, 0))));
  same(what + " att", got.attention_mask, want.value("att", json(std::vector<int>(n, 1))));
}

FileReport failed(const std::string& name, const std::string& why) {
  FileReport report(name);
  report.fail(why);
  return report;
}

// Must `run` throw?
template <typename F>
bool refused(F run) {
  try {
    run();
  } catch (const Error&) {
    return true;
  }
  return false;
}

void check_text(const Pipeline& p, const std::string& text, const json& row) {
  const EncodeOptions plain{.add_special = false};
  if (row.contains("error")) {
    if (!refused([&] { p.encode(text, plain), p.encode(text); })) throw Mismatch("no error");
    return;
  }
  check_encoding("plain", p.encode(text, plain), row);
  const Encoding full = p.encode(text);
  if (row.contains("sp")) check_encoding("sp", full, row["sp"]);
  if (!row.contains("dec")) return;
  same("dec", p.decode(full.ids), row["dec"]);
  same("raw", p.decode(full.ids, false), row.value("raw", row["dec"]));
}

void check_pair(const Pipeline& p, const std::string& a, const std::string& b, const json& row) {
  if (row.contains("error")) {
    if (!refused([&] { p.encode_pair(a, b); })) throw Mismatch("no error");
    return;
  }
  const Encoding got = p.encode_pair(a, b);
  check_encoding("pair", got, row);
  json sequences = json::array(), over = json::array();
  for (const int32_t s : got.sequence_ids()) sequences.push_back(s < 0 ? json() : json(s));
  same("seq", sequences, row["seq"]);
  for (const Encoding& window : got.overflowing) over.push_back(window.ids);
  same("over", over, row.value("over", json::array()));
}

void check_stream(const Pipeline& p, const std::vector<int32_t>& ids, const json& row) {
  DecodeStream stream(p, row["skip"].get<bool>());
  for (size_t i = 0; i < ids.size(); ++i) {
    const json& want = row["out"].at(i);
    if (want.is_object()) {
      if (!refused([&] { stream.step(ids[i]); })) throw Mismatch(fmt::format("stream {}: no error", i));
      return;
    }
    const auto got = stream.step(ids[i]);
    same(fmt::format("stream {}", i), got ? json(*got) : json(), want);
  }
}

void check_row(const Pipeline& p, const Texts& texts, const json& row) {
  const auto text = [&](const json& i) -> const std::string& { return texts.at(i.get<int>()); };
  if (row.contains("panic")) {
    if (row.contains("t")) refused([&] { p.encode(text(row["t"])); });
  } else if (row.contains("t")) {
    check_text(p, text(row["t"]), row);
  } else if (row.contains("pair")) {
    check_pair(p, text(row["pair"][0]), text(row["pair"][1]), row);
  } else if (row.contains("batch")) {
    std::vector<std::string> batch;
    for (const json& i : row["batch"]) batch.push_back(text(i));
    json ids = json::array();
    for (const Encoding& encoding : p.encode_batch(batch)) ids.push_back(encoding.ids);
    same("batch", ids, row["ids"]);
  } else if (row.contains("split")) {
    same("split", p.encode(text(row["split"]), {.add_special = false, .special_as_text = true}).ids, row["ids"]);
  } else if (row.contains("stream_ids")) {
    check_stream(p, row["stream_ids"].get<std::vector<int32_t>>(), row);
  } else if (row.contains("stream")) {
    check_stream(p, p.encode(text(row["stream"])).ids, row);
  } else if (row.contains("decode")) {
    same("decode", p.decode(row["decode"].get<std::vector<int32_t>>(), row["skip"].get<bool>()), row["out"]);
  } else {
    throw Mismatch("a kind of row that is not known");
  }
}

void run_whole(const Options& options, const Texts& texts, const Report& report) {
  std::vector<fs::path> files;
  if (fs::is_directory(options.root / "expected"))
    for (const auto& entry : fs::directory_iterator(options.root / "expected"))
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string name = "tokenizers/" + file.stem().string();
    try {
      const auto pipeline = load(options.root / "tokenizers" / (file.stem().string() + ".json"));
      report(check_rows(name, read_rows(file), [&](const json& row) { check_row(*pipeline, texts, row); }));
    } catch (const Error& e) {
      report(failed(name, e.what()));
    }
  }
}

void run_real(const Options& options, const Texts& texts, const Report& report) {
  std::vector<fs::path> indexes;
  for (const auto& entry : fs::directory_iterator(options.root)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("real") && entry.path().extension() == ".json") indexes.push_back(entry.path());
  }
  std::sort(indexes.begin(), indexes.end());
  for (const fs::path& index : indexes) {
    for (const json& entry : read_json_file(index)) {
      const std::string name = "real/" + entry["name"].get<std::string>();
      std::string folder = entry["package"].get<std::string>() + "@" + entry["version"].get<std::string>();
      std::replace(folder.begin(), folder.end(), '/', '+');
      const fs::path path = options.real / folder / entry["path"].get<std::string>();
      if (options.real.empty() || !file_exists(path)) {
        FileReport skipped(name);
        const std::string why = options.real.empty() ? "no --real" : path.string() + " is not there";
        skipped.skip(static_cast<int64_t>(read_rows(options.root / entry["expected"].get<std::string>()).size()), why);
        report(std::move(skipped));
        continue;
      }
      try {
        const auto pipeline = load(path);
        report(check_rows(name, read_rows(options.root / entry["expected"].get<std::string>()),
                          [&](const json& row) { check_row(*pipeline, texts, row); }));
      } catch (const Error& e) {
        report(failed(name, e.what()));
      }
    }
  }
}

// sentencepiece's own models.
void run_sentencepiece(const Options& options, const Texts& texts, const Report& report) {
  std::vector<fs::path> files;
  if (fs::is_directory(options.root / "expected_spm"))
    for (const auto& entry : fs::directory_iterator(options.root / "expected_spm")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string name = "sentencepiece/" + file.stem().string();
    try {
      const std::string bytes = read_text_file(options.root / "spm" / (file.stem().string() + ".model"));
      const SpmModel model = SpmModel::read(bytes, file.stem().string());
      const auto bos = model.id_of_control(model.bos), eos = model.id_of_control(model.eos);
      const Pipeline pipeline(make_parts(model));
      report(check_rows(name, read_rows(file), [&](const json& row) {
        const std::string what = row["t"].dump();
        std::vector<int32_t> ids = pipeline.encode(texts.at(row["t"].get<int>())).ids;
        same(what + " ids", ids, row["ids"]);
        same(what + " dec", pipeline.decode(ids), row["dec"]);
        if (!row.contains("bos_eos")) return;
        if (bos) ids.insert(ids.begin(), *bos);
        if (eos) ids.push_back(*eos);
        same(what + " bos_eos", ids, row["bos_eos"]);
      }));
    } catch (const Error& e) {
      report(failed(name, e.what()));
    }
  }
}

// A tokenizer that has the component alone.
std::unique_ptr<Pipeline> holder(const char* kind, const json& definition) {
  json file = {{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", json::array()},
               {"normalizer", nullptr},
               {"pre_tokenizer", nullptr},
               {"post_processor", nullptr},
               {"decoder", nullptr},
               {"model", {{"type", "WordLevel"}, {"vocab", {{"x", 0}}}, {"unk_token", "x"}}}};
  file[kind] = definition;
  return Pipeline::from_json(file.dump(), kind);
}

void check_normalizer(const Texts& texts, const json& row) {
  const auto pipeline = holder("normalizer", row["def"]);
  for (const auto& [i, text] : texts) {
    constexpr size_t kLong = 1500;  // the expected values leave long texts out
    const std::string key = std::to_string(i);
    if (!row["out"].contains(key) && text.size() > kLong) continue;
    Scratch scratch;
    AlignedText got(text);
    pipeline->parts().normalizer->apply(got, scratch);
    same(row["name"].get<std::string>() + " " + key, std::string(got.text()), row["out"].value(key, text));
  }
}

void check_pre_tokenizer(const Texts& texts, const json& row) {
  const auto pipeline = holder("pre_tokenizer", row["def"]);
  for (const auto& [key, want] : row["out"].items()) {
    const std::string& text = texts.at(std::stoi(key));
    const std::string what = row["name"].get<std::string>() + " " + key;
    Scratch scratch;
    std::vector<Piece> pieces = {{AlignedText(text), -1}};
    pipeline->parts().pre_tokenizer->apply(pieces, scratch, true);
    json got = json::array();
    for (const Piece& piece : pieces) {
      const size_t begin = piece.text.original_begin(), end = piece.text.original_end();
      got.push_back(
          {std::string(piece.text.text()), unicode::count(text.substr(0, begin)), unicode::count(text.substr(0, end))});
    }
    same(what, got, want);
  }
}

void check_loading(const json& row) {
  std::unique_ptr<Pipeline> pipeline;
  const bool no = refused([&] { pipeline = Pipeline::from_json(row["file"].get<std::string>(), "file"); });
  same(row["name"].get<std::string>() + ": loads", !no, row["loads"]);
  if (no) return;
  json vocabulary = json::object();
  pipeline->parts().model->vocabulary().for_each(
      [&](std::string_view token, int32_t id) { vocabulary[std::string(token)] = id; });
  for (const auto& [id, token] : pipeline->added().by_id()) vocabulary[token.content] = id;
  same(row["name"].get<std::string>(), vocabulary, row["vocab"]);
}

void run_components(const Options& options, const Texts& texts, const Report& report) {
  const auto run = [&](const std::string& kind, const std::function<void(const json&)>& check) {
    const auto rows = read_rows(options.root / "components" / (kind + ".jsonl"));
    if (!rows.empty()) report(check_rows("components/" + kind, rows, check));
  };
  run("normalizers", [&](const json& row) { check_normalizer(texts, row); });
  run("pre_tokenizers", [&](const json& row) { check_pre_tokenizer(texts, row); });
  run("decoders", [](const json& row) {
    const auto pipeline = holder("decoder", row["def"]);
    const std::string got = pipeline->decode_tokens(row["tokens"].get<std::vector<std::string>>());
    if (!row.contains("panic")) same(row["def"].dump() + row["tokens"].dump(), got, row["out"]);
  });
  run("loading", check_loading);
}

}  // namespace

Reports run_tokenizers(const Options& options) {
  Reports reports;
  const auto report = [&](FileReport file) { reports.push_back(std::move(file)); };
  const Texts texts = read_texts(options.root);
  run_components(options, texts, report);
  run_whole(options, texts, report);
  run_sentencepiece(options, texts, report);
  run_real(options, texts, report);
  return reports;
}

}  // namespace hierarchos::text_golden
