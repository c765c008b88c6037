"""Milliseconds of one forward of ONNX models by onnxruntime: the peer of bench/onnx.c.

    python bench/peers/onnx_peer.py THREADS FOLDER...
"""

import sys
import time
from pathlib import Path

import onnx
import onnxruntime
from onnx import numpy_helper


def main():
    for folder in map(Path, sys.argv[2:]):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(sys.argv[1])
        options.log_severity_level = 3  # warnings cost time
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        feeds = {}
        for i, value in enumerate(onnx.load(folder / "model.onnx").graph.input):
            path = folder / f"input_{i}.pb"
            if path.exists():
                feeds[value.name] = numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
        for _ in range(3):
            session.run(None, feeds)
        times, start = [], time.perf_counter()
        while len(times) < 5 or (time.perf_counter() - start < 1 and len(times) < 2000):
            begin = time.perf_counter()
            session.run(None, feeds)
            times.append(time.perf_counter() - begin)
        times.sort()
        print(f"{folder.name:34} {times[0] * 1e3:9.3f} {times[len(times) // 2] * 1e3:9.3f}", flush=True)


if __name__ == "__main__":
    main()
