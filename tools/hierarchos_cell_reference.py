#!/usr/bin/env python3
"""Reference values of one Hierarchos cell over 24 tokens, for src/models/hierarchos/cell_test.cpp.

    python tools/hierarchos_cell_reference.py hierarchos_v9_reference.py > tests/data/hierarchos_cell.json

The argument is the float64 reference of Hierarchos coherent-v9 (PyTorch). Weights, inputs and initial states are drawn
from streams that the test draws too (splitmix64 seeded with FNV-1a of a name), so that only results are stored. The loss is
the sum over tokens of y·seed_y plus the sum of the last state's elements times fixed numbers; its gradients are stored as
norms and eight projections on sign vectors.
"""
import importlib.util
import json
import sys

import numpy as np
import torch

MASK = (1 << 64) - 1


def bits(name, n):
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = ((h ^ b) * 0x100000001B3) & MASK
    with np.errstate(over="ignore"):
        z = np.uint64(h) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(name, shape, offset=0.0, scale=1.0):
    n = int(np.prod(shape)) if shape else 1
    u = ((bits(name, n) >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype(np.float64) / (1 << 23)
    return torch.from_numpy((offset + scale * u).astype(np.float32).astype(np.float64)).reshape(shape)


def summary(name, t):
    flat = t.detach().double().reshape(-1).numpy()
    proj = [float(flat @ (1.0 - 2.0 * (bits(f"{name}#{k}", flat.size) >> np.uint64(63)).astype(np.float64))) for k in range(8)]
    return {"name": name, "norm": float(np.linalg.norm(flat)), "proj": proj}


def main():
    spec = importlib.util.spec_from_file_location("reference", sys.argv[1])
    ref = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = ref
    spec.loader.exec_module(ref)
    rows, width, head, tokens = 2, 32, 16, 24
    config = ref.Config(context_dim=width, l_hidden=width, head_h=head, head_l=head)
    shapes = {n[len("h_rnn."):]: s for n, s in ref.tensor_shapes(config).items() if n.startswith("h_rnn.")}
    params = {}
    for name, shape in sorted(shapes.items()):
        offset, scale = 0.0, 0.5
        if len(shape) == 2 and shape[0] > 1:
            scale = 1.5 / shape[1] ** 0.5
        if name.startswith("x_"):
            offset, scale = 0.5, 0.45
        elif name == "w0":
            offset, scale = -2.0, 2.0
        elif name in ("k_k", "k_a") or name.endswith("weight") and name.startswith("ln"):
            offset, scale = 1.0, 0.3
        params["h_rnn." + name] = uniform("cell:" + name, shape, offset, scale).requires_grad_()
    x = uniform("cell:x", (tokens, rows, width), 0, 2.0).requires_grad_()
    mod = uniform("cell:mod", (tokens, rows, 4 * width), 1.0, 4.0).requires_grad_()
    start = {n: uniform("cell:state." + n, (rows, width), 0, 0.5).requires_grad_() for n in ("tm", "cm", "v", "out")}
    start["matrix"] = uniform("cell:state.matrix", (rows, width // head, head, head), 0, 0.5).requires_grad_()
    state = ref.CellState(start["tm"], start["cm"], start["v"], start["out"], start["matrix"])
    ys = []
    for t in range(tokens):
        y, state = ref.cell(params, "h_rnn", config, x[t], state, mod[t])
        ys.append(y)
    ys = torch.stack(ys)
    last = {"tm": state.tm, "cm": state.cm, "v": state.v, "out": state.out, "matrix": state.S}
    loss = (ys * uniform("cell:seed.y", ys.shape)).sum()
    for n, s in last.items():
        loss = loss + (s * uniform("cell:seed." + n, s.shape)).sum()
    loss.backward()
    # "v" and "out" do not reach the next step: their gradients are absent.
    grads = [summary("grad:" + n, p.grad) for n, p in
             [(k[len("h_rnn."):], v) for k, v in params.items()] + [("x", x), ("mod", mod)]
             + [("state." + n, start[n]) for n in ("tm", "cm", "matrix")]]
    json.dump({"rows": rows, "width": width, "head": head, "tokens": tokens, "loss": loss.item(),
               "shapes": {n: list(s) for n, s in sorted(shapes.items())},
               "results": [summary("y", ys)] + [summary("state." + n, s) for n, s in last.items()], "grads": grads},
              sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
