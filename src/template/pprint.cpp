// Python's pprint.pformat: 80 columns, sorted dicts.
#include "template/filters.h"
#include "template/order.h"
#include "template/print.h"
#include "template/text.h"
#include "template/unicode.h"

namespace hierarchos::jinja {
namespace {

constexpr int64_t kWidth = 80;

using Items = std::vector<std::pair<Value, Value>>;

// By keys; where those cannot be ordered, by the names of their types.
Items sorted_items(const Value& dict) {
  const Items& items = dict.as_dict().items;
  const auto comparable = [](const Value& a, const Value& b) {
    return (a.is_number() && b.is_number()) || (a.type() == b.type() && (a.is_text() || a.is(Type::Tuple)));
  };
  const std::vector<size_t> order = merge_order(items.size(), [&](size_t a, size_t b) {
    const Value &x = items[a].first, &y = items[b].first;
    return comparable(x, y) ? less(x, y) : "<class '" + type_name(x) + "'>" < "<class '" + type_name(y) + "'>";
  });
  Items out;
  for (const size_t i : order) out.push_back(items[i]);
  return out;
}

// A group of the filter groupby is written as it is, since Python does not take it for a plain tuple.
bool is_plain_tuple(const Value& v) { return v.is(Type::Tuple) && !v.get<Sequence>().group; }

// repr() with sorted dicts.
std::string plain(const Value& v) {
  std::string out;
  charge(256);
  if (v.is(Type::Dict)) {
    for (const auto& [key, value] : sorted_items(v))
      out += (out.empty() ? "" : ", ") + plain(key) + ": " + plain(value);
    return "{" + out + "}";
  }
  if (!v.is(Type::List) && !is_plain_tuple(v)) return repr(v);
  for (const Value& item : v.items()) {
    out += (out.empty() ? "" : ", ") + plain(item);
    check_text_size(out.size());
  }
  if (v.is(Type::List)) return "[" + out + "]";
  return v.items().size() == 1 ? "(" + out + ",)" : "(" + out + ")";
}

class Prettier {
 public:
  std::string out;

  void write(const Value& v, int64_t indent, int64_t allowance, int level) {
    const std::string whole = plain(v);
    if (length(whole) <= kWidth - indent - allowance) {
      out += whole;
      return;
    }
    if (v.is(Type::Dict))
      dict(v, indent, allowance + 1, level + 1);
    else if (v.is(Type::List))
      sequence(v.items(), "[", "]", indent, allowance + 1, level + 1);
    else if (is_plain_tuple(v))
      sequence(v.items(), "(", v.items().size() == 1 ? ",)" : ")", indent, allowance + (v.items().size() == 1 ? 2 : 1),
               level + 1);
    else if (v.is_text() && !v.is_markup())
      string(v.str(), indent, allowance, level + 1);
    else
      out += whole;
  }

 private:
  static int64_t length(const std::string& s) { return static_cast<int64_t>(text::length(s)); }
  static std::string new_line(int64_t indent) { return "\n" + std::string(static_cast<size_t>(indent), ' '); }

  void dict(const Value& v, int64_t indent, int64_t allowance, int level) {
    const Items items = sorted_items(v);
    out += "{";
    ++indent;
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string key = plain(items[i].first);
      const bool is_last = i + 1 == items.size();
      out += key + ": ";
      write(items[i].second, indent + length(key) + 2, is_last ? allowance : 1, level);
      if (!is_last) out += "," + new_line(indent);
    }
    out += "}";
  }

  void sequence(const Values& items, const char* begin, const char* end, int64_t indent, int64_t allowance, int level) {
    out += begin;
    ++indent;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += "," + new_line(indent);
      write(items[i], indent, i + 1 == items.size() ? allowance : 1, level);
    }
    out += end;
  }

  // Words, each with the white space behind it.
  static std::vector<std::string> words(const std::string& line) {
    std::vector<std::string> parts;
    bool in_space = true;
    for (size_t at = 0; at < line.size();) {
      const size_t begin = at;
      const bool space = unicode::is_space(text::next(line, at));
      if (parts.empty() || (in_space && !space)) parts.emplace_back();
      parts.back() += line.substr(begin, at - begin);
      in_space = space;
    }
    return parts;
  }

  void string(const std::string& s, int64_t indent, int64_t allowance, int level) {
    std::vector<std::string> chunks;
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    const int64_t width = kWidth - indent;
    const std::vector<std::string> lines = text::splitlines(s, true);
    std::string last;
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool last_line = i + 1 == lines.size();
      last = text_repr(lines[i]);
      if (length(last) <= (last_line ? width - allowance : width)) {
        chunks.push_back(last);
        continue;
      }
      const std::vector<std::string> parts = words(lines[i]);
      std::string current;
      for (size_t j = 0; j < parts.size(); ++j) {
        const bool end = last_line && j + 1 == parts.size();
        if (length(text_repr(current + parts[j])) > (end ? width - allowance : width)) {
          if (!current.empty()) chunks.push_back(text_repr(current));
          current = parts[j];
        } else {
          current += parts[j];
        }
      }
      if (!current.empty()) chunks.push_back(text_repr(current));
    }
    if (chunks.size() == 1) {
      out += last;
      return;
    }
    if (level == 1) out += "(";
    for (size_t i = 0; i < chunks.size(); ++i) out += (i > 0 ? new_line(indent) : "") + chunks[i];
    if (level == 1) out += ")";
  }
};

}  // namespace

std::string pretty(const Value& v) {
  Prettier prettier;
  prettier.write(v, 0, 0, 0);
  return std::move(prettier.out);
}

}  // namespace hierarchos::jinja
