#!/usr/bin/env python3
"""Checks ONNX files that Cairn wrote, with the onnx package and onnxruntime.

    .venv/onnx/bin/python tests/onnx/check_written.py BUILD [--models DIR] [--cases DIR] [--keep DIR]

BUILD has tests/test_onnx_write and tests/test_onnx_operators (build or build/debug). These programs write modules and
operators as files, and beside each its inputs and Cairn's results. Every file must pass onnx.checker with full_check, and
onnxruntime must give Cairn's results up to 1e-5 (halves: 1e-3).

--models DIR, --cases DIR: models of other programs and cases of the node suite, as make_models.py and make_cases.py leave
them. Cairn reads and writes those that have weights: as they were read, with their weights in another file, and from the
operators that a forward calls. onnxruntime must give the same for the old and the new file, up to 1e-5. A model that
Cairn refuses to trace, or for which onnxruntime has no kernel then, is listed and is no failure.

Needs no network. The last line is "N passed, M failed"; the exit code is 1 if anything failed.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

TOLERANCE, HALF_TOLERANCE = 1e-5, 1e-3
DFT_TOLERANCE = 5e-4  # onnxruntime sums a transform of 450 elements with an error of 2e-4
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
options.intra_op_num_threads = 1
passed = failed = 0


def check(ok, words):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAILED", words)


def run(path, feeds):
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x for i, x in zip(session.get_inputs(), feeds)})


def distance(want, got):
    """The largest difference, relative to the largest number above 1; or what else differs."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{want.dtype}{list(want.shape)} became {got.dtype}{list(got.shape)}"
    if want.size == 0 or want.dtype.kind in "USO":
        return 0.0
    a, b = want.astype(np.float64), got.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.abs(a[np.isfinite(a)])
    scale = max(1.0, finite.max() if finite.size else 1.0)
    return float(np.max(np.abs(np.where(same, 0, a) - np.where(same, 0, b))) / scale)


def compare(want, got, tolerance=TOLERANCE):
    """None, or what is wrong."""
    for i, (a, b) in enumerate(zip(want, got)):
        d = distance(a, b)
        if isinstance(d, str) or not d <= (HALF_TOLERANCE if a.dtype == np.float16 else tolerance):
            return f"result {i} differs: {d}"
    return None if len(want) == len(got) else f"{len(want)} results became {len(got)}"


def numbers_of(path):
    return sorted(path.parent.glob(path.stem + ".npz")) + sorted(path.parent.glob(path.stem + "@*.npz"))


def listed(stored, kind):
    return [stored[f"{kind}_{i}"] for i in range(100) if f"{kind}_{i}" in stored]


def check_written(path):
    try:
        onnx.checker.check_model(str(path), full_check=True)
        transforms = any(n.op_type == "DFT" for n in onnx.load(path, load_external_data=False).graph.node)
        for numbers in numbers_of(path):
            stored = np.load(numbers)
            got = run(path, listed(stored, "in"))
            wrong = compare(listed(stored, "out"), got, DFT_TOLERANCE if transforms else TOLERANCE)
            check(not wrong, f"{numbers.stem}: {wrong}")
    except Exception as e:
        check(False, f"{path.stem}: {' '.join(str(e).split())[:300]}")


def check_program(program, folder):
    """What a test program leaves in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    result = subprocess.run([program, folder], capture_output=True, text=True)
    check(result.returncode == 0, f"{program.name}: {result.stdout[-1000:]}")
    files = sorted(folder.glob("*.onnx"))
    check(len(files) > 50, f"{program.name} wrote {len(files)} files")
    for path in files:
        check_written(path)
    print(f"{program.name}: {len(files)} files")


def inputs_of(folder):
    """The inputs of a case, or None if one of them is no tensor."""
    feeds = []
    for i in range(100):
        path = folder / f"input_{i}.pb"
        if not path.exists():
            return feeds
        try:
            feeds.append(numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())))
        except Exception:
            return None


def cases_with_weights(root):
    for folder in sorted(p for p in root.iterdir() if (p / "model.onnx").exists()):
        graph = onnx.load(folder / "model.onnx").graph
        feeds = inputs_of(folder)
        constants = any(n.op_type == "Constant" for n in graph.node)
        if (graph.initializer or constants) and feeds:
            try:
                yield folder.name, folder / "model.onnx", feeds, run(folder / "model.onnx", feeds)
            except Exception:
                pass  # onnxruntime cannot run the old file


def check_others(program, root, kind, folder):
    """Files of other programs, read and written by Cairn."""
    folder.mkdir(parents=True, exist_ok=True)
    cases, lines = list(cases_with_weights(root)), []
    for name, path, feeds, _ in cases:
        np.savez(folder / f"{name}.npz", **{f"in_{i}": x for i, x in enumerate(feeds)})
        lines += [f"{how} {path} {folder / f'{name}.{how}.onnx'} {folder / f'{name}.npz'}"
                  for how in ("as_read", "apart", "traced")]
    (folder / "list").write_text("\n".join(lines) + "\n")
    result = subprocess.run([program, "--again", folder / "list"], capture_output=True, text=True)
    answers, refused, good = result.stdout.splitlines(), [], {"as_read": 0, "apart": 0, "traced": 0}
    check(len(answers) == len(lines), f"{kind}: {len(answers)} answers for {len(lines)} files: {result.stderr[-300:]}")
    for line, answer in zip(lines, answers):
        how, _, new, _ = line.split()
        name, _, feeds, want = next(c for c in cases if Path(new).name == f"{c[0]}.{how}.onnx")
        if answer != "written" and how == "traced":
            refused.append(f"{name}: {answer[:200]}")
            continue
        wrong = None if answer == "written" else answer
        try:
            wrong = wrong or compare(want, run(new, feeds))
        except Exception as e:
            wrong = " ".join(str(e).split())[:300]
        if wrong and how == "traced" and "NOT_IMPLEMENTED" in wrong:
            refused.append(f"{name}: {wrong}")
            continue
        check(not wrong, f"{kind} {name}, {how}: {wrong}")
        good[how] += not wrong
    print(f"{kind}: {len(cases)} with weights; {good['as_read']} written as read, {good['apart']} with weights apart, "
          f"{good['traced']} traced, {len(refused)} not")
    for line in refused:
        print("  not traced", line)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--models", type=Path)
    p.add_argument("--cases", type=Path)
    p.add_argument("--keep", help="leave the files in this folder")
    given = p.parse_args()
    tests = Path(given.build).resolve() / "tests"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given.keep or temporary).resolve()
        check_program(tests / "test_onnx_write", folder / "modules")
        check_program(tests / "test_onnx_operators", folder / "operators")
        if given.models:
            check_others(tests / "test_onnx_write", given.models.resolve(), "models", folder / "models")
        if given.cases:
            check_others(tests / "test_onnx_write", given.cases.resolve(), "cases", folder / "cases")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
