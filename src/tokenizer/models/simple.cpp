#include "tokenizer/models/simple.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace hierarchos::tokenizers {
namespace {

int32_t unknown_id(const Vocabulary& vocabulary, const std::string& unknown, const std::string& where) {
  const int32_t id = vocabulary.id_of(unknown);
  if (id < 0)
    throw UserError("{}: the text has a word that no token stands for, and the vocabulary lacks \"{}\"", where,
                    unknown);
  return id;
}

}  // namespace

WordPiece::WordPiece(Vocabulary vocabulary, Options options) : options_(std::move(options)) {
  vocabulary_ = std::move(vocabulary);
}

void WordPiece::tokenize(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const {
  if (scratch.cache.find(piece, 0, out)) return;
  const size_t first = out.size();
  const bool fits = piece.size() <= options_.most_characters || unicode::count(piece) <= options_.most_characters;
  if (!fits || !cut(piece, out, scratch)) {
    out.resize(first);
    out.push_back({unknown_id(vocabulary_, options_.unknown, options_.where), 0, static_cast<uint32_t>(piece.size())});
  }
  scratch.cache.keep(piece, out, first);
}

bool WordPiece::cut(std::string_view word, std::vector<Token>& out, ModelScratch& scratch) const {
  for (size_t begin = 0; begin < word.size();) {
    scratch.text.assign(begin > 0 ? options_.prefix : "");
    const size_t prefix = scratch.text.size();
    scratch.text += word.substr(begin);
    const std::string_view text = scratch.text;
    size_t end = text.size();
    if (end > vocabulary_.longest()) {
      end = vocabulary_.longest();
      if (end <= prefix) return false;
      while (end > prefix && unicode::is_continuation(text[end])) --end;
    }
    int32_t id = -1;
    while (end > prefix) {
      id = vocabulary_.id_of(text.substr(0, end));
      if (id >= 0) break;
      do --end;
      while (end > prefix && unicode::is_continuation(text[end]));
    }
    if (id < 0) return false;
    out.push_back({id, static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + end - prefix)});
    begin += end - prefix;
  }
  return true;
}

WordLevel::WordLevel(Vocabulary vocabulary, std::string unknown, std::string where)
    : unknown_(std::move(unknown)), where_(std::move(where)) {
  vocabulary_ = std::move(vocabulary);
}

void WordLevel::tokenize(std::string_view piece, std::vector<Token>& out, ModelScratch&) const {
  int32_t id = vocabulary_.id_of(piece);
  if (id < 0) id = unknown_id(vocabulary_, unknown_, where_);
  out.push_back({id, 0, static_cast<uint32_t>(piece.size())});
}

Unigram::Unigram(const std::vector<Piece>& pieces, std::optional<int32_t> unknown, bool byte_fallback,
                 std::string where)
    : unknown_(unknown), where_(std::move(where)) {
  if (unknown && static_cast<size_t>(*unknown) >= pieces.size())
    throw DataError("{}: the unknown token {} is not among the {} tokens", where_, *unknown, pieces.size());
  constexpr double kUnknownPenalty = 10;
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::pair<std::string_view, int32_t>> keys;
  size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.text.size();
  vocabulary_.reserve(pieces.size(), bytes);
  for (const Piece& piece : pieces) {
    const auto id = static_cast<int32_t>(texts_.size());
    texts_.emplace_back(piece.text);
    scores_.push_back(piece.score);
    vocabulary_.add(piece.text, id);
    keys.emplace_back(piece.text, id);
    if (piece.score < least) least = piece.score;
  }
  vocabulary_.finish();
  trie_ = ByteTrie(std::move(keys));
  unknown_score_ = least - kUnknownPenalty;
  if (!byte_fallback) return;
  for (int b = 0; b < 256; ++b) byte_tokens_.push_back(vocabulary_.id_of(fmt::format("<0x{:02X}>", b)));
}

std::optional<std::string_view> Unigram::token(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= texts_.size()) return std::nullopt;
  return texts_[static_cast<size_t>(id)];
}

// Viterbi's algorithm, from left to right; of equal scores the path that was found first stays.
void Unigram::find_path(std::string_view piece, ModelScratch& scratch) const {
  auto& steps = scratch.steps;
  steps.assign(piece.size() + 1, {});
  for (uint32_t begin = 0; begin < piece.size();) {
    const double score = steps[begin].score;
    const auto consider = [&](uint32_t end, double more, int32_t id) {
      ModelScratch::Step& step = steps[end];
      if (step.id >= 0 && !(score + more > step.score)) return;
      step = {score + more, begin, id};
    };
    const auto width = static_cast<uint32_t>(unicode::length_of(piece[begin]));
    bool single = false;
    uint32_t node = ByteTrie::kRoot;
    for (uint32_t at = begin; at < piece.size();) {
      node = trie_.child(node, static_cast<uint8_t>(piece[at++]));
      if (node == ByteTrie::kRoot) break;
      const int32_t id = trie_.value(node);
      if (id < 0) continue;
      consider(at, scores_[static_cast<size_t>(id)], id);
      single |= at - begin == width;
    }
    if (!single) {
      const ModelScratch::Step& step = steps[begin + width];
      if (step.id < 0 || score + unknown_score_ > step.score) {
        if (!unknown_)
          throw UserError("{}: the text has a character that no token stands for, and there is no unknown token",
                          where_);
        consider(begin + width, unknown_score_, *unknown_);
      }
    }
    begin += width;
  }
}

void Unigram::tokenize(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const {
  if (scratch.cache.find(piece, 0, out)) return;
  find_path(piece, scratch);
  const size_t first = out.size();
  // From the end; neighbours that are unknown become one token.
  std::vector<std::pair<uint32_t, uint32_t>> parts;
  uint32_t end = static_cast<uint32_t>(piece.size()), unknown_end = 0;
  while (end > 0) {
    const ModelScratch::Step& step = scratch.steps[end];
    if (step.id == unknown_) {
      if (!unknown_end) unknown_end = end;
    } else {
      if (unknown_end) parts.emplace_back(end, unknown_end);
      unknown_end = 0;
      parts.emplace_back(step.from, end);
    }
    end = step.from;
  }
  if (unknown_end) parts.emplace_back(0, unknown_end);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) add(piece, part->first, part->second, out);
  bool in_order = true;  // tokens of bytes share a place, which the cache does not express
  for (size_t i = first; i < out.size(); ++i) in_order &= out[i].begin == (i == first ? 0 : out[i - 1].end);
  if (in_order) scratch.cache.keep(piece, out, first);
}

void Unigram::add(std::string_view piece, uint32_t begin, uint32_t end, std::vector<Token>& out) const {
  const std::string_view text = piece.substr(begin, end - begin);
  if (const int32_t id = vocabulary_.id_of(text); id >= 0) return out.push_back({id, begin, end});
  const auto token_of = [&](char b) { return byte_tokens_[static_cast<uint8_t>(b)]; };
  if (!byte_tokens_.empty() && std::all_of(text.begin(), text.end(), [&](char b) { return token_of(b) >= 0; })) {
    for (const char b : text) out.push_back({token_of(b), begin, end});
    return;
  }
  if (!unknown_)
    throw UserError("{}: the text has a character that no token stands for, and there is no unknown token", where_);
  out.push_back({*unknown_, begin, end});
}

}  // namespace hierarchos::tokenizers
