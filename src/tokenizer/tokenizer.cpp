#include "tokenizer/tokenizer.h"

#include "base/error.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/sources.h"

namespace hierarchos {

using tokenizers::DecodeStream;
using tokenizers::EncodeOptions;
using tokenizers::Pipeline;

std::shared_ptr<Tokenizer> Tokenizer::from_json(std::string_view text, const std::string& where) {
  return std::make_shared<Tokenizer>(Pipeline::from_json(text, where));
}

namespace {

std::shared_ptr<Tokenizer> make(tokenizers::Loaded loaded) {
  auto pipeline = std::make_unique<Pipeline>(std::move(loaded.parts));
  const auto id = [&](const std::string& token, std::optional<int32_t> known) {
    return known || token.empty() ? known : pipeline->id_of(token);
  };
  const auto bos = id(loaded.bos_token, loaded.bos), eos = id(loaded.eos_token, loaded.eos);
  return std::make_shared<Tokenizer>(std::move(pipeline), bos, eos);
}

}  // namespace

std::shared_ptr<Tokenizer> Tokenizer::from_folder(const std::filesystem::path& folder) {
  return make(tokenizers::load_folder(folder));
}
std::shared_ptr<Tokenizer> Tokenizer::from_gguf(const formats::GgufFile& file) {
  return make(tokenizers::load_gguf(file));
}
std::shared_ptr<Tokenizer> Tokenizer::from_package(const formats::Package& package) {
  return package.gguf() ? from_gguf(*package.gguf()) : from_folder(package.file(""));
}

std::shared_ptr<Tokenizer> Tokenizer::from_sentencepiece(std::string_view bytes, const std::string& where) {
  const auto model = tokenizers::SpmModel::read(bytes, where);
  const auto bos = model.id_of_control(model.bos), eos = model.id_of_control(model.eos);
  return std::make_shared<Tokenizer>(std::make_unique<Pipeline>(tokenizers::make_parts(model)), bos, eos);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special) const {
  std::string repaired;
  if (!unicode::is_valid(text)) text = repaired = unicode::repaired(text);
  if (!add_special || pipeline_->added_count(false) == 0) {
    std::vector<int32_t> ids;
    pipeline_->encode_ids(text, false, ids);
    return ids;
  }
  return pipeline_->encode(text, {.offsets = false, .limits = false}).ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  return pipeline_->decode(ids, skip_special);
}

std::string Tokenizer::Stream::push(int32_t id) {
  try {
    return stream_.step(id).value_or("");
  } catch (const DataError&) {
    // The token changes what was said already, as few decoders let it: begin anew with it.
    stream_ = DecodeStream(*pipeline_, skip_special_);
    return stream_.step(id).value_or("");
  }
}

std::string Tokenizer::Stream::finish() {
  std::string rest = stream_.rest();
  stream_ = DecodeStream(*pipeline_, skip_special_);
  return rest;
}

}  // namespace hierarchos
