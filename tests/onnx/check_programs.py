#!/usr/bin/env python3
"""onnxruntime reads what Cairn wrote:  tests/onnx/check_programs.py [BUILD]

The network of the course's example has the same accuracy there as here. Models that `cairn convert` wrote give Cairn's
results, for several sizes of the batch and lengths of the text, and become the same model files again. Prints what
failed, and as its last line "N passed, M failed". Needs the packages onnx, onnxruntime and numpy.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
passed = failed = 0


def check(ok, what, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAILED {what}: {str(detail)[-1500:]}")


def run(program, *words, cwd):
    result = subprocess.run([BUILD / program, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=600)
    check(result.returncode == 0, f"{program} {' '.join(map(str, words))}", result.stdout + result.stderr)
    return result.stdout


def session(path):
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def check_example(folder):
    text = run("example_14_onnx", ROOT / "examples" / "09_segments.safetensors", folder, cwd=folder)
    data = numpy.load(folder / "letters.npz")
    answers = session(folder / "letters.onnx").run(None, {"input": data["x"]})[0].argmax(1)
    right = int((answers == data["y"]).sum())
    claimed = re.search(r"loaded again, reads (\d+)", text)
    check(claimed and int(claimed[1]) == right, f"onnxruntime reads {right} letters, as the example says", text)


def results(folder, path, name, array):
    """Of Cairn, by the command."""
    numpy.save(folder / "in.npy", array)
    run("cairn", "run", path, "--input", f"{name}=in.npy", "--output", "out.npy", "--quiet", cwd=folder)
    return numpy.load(folder / "out.npy")


def check_model(folder, checkpoint, arrays):
    """To ONNX, in onnxruntime, and back."""
    run("cairn", "convert", checkpoint, "model.onnx", "--force", cwd=folder)
    model = session(folder / "model.onnx")
    name = model.get_inputs()[0].name
    for array in arrays:
        theirs, ours = model.run(None, {name: array})[0], results(folder, "model.onnx", name, array)
        far = float(numpy.abs(theirs - ours).max())
        check(theirs.shape == ours.shape and far < 1e-5, f"{checkpoint} {array.shape}", far)
    run("cairn", "convert", "model.onnx", "back.safetensors", "--force", cwd=folder)


def check_gpt(folder):
    (folder / "text.txt").write_text("the cat sees milk.\n" * 200)
    run("cairn", "train", "gpt", "--data", "text.txt", "--layers", 2, "--heads", 2, "--width", 32, "--context", 32,
        "--steps", 5, "--out", "gpt", "--quiet", cwd=folder)
    rng = numpy.random.default_rng(1)
    check_model(folder, "gpt", [rng.integers(0, 256, shape) for shape in [(1, 1), (2, 8), (3, 17), (1, 32), (4, 7)]])
    words = ["--prompt", "the ", "--tokens", 30, "--seed", 1]
    own, back = (run("cairn", "generate", path, *words, cwd=folder) for path in ("gpt", "back.safetensors"))
    check(own == back, "the GPT writes the same after a round trip", back)


def check_mlp(folder):
    rng = numpy.random.default_rng(2)
    rows = rng.normal(size=(200, 2))
    table = "".join(f"{a},{b},{'in' if a * a + b * b < 1 else 'out'}\n" for a, b in rows)
    (folder / "table.csv").write_text("a,b,where\n" + table)
    run("cairn", "train", "mlp", "--data", "table.csv", "--target", "where", "--classes", "--epochs", 3, "--out", "mlp",
        "--quiet", cwd=folder)
    check_model(folder, "mlp", [rng.normal(size=(n, 2)).astype("float32") for n in (1, 2, 9)])
    check(run("cairn", "eval", "mlp", "--data", "table.csv", cwd=folder)
          == run("cairn", "eval", "back.safetensors", "--data", "table.csv", cwd=folder), "the MLP measures the same")


def main():
    for part in (check_example, check_gpt, check_mlp):
        with tempfile.TemporaryDirectory(prefix="cairn_onnx_") as folder:
            try:
                part(Path(folder))
            except Exception as error:
                check(False, f"{part.__name__}: {type(error).__name__}", error)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
