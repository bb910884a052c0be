#!/usr/bin/env python3
"""Writes tests/data/templates.json: small templates and what Jinja2 makes of them in transformers' environment.

Development only: wants transformers and Jinja2 3.1.6. src/template/template_test.cpp reads the file.
"""
import datetime
import json
import pathlib

import transformers.utils.chat_template_utils as ctu


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime(2024, 12, 30, 0, 5, 9, 123456)


ctu.datetime = FixedClock

CONTEXT = {
    "s": "Hello World", "n": 5, "f": 2.5, "xs": [3, 1, 2], "d": {"b": 2, "a": 1}, "nil": None, "big": 2**70,
    "people": [{"name": "Ann", "age": 30, "tags": ["x", "y"]}, {"name": "bob", "age": 25, "tags": []}],
    "uni": "Straße ǆ İ ΣΑΣ ﬁ 😀",
}

SOURCES = [
    # Scopes: a name that a scope assigns anywhere is its own from the beginning.
    "{% for i in [1] %}{{ s }}{% endfor %}{% set s = 'later' %}{{ s }}",
    "{{ s }}{% set s = 'later' %}{{ s }}",
    "{% if nil %}{% set n = 1 %}{% endif %}{{ n }}{% for i in [1, 2] %}{% if i == 2 %}{% set n = n + i %}{% endif %}{{ n }}{% endfor %}{{ n }}",
    "{% if n %}{% set q = 1 %}{% elif s %}{% set q = 2 %}{% else %}{% set r = 3 %}{% endif %}{{ q }}{{ r }}{{ r is defined }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{% set x = 5 %}{{ m() }}{{ x }}",
    "{% macro a(x) %}{% macro b(y) %}{{ x }}{{ y }}{% endmacro %}{{ b(x + 1) }}{% endmacro %}{{ a(1) }}",
    "{% with x = n, y = n + 1 %}{% set n = 7 %}{{ x }}{{ y }}{{ n }}{% endwith %}{{ n }}",
    "{% set ns = namespace(go=true) %}{% for x in xs if ns.go %}{{ x }}{% set ns.go = false %}{% endfor %}",
    "{% for x in xs %}{% set _ = x %}{% endfor %}{{ _ is defined }}",
    "{% block a %}{{ n }}{% set n = 9 %}{{ n }}{% endblock %}{{ n }}{{ self.a() }}",
    "{% set n = 6 %}{% block a %}{{ n }}{% endblock %}{% for i in xs %}{% block b scoped %}{{ i }}{{ loop.index }}{% endblock %}{% endfor %}",
    "{% for i in xs %}{% block b %}[{{ i }}]{% endblock %}{% endfor %}{{ super }}",
    "{% for x in xs %}{% for x in 'ab' %}{{ x }}{% endfor %}{{ x }}{% endfor %}",
    "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in [] %}{% else %}{% set z = 1 %}{{ z }}{% endfor %}{{ z }}",
    "{% set x, y = y, x %}{{ x is defined }}", "{% set (a, b), c = [1, 2], 3 %}{{ a }}{{ b }}{{ c }}",
    # Loops
    "{% for x in xs|map('string') %}{{ loop.length }}{{ loop.index }}{{ loop.last }}{{ x }} {% endfor %}",
    "{% for x in xs|select %}{{ loop.nextitem }}{{ loop.revindex }}{{ x }} {% endfor %}",
    "{% for x in xs recursive %}{{ loop.depth }}{{ x }}{{ loop([x]) if loop.depth < 3 }}{% endfor %}",
    "{% for x in xs recursive %}{{ x }}{% else %}none{% endfor %}", "{% for x in [] recursive %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in xs %}{% continue %}{% else %}else{% endfor %}", "{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}else{% endfor %}",
    "{% for x in xs %}{% set t %}a{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endset %}{{ t }}{% endfor %}",
    "{% for x in xs %}{% filter upper %}a{% if x == 1 %}{% break %}{% endif %}{% endfilter %}{% endfor %}|",
    "{% for x in xs %}{{ loop.changed(x > 1) }}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in xs %}{{ loop(x) }}{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}{% for k, v in d|items %}{{ k }}{{ v }}{% endfor %}", "{% for x in range(3, -3, -2) %}{{ x }} {% endfor %}",
    # Macros and call blocks
    "{% macro m(a, b=n) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{{ caller() }}{% endmacro %}{% call m(1, 2, 3, z=4) %}body{% endcall %}",
    "{% macro m() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b, c='C') m() %}{{ a }}{{ b }}{{ c }}{% endcall %}",
    "{% macro m() %}{{ caller }}{% endmacro %}[{{ m() }}]", "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}",
    "{% macro m(caller) %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*xs[:1]) }}{{ m(**{'a': 7}) }}",
    "{% macro m(a, a) %}{% endmacro %}", "{{ dict(a=1, a=2) }}", "{% macro m(a, b=1, c) %}{% endmacro %}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m }} {{ m.name }} {{ m.arguments }} {{ m.catch_kwargs }} {{ m is callable }}",
    "{% call dict() %}{% endcall %}", "{% filter length %}abc{% endfilter %}", "{% macro m() %}{% generation %}x{% endgeneration %}y{% endmacro %}{{ m() }}",
    # Operators
    "{{ -7 // 2 }} {{ 7 // -2 }} {{ -7 % 3 }} {{ 7.5 // -2 }} {{ -7.5 % 2 }} {{ 1e308 * 10 }} {{ 0.0 // 1 }} {{ -0.0 % 3 }}",
    "{{ 2 ** 100 }} {{ (-2) ** 63 }} {{ 9223372036854775807 + 1 }} {{ -9223372036854775807 - 2 }} {{ 3037000500 * 3037000500 }}",
    "{{ big // 7 }} {{ big % -7 }} {{ -big // 7 }} {{ big / 3 }} {{ big * big }} {{ big > 1e20 }} {{ big == 1180591620717411303424.0 }}",
    "{{ 2 ** -2 }} {{ 0 ** 0 }} {{ 1 ** big }} {{ (-1) ** 3 }} {{ 4 ** 0.5 }} {{ 9007199254740993 / 1 }} {{ 10 ** 25 / 10 ** 24 }}",
    "{{ 1 == true }} {{ 'a' in 'abc' }} {{ [] == () }} {{ [1, [2]] < [1, [3]] }} {{ (1, 2) < (1, 2, 0) }} {{ 'Z' < 'a' }} {{ 'é' > 'z' }}",
    "{{ 1 < 2 > 1 != 3 }} {{ 1 in [1] == true }} {{ not not 1 }} {{ none or 0 or 'x' }} {{ xs and d }}", "{{ xs * 2 }} {{ 0 * xs }} {{ 'ab' * -1 }}|",
    "{{ (1, 2) + (3,) }} {{ [1] + (2,) }}", "{{ d + d }}", "{{ -s }}", "{{ +true }} {{ -true }}", "{{ 1 ~ none ~ [1, 'a'] ~ d }}",
    "{{ nope ~ 1 }} {{ nope == nope }} {{ nope != 1 }}", "{{ 1 + nope }}", "{{ nope.a }}", "{{ '%s' % nope }}|{{ nope|e }}|",
    # Formats
    "{{ '%05.1f|%+d|%x|%#o|%e|%g|%r|%c|%5s|%-5s|%%' % (3.14159, 5, 255, 8, 12345.678, 1e-7, 'a', 65, 'x', 'y') }}",
    "{{ '%(a)s %(b)03d' % {'a': 1, 'b': 2} }} {{ '%s' % [1, 2] }} {{ '%.2s|%.0f|%5.1f' % ('abc', 2.5, 2.25) }} {{ '%d' % 3.99 }} {{ '%i' % true }}",
    "{{ '%d' % 'x' }}", "{{ '%s %s' % 'x' }}", "{{ '%s' % ('x', 'y') }}", "{{ '%*d|%-*d|%.*f' % (5, 1, 4, 2, 1, 2.55) }}",
    "{{ '{:>8}|{:^8}|{:*<8}|{:08.3f}|{:+,}|{:_}|{:x}|{:#b}|{:e}|{:.2%}|{:c}'.format('a', 'b', 'c', 3.14159, 1234567, 1234567, 255, 5, 12345.6789, 0.1234, 97) }}",
    "{{ '{0[a]} {0[b]:>4} {1.name!r} {x!s:^5}'.format(d, people[0], x='z') }} {{ '{:{}}|{:{w}.{p}f}'.format('a', 4, 2.345, w=8, p=1) }} {{ '{{}}'.format() }}",
    "{{ '{:,.2f} {:010,} {:=+8} {:g} {:G} {:.3} {:.10} {}'.format(1234567.891, 1234, 5, 1e20, 1e-10, 1234.5, 1.0, 1e16) }}", "{{ '{:.1}'.format(99.0) }} {{ '{:.3}'.format(123456.0) }} {{ '{:5}|'.format(true) }}",
    "{{ '{} {0}'.format(1) }}", "{{ '{'.format(1) }}", "{{ '}'.format(1) }}", "{{ '{:d}'.format('x') }}", "{{ '{:>5}'.format(none) }}", "{{ '{a}'.format(b=1) }}", "{{ '{1}'.format(0) }}",
    "{{ 0.1 }} {{ 1e100 }} {{ 1e-5 }} {{ 123456789012345680.0 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }} {{ 0.30000000000000004 }} {{ 1e15 }} {{ 1e16 }} {{ 1234567890123456.7 }}",
    # Methods
    "{{ uni.upper() }} {{ uni.lower() }} {{ uni.title() }} {{ uni.capitalize() }} {{ uni.swapcase() }} {{ uni.casefold() }} {{ uni|title }} {{ uni|length }}",
    "{{ ' a  b '.split(none, 1) }} {{ 'a b  c'.rsplit(none, 1) }} {{ 'a,b'.split(',', maxsplit=0) }} {{ 'aXbX'.rsplit('X') }} {{ 'a\\n\\nb\\r'.splitlines(true) }}",
    "{{ 'abcabc'.find('c', -2) }} {{ 'abcabc'.rfind('a', 0, 3) }} {{ 'aaa'.count('aa') }} {{ 'abc'.startswith(('x', 'ab')) }} {{ 'abc'.endswith('b', 0, 2) }} {{ 'é😀x'.find('x') }}",
    "{{ 'x'.center(4) }}|{{ 'x'.center(5, '-') }}|{{ 'ab'.center(5, '-') }}|{{ '+5'.zfill(5) }}|{{ 'a'.ljust(3, 'é') }}", "{{ 'a'.replace('', '-', 1) }} {{ 'aaaa'.replace('a', 'b', 2) }} {{ 'abc'.replace('b', '') }}",
    "{{ 'Hello'.isupper() }} {{ 'ǅ'.istitle() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ 'Ⅷ'.isnumeric() }} {{ 'a1_'.isidentifier() }} {{ 'a\\n'.isprintable() }} {{ 'é'.isascii() }}",
    "{{ 'a'.encode() }} {{ 'é'.encode('utf-8') }} {{ 'é'.encode('ascii') }}", "{{ 'a\\tb\\n\\tc'.expandtabs(4) }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }} {{ 'abc'.removesuffix('bc') }}",
    "{{ d.get('a') }} {{ d.get('z') }} {{ d.get('z', 1) }} {{ d.items()|list }} {{ d.values()|sum }} {{ d.keys() }} {{ d.items() }} {{ d.fromkeys('ab', 0) }}", "{{ xs.index(2) }} {{ xs.count(1) }} {{ xs.copy() }} {{ (1, 2).index(2) }}",
    "{{ xs.sort() }}", "{{ d.setdefault('x', 1) }}", "{{ xs.append }}|{{ d.pop is defined }}", "{{ d.__class__ }}|{{ ''.__class__.x }}", "{{ 5.0.is_integer() }} {{ (5).bit_length() }} {{ 2.5.is_integer() }} {{ n.numerator }} {{ f.imag }}",
    # Slices and items
    "{{ xs[-1:] }} {{ xs[:100] }} {{ xs[::-2] }} {{ 'héllo'[1:3] }} {{ 'héllo'[::-1] }} {{ range(10)[2:8:3] }} {{ range(10)[::-1]|list }} {{ (1, 2, 3)[:-1] }} {{ 'abc'[5:] }}|", "{{ xs[::0] }}", "{{ d[:1] }}", "{{ n[:1] }}", "{{ xs['a':] }}",
    "{{ xs[true] }} {{ d.a }} {{ d['a'] }} {{ people.0.name }} {{ people[0]['tags'][1] }} {{ xs[1.5] }}|{{ s[-1] }}{{ s[99] }}|",
    # Filters
    "{{ xs|sort(reverse=true) }} {{ ['b', 'A', 'a', 'B']|sort }} {{ ['b', 'A', 'a']|sort(case_sensitive=true) }} {{ people|sort(attribute='name')|map(attribute='age')|list }} {{ [[2, 1], [1, 2]]|sort(attribute='1') }}",
    "{{ people|groupby('age')|map('first')|list }} {{ people|groupby('name')|map(attribute='list')|list|length }} {{ people|map(attribute='tags.0', default='-')|list }}", "{{ [3, 'a', none]|map('string')|join('|') }} {{ xs|sum(start=0.5) }} {{ people|sum(attribute='age') }}",
    "{{ [1, 1.0, '1', true]|unique|list }} {{ xs|min }} {{ xs|max }} {{ ['b', 'A']|min }} {{ ['b', 'A']|min(case_sensitive=true) }} {{ []|min }}|{{ [[1]]|unique|list }}",
    "{{ xs|batch(2, '-')|list }} {{ xs|slice(2, '-')|list }} {{ range(7)|slice(3)|list }} {{ xs|reverse|list }} {{ (xs|reverse)|string|length > 5 }} {{ d|reverse|list }}", "{{ xs|first }} {{ xs|last }} {{ 'é😀'|last }} {{ d|last }} {{ xs|map('string')|last }}",
    "{{ '12abc'|int }} {{ '0b11'|int(0, 0) }} {{ '0x1F'|int(0, 16) }} {{ 'z'|int(base=36) }} {{ '1_0'|int }} {{ ' -7 '|int }} {{ '1e2'|int }} {{ 'nan'|int(3) }} {{ 1e25|int }} {{ [1]|int(4) }}", "{{ '1_0.5'|float }} {{ '.5'|float }} {{ '5.'|float }} {{ '-inf'|float }} {{ '1e'|float }} {{ ''|float(1) }} {{ big|float }}",
    "{{ 2.5|round }} {{ -2.5|round }} {{ 0.125|round(2) }} {{ 1.005|round(2) }} {{ 25|round(-1) }} {{ 35|round(-1) }} {{ 1250.5|round(-2) }} {{ 49.9|round(-2) }} {{ 50.0|round(-2) }} {{ 2.001|round(1, 'ceil') }} {{ -2.5|round(0, 'floor') }} {{ 7|round(1, 'ceil') }}",
    "{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}|{{ 'foo bar baz qux'|truncate(11, false, '...', 0) }}|{{ 'foo bar'|truncate(2) }}", "{{ 'a b'|wordwrap(1) }}|{{ 'hello-world foo--bar a-b-c'|wordwrap(8) }}|{{ 'abcdefghij'|wordwrap(4) }}|{{ 'abcdefghij kl'|wordwrap(4, false) }}|{{ 'a\\n\\nb'|wordwrap(5, true, '/') }}",
    "{{ '<p>a &amp; b &eacute;&#233;&#x41; &notit; &bogus;</p><!-- x -->  c'|striptags }} {{ '<a href=\"x\">'|e }} {{ ('<'|safe)|e }} {{ ('<'|safe)|forceescape }} {{ ['<'|safe] }}", "{{ 'see www.example.com, (http://x.org/a_(b)) me@x.org mailto:a@b.cd ftp://q'|urlize }} {{ 'http://example.com/long/path'|urlize(10, true, '_blank') }}",
    "{{ 'a/b c&d=é'|urlencode }} {{ {'a b': 'c/d', 'e': none}|urlencode }} {{ [('x', 1)]|urlencode }} {{ 5|urlencode }}", "{{ {'a': 1, 'b': none, 'c': '<\"'}|xmlattr }}|{{ {'a': 1}|xmlattr(false) }}|{{ {'a b': 1}|xmlattr }}",
    "{{ 1|filesizeformat }} {{ 999|filesizeformat }} {{ 1000|filesizeformat }} {{ 123456789|filesizeformat }} {{ 1e30|filesizeformat }} {{ '2048'|filesizeformat(true) }}", "{{ 'a\\n b\\n\\nc'|indent(2, true, true) }}|{{ 'a'|indent('>>', first=true) }}",
    "{{ {'z': range(30)|list, 'a': 'x' * 100, 'm': {'k': ('one', 'two')}}|pprint }}", "{{ ('lorem ipsum ' * 12)|pprint }}", "{{ [['a' * 40, 'b' * 40], ('c' * 90,)]|pprint }}",
    "{{ xs|tojson(indent=2) }} {{ {'b': [], 'a': {'x': none}}|tojson(indent=1, sort_keys=true) }} {{ 'é\\u2028</script>'|tojson }} {{ [1.0, 1e-7, big, true]|tojson }} {{ 'é😀\\x7f'|tojson(ensure_ascii=true) }} {{ (1, (2,))|tojson(separators=(', ', '=')) }}",
    "{{ {(1, 2): 3}|tojson }}", "{{ range(3)|tojson }}", "{{ xs|attr('count') is callable }} {{ d|attr('a') }}|{{ people|selectattr('tags')|map(attribute='name')|join }} {{ xs|reject('odd')|list }} {{ people|rejectattr('age', 'gt', 26)|map(attribute='name')|list }}",
    "{{ xs|map('nope')|list }}", "{{ xs|select('nope')|list }}", "{{ xs|map|list }}", "{{ 5|length }}", "{{ none|list }}", "{{ 'x'|abs }}", "{% if nil %}{{ n|nofilter }}{% endif %}ok", "{% for x in [] %}{{ n|nofilter }}{% endfor %}", "{{ 1 if true else (n|nofilter) }}",
    # Tests
    "{{ 5 is divisibleby 5 }} {{ 2.0 is even }} {{ 'a' is in 'abc' }} {{ s is sameas s }} {{ none is sameas none }} {{ 'abc' is lower }} {{ '' is upper }} {{ range is callable }} {{ xs is not mapping }} {{ d.items() is sequence }} {{ d.items() is iterable }} {{ xs|map('string') is iterable }} {{ big is integer }} {{ nope is sequence }}",
    "{{ 1 is odd(2) }}", "{{ 'a' is odd }}", "{{ 3 is gt 2 and 2 is le 2 }} {{ 1 is not eq 2 }} {{ 'x' is filter }} {{ none is filter }} {{ xs is in [xs] }} {{ 1 is number is true }}",
    # Autoescape
    "{% autoescape true %}{{ '<' }}{{ '<'|safe }}{{ '<' ~ s }}{{ ('<'|safe) ~ s ~ '>' }}{{ ['<', '>'|safe]|join('&') }}{{ '<'|replace('<', '>') }}{% set x %}<{{ '<' }}{% endset %}{{ x }}{% endautoescape %}{{ '<' }}{{ x }}",
    "{% macro m(x) %}<{{ x }}{% endmacro %}{% autoescape n > 1 %}{{ m('<') }}{{ '&' ~ n }}{{ {'a': '<'}|xmlattr }}{% endautoescape %}{{ m('<') is escaped }}",
    "{{ ('<b>%s %r %d</b>'|safe) % ('<', '<', 3) }} {{ ('{} {:>3}'|safe).format('<', 1) }} {{ ('a,<'|safe).split(',') }} {{ ('x'|safe) * 2 }} {{ '<' + ('a'|safe) }} {{ ('<'|safe).replace('<', '<') }} {{ ('a'|safe).join(['<', 1]) }} {{ ('<'|safe)[0] is escaped }}",
    # Lexer
    "{{ 'a\\\nb' }} {{ '\\101\\0' == 'A\\x00' }} {{ '\\é' }} {{ '\\q' }} {{ \"a'b\" }} {{ 'a' \"b\" }}", "{{ '\\u12' }}", "{{ '\\N{DASH}' is string }}{{ 1 }}"[:0] + "{{ 1.5e3 }} {{ 1_0.0_1 }} {{ 0xf_f }} {{ 00 }} {{ 1.real }}",
    "{{ 01 }}", "{{ 1__0 }}", "a{#- x -#} b {#+ y +#} c", "{%- raw -%} {{ x }} {%- endraw -%} z", " {% raw %} {{ x }} {% endraw +%}\n z", "{%+ if true -%}  x  {%- endif +%}\n y", "x {{- 1 -}} y {{+ 2 }} z",
    "a\n  {#- c #}\nb\n  {# d #}\nc\n\t {% if true %}  \n  d\n  {% endif %}\ne", "{{ {'a': '}}'}['a'] }} {{ '%}' }} {% if '%}' %}x{% endif %}", "a\r\nb\rc\n", "{{ 'a\r\nb' }}", "{% if true %}\r\nx{% endif %}\n\n", "{{ 1 }}{# unclosed", "{{ }}", "{% %}", "{{ a b }}", "{{ ) }}", "{{ (1] }}", "{% raw %}x", "{{ 'a }}", "{{ a.1.5 }}|", "{{ n is not }}",
    # Globals
    "{{ strftime_now('%a %A %b %B %c|%C|%d|%D|%e|%f|%F|%g|%G|%H|%I|%j|%k|%l|%m|%M|%n|%p|%P|%r|%R|%S|%t|%T|%u|%U|%V|%w|%W|%x|%X|%y|%Y|%z|%Z|%%|%-d|%-m|%_d|%05d|%^a|%#p|%-I') }}",
    "{{ range(1, 10, 4)|list }} {{ range(5, 1) }} {{ range(0, 5, 2) }} {{ 3 in range(5) }} {{ 6 in range(0, 10, 4) }} {{ range(3) == range(0, 3, 1) }}", "{{ range(1, 2, 0) }}", "{{ range('a') }}", "{{ range(10 ** 6) }}",
    "{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }}{{ c.items }}{{ c.pos }}", "{% set j = joiner() %}{{ j() }}{{ j() }}{{ j.used }}{{ j.sep }}", "{{ cycler() }}", "{{ namespace(a=1) }} {{ namespace({'b': 2}, c=3).c }} {{ dict([(1, 2)], x=3) }} {{ dict.fromkeys([1, 2]) }}", "{{ dict(1) }}", "{{ raise_exception([1, 'a']) }}",
    "{% set ns = namespace(x=1) %}{% set ns.y, z = 2, 3 %}{{ ns.x }}{{ ns.y }}{{ z }}{{ ns['y'] }}{{ ns.q }}|{{ ns is mapping }}", "{% set x = 1 %}{% set x.y = 2 %}", "{% import 'a' as b %}", "{% if nil %}{% include 'x' %}{% endif %}fine", "{% include 'x' ignore missing with context %}", "{% from 'x' import a as b, c with context %}",
    "{% print 1, 'a' %}", "{% print %}|", "{% set x | upper | trim %} a {% endset %}[{{ x }}]", "{% set ns = namespace() %}{% set ns.x %}block{% endset %}{{ ns.x }}", "{% block a required %} {% endblock %}", "{% block a %}{% endblock %}{% block a %}{% endblock %}", "{% endfor %}", "{% for x in xs %}{% endif %}{% endfor %}", "{% if true %}", "{% else %}", "{% break %}", "{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for x in xs %}{% set loop = 1 %}{% endfor %}", "{% set true = 1 %}", "{% set 'a' = 1 %}", "{% for 1 in xs %}{% endfor %}",
]


def row(source):
    out = {"src": source}
    try:
        out["out"] = ctu._compile_jinja_template(source).render(**CONTEXT)
    except Exception as x:
        out.update(error=type(x).__name__, message=str(x))
    return out


def main():
    path = pathlib.Path(__file__).parent.parent / "tests/data/templates.json"
    rows = ",\n".join(json.dumps(row(source)) for source in SOURCES)
    path.write_text(f'{{"context": {json.dumps(CONTEXT)},\n"cases": [\n{rows}\n]}}\n', encoding="ascii")


main()
