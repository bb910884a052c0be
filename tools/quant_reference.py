#!/usr/bin/env python3
"""Blocks of every GGUF format and what the `gguf` package makes of them: tests/data/quant_blocks.json.

    pip install gguf==0.19.0; python tools/quant_reference.py > tests/data/quant_blocks.json
"""
import json
import sys

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize, quantize

rng = np.random.default_rng(7)
cases = []
for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"):
    kind = T[name]
    elements, size = GGML_QUANT_SIZES[kind]
    block = rng.integers(0, 256, size, dtype=np.uint8)
    # Scales are halves anywhere in the block; a random one may be NaN, so they are set.
    for at in {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,), "Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2)}.get(name, (0,)):
        block[at:at + 2] = np.frombuffer(np.float16(rng.uniform(0.01, 0.2)).tobytes(), np.uint8)
    case = {"type": name, "bytes": block.tolist(), "values": [float(v) for v in dequantize(block[None], kind).reshape(-1)]}
    if name in ("Q4_0", "Q4_1", "Q8_0"):
        source = rng.standard_normal(elements).astype(np.float32)
        case["source"] = [float(v) for v in source]
        case["encoded"] = quantize(source[None], kind).reshape(-1).tolist()
    cases.append(case)
json.dump(cases, sys.stdout)
print()
