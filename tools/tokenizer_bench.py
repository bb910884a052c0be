#!/usr/bin/env python3
"""Times this project's tokenizer beside Hugging Face's (tokenizers 0.23.3), in turns on the same texts, on one thread.
Development only; prints Markdown.

    python tools/tokenizer_bench.py --program build/release/tokenizer_bench --real DIR [--megabytes 2]

DIR has the packages that tests/text/real.json names. English is documentation strings and code is source of Python's
library; Chinese is random sentences of the words of jieba's dictionary, by their frequencies.
"""
import argparse
import ast
import glob
import json
import os
import platform
import random
import subprocess
import sys
import sysconfig
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def documents(text, size=2000):
    return [text[i:i + size] for i in range(0, len(text), size)]


def english(want):
    out, n = [], 0
    for path in sorted(glob.glob(sysconfig.get_paths()["purelib"] + "/torch/**/*.py", recursive=True)) + sorted(glob.glob(sysconfig.get_paths()["stdlib"] + "/**/*.py", recursive=True)):
        try:
            tree = ast.parse(open(path, encoding="utf-8").read())
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                d = ast.get_docstring(node)
                if d and len(d) > 300:
                    out.append(d)
                    n += len(d.encode())
        if n > want:
            break
    return documents("\n\n".join(out))


def code(want):
    out, n = [], 0
    for path in sorted(glob.glob(sysconfig.get_paths()["stdlib"] + "/*.py")):
        try:
            t = open(path, encoding="utf-8").read()
        except UnicodeDecodeError:
            continue
        out.append(t)
        n += len(t.encode())
        if n > want:
            break
    return documents("\n".join(out))


def chinese(want):
    import jieba

    words, weights = [], []
    for line in open(os.path.join(os.path.dirname(jieba.__file__), "dict.txt"), encoding="utf-8"):
        w, f, _ = line.split(" ", 2)
        words.append(w)
        weights.append(int(f))
    r = random.Random(1)
    out, n = [], 0
    while n < want:
        s = "".join(r.choices(words, weights, k=r.randint(5, 25))) + r.choice("。，！？；")
        out.append(s)
        n += len(s.encode())
    return documents("".join(out), 700)


def best(f, times=5):
    out = 1e9
    for _ in range(times):
        t = time.perf_counter()
        f()
        out = min(out, time.perf_counter() - t)
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--program", default=os.path.join(ROOT, "build/release/tokenizer_bench"))
    ap.add_argument("--real", required=True)
    ap.add_argument("--megabytes", type=float, default=1)
    ap.add_argument("--names", default="")
    args = ap.parse_args()
    want = int(args.megabytes * 1e6)
    texts = {"English": english(want), "code": code(want), "Chinese": chinese(want)}
    with tempfile.TemporaryDirectory() as d:
        files = []
        for k, v in texts.items():
            files.append(f"{d}/{k}.json")
            json.dump(v, open(files[-1], "w"))
        loads, rows = [], []
        for e in json.load(open(f"{ROOT}/tests/text/real.json")):
            if args.names and e["name"] not in args.names.split(","):
                continue
            path = os.path.join(args.real, e["package"].replace("/", "+") + "@" + e["version"], e["path"])
            ours = json.loads(subprocess.run([args.program, path, *files], check=True, capture_output=True).stdout)
            ref_load = best(lambda: Tokenizer.from_file(path), 3)
            tk = Tokenizer.from_file(path)
            tk.no_truncation()
            tk.no_padding()
            vocab = e["vocab_size"]
            loads.append(f"| {e['name']} | {vocab} | {ours['load'] * 1e3:.0f} | {ref_load * 1e3:.0f} | {ref_load / ours['load']:.1f} |")
            for (k, docs), o in zip(texts.items(), ours["texts"]):
                tokens = sum(len(x.ids) for x in tk.encode_batch_fast(docs, add_special_tokens=False))
                same = "" if tokens == o["tokens"] else f" ({o['tokens']} tokens against {tokens}!)"
                ids = best(lambda: tk.encode_batch_fast(docs, add_special_tokens=False))
                off = best(lambda: tk.encode_batch(docs, add_special_tokens=False))
                mb = o["bytes"] / 1e6
                rows.append(f"| {e['name']} | {k}{same} | {mb / o['ids']:.1f} | {mb / ids:.1f} | {ids / o['ids']:.1f} | {mb / o['offsets']:.1f} | {mb / off:.1f} | {off / o['offsets']:.1f} |")
                print(rows[-1], file=sys.stderr)
    cpu = next((x.split(":")[1].strip() for x in open("/proc/cpuinfo") if x.startswith("model name")), platform.processor())
    print(f"One thread, {cpu}; each figure is the best of 5 passes over {args.megabytes:g} MB in documents of about 2 KB.\n")
    print("Encoding, MB/s: ids alone (`Pipeline::encode_ids` beside `encode_batch_fast`), and with offsets, type ids and masks (`encode` beside `encode_batch`).\n")
    print("| tokenizer | text | ids | reference | times | with offsets | reference | times |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(rows))
    print("\nLoading a tokenizer.json, ms:\n\n| tokenizer | tokens | this project | reference | times |\n| --- | --- | --- | --- | --- |")
    print("\n".join(loads))


if __name__ == "__main__":
    main()
