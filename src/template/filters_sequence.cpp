// Filters that work on sequences and dicts as a whole.
#include <algorithm>
#include <utility>

#include "template/arguments.h"
#include "template/filters.h"
#include "template/interpreter.h"
#include "template/json.h"
#include "template/order.h"
#include "template/print.h"
#include "template/text.h"

namespace hierarchos::jinja {

std::vector<size_t> sorted_order(const Values& keys, bool reverse) {
  return merge_order(keys.size(),
                     [&](size_t a, size_t b) { return reverse ? less(keys[b], keys[a]) : less(keys[a], keys[b]); });
}

namespace {

Value iterator(Iterator::Next next, const Value& source) {
  return Value::object(Type::Iterator, std::make_shared<Iterator>(std::move(next), source.depth(), "generator"));
}

Value length_filter(Interpreter&, const Value& input, Arguments& arguments) {
  bind("len", arguments, {}, 0);
  const auto size = length(input);
  if (!size) type_error("object of type '{}' has no len()", type_name(input));
  return Value::integer(*size);
}

Value list_filter(Interpreter&, const Value& input, Arguments& arguments) {
  bind("list", arguments, {}, 0);
  return Value::list(to_values(input));
}

Value default_filter(Interpreter&, const Value& input, Arguments& arguments) {
  Values a = bind("default", arguments, {"default_value", "boolean"}, 0);
  if (!input.is_undefined() && !(truth_or(a[1], false) && !truthy(input))) return input;
  return a[0].missing() ? Value::text("") : std::move(a[0]);
}

Value first(Interpreter&, const Value& input, Arguments& arguments) {
  bind("first", arguments, {}, 0);
  const auto item = iterate(input)->next();
  return item ? *item : Value::undefined("No first item, sequence was empty.");
}

bool reversible(const Value& v) { return length(v).has_value() && !v.is(Type::Loop); }

Value last(Interpreter&, const Value& input, Arguments& arguments) {
  bind("last", arguments, {}, 0);
  if (!reversible(input)) type_error("'{}' object is not reversible", type_name(input));
  const int64_t size = *length(input);
  if (size == 0) return Value::undefined("No last item, sequence was empty.");
  if (input.is_text() || input.is(Type::Range)) return get_item(input, Value::integer(size - 1));
  return to_values(input).back();
}

Value reverse(Interpreter&, const Value& input, Arguments& arguments) {
  bind("reverse", arguments, {}, 0);
  if (input.is_text()) return get_slice(input, {}, {}, Value::integer(-1));
  if (!try_iterate(input)) fail("FilterArgumentError", "argument must be iterable");
  Values items = to_values(input);
  std::reverse(items.begin(), items.end());
  Value reversed = Value::list(std::move(items));
  if (!reversible(input)) return reversed;
  auto all = iterate(reversed);
  return Value::object(Type::Iterator, std::make_shared<Iterator>([all] { return all->next(); }, reversed.depth(),
                                                                  "list_reverseiterator"));
}

Value random(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  bind("random", arguments, {}, 0);
  const auto size = length(input);
  if (!size || input.is(Type::Dict) || input.is(Type::View))
    type_error("random needs a sequence, not {}", type_name(input));
  if (*size == 0) return Value::undefined("No random item, sequence was empty.");
  const CivilTime now = interpreter.clock()();
  return get_item(input, Value::integer((now.microsecond + now.second * 7919) % *size));
}

Value join(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  const Values a = bind("join", arguments, {"d", "attribute"}, 0);
  const bool attribute = !a[1].missing() && !a[1].is_none();
  const AttributeGetter get(a[1], false);
  Values items;
  const auto source = iterate(input);
  while (std::optional<Value> item = source->next()) items.push_back(attribute ? get(*item) : std::move(*item));
  const Value separator = a[0].missing() ? Value::text("") : a[0];
  const bool markup =
      interpreter.autoescape() &&
      (separator.is_markup() || std::any_of(items.begin(), items.end(), [](const Value& v) { return v.is_markup(); }));
  const auto text_of_item = [&](const Value& v) { return markup ? escape(v).str() : str(v); };
  const std::string between = text_of_item(separator);
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += between;
    out += text_of_item(items[i]);
    check_text_size(out.size());
  }
  return Value::text(std::move(out), markup);
}

Value items_filter(Interpreter&, const Value& input, Arguments& arguments) {
  bind("items", arguments, {}, 0);
  size_t i = 0;
  return iterator(
      [input, i]() mutable -> std::optional<Value> {
        if (input.is_undefined()) return std::nullopt;
        if (!input.is(Type::Dict)) type_error("Can only get item pairs from a mapping.");
        const auto& all = input.as_dict().items;
        if (i == all.size()) return std::nullopt;
        const auto& [key, value] = all[i++];
        return Value::tuple({key, value});
      },
      input);
}

Value sorted_by(const Values& items, const Values& keys, bool reverse) {
  Values out;
  for (const size_t i : sorted_order(keys, reverse)) out.push_back(items[i]);
  return Value::list(std::move(out));
}

Value sort(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0);
  const bool ignore_case = !truth_or(a[1], false);
  std::vector<AttributeGetter> getters;
  if (a[2].is_text())
    for (std::string& part : text::split(a[2].str(), ",", -1, false))
      getters.emplace_back(Value::text(std::move(part)), ignore_case);
  else
    getters.emplace_back(a[2], ignore_case);
  const Values items = to_values(input);
  Values keys;
  for (const Value& item : items) {
    Values key;
    for (const AttributeGetter& get : getters) key.push_back(get(item));
    keys.push_back(Value::list(std::move(key)));
  }
  return sorted_by(items, keys, truth_or(a[0], false));
}

Value dict_sort(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0);
  const std::string by = a[1].missing() ? "key" : str(a[1]);
  if (by != "key" && by != "value") fail("FilterArgumentError", "You can only sort by either \"key\" or \"value\"");
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is(Type::Dict)) fail("AttributeError", "'{}' object has no attribute 'items'", type_name(input));
  Values pairs, keys;
  for (const auto& [key, value] : input.as_dict().items) {
    const Value& sorted = by == "key" ? key : value;
    keys.push_back(truth_or(a[0], false) ? sorted : ignoring_case(sorted));
    pairs.push_back(Value::tuple({key, value}));
  }
  return sorted_by(pairs, keys, truth_or(a[2], false));
}

Value unique(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("unique", arguments, {"case_sensitive", "attribute"}, 0);
  const AttributeGetter get(a[1], !truth_or(a[0], false));
  auto seen = std::make_shared<std::unordered_map<Value, bool, HashValue, SameKey>>();
  std::shared_ptr<Iterator> source;
  return iterator(
      [input, get, seen, source]() mutable -> std::optional<Value> {
        if (!source) source = iterate(input);
        while (std::optional<Value> item = source->next())
          if (seen->emplace(get(*item), true).second) return item;
        return std::nullopt;
      },
      input);
}

template <bool Max>
Value extreme(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind(Max ? "max" : "min", arguments, {"case_sensitive", "attribute"}, 0);
  const AttributeGetter get(a[1], !truth_or(a[0], false));
  const auto source = iterate(input);
  std::optional<Value> best = source->next();
  if (!best) return Value::undefined("No aggregated item, sequence was empty.");
  Value best_key = get(*best);
  while (std::optional<Value> item = source->next()) {
    Value key = get(*item);
    if (Max ? compare(key, best_key, ">") != 1 : compare(key, best_key, "<") != -1) continue;
    best = std::move(item);
    best_key = std::move(key);
  }
  return *best;
}

Value sum(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("sum", arguments, {"attribute", "start"}, 0);
  const AttributeGetter get(a[0], false);
  Value total = a[1].missing() ? Value::integer(0) : a[1];
  if (total.is_text()) type_error("sum() can't sum strings [use ''.join(seq) instead]");
  const auto source = iterate(input);
  while (const std::optional<Value> item = source->next()) total = binary_operation(ExprKind::Add, total, get(*item));
  return total;
}

Value group_by(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const bool ignore_case = !truth_or(a[2], false);
  const AttributeGetter get(a[0], ignore_case, a[1]), get_exact(a[0], false, a[1]);
  const Values items = to_values(input);
  Values keys;
  for (const Value& item : items) keys.push_back(get(item));
  const std::vector<size_t> order = sorted_order(keys, false);
  Values groups;
  for (size_t i = 0; i < order.size();) {
    Values members;
    const size_t first = order[i];
    for (; i < order.size() && SameKey()(keys[order[i]], keys[first]); ++i) members.push_back(items[order[i]]);
    Value group = Value::tuple({ignore_case ? get_exact(members[0]) : keys[first], Value::list(members)});
    group.get<Sequence>().group = true;
    groups.push_back(std::move(group));
  }
  return Value::list(std::move(groups));
}

Value batch(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("batch", arguments, {"linecount", "fill_with"}, 1);
  const Value fill = a[1].missing() ? Value::none() : a[1];
  std::shared_ptr<Iterator> source;
  Values row;
  return iterator(
      [input, count = a[0], fill, source, row]() mutable -> std::optional<Value> {
        if (!source) source = iterate(input);
        const auto size = [&row] { return Value::integer(static_cast<int64_t>(row.size())); };
        while (std::optional<Value> item = source->next()) {
          const bool full = equal(size(), count);
          Values done = full ? std::exchange(row, Values()) : Values();
          row.push_back(std::move(*item));
          if (full) return Value::list(std::move(done));
        }
        if (row.empty()) return std::nullopt;
        if (!fill.is_none() && less(size(), count)) {
          const int64_t wanted = integer_or(count, 0);
          check_text_size(static_cast<size_t>(wanted) * sizeof(Value));
          row.resize(static_cast<size_t>(wanted), fill);
        }
        return Value::list(std::exchange(row, Values()));
      },
      input);
}

Value slice(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("slice", arguments, {"slices", "fill_with"}, 1);
  const Value fill = a[1].missing() ? Value::none() : a[1];
  Values items;
  bool begun = false;
  int64_t number = 0, offset = 0;
  return iterator(
      [input, wanted = a[0], fill, items, begun, number, offset]() mutable -> std::optional<Value> {
        if (!begun) items = to_values(input);
        begun = true;
        const int64_t slices = integer_or(wanted, 0), size = static_cast<int64_t>(items.size());
        if (slices == 0) fail("ZeroDivisionError", "integer division or modulo by zero");
        if (number >= slices) return std::nullopt;
        const int64_t each = size / slices, with_extra = size % slices;
        const int64_t begin = offset + number * each;
        if (number < with_extra) ++offset;
        const int64_t end = offset + (number + 1) * each;
        Values part(items.begin() + begin, items.begin() + end);
        if (!fill.is_none() && number >= with_extra) part.push_back(fill);
        ++number;
        return Value::list(std::move(part));
      },
      input);
}

Value attr(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("attr", arguments, {"name"}, 1);
  const std::string& name = text_of(a[0], "an attribute's name");
  if (input.is_undefined()) fail_undefined(input);
  if (has_attribute(input, name)) return get_attribute(input, name);
  return Value::undefined(fmt::format("{} has no attribute '{}'", described(input), name));
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable kTable = {
      {"attr", attr},
      {"batch", batch},
      {"count", length_filter},
      {"d", default_filter},
      {"default", default_filter},
      {"dictsort", dict_sort},
      {"first", first},
      {"groupby", group_by},
      {"items", items_filter},
      {"join", join},
      {"last", last},
      {"length", length_filter},
      {"list", list_filter},
      {"max", extreme<true>},
      {"min", extreme<false>},
      {"random", random},
      {"reverse", reverse},
      {"slice", slice},
      {"sort", sort},
      {"sum", sum},
      {"unique", unique},
  };
  return kTable;
}

}  // namespace hierarchos::jinja
