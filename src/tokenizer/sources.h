// Where a package's tokenizer comes from.
#pragma once

#include <filesystem>

#include "formats/gguf.h"
#include "tokenizer/pipeline.h"

namespace hierarchos::tokenizers {

struct Loaded {
  Parts parts;
  std::optional<int32_t> bos, eos;   // of a GGUF file
  std::string bos_token, eos_token;  // of a folder; "": there is none
};

// UserError if there is no tokenizer, UnsupportedError for a kind that is not honoured.
Loaded load_gguf(const formats::GgufFile& file);
Loaded load_folder(const std::filesystem::path& folder);

// How a GGUF file's text is cut into words, by the name in tokenizer.ggml.pre.
struct GgufPattern {
  std::vector<std::string> patterns;  // one after another
  bool ignore_merges = false, add_bos = false;
};
const GgufPattern* find_gguf_pattern(std::string_view name);  // null: not known

// The parts of a tokenizer.json.
Parts parts_from_json(std::string_view text, const std::string& where);

}  // namespace hierarchos::tokenizers
