#include "tokenizer/decoders.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/pre_tokenizers.h"

namespace hierarchos::tokenizers {
namespace {

using Tokens = std::vector<std::string>;

// An empty `what` stands between all characters, as in Rust's str::replace.
std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  if (what.empty()) {
    out += by;
    for (size_t i = 0; i < text.size();) {
      const size_t n = unicode::length_of(text[i]);
      out.append(text.substr(i, n)).append(by);
      i += n;
    }
    return out;
  }
  size_t done = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, done)) {
    out.append(text.substr(done, at - done)).append(by);
    done = at + what.size();
  }
  return out.append(text.substr(done));
}

// English punctuation as it was before tokenization, more or less.
std::string cleaned(std::string text) {
  static constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  if (text.find(' ') == std::string::npos) return text;
  for (const auto& [what, by] : kRules)
    if (text.find(what) != std::string::npos) text = replaced(text, what, by);
  return text;
}

class ByteLevel : public Decoder {
 public:
  explicit ByteLevel(const Object& o) {
    o.flag("add_prefix_space");
    o.flag("trim_offsets");
    o.flag("use_regex", true);
  }
  void apply(Tokens& tokens) const override {
    std::string bytes, more;
    for (const std::string& token : tokens) bytes += ByteAlphabet::read(token, more) ? more : token;
    tokens = {lossy(bytes)};
  }
};

class WordPiece : public Decoder {
 public:
  explicit WordPiece(const Object& o) : prefix_(o.text("prefix")), clean_(o.flag("cleanup")) {}
  void apply(Tokens& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) {
        if (token.starts_with(prefix_))
          token.erase(0, prefix_.size());
        else
          token.insert(token.begin(), ' ');
      }
      if (clean_) token = cleaned(std::move(token));
    }
  }

 private:
  std::string prefix_;
  bool clean_;
};

class BpeSuffix : public Decoder {
 public:
  explicit BpeSuffix(const Object& o) : suffix_(o.text("suffix")) {}
  void apply(Tokens& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], suffix_, i + 1 < tokens.size() ? " " : "");
  }

 private:
  std::string suffix_;
};

class Ctc : public Decoder {
 public:
  explicit Ctc(const Object& o)
      : pad_(o.text("pad_token")), delimiter_(o.text("word_delimiter_token")), clean_(o.flag("cleanup")) {}
  void apply(Tokens& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    Tokens out;
    for (const std::string& token : tokens) {
      std::string text = replaced(token, pad_, "");
      if (clean_) text = replaced(cleaned(std::move(text)), delimiter_, " ");
      if (!text.empty()) out.push_back(std::move(text));
    }
    tokens = std::move(out);
  }

 private:
  std::string pad_, delimiter_;
  bool clean_;
};

class Metaspace : public Decoder {
 public:
  explicit Metaspace(const Object& o) : options_(o) {}
  void apply(Tokens& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool first = i == 0 && options_.scheme != MetaspaceOptions::Never;
      tokens[i] = replaced(tokens[i], options_.bytes, first ? "" : " ");
    }
  }

 private:
  MetaspaceOptions options_;
};

class Fuse : public Decoder {
 public:
  void apply(Tokens& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {std::move(all)};
  }
};

class Strip : public Decoder {
 public:
  explicit Strip(const Object& o) : start_(o.size("start")), stop_(o.size("stop")) {
    unicode::append(content_, o.character("content"));
  }
  void apply(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      const std::string_view text = token;
      size_t begin = 0, end = text.size();
      for (uint64_t i = 0; i < start_ && text.substr(begin).starts_with(content_); ++i) begin += content_.size();
      for (uint64_t i = 0; i < stop_ && text.substr(0, end).ends_with(content_); ++i) end -= content_.size();
      // The reference crashes where both would take the same characters.
      token = begin < end ? std::string(text.substr(begin, end - begin)) : std::string();
    }
  }

 private:
  std::string content_;
  uint64_t start_, stop_;
};

class ByteFallback : public Decoder {
 public:
  void apply(Tokens& tokens) const override {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (unicode::is_valid(bytes))
        out.push_back(bytes);
      else
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const int byte = byte_of(token); byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }

 private:
  // As Rust's u8::from_str_radix reads it: a sign before one digit is allowed.
  static int byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
    const auto digit = [](char c) {
      return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
    };
    const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
  }
};

class Replace : public Decoder {
 public:
  explicit Replace(const Object& o) : pattern_(o.at("pattern"), o.inside("pattern")), content_(o.text("content")) {}
  void apply(Tokens& tokens) const override {
    std::vector<Match> parts;
    for (std::string& token : tokens) {
      pattern_.find_all(token, parts);
      std::string out;
      for (const Match& part : parts)
        out += part.matched ? std::string_view(content_)
                            : std::string_view(token).substr(part.begin, part.end - part.begin);
      token = std::move(out);
    }
  }

 private:
  TextPattern pattern_;
  std::string content_;
};

class Sequence : public Decoder {
 public:
  explicit Sequence(const Object& o) {
    size_t i = 0;
    for (const Json item : o.array("decoders"))
      steps_.push_back(read_decoder(item, o.inside(fmt::format("decoder {}", i++))));
  }
  void apply(Tokens& tokens) const override {
    for (const auto& step : steps_) step->apply(tokens);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

// Old files leave the type out where the fields tell it.
std::string type_of(const Object& o) {
  if (o.has("type")) return o.text("type");
  if (o.find("suffix")) return "BPEDecoder";
  if (o.find("prefix")) return "WordPiece";
  if (o.find("pad_token")) return "CTC";
  if (o.find("pattern")) return "Replace";
  if (o.find("content")) return "Strip";
  throw DataError("{} has no \"type\"", o.place().name);
}

}  // namespace

std::string lossy(std::string_view bytes) {
  return unicode::is_valid(bytes) ? std::string(bytes) : unicode::repaired(bytes);
}

std::unique_ptr<Decoder> read_decoder(Json value, const Place& place) {
  const Object o(value, place);
  const std::string type = type_of(o);
  if (type == "Sequence") return std::make_unique<Sequence>(o);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(o);
  if (type == "WordPiece") return std::make_unique<WordPiece>(o);
  if (type == "BPEDecoder") return std::make_unique<BpeSuffix>(o);
  if (type == "CTC") return std::make_unique<Ctc>(o);
  if (type == "Metaspace") return std::make_unique<Metaspace>(o);
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") return std::make_unique<Strip>(o);
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Replace") return std::make_unique<Replace>(o);
  throw UnsupportedError("{} of type \"{}\" is not supported", place.name, type);
}

}  // namespace hierarchos::tokenizers
