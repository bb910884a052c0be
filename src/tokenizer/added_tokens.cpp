#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace hierarchos::tokenizers {
namespace {

bool ends_with_word(std::string_view text) {
  return !text.empty() && (unicode::flags(unicode::last(text)) & unicode::kWord);
}
bool begins_with_word(std::string_view text) {
  if (text.empty()) return false;
  const char* p = text.data();
  return unicode::flags(unicode::next(p)) & unicode::kWord;
}
bool is_space(char32_t c) { return unicode::flags(c) & unicode::kWhitespace; }

// Where the white space at the text's end begins, and where that at its begin ends.
size_t trailing_space(std::string_view text) {
  while (!text.empty()) {
    const char32_t c = unicode::last(text);
    if (!is_space(c)) break;
    text.remove_suffix(unicode::width(c));
  }
  return text.size();
}
size_t leading_space(std::string_view text) {
  const char *p = text.data(), *end = p + text.size();
  while (p < end) {
    const char* at = p;
    if (!is_space(unicode::next(p))) return static_cast<size_t>(at - text.data());
  }
  return text.size();
}

}  // namespace

void AddedTokens::add(const std::vector<AddedToken>& tokens, const Model& model, const Normalizer* normalizer,
                      const std::string& where) {
  const int64_t size = static_cast<int64_t>(model.size());
  int64_t next = max_id_ >= 0 && (max_id_ >= size || size == 0) ? max_id_ + int64_t{1} : size;
  Scratch scratch;
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    std::optional<int32_t> id = id_of(token.content);
    if (id && by_id_.contains(*id) && by_id_.at(*id) == token) continue;
    if (!id) id = model.id_of(token.content);
    if (!id) {
      if (next > std::numeric_limits<int32_t>::max()) throw DataError("{}: too many added tokens", where);
      id = static_cast<int32_t>(next++);
    }
    if (token.normalized && normalizer) {
      AlignedText text(token.content);
      scratch.arena.clear();
      normalizer->apply(text, scratch);
      if (text.text() != token.content) normal_forms_[*id] = std::string(text.text());
    }
    ids_[token.content] = *id;
    if (token.special) special_.insert(token.content);
    by_id_[*id] = token;
    max_id_ = std::max(max_id_, *id);
  }
  raw_ = make_trie(false, where);
  normalized_ = make_trie(true, where);
}

ByteTrie AddedTokens::make_trie(bool normalized, const std::string& where) const {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  for (const auto& [id, token] : by_id_) {
    if (token.normalized != normalized) continue;
    const auto form = normal_forms_.find(id);
    keys.emplace_back(normalized && form != normal_forms_.end() ? form->second : token.content, id);
  }
  // Where nothing is left of a token, it is not found anywhere.
  std::erase_if(keys, [](const auto& key) { return key.first.empty(); });
  std::sort(keys.begin(), keys.end());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && keys[i].first == keys[i - 1].first)
      throw DataError("{}: the added tokens \"{}\" and \"{}\" are the same when they are normalized", where,
                      by_id_.at(keys[i - 1].second).content, by_id_.at(keys[i].second).content);
  }
  return ByteTrie(std::move(keys));
}

std::optional<int32_t> AddedTokens::id_of(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string_view> AddedTokens::token(int32_t id) const {
  const AddedToken* token = find(id);
  if (!token) return std::nullopt;
  const auto form = normal_forms_.find(id);
  return form == normal_forms_.end() ? token->content : form->second;
}

// From left to right: where several begin, the longest counts. One that is refused takes its place all the same.
void AddedTokens::find_all(std::string_view text, const ByteTrie& trie, bool as_text, std::vector<Found>& out) const {
  out.clear();
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    if (!trie.begins(static_cast<uint8_t>(text[at]))) {
      ++at;
      continue;
    }
    int32_t id = -1;
    size_t stop = at;
    uint32_t node = ByteTrie::kRoot;
    for (size_t i = at; i < text.size();) {
      node = trie.child(node, static_cast<uint8_t>(text[i++]));
      if (node == ByteTrie::kRoot) break;
      if (trie.value(node) >= 0) id = trie.value(node), stop = i;
    }
    if (id < 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = stop;
    at = stop;
    const AddedToken& token = by_id_.at(id);
    if (as_text && special_.contains(token.content)) continue;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) continue;
    if (token.lstrip) begin = std::max(trailing_space(text.substr(0, begin)), done);
    if (token.rstrip) end += leading_space(text.substr(end));
    if (done < begin) out.push_back({-1, done, begin});
    out.push_back({id, begin, end});
    done = end;
  }
  if (done != text.size()) out.push_back({-1, done, text.size()});
}

void AddedTokens::split(std::vector<Piece>& pieces, const ByteTrie& trie, bool as_text) const {
  if (trie.empty()) {
    // The reference cuts all the same: what normalization took from the ends is no part of the piece afterwards.
    for (Piece& piece : pieces)
      if (piece.id < 0) piece.text = piece.text.slice(0, piece.text.text().size());
    return;
  }
  std::vector<Piece> out;
  std::vector<Found> parts;
  for (const Piece& piece : pieces) {
    if (piece.id >= 0) {
      out.push_back(piece);
      continue;
    }
    find_all(piece.text.text(), trie, as_text, parts);
    for (const Found& part : parts)
      if (part.begin < part.end) out.push_back({piece.text.slice(part.begin, part.end), part.id});
  }
  pieces = std::move(out);
}

void AddedTokens::extract(std::string_view text, const Normalizer* normalizer, bool as_text, std::vector<Piece>& pieces,
                          Scratch& scratch) const {
  pieces.clear();
  if (text.empty()) return;
  pieces.push_back({AlignedText(text), -1});
  split(pieces, raw_, as_text);
  if (normalizer)
    for (Piece& piece : pieces)
      if (piece.id < 0) normalizer->apply(piece.text, scratch);
  std::erase_if(pieces, [](const Piece& piece) { return piece.id < 0 && piece.text.empty(); });
  split(pieces, normalized_, as_text);
}

}  // namespace hierarchos::tokenizers
