#!/usr/bin/env python3
"""Ours and llama.cpp on the same GGUF files, turn by turn, on the CPU of this machine.

    bench/cpu_peers.py --ours build/release/hierarchos --llama-bench PATH --threads 2 --out bench/results/cpu.md FILE.gguf …

Each round runs ours, then llama-bench, so that both see the same neighbours. The table has the median of the rounds and,
before the rounds, the rate at which `read_bandwidth` reads memory (built beside hierarchos). Nothing else should run.
"""
import argparse
import datetime
import json
import pathlib
import platform
import statistics
import subprocess


def run_ours(binary, model, args):
    out = subprocess.run(
        [binary, "bench", "--model", model, "--device", "cpu", "--threads", str(args.threads), "--prompt",
         str(args.prompt), "--new", str(args.new), "--repeats", "2", "--json"], check=True, capture_output=True, text=True)
    report = json.loads(out.stdout)
    return report["prefill_tokens_per_s"], report["decode_tokens_per_s"], report["weight_bytes"]


def run_peer(binary, model, args):
    out = subprocess.run(
        [binary, "-m", model, "-p", str(args.prompt), "-n", str(args.new), "-t", str(args.threads), "-ngl", "0", "-r", "2",
         "-o", "json"], check=True, capture_output=True, text=True)
    prefill = decode = 0.0
    for row in json.loads(out.stdout):
        if row["n_gen"] == 0:
            prefill = row["avg_ts"]
        else:
            decode = row["avg_ts"]
    return prefill, decode


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", default="build/release/hierarchos")
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", help="file for the table; standard output without it")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()

    bandwidth = subprocess.run([str(pathlib.Path(args.ours).parent / "read_bandwidth"), str(args.threads)], check=True,
                               capture_output=True, text=True).stdout.strip()
    lines = [f"# Decoders on the CPU: {processor()}, {args.threads} threads", "",
             f"{datetime.date.today()}, prompt {args.prompt}, then {args.new} tokens; llama-bench writes its tokens behind an "
             f"empty prompt, ours behind the prompt. Medians of {args.rounds} rounds, turn by turn. {bandwidth}", "",
             "| model | prefill: ours | llama.cpp | ratio | decode: ours | llama.cpp | ratio | weights read, GB/s |",
             "|---|---|---|---|---|---|---|---|"]
    for model in args.models:
        ours, peer = [], []
        for _ in range(args.rounds):
            ours.append(run_ours(args.ours, model, args))
            peer.append(run_peer(args.llama_bench, model, args))
        read, write, weights = (statistics.median(column) for column in zip(*ours))
        peer_read, peer_write = (statistics.median(column) for column in zip(*peer))
        lines.append(f"| {pathlib.Path(model).name} | {read:.0f} | {peer_read:.0f} | {read / peer_read:.2f} | {write:.1f} | "
                     f"{peer_write:.1f} | {write / peer_write:.2f} | {write * weights / 1e9:.1f} |")
        print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    if args.out:
        pathlib.Path(args.out).write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
