#!/usr/bin/env python3
"""Writes src/template/html_entities.inc: the names that HTML has for characters, as Python's html module knows them."""
import html.entities
import pathlib


def main():
    out = ["// HTML's names of characters, sorted. Written by tools/html_entities.py."]
    line = " "
    for name, text in sorted(html.entities.html5.items()):
        item = f' {{"{name}", "{"".join(f"{chr(92)}x{b:02x}" for b in text.encode())}"}},'
        if len(line) + len(item) > 119:
            out.append(line)
            line = " "
        line += item
    out.append(line)
    path = pathlib.Path(__file__).parent.parent / "src/template/html_entities.inc"
    path.write_text("\n".join(out) + "\n", encoding="ascii")


main()
