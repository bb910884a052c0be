#!/usr/bin/env python3
"""Lists the characters on which the Unicode tables of this machine's Oniguruma and utf8proc and of Hugging Face's
tokenizers (0.23.3) differ, as far as tokenizers show it. Development only.

    python tools/tokenizer_unicode.py --program build/release/hierarchos_text_golden > docs/tokenizer-unicode.txt
"""
import argparse
import json
import os
import subprocess
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VOCAB = {"<unk>": 0, **{f"<0x{i:02X}>": i + 1 for i in range(256)}}
MODEL = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": True, "ignore_merges": False, "vocab": VOCAB, "merges": []}
MARK = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": False}


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


BERT = lambda **k: {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False, **k}
PARTS = {
    "normal forms": [("normalizer", {"type": t}) for t in ("NFC", "NFD", "NFKC", "NFKD")],
    "lower case": [("normalizer", {"type": "Lowercase"})],
    "accents": [("normalizer", {"type": "StripAccents"}), ("normalizer", BERT(strip_accents=True))],
    "controls": [("normalizer", BERT(clean_text=True))],
    "punctuation": [("pre_tokenizer", {"type": "Punctuation", "behavior": "Isolated"}), ("pre_tokenizer", {"type": "BertPreTokenizer"})],
    "digits": [("pre_tokenizer", {"type": "Digits", "individual_digits": True})],
    "words": [("pre_tokenizer", {"type": "Whitespace"})],
    "scripts": [("pre_tokenizer", {"type": "UnicodeScripts"})],
    "patterns": [("pre_tokenizer", split(r)) for r in (r"\p{L}", r"\p{N}", r"\p{M}", r"\p{Lu}", r"\p{Ll}", r"\p{P}", r"\w", r"\d", r"\s")],
}


def file(kind, d):
    pre = {"type": "Sequence", "pretokenizers": [d, MARK]} if kind == "pre_tokenizer" else None
    return json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": d if kind == "normalizer" else None, "pre_tokenizer": pre, "post_processor": None, "decoder": None, "model": MODEL})


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--program", default=os.path.join(ROOT, "build/release/hierarchos_text_golden"))
    args = ap.parse_args()
    p = subprocess.Popen([args.program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(f, texts):
        p.stdin.write(json.dumps({"file": f, "texts": texts}).encode() + b"\n")
        p.stdin.flush()
        return [x["ids"] for x in json.loads(p.stdout.readline())["texts"][::2]]

    points = [c for c in range(0x20, 0x40000) if not 0xD800 <= c < 0xE000] + list(range(0xE0000, 0xE0200))
    found = {}
    for name, parts in PARTS.items():
        for kind, d in parts:
            f = file(kind, d)
            tk = Tokenizer.from_str(f)
            text = lambda cs: "".join("|%s" % chr(c) for c in cs) + "|"
            chunks = [points[i:i + 256] for i in range(0, len(points), 256)]
            for i in range(0, len(chunks), 64):
                group = chunks[i:i + 64]
                want = [e.ids for e in tk.encode_batch([text(c) for c in group], add_special_tokens=False)]
                for c, g, w in zip(group, ask(f, [text(c) for c in group]), want):
                    if g == w:
                        continue
                    one = ask(f, [text([x]) for x in c])
                    for x, y in zip(c, one):
                        if tk.encode(text([x]), add_special_tokens=False).ids != y:
                            found.setdefault(x, set()).add(name)
    print("# Characters on which this project's Unicode tables (Oniguruma, utf8proc) and the reference tokenizer's differ.")
    print("# Made by tools/tokenizer_unicode.py; docs/tokenizers.md says what follows from them.")
    rows = []
    for c in sorted(found):
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == found[c]:
            rows[-1][1] = c
        else:
            rows.append([c, c, found[c]])
    for a, z, names in rows:
        print(f"{a:04X}" + (f"-{z:04X}" if z > a else "") + "  # " + ", ".join(sorted(names)))
    print(f"{len(found)} characters", file=sys.stderr)


if __name__ == "__main__":
    main()
