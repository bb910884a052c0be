#!/usr/bin/env python3
"""Writes src/template/unicode_tables.inc: what Python's string methods know about characters.

Development only. Chat templates are rendered by Python where they were written, so that its str.upper(), str.isalpha()
and so on are the reference; run this with the Python whose Unicode version they shall have (3.11: Unicode 14).
"""
import pathlib
import sys
import unicodedata

SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}"
FLAGS = [  # in the order of the bits in unicode.h
    str.isalpha, str.isdecimal, str.isdigit, str.isnumeric, str.isspace, str.isprintable, str.isupper, str.islower,
    lambda c: unicodedata.category(c) == "Lt",
    str.isidentifier,
    lambda c: ("a" + c).isidentifier(),
    lambda c: ("A" + c + SIGMA).lower()[-1] == "\u03c2" and (c + SIGMA).lower()[-1] != "\u03c2",  # case-ignorable
    lambda c: (c + SIGMA).lower()[-1] == "\u03c2",  # cased
]
MAPS = {"upper": str.upper, "lower": str.lower, "title": str.title, "fold": str.casefold}
CHARACTERS = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]


def lines(items):
    line = " "
    for item in items:
        if len(line) + len(item) > 117:
            yield line
            line = " "
        line += " " + item
    yield line


def flag_runs():
    last = 0
    for c in CHARACTERS:
        bits = sum(bool(f(c)) << k for k, f in enumerate(FLAGS))
        if bits != last:
            yield f"{{0x{ord(c):X}, 0x{bits:X}}},"
            last = bits


def map_runs(f):
    """Runs of characters, one or two apart, that move by the same distance."""
    moved = [(ord(c), ord(f(c)) - ord(c)) for c in CHARACTERS if len(f(c)) == 1 and f(c) != c]
    k = 0
    while k < len(moved):
        begin, delta = moved[k]
        end = k + 1
        stride = moved[end][0] - begin if end < len(moved) else 1
        if stride > 2:
            stride = 1
        while end < len(moved) and moved[end] == (moved[end - 1][0] + stride, delta):
            end += 1
        yield f"{{0x{begin:X}, 0x{moved[end - 1][0]:X}, {stride}, {delta}}},"
        k = end


def specials(f):
    for c in CHARACTERS:
        if len(f(c)) > 1:
            yield f"{{0x{ord(c):X}, {{{', '.join(f'0x{ord(x):X}' for x in f(c))}}}}},"


def main():
    out = [f"// Unicode {unicodedata.unidata_version} as Python {sys.version_info[0]}.{sys.version_info[1]} has it. "
           "Written by tools/python_unicode.py.", "constexpr FlagRun kFlagRuns[] = {", *lines(flag_runs()), "};"]
    for name, f in MAPS.items():
        out += [f"constexpr MapRun k{name.title()}Runs[] = {{", *lines(map_runs(f)), "};"]
        out += [f"constexpr Special k{name.title()}Specials[] = {{", *lines(specials(f)), "};"]
    path = pathlib.Path(__file__).parent.parent / "src/template/unicode_tables.inc"
    path.write_text("\n".join(out) + "\n", encoding="ascii")


main()
