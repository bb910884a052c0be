#!/usr/bin/env python3
"""Writes tests/data/generation.json: what transformers' logits processors, warpers and generate() do.

Development only. pip install transformers==5.24.0 torch (the CPU's will do), then

    tools/generation_reference.py

"processors": scores after the processors of a configuration. "warpers": probabilities that a token is drawn from.
"generate": ids that generate() gives on examples/demo-model in float32; `gap` is the smallest difference of the two best
scores on the way (greedy search only). "perplexity": mean negative log-likelihoods of a text on the same model, by
windows, as the framework's documentation computes them.
"""
import json
import math
import pathlib

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
VOCAB = 24
EOS = [3, 7]


def number(x):
    if math.isinf(x) or math.isnan(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    return float(f"{x:.9g}")


def tiny_model():
    config = transformers.LlamaConfig(vocab_size=VOCAB, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                                      num_attention_heads=2, eos_token_id=EOS)
    return transformers.LlamaForCausalLM(config)


def processors_of(model, settings, prompt_length, max_length):
    config = GenerationConfig(eos_token_id=EOS, **settings)
    for key, value in GenerationConfig._get_default_generation_params().items():
        if getattr(config, key, None) is None:
            setattr(config, key, value)
    config.max_length = max_length
    if config.min_new_tokens is not None:  # as generate() prepares it
        config.min_length = config.min_new_tokens + prompt_length
    model._prepare_special_tokens(config, False, device="cpu")
    return model._get_logits_processor(config, prompt_length, encoder_input_ids=None, device="cpu", model_kwargs={})


def processors(model, generator):
    long = [5, 1, 2, 9, 5, 1, 2, 4, 5, 1]
    rows = [
        ({"repetition_penalty": 1.3}, long, 6, 30),
        ({"repetition_penalty": 0.7}, long, 6, 30),
        ({"no_repeat_ngram_size": 1}, long, 6, 30),
        ({"no_repeat_ngram_size": 2}, long, 6, 30),
        ({"no_repeat_ngram_size": 3}, long, 6, 30),
        ({"no_repeat_ngram_size": 12}, long, 6, 30),
        ({"bad_words_ids": [[3], [4], [5, 1, 8], [1, 9], [2, 6], [0, 5, 1, 2, 9, 5, 1, 2, 4, 5, 1, 11]]}, long, 6, 30),
        ({"bad_words_ids": [[5, 1, 10], [1, 12]]}, [5, 1], 2, 30),
        ({"bad_words_ids": [[5, 1, 10], [1, 12]]}, [1], 1, 30),
        ({"min_new_tokens": 5}, long, 6, 30),
        ({"min_new_tokens": 4}, long, 6, 30),
        ({"min_length": 11}, long, 6, 30),
        ({"min_length": 10}, long, 6, 30),
        ({"min_length": 29, "min_new_tokens": 2}, long, 6, 30),
        ({"forced_bos_token_id": 9}, [4], 1, 30),
        ({"forced_bos_token_id": 9}, [4, 5], 1, 30),
        ({"forced_eos_token_id": 7}, long, 6, 11),
        ({"forced_eos_token_id": [3, 7]}, long, 6, 11),
        ({"forced_eos_token_id": 7}, long, 6, 12),
        ({"forced_eos_token_id": 7, "min_new_tokens": 5}, long, 6, 11),
        ({"forced_bos_token_id": 9, "forced_eos_token_id": 7}, [4], 1, 2),
        ({"exponential_decay_length_penalty": [2, 1.5]}, long, 6, 30),
        ({"exponential_decay_length_penalty": [4, 1.5]}, long, 6, 30),
        ({"exponential_decay_length_penalty": [1, 1.1], "min_new_tokens": 9}, long, 6, 30),
        ({"suppress_tokens": [1, 7, 20]}, long, 6, 30),
        ({"begin_suppress_tokens": [1, 20]}, long, 10, 30),
        ({"begin_suppress_tokens": [1, 20]}, long, 9, 30),
        ({"begin_suppress_tokens": [1, 20], "forced_bos_token_id": 9}, [4, 9], 1, 30),
        ({"sequence_bias": [[[4], 2.5], [[5, 1, 8], -3.0], [[1, 8], 1.25], [[2, 8], 9.0], [[1], -4.0]]}, long, 6, 30),
        ({"sequence_bias": [[[5], 6.0], [[1], -6.0]], "repetition_penalty": 1.5}, long, 6, 30),
        ({"remove_invalid_values": True, "suppress_tokens": [2], "no_repeat_ngram_size": 1}, long, 6, 30),
        ({"repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "bad_words_ids": [[8], [1, 6]], "min_new_tokens": 6,
          "suppress_tokens": [0], "sequence_bias": [[[10], 3.0]], "exponential_decay_length_penalty": [1, 1.2]},
         long, 6, 30),
    ]
    cases = []
    for settings, history, prompt, max_length in rows:
        logits = 3 * torch.randn(1, VOCAB, generator=generator)
        if settings.get("remove_invalid_values"):
            logits[0, 11], logits[0, 12], logits[0, 13] = math.nan, math.inf, -math.inf
        run = processors_of(model, settings, prompt, max_length)
        scores = run(torch.tensor([history]), logits.clone())
        cases.append({"settings": settings, "history": history, "prompt": prompt, "max_length": max_length,
                      "logits": [number(x) for x in logits[0].tolist()],
                      "scores": [number(x) for x in scores[0].tolist()]})
    return cases


def warpers(model, generator):
    rows = [{}, {"temperature": 0.5}, {"temperature": 1.7}, {"top_k": 1}, {"top_k": 5}, {"top_k": 24}, {"top_k": 100},
            {"top_p": 0.1}, {"top_p": 0.5}, {"top_p": 0.9}, {"top_p": 0.99}, {"top_p": 0.0}, {"min_p": 0.02},
            {"min_p": 0.3}, {"min_p": 1.0}, {"typical_p": 0.2}, {"typical_p": 0.7}, {"typical_p": 0.95},
            {"epsilon_cutoff": 0.01}, {"epsilon_cutoff": 0.9}, {"eta_cutoff": 0.02}, {"eta_cutoff": 0.5},
            {"temperature": 0.6, "top_k": 8, "top_p": 0.9}, {"temperature": 1.5, "top_k": 12, "min_p": 0.1},
            {"top_p": 0.95, "typical_p": 0.8}, {"epsilon_cutoff": 0.02, "eta_cutoff": 0.05},
            {"temperature": 1.3, "top_k": 15, "top_p": 0.97, "min_p": 0.02, "typical_p": 0.9, "epsilon_cutoff": 0.01,
             "eta_cutoff": 0.01},
            {"repetition_penalty": 1.4, "temperature": 0.8, "top_p": 0.8}]
    history = [5, 1, 2, 9, 5]
    cases = []
    for settings in rows:
        for scale in (1.0, 3.0):
            logits = scale * torch.randn(1, VOCAB, generator=generator)
            given = {"top_k": 0, **settings}
            run = processors_of(model, {"do_sample": True, **given}, 3, 30)
            p = run(torch.tensor([history]), logits.clone()).double().softmax(-1)[0]
            cases.append({"settings": {"do_sample": True, **given}, "history": history, "prompt": 3, "max_length": 30,
                          "logits": [number(x) for x in logits[0].tolist()],
                          "probabilities": [number(x) for x in p.tolist()]})
    return cases


def generate(model, tokenizer):
    prompts = ["Once upon a time", "The robot", "A girl named", "In the morning the old man walked to the"]
    greedy = [
        {}, {"repetition_penalty": 1.3, "max_new_tokens": 48}, {"repetition_penalty": 3.0}, {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2, "max_new_tokens": 48}, {"no_repeat_ngram_size": 3, "max_new_tokens": 48},
        {"bad_words_ids": [tokenizer.encode(" the"), tokenizer.encode(" and"), tokenizer.encode(" was a")]},
        {"suppress_tokens": [tokenizer.encode(" a")[0]], "begin_suppress_tokens": [tokenizer.encode(" there")[0]]},
        {"forced_eos_token_id": 0}, {"exponential_decay_length_penalty": [3, 1.4]},
        {"sequence_bias": [[tokenizer.encode(" lamp"), 4.0]]}, {"stop_strings": [" the", "a st"]},
        {"max_length": 15, "max_new_tokens": None},
    ]
    beams = [
        {"num_beams": 2}, {"num_beams": 4}, {"num_beams": 3, "length_penalty": 0.0}, {"num_beams": 3, "length_penalty": 2.5},
        {"num_beams": 3, "length_penalty": -1.0, "early_stopping": True}, {"num_beams": 4, "early_stopping": True},
        {"num_beams": 3, "early_stopping": "never", "length_penalty": 1.5}, {"num_beams": 3, "no_repeat_ngram_size": 1},
        {"num_beams": 3, "repetition_penalty": 1.5}, {"num_beams": 3, "repetition_penalty": 1.5, "renormalize_logits": True},
        {"num_beams": 3, "min_new_tokens": 6, "eos_token_id": [0, tokenizer.encode(" the")[0], tokenizer.encode(".")[0]]},
        {"num_beams": 3, "eos_token_id": [0, tokenizer.encode(" the")[0], tokenizer.encode(".")[0]], "early_stopping": True},
        {"num_beams": 3, "eos_token_id": [0, tokenizer.encode(".")[0]], "length_penalty": 3.0, "early_stopping": "never"},
    ]
    cases = []
    for settings in greedy + beams:
        for prompt in prompts:
            ids = tokenizer(prompt, return_tensors="pt").input_ids
            given = {"max_new_tokens": 16, "do_sample": False, **settings}
            given = {k: v for k, v in given.items() if v is not None}
            extra = {"tokenizer": tokenizer} if "stop_strings" in settings else {}
            out = model.generate(ids, attention_mask=torch.ones_like(ids), return_dict_in_generate=True,
                                 output_scores=True, generation_config=GenerationConfig(pad_token_id=0, **{"eos_token_id": 0, **given}), **extra)
            new = out.sequences[0, ids.shape[1]:].tolist()
            case = {"settings": given, "prompt": ids[0].tolist(), "ids": new}
            if settings.get("num_beams", 1) == 1:
                two = [s[0].topk(2).values.tolist() for s in out.scores]
                case["gap"] = number(min(min(a - b, 1e9) for a, b in two))
            cases.append(case)
    return cases


def perplexity(model, tokenizer):
    ids = tokenizer((ROOT / "examples/demo-model/stories.txt").read_text()[:12000], return_tensors="pt").input_ids
    cases = []
    for window, stride in ((128, 128), (200, 64), (512, 512), (64, 1)):
        total, count, end_before = 0.0, 0, 0
        some = ids[:, :200] if stride == 1 else ids
        for begin in range(0, some.shape[1], stride):
            end = min(begin + window, some.shape[1])
            labels = some[:, begin:end].clone()
            labels[:, :-(end - end_before)] = -100
            with torch.no_grad():
                logits = model(some[:, begin:end]).logits.double()
            kept = labels[0, 1:] != -100
            logp = logits[0, :-1].log_softmax(-1).gather(1, some[0, begin + 1:end, None])[:, 0]
            total -= logp[kept].sum().item()
            count += int(kept.sum())
            end_before = end
            if end == some.shape[1]:
                break
        cases.append({"window": window, "stride": stride, "tokens": some.shape[1], "scored": count,
                      "loss": number(total / count)})
    return {"characters": 12000, "ids": ids.shape[1], "cases": cases}


def main():
    generator = torch.Generator().manual_seed(7)
    tiny = tiny_model()
    folder = ROOT / "examples/demo-model"
    demo = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    demo.generation_config = GenerationConfig(eos_token_id=0, pad_token_id=0)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    data = {"transformers": transformers.__version__, "eos_token_id": EOS, "processors": processors(tiny, generator),
            "warpers": warpers(tiny, generator), "generate": generate(demo, tokenizer),
            "perplexity": perplexity(demo, tokenizer)}
    lines = [f'"{k}": ' + ("[\n" + ",\n".join(json.dumps(c) for c in v) + "\n]" if isinstance(v, list) and isinstance(v[0], dict)
                           else json.dumps(v)) for k, v in data.items()]
    (ROOT / "tests/data/generation.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
