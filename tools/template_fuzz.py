#!/usr/bin/env python3
"""Random templates through Jinja2, as transformers sets it up, and through the engine: all must render alike.

Development only: wants transformers and Jinja2 3.1.6. Cases become files in the format of tests/text/chat, which
hierarchos_text_golden compares; where the reference fails, the engine must fail, too.

    tools/template_fuzz.py --program build/release/hierarchos_text_golden --cases 100000 --seed 1
"""
import argparse
import datetime
import functools
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import warnings

import jinja2.filters
import transformers.utils.chat_template_utils as ctu

warnings.simplefilter("ignore")


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime(2026, 3, 5, 14, 7, 9)


ctu.datetime = FixedClock

CONTEXT = {
    "s": "Hello World", "t": "  padded\n", "e": "", "u": "né 日本 😀 ßΣς", "n": 5, "z": 0, "neg": -7, "f": 2.5, "yes": True, "no": False, "nil": None,
    "big": 2**70, "xs": [3, 1, 2], "ws": ["banana", "Apple", "cherry", "apple"], "mixed": [1, "a", None, True, 2.5, [1], {"k": "v"}],
    "d": {"b": 2, "a": 1, "items": "shadow", "C": None}, "nest": {"x": {"y": [10, {"z": "deep"}]}}, "pairs": [["a", 1], ["b", 2]],
    "people": [{"name": "Ann", "age": 30, "ok": True}, {"name": "bob", "age": 25, "ok": False}, {"name": "Cyd", "age": 30}],
    "messages": [{"role": "system", "content": "Sys"}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo", "tool_calls": [{"name": "f", "arguments": {"q": [1, 2.0]}}]}],
}
NAMES = [*CONTEXT, "nope", "v", "w", "ns", "m", "i", "j"]
STRINGS = ["", "a", "ab", " ", "x,y,,z", "Hello", "é", "😀", "<b>&'\"", "a\\nb", "%s", "{}", "{0}", "12", "1.5", "0x1f", "-3", "a b c", "ΑΣ", "tab\\t|", "role", "name", "a-b c", "{:>4}", "%d|%5.2f"]
METHODS = {
    "upper": 0, "lower": 0, "title": 0, "capitalize": 0, "swapcase": 0, "casefold": 0, "strip": "c?", "lstrip": "c?", "rstrip": "c?", "split": "c?n?", "rsplit": "c?n?", "splitlines": "b?",
    "replace": "ccn?", "find": "cn?n?", "rfind": "cn?", "index": "c", "count": "e", "startswith": "cn?", "endswith": "c", "join": "l", "isalpha": 0, "isdigit": 0, "isalnum": 0, "isspace": 0,
    "isupper": 0, "islower": 0, "istitle": 0, "isnumeric": 0, "isdecimal": 0, "isidentifier": 0, "isprintable": 0, "isascii": 0, "center": "nc?", "ljust": "nc?", "rjust": "n", "zfill": "n",
    "partition": "c", "rpartition": "c", "removeprefix": "c", "removesuffix": "c", "expandtabs": "n?", "format": "e*", "encode": 0, "items": 0, "keys": 0, "values": 0, "get": "ee?", "copy": 0,
    "append": "e", "pop": 0, "update": "e", "sort": 0, "real": None, "imag": None, "bit_length": 0, "is_integer": 0, "role": None, "content": None, "name": None, "x": None, "y": None, "nope": None, "a": None, "b": None,
}
FILTERS = {
    "abs": "", "attr": "c", "batch": "ne?", "capitalize": "", "center": "n?", "count": "", "d": "eb?", "default": "e", "dictsort": "b?", "e": "", "first": "", "float": "e?", "format": "e*", "groupby": "a",
    "indent": "n?b?b?", "int": "e?", "items": "", "join": "c?", "last": "", "length": "", "list": "", "lower": "", "map": "F", "max": "", "min": "", "reject": "T", "rejectattr": "aT", "replace": "cc", "reverse": "",
    "round": "n?", "safe": "", "select": "T", "selectattr": "aT", "slice": "n", "sort": "b?", "string": "", "striptags": "", "sum": "", "title": "", "tojson": "", "trim": "c?", "truncate": "ib?", "unique": "b?",
    "upper": "", "urlencode": "", "wordcount": "", "wordwrap": "i?", "xmlattr": "", "pprint": "", "filesizeformat": "b?", "forceescape": "", "urlize": "",
}
TESTS = {
    "odd": "", "even": "", "divisibleby": "n", "defined": "", "undefined": "", "none": "", "boolean": "", "true": "", "false": "", "integer": "", "float": "", "lower": "", "upper": "", "string": "",
    "mapping": "", "number": "", "sequence": "", "iterable": "", "callable": "", "escaped": "", "in": "l", "eq": "e", "ne": "e", "gt": "e", "ge": "e", "lt": "e", "le": "e", "filter": "", "test": "", "equalto": "e",
}
CHOICES = [  # of arguments, with quotes that an f-string cannot hold
    ["3", "5, true", "8", "4, false, ''", "6, true, '..', 0"],
    ["", "(1)", "(2)", "(-1)", "(1, 'floor')", "(0, 'ceil')"],
    ["", "('string')", "('defined')", "('number')", "('ne', 1)", "('in', xs)"],
    ["", ", 'defined'", ", 'ne', 30", ", 'eq', 30"],
    ["' ', 1"],
]
ATTRIBUTES = ["name", "age", "ok", "role", "x.y", "0", "1", "k", "content", "nope"]


class Generator:
    def __init__(self, rng):
        self.r = rng
        self.loops = 0
        self.blocks = 0

    def pick(self, items):
        return self.r.choice(items)

    def chance(self, p):
        return self.r.random() < p

    # Expressions
    def string(self):
        s = self.pick(STRINGS)
        return f'"{s}"' if "'" in s and '"' not in s else "'" + s.replace("'", "\\'") + "'"

    def number(self):
        return self.pick(["0", "1", "2", "3", "5", "7", "-1", "-2", "10", "100", "2.5", "0.1", "1e3", "1e16", "-0.0", "3.0", "9007199254740993", "1_000", "0x1F"])

    def argument(self, kind, depth):
        return {"c": self.string, "n": self.number, "i": lambda: self.pick(["1", "2", "5", "9", "40"]), "b": lambda: self.pick(["true", "false"]), "e": lambda: self.expr(depth - 1), "l": lambda: self.sequence(depth - 1), "a": lambda: "'" + self.pick(ATTRIBUTES) + "'"}[kind]()

    def arguments(self, spec, depth):
        out = []
        k = 0
        while k < len(spec):
            kind, more = spec[k], spec[k + 1 : k + 2]
            if more == "*":
                out += [self.argument(kind, depth) for _ in range(self.r.randrange(4))]
            elif kind == "F":
                name = self.pick([f for f in FILTERS if f not in ("map", "select", "reject", "selectattr", "rejectattr")])
                if self.chance(0.4):
                    return [f"attribute='{self.pick(ATTRIBUTES)}'"] + ([f"default={self.expr(0)}"] if self.chance(0.3) else [])
                return [f"'{name}'", *self.arguments(FILTERS[name], 0)]
            elif kind == "T":
                if self.chance(0.7):
                    name = self.pick(list(TESTS))
                    return out + [f"'{name}'", *self.arguments(TESTS[name], 0)]
                return out
            elif more != "?" or self.chance(0.4):
                out.append(self.argument(kind, depth))
            elif more == "?":
                break
            k += 2 if more in ("?", "*") else 1
        return out

    def sequence(self, depth):
        return self.pick([lambda: self.pick(["xs", "ws", "mixed", "d", "people", "pairs", "messages", "s", "u", "range(4)", "range(1, 9, 3)", "d.items()", "nil", "nope"]), lambda: self.list(depth), lambda: self.filtered(depth)])()

    def list(self, depth):
        items = [self.expr(depth - 1) for _ in range(self.r.randrange(4))]
        return self.pick(["[" + ", ".join(items) + "]", "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"])

    def dict(self, depth):
        return "{" + ", ".join(f"{self.pick([self.string, self.number, lambda: self.text_expr(0)])()}: {self.expr(depth - 1)}" for _ in range(self.r.randrange(3))) + "}"

    def filtered(self, depth):
        name = self.pick(list(FILTERS))
        args = self.arguments(FILTERS[name], depth)
        value = self.expr(depth - 1)
        if name == "attr" or name == "random":
            value = self.atom()
        return f"{self.wrap(value)}|{name}" + (f"({', '.join(args)})" if args else "")

    def tested(self, depth):
        name = self.pick(list(TESTS))
        args = self.arguments(TESTS[name], depth)
        return f"{self.wrap(self.expr(depth - 1))} is {self.pick(['', '', 'not '])}{name}" + (f"({', '.join(args)})" if args else "")

    def method(self, depth):
        name = self.pick(list(METHODS))
        spec = METHODS[name]
        value = self.wrap(self.expr(depth - 1))
        if spec is None:
            return f"{value}.{name}"
        return f"{value}.{name}({', '.join(self.arguments(spec or '', depth))})"

    def subscript(self, depth):
        value = self.wrap(self.pick([self.text_expr, self.seq_expr])(depth - 1)) + self.pick(["", "", "[:n]"])
        if self.chance(0.4):
            part = lambda: self.pick(["", "", "0", "1", "-1", "2", "-3", "100", "nil"])
            return f"{value}[{part()}:{part()}{self.pick(['', ':' + self.pick(['', '2', '-1', '-2', '1'])])}]"
        return f"{value}[{self.pick(['0', '1', '-1', '2', self.string(), 'n', self.expr(0)])}]"

    def wrap(self, e):
        return e if re.fullmatch(r"\w+", e) and not e[0].isdigit() else f"({e})"

    def atom(self):
        return self.pick([lambda: self.pick(NAMES), lambda: self.pick(NAMES), self.string, self.number, lambda: self.pick(["true", "false", "none"])])()

    # Expressions of one type, mostly without errors.
    def text_expr(self, d):
        if d <= 0:
            return self.pick([self.string, lambda: self.pick(["s", "t", "e", "u", "ws[0]", "people[0].name", "messages[-1].content", "nest.x.y[1].z", "'é'"])])()
        t, n = lambda: self.wrap(self.text_expr(d - 1)), lambda: self.int_expr(d - 1)
        return self.pick([
            lambda: f"{t()}.{self.pick(['upper', 'lower', 'title', 'capitalize', 'swapcase', 'casefold', 'strip', 'lstrip', 'rstrip'])}()", lambda: f"{t()}|{self.pick(['upper', 'lower', 'title', 'capitalize', 'trim', 'e', 'safe', 'string', 'striptags', 'reverse', 'urlencode', 'forceescape', 'tojson', 'indent', 'pprint', 'urlize'])}",
            lambda: f"{t()} ~ {self.wrap(self.expr(d - 1))}", lambda: f"{t()} + {t()}", lambda: f"{t()}.replace({t()}, {t()}{self.pick(['', ', 1', ', 2'])})", lambda: f"{t()}|replace({t()}, {t()})", lambda: f"{t()}|join({t()})",
            lambda: f"{self.wrap(self.seq_expr(d - 1))}|join({t()})", lambda: f"{self.wrap(self.seq_expr(d - 1))}|map('string')|join", lambda: f"{t()}[{self.pick(['0:', '1:', ':-1', '::-1', ':3', '-2:', '1:4:2'])}]", lambda: f"{self.wrap(self.expr(d - 1))}|string",
            lambda: f"{self.wrap(self.expr(d - 1))}|tojson{self.pick(['', '(indent=2)', '(sort_keys=true)', '(ensure_ascii=true)', '(indent=0)'])}", lambda: f"'%s|%5.1f|%d|%r' % ({self.expr(d - 1)}, {n()}, {n()}, {t()})", lambda: f"'{{}} {{:>8}} {{!r}}'.format({self.expr(d - 1)}, {t()}, {self.expr(d - 1)})",
            lambda: f"'{{:{self.pick(['5', '05', '+', ',', '_', 'x', '#x', 'b', 'o', 'e', '.2f', '8.3f', 'g', '.3', '%', '>6', '<6', '^7', '*^9', '=+7', 'n', 'E', '010,', '-', ' '])}}}|'.format({n()})", lambda: f"{t()}|truncate({self.pick(CHOICES[0])})",
            lambda: f"{t()}|wordwrap({self.pick(['3', '5', '1', '4, false'])})", lambda: f"{t()}|center({self.pick(['3', '9'])})", lambda: f"{t()}.{self.pick(['center', 'ljust', 'rjust'])}({self.pick(['3', '9', '12'])}, '*')", lambda: f"{t()}.zfill(6)", lambda: f"{t()} * {self.pick(['0', '2', '-1', '3'])}",
            lambda: f"({t()} if {self.bool_expr(d - 1)} else {t()})", lambda: f"({t()} or {t()})", lambda: f"{t()}|default({t()}, true)", lambda: f"{t()}.{self.pick(['partition', 'rpartition'])}({self.string()})[{self.pick(['0', '-1', '1'])}]", lambda: f"{n()}|filesizeformat", lambda: f"m({self.expr(d - 1)})",
        ])()

    def int_expr(self, d):
        if d <= 0:
            return self.pick([self.number, lambda: self.pick(["n", "z", "neg", "f", "xs[0]", "d.a", "people[1].age", "yes", "big"])])()
        n, t = lambda: self.wrap(self.int_expr(d - 1)), lambda: self.wrap(self.text_expr(d - 1))
        return self.pick([
            lambda: f"{n()} {self.pick(['+', '-', '*', '//', '%', '/', '+', '-'])} {n()}", lambda: f"{t()}|length", lambda: f"{self.wrap(self.seq_expr(d - 1))}|list|length", lambda: f"{t()}|int", lambda: f"{t()}|int({n()}, {self.pick(['10', '16', '2', '0', '8'])})",
            lambda: f"{t()}|float", lambda: f"{n()}|int", lambda: f"{n()}|float", lambda: f"{n()}|abs", lambda: f"{n()}|round{self.pick(CHOICES[1])}", lambda: f"{t()}.{self.pick(['find', 'count', 'rfind'])}({t()})", lambda: f"-{n()}", lambda: f"{t()}|wordcount",
            lambda: f"{self.pick(['xs', '[1, 2.5]', 'range(5)'])}|{self.pick(['sum', 'max', 'min', 'first', 'last'])}", lambda: f"people|sum(attribute='age')", lambda: f"({n()} if {self.bool_expr(d - 1)} else {n()})",
        ])()

    def seq_expr(self, d):
        if d <= 0:
            return self.pick(["xs", "ws", "mixed", "pairs", "people", "messages", "range(4)", "range(7, 0, -2)", "d.items()", "d", "[]", "(1, 'a')", "nest.x.y", "['b', 'A', 'c']", "d.keys()"])
        q, t = lambda: self.wrap(self.seq_expr(d - 1)), lambda: self.wrap(self.text_expr(d - 1))
        return self.pick([
            lambda: self.list(d), lambda: f"{q()}|list", lambda: f"{q()}|reverse|list", lambda: f"{self.pick(['xs', 'ws', '[2, 1.5, true]', 'pairs', 'd'])}|sort{self.pick(['', '(true)', '(case_sensitive=true)'])}", lambda: f"{self.pick(['ws', 'xs', 's', 'range(3)'])}|unique|list",
            lambda: f"people|sort(attribute='{self.pick(['age', 'name', 'age,name'])}')", lambda: f"{q()}|map('{self.pick(['string', 'tojson', 'upper', 'e', 'pprint', 'default'])}')|list", lambda: f"people|map(attribute='{self.pick(ATTRIBUTES)}'{self.pick(['', ', default=0'])})|list", lambda: f"{q()}|{self.pick(['select', 'reject'])}{self.pick(CHOICES[2])}|list",
            lambda: f"people|{self.pick(['selectattr', 'rejectattr'])}('{self.pick(['ok', 'age', 'nope', 'name'])}'{self.pick(CHOICES[3])})|list", lambda: f"{q()}|{self.pick(['batch', 'slice'])}({self.pick(['1', '2', '3'])}{self.pick(['', ', 0', ', none'])})|list", lambda: f"{t()}.{self.pick(['split', 'rsplit'])}({self.pick(['', t(), CHOICES[4][0], 'none, 1'])})",
            lambda: f"{t()}.splitlines({self.pick(['', 'true'])})", lambda: f"{self.wrap(q() + '|list')}[{self.pick(['1:', ':-1', '::-1', ':2', '-1:', '::2'])}]", lambda: f"{self.list(1)} * 2", lambda: f"{t()}|list", lambda: f"d|dictsort{self.pick(['', '(true)', '(reverse=true)'])}", lambda: f"people|groupby('{self.pick(['age', 'ok', 'name'])}'{self.pick(['', ', default=false'])})", lambda: f"{self.dict(d)}.{self.pick(['keys', 'values', 'items'])}()", lambda: f"d|items|list",
        ])()

    def bool_expr(self, d):
        if d <= 0:
            return self.pick(["yes", "no", "n", "z", "e", "s", "nil", "nope", "xs", "true", "false", "v is defined", "m is callable", "1"])
        b, n, t = lambda: self.wrap(self.bool_expr(d - 1)), lambda: self.wrap(self.int_expr(d - 1)), lambda: self.wrap(self.text_expr(d - 1))
        return self.pick([
            lambda: f"{b()} {self.pick(['and', 'or'])} {b()}", lambda: f"not {b()}", lambda: f"{n()} {self.pick(['<', '<=', '>', '>=', '==', '!='])} {n()}", lambda: f"{t()} {self.pick(['<', '==', '!=', 'in', 'not in', '>='])} {t()}", lambda: f"{self.wrap(self.expr(d - 1))} {self.pick(['==', '!='])} {self.wrap(self.expr(d - 1))}",
            lambda: f"{self.wrap(self.expr(d - 1))} in {self.wrap(self.seq_expr(d - 1))}|list", lambda: f"{self.wrap(self.expr(d - 1))} is {self.pick(['', 'not '])}{self.pick(['defined', 'undefined', 'none', 'string', 'number', 'integer', 'float', 'boolean', 'mapping', 'sequence', 'iterable', 'callable', 'true', 'false', 'escaped'])}", lambda: f"{n()} is {self.pick(['odd', 'even', 'divisibleby(3)', 'gt 2', 'le(5)', 'eq 1'])}",
            lambda: f"{t()} is {self.pick(['lower', 'upper', 'filter', 'test', 'in s', 'eq s'])}", lambda: f"{t()}.{self.pick(['isalpha', 'isdigit', 'isalnum', 'isspace', 'isupper', 'islower', 'istitle', 'isnumeric', 'isidentifier', 'isascii', 'isprintable'])}()", lambda: f"{t()}.{self.pick(['startswith', 'endswith'])}({t()})", lambda: f"1 < {n()} <= 10",
        ])()

    def expr(self, depth):
        if self.chance(0.85):
            return self.pick([self.text_expr, self.text_expr, self.int_expr, self.seq_expr, self.bool_expr, self.dict, lambda d: self.pick(["v", "w", "i", "j", "ns.a", "ns.b", "nil", "d", "nope", "d.zz", "xs[9]", "caller", "varargs", "kwargs", *["loop.index", "loop.last", "loop.length"] * (self.loops > 0)]) if self.chance(0.5) else self.text_expr(d)])(depth)
        return self.wild(depth)

    def wild(self, depth):
        if depth <= 0:
            return self.atom()
        d = depth
        binary = lambda ops: f"{self.wrap(self.expr(d - 1))} {self.pick(ops)} {self.wrap(self.expr(d - 1))}"
        return self.pick([
            self.atom, self.atom, lambda: self.list(d), lambda: self.dict(d), lambda: self.filtered(d), lambda: self.filtered(d), lambda: self.filtered(d), lambda: self.tested(d), lambda: self.tested(d),
            lambda: self.method(d), lambda: self.method(d), lambda: self.method(d), lambda: self.subscript(d), lambda: self.subscript(d),
            lambda: binary(["+", "-", "*", "/", "//", "%", "~", "~", "+"]), lambda: binary(["==", "!=", "<", "<=", ">", ">=", "in", "not in"]), lambda: binary(["and", "or"]),
            lambda: f"{self.pick(['not ', 'not ', '-'])}{self.wrap(self.expr(d - 1))}", lambda: f"{self.expr(d - 1)} if {self.expr(d - 1)}{self.pick(['', ' else ' + self.expr(d - 1)])}",
            lambda: f"{self.atom()} {self.pick(['<', '==', '>='])} {self.atom()} {self.pick(['<', '!=', 'in'])} {self.atom()}", lambda: f"m({', '.join(self.expr(d - 2) for _ in range(self.r.randrange(3)))})",
            lambda: f"{self.number()} ** {self.pick(['2', '-1', '3', '10', '0'])}", lambda: self.pick(["loop.index", "loop.last", "loop.first", "loop.length", "loop.revindex", "loop.previtem", "loop.nextitem", "loop.depth", "loop.cycle('p', 'q')", "loop.changed(i)"] if self.loops else ["n"]),
            lambda: f"{self.expr(d - 1)} ~ {self.expr(d - 1)}", lambda: f"{self.string()} % {self.pick([self.atom(), self.list(1)])}", lambda: self.pick(["caller()", "varargs", "kwargs", "ns.a", "ns.b", "strftime_now('%d %b %Y')"]),
        ])()

    # Statements
    def open(self, kind="%"):
        return "{" + kind + self.pick(["", "", "", "-", "+" if kind != "{" else ""])

    def close(self, kind="%"):
        return self.pick(["", "", "", "-", "+" if kind == "%" else ""]) + {"%": "%", "{": "}", "#": "#"}[kind] + "}"

    def tag(self, body):
        return f"{self.open()} {body} {self.close()}"

    def text(self):
        return self.pick(["", " ", "\n", "  \n", "x", "a b\n", "\t", "é", "  ", "\n\n", "<|im_end|>\n", "{ ", " }", "%", " \n  "])

    def body(self, depth):
        return "".join(self.text() + self.statement(depth) + self.text() for _ in range(self.r.randrange(1, 4)))

    def target(self):
        return self.pick(["v", "w", "n", "s", "v", "i", "ns.a", "ns.b", "v, w", "(v, w)"])

    def statement(self, depth):
        if depth <= 0 or self.chance(0.35):
            return f"{self.open('{')} {self.expr(self.r.randrange(4))} {self.close('{')}"
        return self.pick([self.if_, self.if_, self.for_, self.for_, self.for_, self.set_, self.set_, self.set_block, self.macro, self.call, self.filter, self.with_, self.raw, self.comment, self.block, self.generation, self.jump, self.namespace])(depth - 1)

    def if_(self, d):
        out = self.tag("if " + self.expr(2)) + self.body(d)
        while self.chance(0.3):
            out += self.tag("elif " + self.expr(2)) + self.body(d)
        if self.chance(0.4):
            out += self.tag("else") + self.body(d)
        return out + self.tag("endif")

    def for_(self, d):
        target = self.pick(["i", "i", "j", "x", "i, j", "v"])
        iterable = self.wrap(self.pick([self.seq_expr, self.seq_expr, self.sequence])(2)) if "," not in target else self.pick(["d.items()", "pairs", "d|dictsort", "people|groupby('age')", "xs|batch(2)", "d|items"])
        recursive = self.chance(0.1)
        out = self.tag(f"for {target} in {iterable}" + (f" if {self.expr(1)}" if self.chance(0.25) else "") + (" recursive" if recursive else ""))
        self.loops += 1
        out += self.body(d) + ("{{ loop([1]) if loop.depth < 3 }}" if recursive else "")
        self.loops -= 1
        if self.chance(0.25):
            loops, self.loops = self.loops, 0
            out += self.tag("else") + self.body(d)
            self.loops = loops
        return out + self.tag("endfor")

    def set_(self, d):
        target = self.target()
        value = f"{self.expr(1)}, {self.expr(1)}" if "," in target else self.expr(2)
        return self.tag(f"set {target} = {value}")

    def set_block(self, d):
        return self.tag(f"set {self.pick(['v', 'w', 's'])}{self.pick(['', '', ' | upper', ' | trim'])}") + self.body(d) + self.tag("endset")

    def namespace(self, d):
        return self.tag(f"set ns = namespace(a={self.expr(1)}, b={self.expr(0)})")

    def function_body(self, d):
        loops, self.loops = self.loops, 0
        out = self.body(d)
        self.loops = loops
        return out

    def macro(self, d):
        parameters = self.pick(["", "a", "a, b", "a, b='B'", "v, w=n", "i=1"])
        return self.tag(f"macro m({parameters})") + self.function_body(d) + self.tag("endmacro")

    def call(self, d):
        return self.tag(f"call{self.pick(['', '(v)', '(i, j=2)'])} m({self.pick(['', '1', 's, 2'])})") + self.function_body(d) + self.tag("endcall")

    def filter(self, d):
        return self.tag(f"filter {self.pick(['upper', 'trim', 'replace(s, n)', 'indent(2)|lower', 'title', 'length'])}") + self.body(d) + self.tag("endfilter")

    def with_(self, d):
        return self.tag(self.pick(["with", f"with v = {self.expr(1)}", f"with v = {self.expr(1)}, n = v"])) + self.body(d) + self.tag("endwith")

    def raw(self, d):
        return self.open() + self.pick([" raw ", "raw"]) + self.pick(["%}", "-%}"]) + self.pick([" {{ x }} ", "{% if %}", "\n raw\n", "{# #}"]) + self.tag("endraw")

    def comment(self, d):
        return f"{self.open('#')} note\n {self.close('#')}"

    def block(self, d):
        self.blocks += 1
        return self.tag(f"block b{self.blocks}{self.pick(['', ' scoped'])}") + self.function_body(d) + self.tag("endblock")

    def generation(self, d):
        return self.tag("generation") + self.function_body(d) + self.tag("endgeneration")

    def jump(self, d):
        if self.loops == 0:
            return self.set_(d)
        return self.tag(f"if {self.expr(1)}") + self.tag(self.pick(["break", "continue"])) + self.tag("endif")

    def template(self):
        prelude = ""
        if self.chance(0.9):
            prelude = "{% set ns = namespace(a=1, b=[]) %}{% set v, w = 1, 'w' %}{% macro m(a, b=2) %}[{{ a }}{{ b }}{{ caller() if caller }}{{ varargs }}]{% endmacro %}"
        return prelude + self.body(3)


# What no other implementation can have: addresses, orders of objects, the names of Python's own variables.
UNCOMPARABLE = re.compile(r"0x[0-9a-f]{6,}|\bmissing\b|\dj\b", re.IGNORECASE)
# Differences of views are sets, which templates cannot make otherwise.
SETS = re.compile(r"(keys|items)\(\)\)* - ")
# Nor complex numbers, which negative numbers to the power of 0.5 are.
IGNORED_ERRORS = {"Uncomparable", "TimeoutError", "RecursionError", "MemoryError", "NameError", "UnboundLocalError", "AssertionError"}


class Uncomparable(Exception):
    pass


class Lazy:
    """What a filter gives that works when it is read. Python's own text for it has an address."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return self.items

    def __next__(self):
        return next(self.items)

    def __repr__(self):
        raise Uncomparable


def without_address(f):
    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        out = f(*args, **kwargs)
        return Lazy(out) if hasattr(out, "__next__") else out

    return wrapped


for name in ("map", "select", "reject", "selectattr", "rejectattr", "batch", "slice", "unique", "items", "reverse"):
    jinja2.filters.FILTERS[name] = without_address(jinja2.filters.FILTERS[name])


def stop(number, frame):
    raise TimeoutError


signal.signal(signal.SIGALRM, stop)


def case(source):
    row = {"src": source}
    signal.setitimer(signal.ITIMER_REAL, 2)  # some take exponential time
    try:
        # A copy each: the filter indent extends a list that it is given before it fails.
        row["out"] = ctu._compile_jinja_template(source).render(**json.loads(json.dumps(CONTEXT)))
    except Exception as x:
        if type(x).__name__ in IGNORED_ERRORS:
            return None
        row.update(error=type(x).__name__, message=str(x))
        return row
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if UNCOMPARABLE.search(row["out"]) or len(row["out"]) > 100000:
        return None
    return row


def rows(seed, count):
    made = 0
    k = 0
    while made < count:
        k += 1
        source = Generator(random.Random(f"{seed}-{k}")).template()
        row = None if SETS.search(source) else case(source)
        if row is not None:
            made += 1
            yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", default="1")
    args = parser.parse_args()
    failed = errors = 0
    for begin in range(0, args.cases, 5000):
        count = min(5000, args.cases - begin)
        with tempfile.TemporaryDirectory() as folder:
            chat = pathlib.Path(folder) / "chat"
            chat.mkdir()
            (chat / "snippet_context.json").write_text(json.dumps(CONTEXT))
            with open(chat / "snippets.jsonl", "w", encoding="ascii") as f:
                for row in rows(f"{args.seed}-{begin}", count):
                    errors += "error" in row
                    f.write(json.dumps(row) + "\n")
            report = pathlib.Path(folder) / "report.json"
            subprocess.run([args.program, "--root", folder, "--json", str(report)], stdout=subprocess.DEVNULL)
            files = json.loads(report.read_text())
        failed += files["failed"]
        for file in files["files"]:
            if "first_failure" in file:
                print(file["first_failure"])
        print(f"{begin + count} cases, {errors} of them errors, {failed} differ", flush=True)
    sys.exit(failed > 0)


main()
