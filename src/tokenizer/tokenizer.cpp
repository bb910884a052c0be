#include "tokenizer/tokenizer.h"

#include <oniguruma.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "base/os/file.h"
#include "base/utf8.h"

namespace hierarchos {
namespace {

// GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes for the code points from 256 on.
struct ByteAlphabet {
  std::array<char32_t, 256> letters{};
  std::array<int, 324> bytes{};  // by code point; -1: no letter
  constexpr ByteAlphabet() {
    bytes.fill(-1);
    char32_t next = 256;
    for (size_t b = 0; b < 256; ++b) {
      const bool itself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      letters[b] = itself ? static_cast<char32_t>(b) : next++;
      bytes[letters[b]] = static_cast<int>(b);
    }
  }
};
constexpr ByteAlphabet kAlphabet;

std::string letter_of(uint8_t byte) {
  const char32_t c = kAlphabet.letters[byte];
  if (c < 0x80) return {static_cast<char>(c)};
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}

// A token with a character that is no letter of the alphabet stands for its own text.
std::string bytes_of(const std::string& token) {
  std::string out;
  for (std::string_view rest = token; !rest.empty();) {
    const Utf8Unit unit = next_utf8(rest);
    const bool letter = unit.kind == Utf8Unit::Valid && unit.code_point < kAlphabet.bytes.size();
    const int byte = letter ? kAlphabet.bytes[unit.code_point] : -1;
    if (byte < 0) return token;
    out += static_cast<char>(byte);
    rest.remove_prefix(unit.length);
  }
  return out;
}

class Pattern {
 public:
  Pattern(const std::string& pattern, const std::string& where) {
    static std::once_flag once;
    std::call_once(once, [] {
      OnigEncoding utf8 = ONIG_ENCODING_UTF8;
      onig_initialize(&utf8, 1);
    });
    const auto* begin = reinterpret_cast<const OnigUChar*>(pattern.data());
    OnigErrorInfo info;
    regex_t* regex = nullptr;
    const int rc = onig_new(&regex, begin, begin + pattern.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                            ONIG_SYNTAX_ONIGURUMA, &info);
    if (rc != ONIG_NORMAL) throw UnsupportedError("{}: the pattern {}: {}", where, pattern, message(rc, &info));
    regex_.reset(regex);
  }

  // piece(begin, end) for each match and for what lies between; the text is valid UTF-8.
  template <typename F>
  void for_each_piece(std::string_view text, F piece) const {
    const std::unique_ptr<OnigRegion, RegionFree> region(onig_region_new());
    const auto* data = reinterpret_cast<const OnigUChar*>(text.data());
    size_t done = 0, from = 0;
    while (from < text.size()) {
      const auto found = onig_search(regex_.get(), data, data + text.size(), data + from, data + text.size(),
                                     region.get(), ONIG_OPTION_NONE);
      if (found == ONIG_MISMATCH) break;
      if (found < 0)
        throw DataError("A text cannot be split into words: {}", message(static_cast<int>(found), nullptr));
      const auto begin = static_cast<size_t>(region->beg[0]), end = static_cast<size_t>(region->end[0]);
      if (begin > done) piece(text.substr(done, begin - done));
      if (end > begin) piece(text.substr(begin, end - begin));
      done = end;
      from = end > begin || end >= text.size() ? end : end + next_utf8(text.substr(end)).length;
      if (end == begin && end >= text.size()) break;
    }
    if (done < text.size()) piece(text.substr(done));
  }

 private:
  static std::string message(int code, OnigErrorInfo* info) {
    std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> text{};
    const int length =
        info ? onig_error_code_to_str(text.data(), code, info) : onig_error_code_to_str(text.data(), code);
    return {reinterpret_cast<const char*>(text.data()), static_cast<size_t>(std::max(length, 0))};
  }
  struct RegexFree {
    void operator()(regex_t* r) const { onig_free(r); }
  };
  struct RegionFree {
    void operator()(OnigRegion* r) const { onig_region_free(r, 1); }
  };
  std::unique_ptr<regex_t, RegexFree> regex_;
};

// Finds the added tokens of one kind.
class Matcher {
 public:
  void add(std::string text, int32_t id) { by_first_[static_cast<uint8_t>(text[0])].emplace_back(std::move(text), id); }
  void finish() {
    for (auto& tokens : by_first_)
      std::stable_sort(tokens.begin(), tokens.end(),
                       [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  }
  template <typename Text, typename Token>
  void for_each(std::string_view text, Text on_text, Token on_token) const {
    size_t done = 0;
    for (size_t i = 0; i < text.size();) {
      const auto& tokens = by_first_[static_cast<uint8_t>(text[i])];
      const auto hit = std::find_if(tokens.begin(), tokens.end(),
                                    [&](const auto& token) { return text.substr(i).starts_with(token.first); });
      if (hit == tokens.end()) {
        ++i;
        continue;
      }
      if (i > done) on_text(text.substr(done, i - done));
      on_token(hit->second);
      done = i += hit->first.size();
    }
    if (done < text.size()) on_text(text.substr(done));
  }

 private:
  std::array<std::vector<std::pair<std::string, int32_t>>, 256> by_first_;
};

// Appends what is certain and removes it from `bytes`; at the end, everything.
void take_text(std::string& bytes, std::string& out, bool end) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const Utf8Unit unit = next_utf8(rest);
    if (unit.kind == Utf8Unit::Truncated && !end) break;
    if (unit.kind == Utf8Unit::Valid) {
      out += rest.substr(0, unit.length);
    } else {
      out += "\xEF\xBF\xBD";
    }
    rest.remove_prefix(unit.length);
  }
  bytes.erase(0, bytes.size() - rest.size());
}

}  // namespace

struct Tokenizer::Impl {
  struct Merge {
    int32_t rank = 0, id = 0;
  };
  struct Step {
    std::optional<Pattern> pattern;
    bool prefix_space = false;
  };
  static uint64_t pair_key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  explicit Impl(TokenizerData data);
  // What an id adds to a text; null for no token and for those left out.
  const std::string* bytes(int32_t id, bool skip_special) const {
    if (id < 0 || static_cast<size_t>(id) >= texts.size()) return nullptr;
    const auto i = static_cast<size_t>(id);
    return skip_special && special[i] ? nullptr : &texts[i];
  }

  std::vector<std::string> texts;  // bytes, by id
  std::vector<bool> special;
  std::unordered_map<std::string, int32_t> ids;         // by spelling
  std::unordered_map<std::string_view, int32_t> words;  // by bytes, if merges may be ignored; into `texts`
  std::array<int32_t, 256> byte_ids{};                  // -1: none
  std::unordered_map<uint64_t, Merge> merges;
  std::array<Matcher, 2> added;  // not normalized, normalized
  std::vector<Step> steps;
  std::optional<int32_t> unknown, bos, eos;
  bool add_bos = false, add_eos = false, ignore_merges = false;
};

Tokenizer::Impl::Impl(TokenizerData data)
    : unknown(data.unknown),
      bos(data.bos),
      eos(data.eos),
      add_bos(data.add_bos),
      add_eos(data.add_eos),
      ignore_merges(data.ignore_merges) {
  if (data.tokens.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw DataError("{}: too many tokens", data.where);
  // Where a spelling has two ids, the last counts.
  for (size_t i = 0; i < data.tokens.size(); ++i)
    if (!data.tokens[i].empty()) ids[data.tokens[i]] = static_cast<int32_t>(i);
  int32_t rank = 0;
  for (const auto& [left, right] : data.merges) {
    const auto l = ids.find(left), r = ids.find(right), both = ids.find(left + right);
    if (l == ids.end() || r == ids.end() || both == ids.end())
      throw DataError("{}: the merge of \"{}\" and \"{}\" needs a token that is not in the vocabulary", data.where,
                      left, right);
    merges.insert_or_assign(pair_key(l->second, r->second), Merge{rank++, both->second});
  }
  for (size_t b = 0; b < 256; ++b) {
    const auto found = ids.find(letter_of(static_cast<uint8_t>(b)));
    byte_ids[b] = found == ids.end() ? -1 : found->second;
  }

  std::vector<std::string> spellings = std::move(data.tokens);
  const size_t model_tokens = spellings.size();
  for (auto& token : data.added) {
    if (token.text.empty()) throw DataError("{}: added token {} is empty", data.where, token.id);
    if (token.id < 0) throw DataError("{}: added token \"{}\" has id {}", data.where, token.text, token.id);
    const auto i = static_cast<size_t>(token.id);
    if (i >= spellings.size()) spellings.resize(i + 1);
    special.resize(spellings.size());
    if (!spellings[i].empty() && spellings[i] != token.text)
      throw DataError("{}: id {} is both \"{}\" and \"{}\"", data.where, i, spellings[i], token.text);
    spellings[i] = token.text;
    special[i] = token.special;
    ids[token.text] = token.id;
    added[token.normalized ? 1 : 0].add(std::move(token.text), token.id);
  }
  special.resize(spellings.size());
  for (Matcher& matcher : added) matcher.finish();
  texts.reserve(spellings.size());
  for (const std::string& spelling : spellings) texts.push_back(bytes_of(spelling));
  if (ignore_merges)
    for (size_t i = 0; i < model_tokens; ++i)
      if (!texts[i].empty()) words[texts[i]] = static_cast<int32_t>(i);

  for (const auto& split : data.splits) {
    Step& step = steps.emplace_back();
    step.prefix_space = split.prefix_space;
    if (!split.pattern.empty()) step.pattern.emplace(split.pattern, data.where);
  }
  for (const auto& [name, id] : {std::pair("unknown", unknown), std::pair("beginning", bos), std::pair("end", eos)})
    if (id && (*id < 0 || static_cast<size_t>(*id) >= texts.size()))
      throw DataError("{}: the token of the {} has id {}, which is no token", data.where, name, *id);
  if ((add_bos && !bos) || (add_eos && !eos))
    throw DataError("{}: texts shall {} with a token that is not named", data.where, add_bos && !bos ? "begin" : "end");
}

// One text's encoding.
class Tokenizer::Encoder {
 public:
  explicit Encoder(const Impl& impl) : impl_(impl) {}

  void text(std::string_view text, size_t kind = 0) {
    if (kind == impl_.added.size()) return plain(text);
    impl_.added[kind].for_each(
        text, [&](std::string_view rest) { this->text(rest, kind + 1); }, [&](int32_t id) { ids.push_back(id); });
  }

  std::vector<int32_t> ids;

 private:
  // Stretches of UTF-8 and of other bytes, in turn.
  void plain(std::string_view text) {
    while (!text.empty()) {
      size_t end = 0;
      const bool valid = next_utf8(text).kind == Utf8Unit::Valid;
      while (end < text.size()) {
        const Utf8Unit unit = next_utf8(text.substr(end));
        if ((unit.kind == Utf8Unit::Valid) != valid) break;
        end += unit.length;
      }
      if (valid) {
        split(text.substr(0, end), 0);
      } else {
        word(text.substr(0, end));
      }
      text.remove_prefix(end);
    }
  }

  void split(std::string_view text, size_t step) {
    if (step == impl_.steps.size()) return word(text);
    const Impl::Step& here = impl_.steps[step];
    std::string longer;
    if (here.prefix_space && !text.starts_with(' ')) text = longer = " " + std::string(text);
    if (!here.pattern) return split(text, step + 1);
    here.pattern->for_each_piece(text, [&](std::string_view piece) { split(piece, step + 1); });
  }

  void word(std::string_view bytes) {
    if (impl_.ignore_merges) {
      if (const auto whole = impl_.words.find(bytes); whole != impl_.words.end()) {
        ids.push_back(whole->second);
        return;
      }
    }
    symbols_.clear();
    for (const char c : bytes) {
      const int32_t id = impl_.byte_ids[static_cast<uint8_t>(c)];
      const int32_t at = static_cast<int32_t>(symbols_.size());
      if (id >= 0 || impl_.unknown) symbols_.push_back({id >= 0 ? id : *impl_.unknown, at - 1, at + 1});
    }
    if (symbols_.empty()) return;
    symbols_.back().next = -1;
    merge();
    for (int32_t i = 0; i >= 0; i = at(i).next) ids.push_back(at(i).id);
  }

  struct Symbol {
    int32_t id, previous, next;  // places; -1: none. A symbol merged into the one before it has id -1.
  };
  struct Candidate {
    int32_t rank, place, id;  // of the left symbol; of what comes out
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };
  Symbol& at(int32_t place) { return symbols_[static_cast<size_t>(place)]; }
  const Impl::Merge* merge_at(int32_t place) {
    if (place < 0 || at(place).next < 0) return nullptr;
    const auto found = impl_.merges.find(Impl::pair_key(at(place).id, at(at(place).next).id));
    return found == impl_.merges.end() ? nullptr : &found->second;
  }
  void consider(int32_t place) {
    if (const Impl::Merge* merge = merge_at(place)) queue_.push({merge->rank, place, merge->id});
  }

  // The merge that counts most, the leftmost of equals, again and again. A candidate whose pair has changed is dropped
  // unless the new pair makes the same token, as the reference has it (tokenizers, models/bpe/word.rs).
  void merge() {
    for (int32_t i = 0; i < static_cast<int32_t>(symbols_.size()); ++i) consider(i);
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      if (at(top.place).id < 0) continue;
      const Impl::Merge* merge = merge_at(top.place);
      if (!merge || merge->id != top.id) continue;
      Symbol& left = at(top.place);
      Symbol& right = at(left.next);
      right.id = -1;
      left.id = top.id;
      left.next = right.next;
      if (left.next >= 0) at(left.next).previous = top.place;
      consider(left.previous);
      consider(top.place);
    }
  }

  const Impl& impl_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

Tokenizer::Tokenizer(TokenizerData data) : impl_(std::make_unique<const Impl>(std::move(data))) {}
Tokenizer::~Tokenizer() = default;

std::shared_ptr<Tokenizer> Tokenizer::from_package(const formats::Package& package) {
  if (const formats::GgufFile* file = package.gguf()) return std::make_shared<Tokenizer>(tokenizer_data(*file));
  const std::filesystem::path path = package.file("tokenizer.json"), config = package.file("tokenizer_config.json");
  if (!file_exists(path)) throw UserError("{}: there is no tokenizer.json here", package.where());
  return std::make_shared<Tokenizer>(tokenizer_data(
      read_json_file(path), file_exists(config) ? read_json_file(config) : nlohmann::json(), path.string()));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special) const {
  if (text.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw UserError("A text of {} bytes is too long: the limit is 2 GiB", text.size());
  Encoder encoder(*impl_);
  if (add_special && impl_->add_bos) encoder.ids.push_back(*impl_->bos);
  encoder.text(text);
  if (add_special && impl_->add_eos) encoder.ids.push_back(*impl_->eos);
  return std::move(encoder.ids);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes, out;
  for (const int32_t id : ids)
    if (const std::string* more = impl_->bytes(id, skip_special)) bytes += *more;
  take_text(bytes, out, true);
  return out;
}

std::string Tokenizer::Stream::push(int32_t id) {
  std::string out;
  if (const std::string* more = tokenizer_->impl_->bytes(id, skip_special_)) pending_ += *more;
  take_text(pending_, out, false);
  return out;
}

std::string Tokenizer::Stream::finish() {
  std::string out;
  take_text(pending_, out, true);
  return out;
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(impl_->texts.size()); }
std::optional<int32_t> Tokenizer::bos() const { return impl_->bos; }
std::optional<int32_t> Tokenizer::eos() const { return impl_->eos; }
std::optional<int32_t> Tokenizer::token_id(const std::string& token) const {
  const auto found = impl_->ids.find(token);
  return found == impl_->ids.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace hierarchos
