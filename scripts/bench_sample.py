#!/usr/bin/env python3
"""Measures sampling with a KV cache in Cairn and PyTorch in turn: tokens per second of one sequence, gpt-small shape.

    scripts/bench_sample.py [--rounds 5] [--tokens 200] [--threads 2]

Needs build/bench_sample (make build) and, for the comparison, PyTorch below .venv/torch (scripts/peers.sh).
"""
import argparse
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def rate(command):
    """The median rate that a program prints: `name best median`."""
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    return float(run.stdout.split()[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    common = ["--tokens", options.tokens, "--threads", options.threads, "--rounds", 3]
    programs = {"Cairn": [ROOT / "build/bench_sample", *common]}
    python = ROOT / ".venv/torch/bin/python"
    peer = [python, ROOT / "bench/peers/sample_torch.py", *common]
    if python.exists():
        programs["PyTorch"] = peer
    else:
        print("PyTorch is not installed in .venv/torch (scripts/peers.sh installs it): measuring Cairn only")
    rates = {name: [] for name in programs}
    for number in range(options.rounds):
        for name, command in programs.items():
            rates[name].append(rate(command))
        print(f"round {number + 1}: " + ", ".join(f"{name} {rates[name][-1]:.0f}" for name in programs), flush=True)
    for name in programs:
        print(f"{name:<10} {statistics.median(rates[name]):6.0f} tokens per second (median of {options.rounds})")
    if "PyTorch" in programs:
        ratios = [ours / theirs for ours, theirs in zip(rates["Cairn"], rates["PyTorch"])]
        print(f"Cairn / PyTorch {statistics.median(ratios):.2f} (rounds {min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    sys.exit(main())
