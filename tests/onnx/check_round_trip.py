"""Checks ONNX files that Cairn wrote, with the onnx package and onnxruntime.

    .venv/onnx/bin/python tests/onnx/check_round_trip.py BUILD_DIR [--models DIR] [--cases DIR] [--keep DIR]

BUILD_DIR has tests/test_onnx_write and tests/test_onnx_operators (build or build/debug). Both programs write files, and
beside each its inputs and Cairn's results, into a temporary folder. Every file must pass onnx.checker.check_model with
full_check, and onnxruntime must give Cairn's results up to 1e-5.

--models DIR: models of other programs (*.onnx, with inputs as make_models.py writes them), --cases DIR: cases of the
node suite (make_cases.py). These are read and written by Cairn: onnxruntime must give the same for both files.
No network is needed. Exit code 1 if anything differs."""
import argparse, pathlib, subprocess, sys, tempfile

import numpy as np
import onnx
import onnxruntime as ort

TOLERANCE = 1e-5
# Operators that onnxruntime does not have for a type, or computes otherwise; checked by onnx.checker alone.
quiet = ort.SessionOptions()
quiet.log_severity_level = 4


def run(path, feeds):
    session = ort.InferenceSession(str(path), quiet, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, {n: feeds[k] for k, n in enumerate(names)})


def distance(want, got):
    """The largest difference, relative to the largest number above 1."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{want.dtype}{list(want.shape)} became {got.dtype}{list(got.shape)}"
    if want.size == 0:
        return 0.0
    a, b = want.astype(np.float64), got.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    d = np.where(same, 0, np.abs(np.where(same, 0, a) - np.where(same, 0, b)))
    finite = np.abs(a[np.isfinite(a)])
    return float(np.max(d) / max(1.0, finite.max() if finite.size else 1.0))


def check_file(path):
    """None, or what is wrong."""
    onnx.checker.check_model(str(path), full_check=True)
    for numbers in sorted(path.parent.glob(path.stem + ".npz")) + sorted(path.parent.glob(path.stem + "@*.npz")):
        stored = np.load(numbers)
        feeds = [stored[f"in_{i}"] for i in range(100) if f"in_{i}" in stored]
        got = run(path, feeds)
        for i, y in enumerate(got):
            d = distance(stored[f"out_{i}"], y)
            if isinstance(d, str) or not d <= TOLERANCE:
                return f"{numbers.name}: result {i} differs: {d}"
    return None


def check_folder(folder, kind):
    good, bad, lacking = 0, [], []
    for path in sorted(folder.glob("*.onnx")):
        try:
            wrong = check_file(path)
        except Exception as e:
            text = str(e).replace("\n", " ")
            if "NOT_IMPLEMENTED" in text:
                lacking.append(f"{path.stem}: {text[:160]}")
                continue
            wrong = text[:300]
        if wrong:
            bad.append(f"{path.stem}: {wrong}")
        else:
            good += 1
    print(f"{kind}: {good} files agree, {len(bad)} do not, {len(lacking)} need kernels that onnxruntime does not have")
    for line in bad:
        print("  FAILED", line)
    for line in lacking:
        print("  no kernel", line)
    return len(bad) + (good == 0)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--models")
    p.add_argument("--cases")
    p.add_argument("--keep", help="write the files here")
    a = p.parse_args()
    tests = pathlib.Path(a.build).resolve() / "tests"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(a.keep or temporary).resolve()
        failed = 0
        for name, kind in (("test_onnx_write", "modules"), ("test_onnx_operators", "operators")):
            into = folder / kind
            into.mkdir(parents=True, exist_ok=True)
            failed += subprocess.run([tests / name, str(into)], stdout=subprocess.DEVNULL).returncode != 0
            failed += check_folder(into, kind)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
