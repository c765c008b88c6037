"""Runs PyTorch scripts with PyTorch and with Cairn's Python package, and compares the numbers they print.

    scripts/parity/scripts.py FOLDER [NAME ...] [--torch PYTHON] [--cairn PYTHON] [--rows]

FOLDER has a folder for each script; NAME selects some. A file `command` in it has one command a line: the script and its
arguments. FOLDER/prepare.py, if there is one, is called with the name of the script in the place where the script will
run, to write the data that the script reads. Nothing is written to FOLDER.

For Cairn, lines that import torch or torchvision are changed, and those that a file `changes` beside the script names,
as "old text => new text". Both sides get the same weights and the same
random numbers: every parameter is drawn again before the first call of its module, by same_draws.py, which also replaces
randn and its kin and turns dropout off. Two numbers are the same if they differ by less than 1e-4, or by that share, or
by one in the last printed digit.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
IMPORT = re.compile(r"^(\s*)(import|from)(\s+)(torchvision|torch|einops)\b(?!_)(.*)$")
PACKAGES = {"torch": "cairn", "torchvision": "cairn.vision", "einops": "cairn.einops"}
NUMBER = re.compile(r"[-+]?(?:\d+\.\d+(?:[eE][-+]?\d+)?|\binf\b|\bnan\b|\d+)")
TIME = re.compile(r"ms/batch\s+[\d.]+|time:\s*[\d.]+s?|[\d.]+\s*(?:ms|s|seconds|sec)\b")
TOLERANCE = 1e-4


def rewrite(line):
    """The line for Cairn."""
    found = IMPORT.match(line)
    if not found:
        return line
    indent, word, space, package, rest = found.groups()
    new = PACKAGES[package]
    if word == "import" and " as " not in rest:  # it binds the name of the package
        named, comma, others = rest.partition(",")
        parts = f", {new}{named.rstrip()}" if named.strip() else ""
        rest = f" as {package}{parts}{comma}{others}" if parts or comma else f" as {package}{rest}"
    return f"{indent}{word}{space}{new}{rest}"


def copy(source, target, change):
    """Copies a script; returns how many lines that import were changed, and how many others."""
    shutil.copytree(source, target)
    listed = target / "changes"
    others = [line.split(" => ") for line in listed.read_text(encoding="utf-8").splitlines()] if listed.exists() else []
    imports = more = 0
    for path in target.rglob("*.py") if change else ():
        old = path.read_text(encoding="utf-8").split("\n")
        new = [rewrite(line) for line in old]
        imports += sum(a != b for a, b in zip(old, new))
        for i, line in enumerate(new):
            for text, instead in others:
                if text in line:
                    new[i] = line.replace(text, instead)
                    more += 1
        path.write_text("\n".join(new), encoding="utf-8")
    return f"{imports} + {more}" if more else str(imports)


def run(python, framework, folder, command, seconds):
    words = [python, HERE / "same_draws.py", framework, *command.split()]
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "2"}
    try:
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, f"more than {seconds} s"
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no message"])[-1] + location(done.stderr, folder)
    return done.stdout, ""


def location(trace, folder):
    """The last line of the script itself in a traceback."""
    lines = re.findall(rf'File "{re.escape(str(folder))}/([^"]+)", line (\d+)', trace)
    return f" ({lines[-1][0]}:{lines[-1][1]})" if lines else ""


def numbers(text):
    return NUMBER.findall(TIME.sub("", text))


def differ(ours, theirs):
    a, b = float(ours), float(theirs)
    digits = len(theirs.partition(".")[2]) if "." in theirs and "e" not in theirs.lower() else 99
    return not (a == b or (a != a and b != b) or abs(a - b) <= max(TOLERANCE * max(1, abs(a), abs(b)), 1.01 * 10**-digits))


def compare(ours, theirs):
    """What differs; "" if nothing does."""
    mine, other = numbers(ours), numbers(theirs)
    if len(mine) != len(other):
        return f"{len(mine)} numbers printed, not {len(other)}"
    wrong = [(i, a, b) for i, (a, b) in enumerate(zip(mine, other)) if differ(a, b)]
    if wrong:
        i, a, b = wrong[0]
        return f"{len(wrong)} of {len(mine)} numbers differ; number {i + 1} is {a}, not {b}"
    return ""


def check(folder, name, options):
    """(command, lines changed, numbers compared, what differs) of each command of a script."""
    with tempfile.TemporaryDirectory(prefix="cairn_scripts_") as scratch:
        places = {}
        for framework in ("torch", "cairn"):
            place = places[framework] = Path(scratch, framework, name)
            changed = copy(folder / name, place, framework == "cairn")
            if (folder / "prepare.py").exists():
                subprocess.run([options.torch, folder / "prepare.py", name], cwd=place, check=True)
        for command in (folder / name / "command").read_text(encoding="utf-8").splitlines():
            theirs, error = run(options.torch, "torch", places["torch"], command, options.seconds)
            if error:
                yield command, changed, 0, "with PyTorch: " + error
                continue
            ours, error = run(options.cairn, "cairn", places["cairn"], command, options.seconds)
            yield command, changed, len(numbers(theirs)), error or compare(ours, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--torch", default=ROOT / ".venv" / "torch" / "bin" / "python", help="a Python with PyTorch")
    parser.add_argument("--cairn", default=sys.executable, help="a Python with Cairn's package")
    parser.add_argument("--seconds", type=int, default=600, help="the most that a script may take")
    parser.add_argument("--rows", action="store_true", help="print rows of a table, as in docs/python-scripts.md")
    options = parser.parse_args()
    folder = options.folder.resolve()
    failed = 0
    for name in options.names or sorted(path.parent.name for path in folder.glob("*/command")):
        for command, changed, count, problem in check(folder, name, options):
            failed += bool(problem)
            result = problem or f"{count} numbers agree"
            print(f"| `{name}` | `{command}` | {changed} | {result} |" if options.rows else
                  f"{name}: {command}: {changed} lines changed: {result}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
