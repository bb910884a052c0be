#include "tokenizer/pipeline.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/threads.h"

namespace hierarchos::tokenizers {
namespace {

// Offsets in code points of offsets in bytes. The end of a text has no place of its own in the reference's table: a
// range that begins there stays as it is.
class CodePoints {
 public:
  CodePoints(std::string_view text, std::vector<uint32_t>& table) : size_(text.size()), table_(table) {
    ascii_ = unicode::is_ascii(text);
    if (ascii_) return;
    table_.resize(size_);
    uint32_t index = 0;
    for (size_t i = 0; i < size_; ++i) {
      if (i > 0 && !unicode::is_continuation(text[i])) ++index;
      table_[i] = index;
    }
  }
  Offsets operator()(Origin o) const {
    if (o.begin >= size_) return {o.begin, o.end};
    if (o.end > size_) return {at(o.begin), at(o.begin) + 2};
    return {at(o.begin), o.end < size_ ? at(o.end) : at(o.end - 1) + 1};
  }

 private:
  uint32_t at(uint32_t byte) const { return ascii_ ? byte : table_[byte]; }
  size_t size_;
  std::vector<uint32_t>& table_;
  bool ascii_ = false;
};

}  // namespace

struct Pipeline::Work {
  Scratch scratch;
  ModelScratch model;
  std::vector<Piece> pieces;
  std::vector<Token> tokens;
  std::vector<size_t> token_ends;  // by piece: how many tokens there are up to its end
  std::vector<uint32_t> code_points;
};

// Borrows memory for one call.
class Pipeline::Lease {
 public:
  explicit Lease(const Pipeline& pipeline) : pipeline_(pipeline) {
    const std::lock_guard lock(pipeline.mutex_);
    if (pipeline.idle_.empty()) {
      work_ = std::make_unique<Work>();
    } else {
      work_ = std::move(pipeline.idle_.back());
      pipeline.idle_.pop_back();
    }
  }
  ~Lease() {
    work_->pieces.clear();
    const std::lock_guard lock(pipeline_.mutex_);
    pipeline_.idle_.push_back(std::move(work_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Work& operator*() { return *work_; }

 private:
  const Pipeline& pipeline_;
  std::unique_ptr<Work> work_;
};

Pipeline::Pipeline(Parts parts) : parts_(std::move(parts)) {
  added_.add(parts_.added, *parts_.model, parts_.normalizer.get(), parts_.where);
  bytes_ = parts_.pre_tokenizer && parts_.pre_tokenizer->ends_in_letters() && parts_.model->take_bytes();
  trims_ = parts_.post_processor && parts_.post_processor->trims();
}
Pipeline::~Pipeline() = default;

void Pipeline::tokenize(std::string_view text, bool special_as_text, Work& work) const {
  if (text.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw UserError("A text of {} bytes is too long: the limit is 2 GiB", text.size());
  if (!unicode::is_valid(text)) throw UserError("The text is no UTF-8");
  work.scratch.arena.clear();
  work.tokens.clear();
  work.token_ends.clear();
  added_.extract(text, parts_.normalizer.get(), special_as_text || parts_.special_as_text, work.pieces, work.scratch);
  if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(work.pieces, work.scratch, !bytes_);
  for (const Piece& piece : work.pieces) {
    const std::string_view piece_text = piece.text.text();
    if (piece.id >= 0)
      work.tokens.push_back({piece.id, 0, static_cast<uint32_t>(piece_text.size())});
    else
      parts_.model->tokenize(piece_text, work.tokens, work.model);
    work.token_ends.push_back(work.tokens.size());
  }
}

Encoding::Space Pipeline::spaces_of(std::string_view token) const {
  const auto is_space = [](char32_t c) {
    return c == ByteAlphabet::letter(' ') || (unicode::flags(c) & unicode::kWhitespace);
  };
  Encoding::Space out;
  for (const char *p = token.data(), *end = p + token.size(); p < end && is_space(unicode::next(p));) ++out.leading;
  while (!token.empty()) {
    const char32_t c = unicode::last(token);
    if (!is_space(c)) break;
    token.remove_suffix(unicode::width(c));
    ++out.trailing;
  }
  return out;
}

template <typename Place>
void Pipeline::fill(std::string_view text, Work& work, Encoding& out, Place place) const {
  const CodePoints code_points(text, work.code_points);
  size_t next = 0;
  for (size_t i = 0; i < work.pieces.size(); ++i) {
    const Piece& piece = work.pieces[i];
    for (; next < work.token_ends[i]; ++next) {
      const Token& token = work.tokens[next];
      Origin origin;
      if (!piece.text.origin_of(token.begin, token.end, origin)) origin = {token.begin, token.end};
      place(piece, token, code_points(origin));
    }
  }
  (void)out;
}

Encoding Pipeline::encode_sequence(std::string_view text, int32_t type, const EncodeOptions& options,
                                   Work& work) const {
  tokenize(text, options.special_as_text, work);
  Encoding out;
  const size_t n = work.tokens.size();
  out.ids.resize(n);
  for (size_t i = 0; i < n; ++i) out.ids[i] = work.tokens[i].id;
  out.type_ids.assign(n, type);
  out.special_mask.assign(n, 0);
  out.attention_mask.assign(n, 1);
  out.has_offsets = options.offsets;
  out.has_spaces = options.offsets && trims_;
  if (!options.offsets) return out;
  out.offsets.reserve(n);
  if (trims_) out.spaces.reserve(n);
  fill(text, work, out, [&](const Piece& piece, const Token& token, Offsets offsets) {
    out.offsets.push_back(offsets);
    if (!trims_) return;
    if (piece.id >= 0 || parts_.model->takes_any_text(token.id))
      out.spaces.push_back(spaces_of(piece.text.text().substr(token.begin, token.end - token.begin)));
    else
      out.spaces.push_back(spaces_of(parts_.model->token(token.id).value_or("")));
  });
  return out;
}

Encoding Pipeline::finish(Encoding first, std::optional<Encoding> second, const EncodeOptions& options) const {
  const bool add_special = options.add_special;
  if (parts_.truncation && options.limits) {
    Truncation t = *parts_.truncation;
    const size_t added = added_count(second.has_value());
    // The reference's counts wrap around: with less room than special tokens need, nothing is cut.
    if (add_special && added > 0) t.max_length -= added;
    truncate(first, second ? &*second : nullptr, t);
  }
  std::vector<Encoding> sequences;
  sequences.push_back(std::move(first));
  if (second) sequences.push_back(std::move(*second));
  if (parts_.post_processor || second) {
    for (size_t i = 0; i < sequences.size(); ++i) {
      sequences[i].set_sequence(i);
      if (!parts_.post_processor) continue;
      for (Encoding& window : sequences[i].overflowing) window.set_sequence(i);
      sequences[i].set_type(static_cast<int32_t>(i));
    }
  }
  if (parts_.post_processor) parts_.post_processor->apply(sequences, add_special);
  Encoding out;
  if (!sequences.empty()) {
    out = std::move(sequences[0]);
    for (size_t i = 1; i < sequences.size(); ++i) out.append(std::move(sequences[i]));
  }
  if (!parts_.padding || !options.limits) return out;
  std::vector<Encoding> alone;
  alone.push_back(std::move(out));
  pad(alone, *parts_.padding);
  return std::move(alone[0]);
}

Encoding Pipeline::encode(std::string_view text, const EncodeOptions& options) const {
  Lease lease(*this);
  return finish(encode_sequence(text, 0, options, *lease), std::nullopt, options);
}

Encoding Pipeline::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  Lease lease(*this);
  Encoding a = encode_sequence(first, 0, options, *lease);
  return finish(std::move(a), encode_sequence(second, 1, options, *lease), options);
}

std::vector<Encoding> Pipeline::encode_batch(std::span<const std::string> texts, const EncodeOptions& options) const {
  std::vector<Encoding> out(texts.size());
  default_pool().parallel_for(static_cast<int64_t>(texts.size()), [&](int64_t i, int) {
    out[static_cast<size_t>(i)] = encode(texts[static_cast<size_t>(i)], options);
  });
  if (parts_.padding) pad(out, *parts_.padding);
  return out;
}

void Pipeline::encode_ids(std::string_view text, bool special_as_text, std::vector<int32_t>& out) const {
  Lease lease(*this);
  tokenize(text, special_as_text, *lease);
  out.reserve(out.size() + (*lease).tokens.size());
  for (const Token& token : (*lease).tokens) out.push_back(token.id);
}

std::string Pipeline::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    const auto text = token(id);
    if (!text || (skip_special && added_.has_special() && added_.is_special(*text))) continue;
    tokens.emplace_back(*text);
  }
  return decode_tokens(std::move(tokens));
}

std::string Pipeline::decode_tokens(std::vector<std::string> tokens) const {
  std::string out;
  if (parts_.decoder) {
    parts_.decoder->apply(tokens);
    for (const std::string& token : tokens) out += token;
    return out;
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ' ';
    out += tokens[i];
  }
  return out;
}

std::optional<int32_t> Pipeline::id_of(std::string_view token) const {
  const auto added = added_.id_of(token);
  return added ? added : parts_.model->id_of(token);
}

std::optional<std::string_view> Pipeline::token(int32_t id) const {
  const auto added = added_.token(id);
  return added ? added : parts_.model->token(id);
}

bool Pipeline::is_special(int32_t id) const {
  const auto text = token(id);
  return text && added_.is_special(*text);
}

int32_t Pipeline::max_id() const { return std::max(parts_.model->max_id(), added_.max_id()); }

std::optional<std::string> DecodeStream::step(int32_t id) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  if (prefix_.empty() && !ids_.empty()) {
    std::string prefix = pipeline_->decode(ids_, skip_special_);
    if (!prefix.ends_with(kReplacement)) {
      prefix_ = std::move(prefix);
      prefix_index_ = ids_.size();
    }
  }
  ids_.push_back(id);
  const std::string text = pipeline_->decode(ids_, skip_special_);
  if (text.size() <= prefix_.size() || text.ends_with(kReplacement)) return std::nullopt;
  if (!text.starts_with(prefix_))
    throw DataError("Token {} changes the text before it: \"{}\" became \"{}\"", id, prefix_, text);
  std::string more = text.substr(prefix_.size());
  const size_t kept = ids_.size() - prefix_index_;
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(prefix_index_));
  prefix_ = pipeline_->decode(ids_, skip_special_);
  prefix_index_ = kept;
  return more;
}

std::string DecodeStream::rest() const {
  const std::string text = pipeline_->decode(ids_, skip_special_);
  return text.starts_with(prefix_) ? text.substr(prefix_.size()) : std::string();
}

}  // namespace hierarchos::tokenizers
