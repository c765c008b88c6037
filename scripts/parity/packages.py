"""Runs models of packages from PyPI with PyTorch and with Cairn, and compares their results and gradients.

    scripts/parity/packages.py --fetch FOLDER                 downloads the packages that models.py names, with pip
    scripts/parity/packages.py FOLDER [NAME ...] [--torch PYTHON] [--cairn PYTHON] [--rows]

NAME selects some models of models.py. For Cairn, only lines that import torch, torchvision or einops are changed, by
scripts.py, and `import torch` fails. Both sides have the same weights, through NumPy, the same random numbers, and
dropout off. A tensor agrees if no element differs by more than 1e-4 of its largest element. Of a gradient that is small
everywhere, such as that of a bias before a batch norm, 1e-5 of the model's largest gradient is allowed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import models
import numpy
import scripts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOLERANCE = 1e-4


class Packages:
    """Packages as pip downloaded them, unpacked once for each framework."""

    def __init__(self, archives, scratch):
        self.archives, self.scratch, self.unpacked = archives, Path(scratch), {}

    def archive(self, name):
        wanted = name.replace("-", "_").lower()
        for path in sorted(self.archives.iterdir()):
            found = re.match(r"(.+?)-(\d[^-]*?)(?:-.*\.whl|\.tar\.gz)$", path.name)
            if found and found[1].replace("-", "_").lower() == wanted:
                return path, found[2]
        raise FileNotFoundError(f"{name} is not in {self.archives}; --fetch downloads it")

    def place(self, name, framework):
        """The folder to import the package from, and its version."""
        if (name, framework) not in self.unpacked:
            path, version = self.archive(name)
            folder = self.scratch / framework / name
            if path.suffix == ".whl":
                zipfile.ZipFile(path).extractall(folder)
            else:
                tarfile.open(path).extractall(folder)
                folder = next(p for p in folder.iterdir() if p.is_dir())
                folder = folder / "src" if (folder / "src").is_dir() else folder
            if framework == "cairn" and name not in models.NEUTRAL:
                for source in folder.rglob("*.py"):
                    lines = source.read_text(encoding="utf-8").split("\n")
                    source.write_text("\n".join(map(scripts.rewrite, lines)), encoding="utf-8")
            self.unpacked[name, framework] = folder, version
        return self.unpacked[name, framework]


def run(python, framework, name, packages, work, seconds):
    """The values that the model gave, or what went wrong."""
    needs = [need for need in models.CASES[name].needs if framework == "torch" or need not in models.WITH_TORCH]
    paths = [str(packages.place(need, framework)[0]) for need in needs]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]),
           "OMP_NUM_THREADS": "2"}
    out = work / f"{framework}.npz"
    try:
        done = subprocess.run([python, HERE / "models.py", framework, name, work, out], env=env, cwd=work,
                              capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, f"more than {seconds} s"
    if done.returncode:
        return None, done.stderr.strip() or "no message"
    return dict(numpy.load(out)), ""


def largest(x):
    return numpy.max(numpy.abs(x[numpy.isfinite(x)]), initial=0)


def compare(ours, theirs):
    """What differs; "" if nothing does."""
    if list(ours) != list(theirs):
        return f"{sorted(set(ours) ^ set(theirs))[:4]} are not on both sides"
    most = max((largest(g) for name, g in theirs.items() if name.startswith("grad ")), default=0)
    for name, b in theirs.items():
        a = ours[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{name} is {a.dtype} {a.shape}, not {b.dtype} {b.shape}"
        if a.dtype.kind != "f":
            if not numpy.array_equal(a, b):
                return f"{name} differs in {numpy.sum(a != b)} of {a.size} elements"
            continue
        scale = max(largest(b), 0.1 * most if name.startswith("grad ") else 1e-6)
        if not numpy.allclose(a, b, rtol=0, atol=TOLERANCE * scale, equal_nan=True):
            return f"{name} differs by {numpy.nanmax(numpy.abs(a - b)):.3g} of {scale:.3g}"
    return ""


def check(name, packages, options):
    with tempfile.TemporaryDirectory(prefix="cairn_model_") as work:
        theirs, error = run(options.torch, "torch", name, packages, Path(work), options.seconds)
        if error:
            return 0, "with PyTorch: " + (error if options.trace else error.splitlines()[-1])
        ours, error = run(options.cairn, "cairn", name, packages, Path(work), options.seconds)
        if error:
            return 0, error if options.trace else error.splitlines()[-1]
        return sum(v.size for v in theirs.values()), compare(ours, theirs)


def fetch(folder):
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted({need for case in models.CASES.values() for need in case.needs})
    return subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-d", folder, *names]).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--fetch", action="store_true", help="download the packages")
    parser.add_argument("--torch", default=ROOT / ".venv" / "torch" / "bin" / "python", help="a Python with PyTorch")
    parser.add_argument("--cairn", default=sys.executable, help="a Python with Cairn's package")
    parser.add_argument("--seconds", type=int, default=300, help="the most that a model may take")
    parser.add_argument("--rows", action="store_true", help="print rows of a table, as in docs/python-scripts.md")
    parser.add_argument("--trace", action="store_true", help="print whole tracebacks")
    options = parser.parse_intermixed_args()
    if options.fetch:
        return fetch(options.folder)
    failed = 0
    scratch = tempfile.mkdtemp(prefix="cairn_packages_")
    try:
        packages = Packages(options.folder.resolve(), scratch)
        for name in options.names or models.CASES:
            count, problem = check(name, packages, options)
            failed += bool(problem)
            package = models.CASES[name].needs[0]
            version = packages.place(package, "torch")[1]
            result = problem or f"{count:,} numbers agree"
            print(f"| `{package}` {version} | {models.CASES[name].what} | {result} |" if options.rows else
                  f"{name} ({package} {version}): {result}", flush=True)
    finally:
        shutil.rmtree(scratch)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
