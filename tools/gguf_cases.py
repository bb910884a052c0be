#!/usr/bin/env python3
"""Small models of each GGUF architecture as llama.cpp's converter writes them: tests/data/gguf/*.gguf, and what the
Hugging Face package held: *.json.

    pip install torch transformers safetensors gguf
    python tools/gguf_cases.py LLAMA_CPP_SOURCE tests/data/gguf

The tensors of a package, sorted by name, are numbered through: element i of tensor t is 1000 t + i, exact in fp32.
"""
import json
import pathlib
import sys
import tempfile

import torch
from safetensors.torch import save_file

source, out = map(pathlib.Path, sys.argv[1:3])
sys.path[:0] = [str(source), str(source / "gguf-py")]
import conversion  # noqa: E402
import gguf  # noqa: E402
import transformers  # noqa: E402

SMALL = dict(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
             vocab_size=6, max_position_embeddings=32, bos_token_id=1, eos_token_id=2, pad_token_id=0)
# Per case: the class of the configuration, what differs from SMALL, keys to leave out.
CASES = {
    "llama": ("Llama", dict(num_attention_heads=4, num_key_value_heads=2, hidden_size=16, rope_theta=500.0), ()),
    "mixtral": ("Mixtral", dict(num_local_experts=3, num_experts_per_tok=2), ()),
    "qwen2": ("Qwen2", dict(tie_word_embeddings=True, rope_theta=1e6), ()),
    "qwen3": ("Qwen3", dict(head_dim=6), ()),
    "gemma": ("Gemma", dict(head_dim=6), ()),
    "gemma2": ("Gemma2", dict(head_dim=6, sliding_window=16, attn_logit_softcapping=30.0, query_pre_attn_scalar=6), ()),
    "gemma3": ("Gemma3Text", dict(head_dim=6, sliding_window=16, num_hidden_layers=7, query_pre_attn_scalar=6), ()),
    "phi3": ("Phi3", dict(partial_rotary_factor=0.5, hidden_size=16, original_max_position_embeddings=8, rope_scaling={
        "type": "longrope", "short_factor": [1.5, 2.5], "long_factor": [3.5, 4.5]}), ()),
    "gptneox": ("GPTNeoX", dict(rotary_pct=0.5, hidden_size=16), ("num_key_value_heads",)),
    "olmo2": ("Olmo2", dict(), ()),
    "granite": ("Granite", dict(embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.25,
                                logits_scaling=4.0), ()),
    "stablelm": ("StableLm", dict(partial_rotary_factor=0.5, hidden_size=16, use_qkv_bias=True,
                                  use_parallel_residual=False, num_attention_heads=4, num_key_value_heads=2), ()),
    "falcon": ("Falcon", dict(num_attention_heads=4, hidden_size=16, multi_query=True, new_decoder_architecture=False,
                              num_kv_heads=1), ("num_key_value_heads", "intermediate_size")),
    "falcon_two_norms": ("Falcon", dict(num_attention_heads=4, hidden_size=16, new_decoder_architecture=True,
                                        num_kv_heads=2), ("num_key_value_heads", "intermediate_size")),
    "gpt2": ("GPT2", dict(n_embd=8, n_layer=1, n_head=2, n_positions=32, n_ctx=32), tuple(SMALL.keys() - {
        "vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"})),
}




def tensors_of(config_class, config):
    model = getattr(transformers, config_class.replace("Gemma3Text", "Gemma3") + (
        "LMHeadModel" if config_class == "GPT2" else "ForCausalLM"))(config)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)  # with the names that checkpoints have
        from safetensors import safe_open
        shapes = {}
        for file in pathlib.Path(folder).glob("*.safetensors"):
            with safe_open(file, "pt") as f:
                shapes |= {name: f.get_slice(name).get_shape() for name in f.keys()}
    tensors = {}
    for t, name in enumerate(sorted(shapes)):
        count = int(torch.tensor(shapes[name]).prod())
        tensors[name] = (1000 * t + torch.arange(count, dtype=torch.float32)).reshape(shapes[name])
    return tensors


out.mkdir(parents=True, exist_ok=True)
for case, (config_class, changes, absent) in CASES.items():
    values = {k: v for k, v in {**SMALL, **changes}.items() if k not in absent}
    config = getattr(transformers, config_class + "Config")(**values)
    tensors = tensors_of(config_class, config)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        config.architectures = [config_class.replace("Gemma3Text", "Gemma3") + (
            "LMHeadModel" if config_class == "GPT2" else "ForCausalLM")]
        config.save_pretrained(folder)
        save_file(tensors, folder / "model.safetensors")
        vocabulary = {str(i): i for i in range(config.vocab_size)}  # some converters count it
        (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}, "added_tokens": []}))
        kind = conversion.get_model_class(config.architectures[0])
        kind.set_vocab = lambda self: (self.gguf_writer.add_bos_token_id(1), self.gguf_writer.add_eos_token_id(2))
        model = kind(folder, gguf.LlamaFileType.ALL_F32, out / f"{case}.gguf")
        # Some settings it reads by the names that configurations had before transformers 5.
        model.hparams = {**values, **model.hparams}
        model.write()
    names = {name: list(t.shape) for name, t in sorted(tensors.items())}
    (out / f"{case}.json").write_text(json.dumps({"config": json.loads(config.to_json_string(use_diff=False)),
                                                  "tensors": names}) + "\n")
    print(case, len(names), "tensors")
