#include "tokenizer/sentencepiece.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "base/error.h"

namespace hierarchos::tokenizers {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581 stands for a space

// What the three parts know of the vocabulary.
struct Pieces {
  SpmModel model;
  Vocabulary normal, reserved;  // normal, user-defined and unused pieces; control, unknown and byte pieces
  ByteTrie user_defined;
  int32_t unknown = -1;
  std::vector<int32_t> bytes;  // by byte; -1

  explicit Pieces(SpmModel m) : model(std::move(m)) {
    std::vector<std::pair<std::string_view, int32_t>> keys;
    for (size_t i = 0; i < model.pieces.size(); ++i) {
      const SpmPiece& piece = model.pieces[i];
      const auto id = static_cast<int32_t>(i);
      const bool is_normal =
          piece.type == SpmPiece::Normal || piece.type == SpmPiece::UserDefined || piece.type == SpmPiece::Unused;
      Vocabulary& vocabulary = is_normal ? normal : reserved;
      if (piece.text.empty()) throw DataError("{}: piece {} is empty", model.where, i);
      if (vocabulary.id_of(piece.text) >= 0)
        throw DataError("{}: piece \"{}\" is there twice", model.where, piece.text);
      vocabulary.add(piece.text, id);
      if (piece.type == SpmPiece::UserDefined) keys.emplace_back(piece.text, id);
      if (piece.type == SpmPiece::Unknown) {
        if (unknown >= 0) throw DataError("{}: there are two unknown pieces", model.where);
        unknown = id;
      }
    }
    if (unknown < 0) throw DataError("{}: there is no unknown piece", model.where);
    normal.finish();
    reserved.finish();
    user_defined = ByteTrie(std::move(keys));
    for (int b = 0; b < 256; ++b) {
      bytes.push_back(reserved.id_of(fmt::format("<0x{:02X}>", b)));
      if (model.byte_fallback && bytes.back() < 0)
        throw DataError("{}: byte_fallback, but there is no piece <0x{:02X}>", model.where, b);
    }
  }
  SpmPiece::Type type(int32_t id) const { return model.pieces[static_cast<size_t>(id)].type; }
  int32_t id_of(std::string_view text) const {
    const int32_t special = reserved.id_of(text);
    if (special >= 0) return special;
    const int32_t id = normal.id_of(text);
    return id >= 0 ? id : unknown;
  }
  // Bytes of the longest user-defined piece that the text begins with; 0: none.
  size_t match_user_defined(std::string_view text) const {
    size_t longest = 0;
    uint32_t node = ByteTrie::kRoot;
    for (size_t i = 0; i < text.size();) {
      node = user_defined.child(node, static_cast<uint8_t>(text[i++]));
      if (node == ByteTrie::kRoot) break;
      if (user_defined.value(node) >= 0) longest = i;
    }
    return longest;
  }
};
using SharedPieces = std::shared_ptr<const Pieces>;

class SpmNormalizer : public Normalizer {
 public:
  explicit SpmNormalizer(SharedPieces pieces) : pieces_(std::move(pieces)) {
    const SpmModel& m = pieces_->model;
    if (!m.character_map.empty()) map_.emplace(m.character_map, m.where);
  }
  void apply(AlignedText& text, Scratch& scratch) const override {
    const SpmModel& m = pieces_->model;
    std::string_view rest = text.text();
    auto& changes = scratch.changes;
    changes.clear();
    size_t skipped = 0;
    if (m.remove_extra_whitespaces)
      for (Part part; !rest.empty() && (part = next(rest)).text == " "; rest.remove_prefix(part.length))
        skipped += unicode::count(rest.substr(0, part.length));
    if (rest.empty()) return clear(text, scratch);
    const std::string_view space = m.escape_whitespaces ? kSpace : std::string_view(" ");
    const bool dummy =
        m.add_dummy_prefix && !m.whitespace_as_suffix && (!m.dummy_prefix_first_only || text.original_begin() == 0);
    if (dummy) add(changes, space, 0);
    bool after_space = m.remove_extra_whitespaces;
    bool first = true;
    while (!rest.empty()) {
      const Part part = next(rest);
      std::string_view t = part.text;
      while (after_space && t.starts_with(' ')) t.remove_prefix(1);
      const auto count = unicode::count(rest.substr(0, part.length));
      rest.remove_prefix(part.length);
      if (t.empty()) {
        if (!changes.empty()) changes.back().second -= static_cast<int64_t>(count);
        continue;
      }
      after_space = m.remove_extra_whitespaces && t.ends_with(' ');
      const size_t before = changes.size();
      for (const char *p = t.data(), *end = p + t.size(); p < end;) {
        const char32_t c = unicode::next(p);
        changes.emplace_back(c == ' ' && m.escape_whitespaces ? 0x2581 : c, 1);
      }
      // The first character stands for what was replaced. The dummy prefix shares the first one's place.
      if (first && dummy)
        changes[0].second = 1 - static_cast<int64_t>(count);
      else
        changes[before].second = 1 - static_cast<int64_t>(count);
      first = false;
    }
    if (m.remove_extra_whitespaces)
      while (!changes.empty() && (changes.back().first == ' ' || changes.back().first == 0x2581)) changes.pop_back();
    if (m.add_dummy_prefix && m.whitespace_as_suffix) add(changes, space, 1);
    text.transform(changes, skipped, scratch.arena);
  }

 private:
  struct Part {
    std::string_view text;  // what the characters become
    size_t length = 0;      // of the characters, bytes
  };
  static void clear(AlignedText& text, Scratch& scratch) {
    scratch.changes.clear();
    text.transform(scratch.changes, 0, scratch.arena);
  }
  static void add(std::vector<unicode::Change>& changes, std::string_view space, int64_t change) {
    const char* p = space.data();
    changes.emplace_back(unicode::next(p), change);
  }
  Part next(std::string_view text) const {
    if (const size_t n = pieces_->match_user_defined(text)) return {text.substr(0, n), n};
    if (map_)
      if (const auto found = map_->longest(text); found.length) return {found.replacement, found.length};
    const size_t n = unicode::length_of(text[0]);
    return {text.substr(0, n), n};
  }
  SharedPieces pieces_;
  std::optional<CharacterMap> map_;
};

// Pieces of a text, by model; then unknown ones become bytes, or one piece each run.
class SpmTokens : public Model {
 public:
  explicit SpmTokens(SharedPieces pieces) : pieces_(std::move(pieces)) {
    float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::min();
    std::vector<std::pair<std::string_view, int32_t>> keys;
    for (size_t i = 0; i < pieces_->model.pieces.size(); ++i) {
      const SpmPiece& piece = pieces_->model.pieces[i];
      if (piece.type == SpmPiece::Normal) least = std::min(least, piece.score), most = std::max(most, piece.score);
      if (piece.type == SpmPiece::Normal || piece.type == SpmPiece::UserDefined)
        keys.emplace_back(piece.text, static_cast<int32_t>(i));
      vocabulary_.add(piece.text, static_cast<int32_t>(i));
    }
    vocabulary_.finish();
    unknown_score_ = least - 10;
    most_ = most;
    if (pieces_->model.kind == SpmModel::Unigram) trie_ = ByteTrie(std::move(keys));
  }
  std::optional<std::string_view> token(int32_t id) const override {
    if (id < 0 || static_cast<size_t>(id) >= size()) return std::nullopt;
    return pieces_->model.pieces[static_cast<size_t>(id)].text;
  }
  size_t size() const override { return pieces_->model.pieces.size(); }
  int32_t max_id() const override { return static_cast<int32_t>(size()) - 1; }

  void tokenize(std::string_view text, std::vector<Token>& out, ModelScratch& scratch) const override {
    if (scratch.cache.find(text, 0, out)) return;
    const size_t first = out.size();
    std::vector<Token> found;
    switch (pieces_->model.kind) {
      case SpmModel::Unigram:
        best_path(text, found, scratch);
        break;
      case SpmModel::Bpe:
        merge(text, found);
        break;
      case SpmModel::Char:
        characters(text, found);
        break;
      case SpmModel::Word:
        words(text, found);
        break;
    }
    bool after_unknown = false;
    for (const Token& token : found) {
      const bool is_unknown = token.id == pieces_->unknown;
      if (is_unknown && pieces_->model.byte_fallback) {
        for (uint32_t i = token.begin; i < token.end; ++i)
          out.push_back({pieces_->bytes[static_cast<uint8_t>(text[i])], i, i + 1});
      } else if (is_unknown && after_unknown) {
        out.back().end = token.end;
      } else {
        out.push_back(token);
      }
      after_unknown = is_unknown;
    }
    scratch.cache.keep(text, out, first);
  }

 private:
  // Viterbi's algorithm in single precision, as sentencepiece has it; a user-defined piece always wins.
  void best_path(std::string_view text, std::vector<Token>& out, ModelScratch& scratch) const {
    auto& steps = scratch.steps;
    steps.assign(text.size() + 1, {});
    for (uint32_t begin = 0; begin < text.size();) {
      const double score = steps[begin].score;
      const auto consider = [&](uint32_t end, double more, int32_t id) {
        ModelScratch::Step& step = steps[end];
        const auto candidate = static_cast<float>(more + score);
        if (step.id >= 0 && !(candidate > static_cast<float>(step.score))) return;
        step = {static_cast<double>(candidate), begin, id};
      };
      const auto width = static_cast<uint32_t>(unicode::length_of(text[begin]));
      bool single = false;
      uint32_t node = ByteTrie::kRoot;
      for (uint32_t at = begin; at < text.size();) {
        node = trie_.child(node, static_cast<uint8_t>(text[at++]));
        if (node == ByteTrie::kRoot) break;
        const int32_t id = trie_.value(node);
        if (id < 0) continue;
        const SpmPiece& piece = pieces_->model.pieces[static_cast<size_t>(id)];
        const bool wins = piece.type == SpmPiece::UserDefined;
        consider(
            at,
            wins ? static_cast<double>(static_cast<float>(at - begin) * most_) - 0.1 : static_cast<double>(piece.score),
            id);
        single |= at - begin == width;
      }
      if (!single) consider(begin + width, static_cast<double>(unknown_score_), pieces_->unknown);
      begin += width;
    }
    for (auto end = static_cast<uint32_t>(text.size()); end > 0; end = steps[end].from)
      out.push_back({steps[end].id, steps[end].from, end});
    std::reverse(out.begin(), out.end());
  }

  struct Symbol {
    uint32_t begin = 0, end = 0;
    int32_t previous = -1, next = -1;
    bool frozen = false;  // a user-defined piece
  };
  // Characters, and user-defined pieces.
  std::vector<Symbol> symbols(std::string_view text) const {
    std::vector<Symbol> out;
    for (uint32_t at = 0; at < text.size();) {
      const size_t user = pieces_->match_user_defined(text.substr(at));
      const auto n = static_cast<uint32_t>(user ? user : unicode::length_of(text[at]));
      out.push_back({at, at + n, static_cast<int32_t>(out.size()) - 1, static_cast<int32_t>(out.size()) + 1, user > 0});
      at += n;
    }
    if (!out.empty()) out.back().next = -1;
    return out;
  }

  // The pair whose joined piece has the highest score first, from the left.
  void merge(std::string_view text, std::vector<Token>& out) const {
    std::vector<Symbol> list = symbols(text);
    struct Pair {
      float score;
      int32_t left, right;
      uint32_t length;
      bool operator<(const Pair& o) const { return score < o.score || (score == o.score && left > o.left); }
    };
    std::priority_queue<Pair> queue;
    std::unordered_map<std::string, std::pair<uint32_t, uint32_t>> unused;  // how unused pieces were joined: lengths
    const auto consider = [&](int32_t left, int32_t right) {
      if (left < 0 || right < 0) return;
      const Symbol &a = list[static_cast<size_t>(left)], &b = list[static_cast<size_t>(right)];
      if (a.frozen || b.frozen) return;
      const std::string_view joined = text.substr(a.begin, b.end - a.begin);
      const int32_t id = pieces_->normal.id_of(joined);
      if (id < 0) return;
      queue.push({pieces_->model.pieces[static_cast<size_t>(id)].score, left, right, b.end - a.begin});
      if (pieces_->type(id) == SpmPiece::Unused) unused[std::string(joined)] = {a.end - a.begin, b.end - b.begin};
    };
    for (size_t i = 1; i < list.size(); ++i) consider(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
    while (!queue.empty()) {
      const Pair top = queue.top();
      queue.pop();
      Symbol &a = list[static_cast<size_t>(top.left)], &b = list[static_cast<size_t>(top.right)];
      if (a.end == a.begin || b.end == b.begin || b.end - a.begin != top.length || a.next != top.right) continue;
      a.end = b.end;
      a.next = b.next;
      b.begin = b.end;
      if (a.next >= 0) list[static_cast<size_t>(a.next)].previous = top.left;
      consider(a.previous, top.left);
      consider(top.left, a.next);
    }
    for (int32_t i = list.empty() ? -1 : 0; i >= 0; i = list[static_cast<size_t>(i)].next)
      emit(text, list[static_cast<size_t>(i)].begin, list[static_cast<size_t>(i)].end, unused, out, 0);
  }
  // Unused pieces become what they were joined from.
  void emit(std::string_view text, uint32_t begin, uint32_t end,
            const std::unordered_map<std::string, std::pair<uint32_t, uint32_t>>& unused, std::vector<Token>& out,
            int depth) const {
    constexpr int kDeepest = 100;
    const std::string_view piece = text.substr(begin, end - begin);
    const int32_t id = pieces_->id_of(piece);
    const auto found = pieces_->type(id) == SpmPiece::Unused ? unused.find(std::string(piece)) : unused.end();
    if (found == unused.end() || depth >= kDeepest) return out.push_back({id, begin, end});
    const uint32_t middle = begin + found->second.first;
    emit(text, begin, middle, unused, out, depth + 1);
    emit(text, middle, end, unused, out, depth + 1);
  }

  void characters(std::string_view text, std::vector<Token>& out) const {
    for (const Symbol& s : symbols(text))
      out.push_back({pieces_->id_of(text.substr(s.begin, s.end - s.begin)), s.begin, s.end});
  }

  void words(std::string_view text, std::vector<Token>& out) const {
    const bool suffix = pieces_->model.whitespace_as_suffix;
    uint32_t begin = 0;
    const auto add = [&](uint32_t end) {
      if (end > begin) out.push_back({pieces_->id_of(text.substr(begin, end - begin)), begin, end});
      begin = end;
    };
    for (uint32_t at = 0; at < text.size();) {
      const auto n = static_cast<uint32_t>(unicode::length_of(text[at]));
      const bool space = text.substr(at).starts_with(kSpace);
      if (space && !suffix) add(at);
      at += n;
      if (space && suffix) add(at);
    }
    add(static_cast<uint32_t>(text.size()));
  }

  SharedPieces pieces_;
  ByteTrie trie_;
  float unknown_score_ = 0, most_ = 0;
};

class SpmDecoder : public Decoder {
 public:
  explicit SpmDecoder(SharedPieces pieces) : pieces_(std::move(pieces)) {}
  void apply(std::vector<std::string>& tokens) const override {
    std::string text, bytes;
    bool at_begin = true, seen_space = false;
    const auto flush = [&] {
      while (!bytes.empty()) {
        const size_t n = unicode::length_of(bytes[0]);
        if (n <= bytes.size() && unicode::is_valid(std::string_view(bytes).substr(0, n))) {
          text.append(bytes, 0, n);
          bytes.erase(0, n);
        } else {
          text += "\xEF\xBF\xBD";
          bytes.erase(0, 1);
        }
      }
    };
    for (const std::string& token : tokens) {
      const int32_t id = pieces_->id_of(token);
      if (pieces_->type(id) == SpmPiece::Byte) {
        bytes += static_cast<char>(std::stoi(token.substr(3, 2), nullptr, 16));
        continue;
      }
      flush();
      if (seen_space || !text.empty()) at_begin = false;
      text += decoded(token, id, at_begin, seen_space);
    }
    flush();
    tokens = {std::move(text)};
  }

 private:
  std::string decoded(std::string_view piece, int32_t id, bool at_begin, bool& seen_space) const {
    const SpmModel& m = pieces_->model;
    seen_space = false;
    if (pieces_->type(id) == SpmPiece::Control) return "";
    if (id == pieces_->unknown) {
      const bool itself = m.pieces[static_cast<size_t>(id)].text == piece;
      return itself ? m.unknown_surface : std::string(piece);
    }
    if (at_begin && (m.add_dummy_prefix || m.remove_extra_whitespaces) && piece.starts_with(kSpace)) {
      piece.remove_prefix(kSpace.size());
      seen_space = !m.remove_extra_whitespaces;
    }
    std::string out;
    while (!piece.empty()) {
      if (piece.starts_with(kSpace)) {
        out += ' ';
        piece.remove_prefix(kSpace.size());
      } else {
        out += piece[0];
        piece.remove_prefix(1);
      }
    }
    return out;
  }
  SharedPieces pieces_;
};

}  // namespace

Parts make_parts(SpmModel model) {
  const auto pieces = std::make_shared<const Pieces>(std::move(model));
  Parts parts;
  parts.where = pieces->model.where;
  parts.normalizer = std::make_unique<SpmNormalizer>(pieces);
  parts.model = std::make_unique<SpmTokens>(pieces);
  parts.decoder = std::make_unique<SpmDecoder>(pieces);
  return parts;
}

}  // namespace hierarchos::tokenizers
