"""ONNX models by Cairn and by onnxruntime, in turns: median milliseconds of a forward, and how many times as fast Cairn is.

    python bench/peers/onnx_turns.py build/bench_onnx THREADS ROUNDS FOLDER...

A folder is as tests/onnx/make_models.py writes it. Run it with the Python that has onnxruntime."""

import math
import statistics
import subprocess
import sys
from pathlib import Path


def median_of(command):
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main():
    bench, threads, rounds, folders = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    peer = [sys.executable, str(Path(__file__).parent / "onnx_peer.py"), threads]
    times = {folder: [] for folder in folders}
    for _ in range(rounds):
        for folder in folders:
            times[folder].append((median_of([bench, threads, folder]), median_of([*peer, folder])))
    ratios = []
    for folder, pairs in times.items():
        ratios.append(statistics.median(theirs / ours for ours, theirs in pairs))
        ours, theirs = (statistics.median(each) for each in zip(*pairs))
        print(f"{Path(folder).name:34} {ours:9.3f} {theirs:9.3f} {ratios[-1]:6.2f}")
    print(f"geometric mean {math.exp(statistics.mean(map(math.log, ratios))):.2f}")


if __name__ == "__main__":
    main()
