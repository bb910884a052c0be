#!/usr/bin/env python3
"""Compares hierarchos_text_golden --serve with Hugging Face's tokenizers (0.23.3) on random tokenizer.json files and texts.
Development only.

    python tools/tokenizer_fuzz.py --program build/release/hierarchos_text_golden [--cases 100000] [--seed 1]

A case is one text through one tokenizer. Characters on which the libraries' Unicode tables differ are left out of the
texts: the list is docs/tokenizer-unicode.txt, which tools/tokenizer_unicode.py makes. Prints the first cases that differ,
smaller if it can, and exits with 1.
"""
import argparse
import json
import os
import random
import subprocess
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RUST_BACKTRACE"] = "0"
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
REGEXES = [LLAMA3, QWEN2, GPT2, O200K, r"\s+", r"\w+", r"[^\s\w]+", r"\p{Lu}", r"\d", r" {2,}", r"(?<=\d),(?=\d)", "a*", r"\p{P}"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
WORDS = ["hello", "world", "the", "don't", "I'll", "CAFÉ", "naïve", "2024", "3.14", "世界", "你好，", "한국어", "ﬁ", "½", "é", "İ", "ß", "ΑΣ", "👍🏽", "…", "``", "''",
         "<s>", "<tok>", "[MASK]", "▁", "Ġ", "##x", "x_y", "مرحبا", "हिन्दी", "ไทย", "\u0301", "\u200d", "\ufeff", "a\u0301\u0323", "\u1112\u1161\u11ab", "\uac00\u11a8"]


def excluded():
    out = set()
    path = os.path.join(ROOT, "docs", "tokenizer-unicode.txt")
    if os.path.exists(path):
        for line in open(path, encoding="ascii"):
            line = line.split("#")[0].strip()
            if line:
                a, _, z = line.split()[0].partition("-")
                out.update(range(int(a, 16), int(z or a, 16) + 1))
    return out


class Maker:
    def __init__(self, rng, skip):
        self.r = rng
        self.skip = skip
        self.ranges = [(0x20, 0x7E)] * 6 + [(0xA0, 0x24F)] * 2 + [(0, 0x1F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF), (0x1100, 0x11FF), (0x1E00, 0x206F),
                       (0x20A0, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFFFD), (0x1F300, 0x1FAFF), (0x10000, 0x10FFFF), (0x20000, 0x2A6DF)]

    def char(self):
        while True:
            c = self.r.randint(*self.r.choice(self.ranges))
            if c not in self.skip and not 0xD800 <= c < 0xE000:
                return chr(c)

    def text(self, added):
        r, out = self.r, []
        for _ in range(r.randint(0, 14)):
            k = r.random()
            if k < 0.35:
                w = r.choice(WORDS)
                out.append(w if not any(ord(c) in self.skip for c in w) else "x")
            elif k < 0.55:
                out.append(r.choice([" ", " ", "  ", "\n", "\t", "\r\n", "   ", "\u00a0", "\u3000", "▁", "."]))
            elif k < 0.65 and added:
                out.append(r.choice(added))
            else:
                out.append("".join(self.char() for _ in range(r.randint(1, 4))))
        return "".join(out)

    def maybe(self, p=0.5):
        return self.r.random() < p

    def normalizer(self, depth=0):
        r = self.r
        k = r.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Nmt", "Bert", "Prepend", "Replace", "ReplaceRegex", "ByteLevel", "Sequence", "Sequence"])
        if k == "Sequence" and depth < 2:
            return {"type": "Sequence", "normalizers": [self.normalizer(depth + 1) for _ in range(r.randint(0, 4))]}
        if k == "Strip":
            return {"type": "Strip", "strip_left": self.maybe(), "strip_right": self.maybe()}
        if k == "Bert":
            return {"type": "BertNormalizer", "clean_text": self.maybe(0.7), "handle_chinese_chars": self.maybe(0.7), "strip_accents": r.choice([None, True, False]), "lowercase": self.maybe()}
        if k == "Prepend":
            return {"type": "Prepend", "prepend": r.choice(["▁", "> ", "é", "ab"])}
        if k == "Replace":
            return {"type": "Replace", "pattern": {"String": r.choice([" ", "a", "  ", "é", ".", "\n", "``"])}, "content": r.choice(["▁", "", "xy", " ", "é"])}
        if k == "ReplaceRegex":
            return {"type": "Replace", "pattern": {"Regex": r.choice(REGEXES[4:])}, "content": r.choice(["▁", "", "xy", " ", "é"])}
        return {"type": k if k != "Sequence" else "NFC"}

    def pre(self, depth=0):
        r = self.r
        k = r.choice(["ByteLevel", "ByteLevel", "Metaspace", "Metaspace", "Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Split", "Split", "SplitString", "Punctuation", "Digits", "FixedLength",
                      "CharDelimiterSplit", "UnicodeScripts", "Sequence", "Sequence"])
        if k == "Sequence" and depth < 2:
            return {"type": "Sequence", "pretokenizers": [self.pre(depth + 1) for _ in range(r.randint(0, 3))]}
        if k == "ByteLevel":
            return {"type": k, "add_prefix_space": self.maybe(), "trim_offsets": self.maybe(), "use_regex": self.maybe(0.7)}
        if k == "Metaspace":
            return {"type": k, "replacement": r.choice(["▁", "▁", "_"]), "prepend_scheme": r.choice(["first", "never", "always"]), "split": self.maybe()}
        if k == "Split":
            return {"type": k, "pattern": {"Regex": r.choice(REGEXES)}, "behavior": r.choice(BEHAVIORS), "invert": self.maybe(0.3)}
        if k == "SplitString":
            return {"type": "Split", "pattern": {"String": r.choice([" ", "a", "▁", "..", ""])}, "behavior": r.choice(BEHAVIORS), "invert": self.maybe(0.3)}
        if k == "Punctuation":
            return {"type": k, "behavior": r.choice(BEHAVIORS)}
        if k == "Digits":
            return {"type": k, "individual_digits": self.maybe()}
        if k == "FixedLength":
            return {"type": k, "length": r.randint(1, 6)}
        if k == "CharDelimiterSplit":
            return {"type": k, "delimiter": r.choice(["|", "a", " "])}
        return {"type": k if k != "Sequence" else "Whitespace"}

    def vocabulary(self, texts, letters):
        pieces = {}
        for t in texts:
            b = "".join(letters[x] for x in t.encode()) if letters and self.maybe(0.8) else t
            for _ in range(20):
                if b:
                    i = self.r.randrange(len(b))
                    pieces[b[i:i + self.r.randint(1, 5)]] = 1
        return list(pieces)

    def model(self, texts, letters, suffix_ok=True):
        r = self.r
        k = r.choice(["BPE", "BPE", "BPE", "WordPiece", "WordLevel", "Unigram"])
        if k == "WordLevel":
            v = ["[UNK]"] + self.vocabulary(texts, letters)
            return {"type": k, "vocab": {t: i for i, t in enumerate(dict.fromkeys(v))}, "unk_token": r.choice(["[UNK]", "[UNK]", "[UNK]", "nope"])}
        if k == "WordPiece":
            v = ["[UNK]"] + self.vocabulary(texts, letters)
            v += ["##" + x for x in self.vocabulary(texts, letters)] + [c for t in texts for c in t] + ["##" + c for t in texts for c in t if self.maybe(0.8)]
            return {"type": k, "vocab": {t: i for i, t in enumerate(dict.fromkeys(v))}, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": r.choice([100, 100, 5])}
        if k == "Unigram":
            v = ["<unk>"] + [c for t in texts for c in t if self.maybe(0.9)] + self.vocabulary(texts, letters) + (list(letters.values()) if letters else [])
            bytes_ = self.maybe(0.3)
            v += [f"<0x{i:02X}>" for i in range(256)] if bytes_ else []
            v = list(dict.fromkeys(v))
            return {"type": k, "vocab": [[t, round(-r.random() * 8, r.choice([0, 1, 6]))] for t in v], "unk_id": r.choice([0, 0, 0, None]), "byte_fallback": bytes_}
        prefix = "##" if suffix_ok and self.maybe(0.1) else None
        suffix = "</w>" if suffix_ok and self.maybe(0.1) else None
        chars = list(dict.fromkeys((list(letters.values()) if letters else []) + [c for t in texts for c in t if self.maybe(0.95)] + ["▁"]))
        v = ["<unk>"] + chars + ([prefix + c for c in chars] if prefix else []) + ([c + suffix for c in chars] if suffix else []) + ([prefix + c + suffix for c in chars] if prefix and suffix else [])
        bytes_ = self.maybe(0.3)
        v += [f"<0x{i:02X}>" for i in range(256)] if bytes_ else []
        v = list(dict.fromkeys(v))
        have, merges = set(v), []
        spell = [("".join(letters[x] for x in t.encode()) if letters else t) for t in texts]
        for _ in range(r.randint(0, 120)):
            t = r.choice(spell)
            if len(t) < 2:
                continue
            i = r.randrange(len(t) - 1)
            n, m = r.randint(1, 3), r.randint(1, 3)
            a, b = t[i:i + n], t[i + n:i + n + m]
            if prefix:
                b = prefix + b
            if suffix and self.maybe():
                b += suffix
            if a in have and b in have and a and b:
                j = a + (b[len(prefix):] if prefix else b)
                if j not in have:
                    have.add(j)
                    v.append(j)
                merges.append([a, b])
        if self.maybe(0.5):
            r.shuffle(merges)
        return {"type": k, "dropout": r.choice([None, None, None, 0.0, 1.0]), "unk_token": r.choice([None, "<unk>", "<unk>"]), "continuing_subword_prefix": prefix, "end_of_word_suffix": suffix,
                "fuse_unk": self.maybe(), "byte_fallback": bytes_, "ignore_merges": self.maybe(0.3), "vocab": {t: i for i, t in enumerate(v)}, "merges": merges}

    def added(self, n):
        r, out = self.r, []
        names = ["<s>", "</s>", "<tok>", "[MASK]", "the", "hello", "Hello", "é", "É", "  ", "\n", "<", "<s", "wor", "世", "a", "▁", "don"]
        r.shuffle(names)
        for i, c in enumerate(names[:r.randint(0, 6)]):
            out.append({"id": n + i, "content": c, "single_word": self.maybe(0.2), "lstrip": self.maybe(0.25), "rstrip": self.maybe(0.25), "normalized": self.maybe(), "special": self.maybe()})
        return out

    def post(self, depth=0):
        r = self.r
        k = r.choice(["ByteLevel", "Roberta", "Bert", "Template", "Template", "Sequence"])
        if k == "ByteLevel":
            return {"type": k, "add_prefix_space": self.maybe(), "trim_offsets": self.maybe(0.7), "use_regex": True}
        if k == "Roberta":
            return {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": self.maybe(), "add_prefix_space": self.maybe()}
        if k == "Bert":
            return {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}
        if k == "Sequence" and depth == 0:
            return {"type": k, "processors": [{"type": "ByteLevel", "add_prefix_space": self.maybe(), "trim_offsets": self.maybe(), "use_regex": True}, self.post(1)][:r.randint(1, 2)]}
        s = lambda t: {"SpecialToken": {"id": r.choice(["<s>", "</s>"]), "type_id": t}}
        q = lambda x, t: {"Sequence": {"id": x, "type_id": t}}
        single = [s(0) for _ in range(r.randint(0, 2))] + [q("A", r.randint(0, 1))] + [s(0) for _ in range(r.randint(0, 2))]
        pair = [s(0) for _ in range(r.randint(0, 1))] + [q("A", 0), s(0), q("B", 1)] + [s(1) for _ in range(r.randint(0, 1))]
        return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [2, 3], "tokens": ["</s>", "x"]}}}

    def decoder(self, depth=0):
        r = self.r
        k = r.choice(["ByteLevel", "WordPiece", "BPEDecoder", "CTC", "Metaspace", "Fuse", "Strip", "ByteFallback", "Replace", "Sequence"])
        if k == "ByteLevel":
            return {"type": k, "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        if k == "WordPiece":
            return {"type": k, "prefix": r.choice(["##", ""]), "cleanup": self.maybe()}
        if k == "BPEDecoder":
            return {"type": k, "suffix": "</w>"}
        if k == "CTC":
            return {"type": k, "pad_token": "<s>", "word_delimiter_token": "|", "cleanup": self.maybe()}
        if k == "Metaspace":
            return {"type": k, "replacement": "▁", "prepend_scheme": r.choice(["first", "never", "always"]), "split": True}
        if k == "Strip":
            return {"type": k, "content": r.choice([" ", "▁", "a"]), "start": r.randint(0, 2), "stop": 0}
        if k == "Replace":
            return {"type": k, "pattern": {r.choice(["String", "Regex"]): r.choice(["▁", "a", " +"])}, "content": r.choice([" ", "", "b"])}
        if k == "Sequence" and depth == 0:
            return {"type": k, "decoders": [self.decoder(1) for _ in range(r.randint(0, 3))]}
        return {"type": k if k != "Sequence" else "Fuse"}

    def file(self, texts):
        r = self.r
        pre = self.pre() if self.maybe(0.85) else None
        norm = self.normalizer() if self.maybe(0.6) else None
        letters = LETTERS if "ByteLevel" in json.dumps([pre, norm]) else None
        model = self.model(texts, letters)
        trunc = {"direction": r.choice(["Left", "Right"]), "max_length": r.randint(6, 20), "strategy": r.choice(["LongestFirst", "OnlyFirst", "OnlySecond"]), "stride": r.randint(0, 1)} if self.maybe(0.2) else None
        pad = {"strategy": r.choice(["BatchLongest", {"Fixed": r.randint(1, 30)}]), "direction": r.choice(["Left", "Right"]), "pad_to_multiple_of": r.choice([None, 8]), "pad_id": 0, "pad_type_id": r.randint(0, 1), "pad_token": "[PAD]"} if self.maybe(0.2) else None
        return {"version": "1.0", "truncation": trunc, "padding": pad, "added_tokens": self.added(len(model["vocab"])), "normalizer": norm, "pre_tokenizer": pre,
                "post_processor": self.post() if self.maybe(0.6) else None, "decoder": self.decoder() if self.maybe(0.8) else None, "model": model}


def letters():
    bs = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    out, n = {b: chr(b) for b in bs}, 0
    for b in range(256):
        if b not in out:
            out[b] = chr(256 + n)
            n += 1
    return out


LETTERS = letters()
PANIC = {"panic": True}


def attempt(f):
    try:
        return f()
    except Exception:
        return {"error": True}
    except BaseException as x:
        if type(x).__name__ != "PanicException":
            raise
        return PANIC


def plain(e):
    return {"ids": e.ids, "off": [v for o in e.offsets for v in o], "types": e.type_ids, "mask": e.special_tokens_mask, "att": e.attention_mask, "seq": [-1 if s is None else s for s in e.sequence_ids],
            "over": [plain(o) for o in e.overflowing]}


def reference(request):
    tk = attempt(lambda: Tokenizer.from_str(request["file"]))
    if isinstance(tk, dict):
        return tk
    tk.encode_special_tokens = request.get("special_as_text", False)
    out = {"texts": [], "pairs": [], "ids": [], "streams": []}
    for t in request["texts"]:
        out["texts"].append(attempt(lambda: plain(tk.encode(t, add_special_tokens=False))))
        out["texts"].append(attempt(lambda: plain(tk.encode(t))))
    for a, b in request["pairs"]:
        out["pairs"].append(attempt(lambda: plain(tk.encode(a, b))))
    for ids in request["ids"]:
        for skip in (True, False):
            out["ids"].append(attempt(lambda: tk.decode(ids, skip_special_tokens=skip)))
    for ids in request["streams"]:
        def run():
            s = DecodeStream(skip_special_tokens=False)
            return [s.step(tk, i) for i in ids]
        out["streams"].append(attempt(run))
    return out


def equal(got, want):
    if want == PANIC:
        return True  # the reference crashes: an error or a sensible value will do
    if isinstance(want, dict) and "error" in want:
        return isinstance(got, dict) and "error" in got
    return got == want


class Program:
    def __init__(self, path):
        self.p = subprocess.Popen([path, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request):
        self.p.stdin.write(json.dumps(request).encode() + b"\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line:
            raise SystemExit("the program died on " + json.dumps(request))
        return json.loads(line)


def differences(got, want, request):
    if want == PANIC:
        return []
    if "error" in want or "error" in got:
        return [] if equal(got, want) else [("load", got if "error" in got else "loads", want if "error" in want else "loads")]
    out = []
    for key in ("texts", "pairs", "ids", "streams"):
        for i, (g, w) in enumerate(zip(got[key], want[key])):
            if not equal(g, w):
                source = request[key][i // 2 if key in ("texts", "ids") else i]
                fields = [k for k in w if g.get(k) != w[k]] if isinstance(w, dict) and isinstance(g, dict) else []
                out.append((f"{key} {json.dumps(source)} {fields}", g if not fields or "error" in g else {k: g.get(k) for k in fields}, w if not fields else {k: w[k] for k in fields}))
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--program", default=os.path.join(ROOT, "build/release/hierarchos_text_golden"))
    ap.add_argument("--cases", type=int, default=100000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--show", type=int, default=5)
    args = ap.parse_args()
    sys.stderr.flush()
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # the reference reports its crashes there
    program, skip = Program(args.program), excluded()
    done = bad = panics = errors = 0
    k = 0
    while done < args.cases:
        rng = random.Random(args.seed * 1000003 + k)
        k += 1
        m = Maker(rng, skip)
        names = [x["content"] for x in m.added(0)]
        texts = [m.text(names) for _ in range(16)]
        f = m.file(texts)
        n = len(f["model"]["vocab"]) + 8
        ids = [[rng.randrange(n) for _ in range(rng.randint(0, 12))] for _ in range(4)]
        request = {"file": json.dumps(f), "texts": texts, "pairs": [[rng.choice(texts), rng.choice(texts)] for _ in range(4)], "ids": ids, "streams": ids, "special_as_text": rng.random() < 0.2}
        want = reference(request)
        diffs = differences(program.ask(request), want, request)
        panics += json.dumps(want).count('"panic"')
        errors += json.dumps(want).count('"error"')
        done += len(texts) + len(request["pairs"]) + 2 * len(ids) + len(ids)
        if diffs:
            bad += 1
            if bad <= args.show:
                small = {key: v for key, v in f.items() if key != "model"}
                small["model"] = {key: v for key, v in f["model"].items() if key not in ("vocab", "merges")}
                print(f"seed {args.seed} file {k - 1}: {json.dumps(small)}")
                for what, g, w in diffs[:2]:
                    print(f"  {what}\n    got  {str(g)[:500]}\n    want {str(w)[:500]}")
                sys.stdout.flush()
    print(f"{done} cases through {k} tokenizers: {bad} tokenizers differ ({errors} errors and {panics} crashes of the reference)")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
