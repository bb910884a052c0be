// The engine against Jinja2's own results, and its limits.
#include <gtest/gtest.h>

#include "base/os/file.h"
#include "template/chat_template.h"
#include "template/interpreter.h"
#include "template/text.h"
#include "template/unicode.h"

namespace hierarchos {
namespace {

using jinja::Value;

RenderOptions at_fixed_time() {
  RenderOptions options;
  options.clock = [] { return jinja::CivilTime{2024, 12, 30, 0, 5, 9, 123456}; };
  return options;
}

Value no_variables() { return Value::dict({}); }

std::string render(const std::string& source, const Value& variables = no_variables()) {
  return ChatTemplate(source, "test").render(variables, at_fixed_time()).text;
}

// The error that a template ends with.
TemplateError error_of(const std::string& source, const Value& variables = no_variables()) {
  try {
    const std::string out = render(source, variables);
    return {"test", 0, "none", "rendered " + out.substr(0, 100)};
  } catch (const TemplateError& e) {
    return e;
  }
}

TEST(Template, EqualsReference) {
  const Value file = jinja::parse_json_value(read_text_file(HIERARCHOS_TEST_DATA "/templates.json"), "templates.json");
  const Value& context = *file.as_dict().find("context");
  const auto& rows = file.as_dict().find("cases")->items();
  EXPECT_GT(rows.size(), 150u);
  for (const Value& row : rows) {
    const std::string& source = row.as_dict().find("src")->str();
    const Value* out = row.as_dict().find("out");
    try {
      const std::string got = render(source, context);
      if (out == nullptr)
        ADD_FAILURE() << source << "\nrendered " << got << "\ninstead of " << row.as_dict().find("message")->str();
      else
        EXPECT_EQ(got, out->str()) << source;
    } catch (const TemplateError& e) {
      EXPECT_TRUE(out == nullptr) << source << "\n" << e.what();
      if (out == nullptr && row.as_dict().find("error")->str() == "TemplateError") {
        EXPECT_EQ(e.message(), row.as_dict().find("message")->str());
      }
    }
  }
}

TEST(Template, ErrorsNameLineAndCause) {
  EXPECT_EQ(error_of("a\nb {{ nope.x }}").line(), 2);
  EXPECT_EQ(error_of("a\nb {{ nope.x }}").message(), "'nope' is undefined");
  EXPECT_STREQ(error_of("a\nb {{ nope.x }}").what(), "test, line 2: 'nope' is undefined");
  EXPECT_EQ(error_of("\n\n{% if %}").line(), 3);
  EXPECT_EQ(error_of("{% macro m() %}\n\n{{ 1 / 0 }}\n{% endmacro %}\n{{ m() }}").line(), 3);
  EXPECT_EQ(error_of("{% macro m() %}\nx\n{% endmacro %}\n\n{{ m() + 1 }}").line(), 5);
  EXPECT_EQ(error_of("{% for x in [1] %}\n{% endif %}").line(), 2);
  EXPECT_EQ(error_of("{#- a\n\n-#}\n{{ raise_exception('no') }}").line(), 4);
  EXPECT_TRUE(error_of("{{ raise_exception('no') }}").raised_by_template());
  EXPECT_STREQ(error_of("{{ raise_exception('a\\nb\\x1b é') }}").what(), "test, line 1: a\\nb\\x1b é");
  EXPECT_EQ(error_of("{{ raise_exception('a\\nb') }}").message(), "a\nb");
  EXPECT_LT(std::string(error_of("{{ raise_exception('x' * 1000000) }}").what()).size(), 2000u);
  EXPECT_FALSE(error_of("{{ 1 / 0 }}").raised_by_template());
}

// A template may not take more than its share, whatever it does.
TEST(Template, Limits) {
  const auto is_limited = [](const std::string& source) {
    const TemplateError e = error_of(source);
    EXPECT_EQ(e.kind(), "Limit") << source << "\n" << e.what();
  };
  is_limited("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}");
  is_limited("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  is_limited("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}");
  is_limited("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}");
  is_limited("{% block a %}{{ self.a() }}{% endblock %}");
  is_limited("{{ 'x' * 100000000 }}");
  is_limited("{{ [0] * 100000000 }}");
  is_limited("{{ 'x' * 10 ** 30 }}");
  is_limited("{{ '{:>16777216}'.format('é') }}");
  is_limited("{{ 'a'.center(10 ** 9) }}");
  is_limited("{{ 'a'|indent(10 ** 9, true) }}");
  is_limited("{{ 'a\tb'.expandtabs(10 ** 9) }}");
  is_limited("{{ [1]|batch(10 ** 9, 0)|list }}");
  is_limited("{{ ([1] * 9)|tojson(indent=10 ** 7) }}");
  is_limited("{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}");
  is_limited("{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}");
  is_limited("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}");
  is_limited(
      "{% set ns = namespace(x=[1]) %}{% for i in range(1000) %}{% set ns.x = ns.x|map('string') %}{% endfor %}");
  is_limited("{% for i in range(9000) %}{{ 'abcdefgh' * 1000 }}{% endfor %}");
  is_limited(
      "{% set ns = namespace(x=()) %}{% set s = 'x' * 1000000 %}{% for i in range(9999) %}"
      "{% set ns.x = ns.x + (s ~ i,) %}{% endfor %}");
  is_limited(
      "{% set x = 'ab' * 500000 %}{% for i in range(100000) %}{% if x.replace('b', 'c') %}{% endif %}{% endfor %}");
  is_limited("{% set x = 9 ** 2000 %}{% for i in range(100000) %}{% set y = x * x // x %}{% endfor %}");
}

TEST(Template, DeepSources) {
  const auto repeated = [](const std::string& s, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += s;
    return out;
  };
  for (const char* opening : {"(", "[", "{1: ", "-", "not ", "x[", "x(", "1 if 1 else ", "x|default(", "x is in "})
    EXPECT_THROW(render("{{ " + repeated(opening, 100000)), TemplateError) << opening;
  for (const char* chain : {".a", "|string", "[0]", "()", " + 1", " ** 1", " and 1", " < 2", " if 1"})
    EXPECT_THROW(render("{{ x" + repeated(chain, 100000) + " }}"), TemplateError) << chain;
  EXPECT_THROW(render(repeated("{% if 1 %}", 100000)), TemplateError);
  EXPECT_EQ(render("{{ 1" + repeated(" + 1", 500) + " }}"), "501");
  EXPECT_EQ(render("{{ " + repeated("(", 150) + "1" + repeated(")", 150) + " }}"), "1");
  EXPECT_EQ(render(repeated("{% if 1 %}", 150) + "x" + repeated("{% endif %}", 150)), "x");
}

TEST(Template, LargeSources) {
  std::string many, call = "{{ dict(";
  for (int i = 0; i < 20000; ++i) {
    many += "{% set a" + std::to_string(i) + " = 1 %}{% if x %}{% endif %}";
    call += "a" + std::to_string(i) + "=1,";
  }
  EXPECT_THROW(render(many), TemplateError);
  EXPECT_THROW(render(call + ") }}"), TemplateError);
  EXPECT_EQ(
      render("{% set d = dict(range(90000)|map('string')|batch(2)) %}{{ namespace(**d)['4'] }}{{ dict(**d)|length }}"),
      "545000");
}

// Circles of namespaces, loops and macros are let go of: the sanitizers see leaks.
TEST(Template, Circles) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x|length }}"), "1");
  EXPECT_EQ(error_of("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}").kind(), "RecursionError");
  EXPECT_EQ(render("{% set ns = namespace() %}{% for x in [ns] %}{% set ns.l = loop %}{% endfor %}{{ ns.l.index }}"),
            "1");
  EXPECT_EQ(render("{% macro m(f) %}{% macro g() %}{{ f }}{% endmacro %}{% endmacro %}{{ m(m) }}"), "");
}

TEST(Template, SurrogatesAreNoOutput) {
  EXPECT_EQ(error_of("{{ '\\ud800' }}").kind(), "UnicodeEncodeError");
  EXPECT_EQ(render("{{ '\\ud83d\\ude00'|tojson(ensure_ascii=true) }}"), "\"\\ud83d\\ude00\"");
  EXPECT_THROW(ChatTemplate("\xED\xA0\x80", "test"), DataError);
}

// From Python's unicodedata.
TEST(Template, Characters) {
  using namespace jinja::unicode;
  EXPECT_EQ(jinja::text::upper("ŉß"), "ʼNSS");
  EXPECT_EQ(jinja::text::title("ǆ ﬁ"), "ǅ Fi");
  EXPECT_EQ(jinja::text::lower("ΑΣ.Σ"), "ασ.ς");
  EXPECT_TRUE(has(U'²', kDigit));
  EXPECT_FALSE(has(U'²', kDecimal));
  EXPECT_TRUE(is_space(0x1C));
  EXPECT_FALSE(has(0x200B, kPrintable));
  EXPECT_EQ(flags(0xD800), 0u);
}

}  // namespace
}  // namespace hierarchos
