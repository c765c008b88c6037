#!/usr/bin/env python3
"""Performs the walk-through of docs/add-an-operator.md on a copy of the tree:  tests/test_walkthrough.py

Applies every code block of the page in its order, and runs the commands of every `sh` block. A line before the block
says where its text goes:

    Create `FILE`:    Append to `FILE`:    In `FILE`, below `LINE`:    In `FILE`, above `LINE`:    It prints:

LINE is a part of exactly one line of the file. "It prints:" introduces the output of the commands before it. Blocks
without a language are not part of the walk-through. The copy is built without optimisation, which takes less time.
Commands for a GPU run if scripts/gpu.sh has installed software GPUs below build/.

Prints what failed, and as its last line "N passed, M failed".
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("CAIRN_BUILD", ROOT / "build"))
PAGE = ROOT / "docs" / "add-an-operator.md"
PLACES = [("create", re.compile(r"Create `([^`]+)`:")), ("append", re.compile(r"Append to `([^`]+)`:")),
          ("below", re.compile(r"In `([^`]+)`, below `([^`]+)`:")),
          ("above", re.compile(r"In `([^`]+)`, above `([^`]+)`:")), ("prints", re.compile(r"It prints:"))]
passed = failed = skipped = 0


def check(ok, what, detail=""):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what}\n    {str(detail)[-3000:]}")
    return ok


def read_blocks(page):
    """The blocks of the page: (language, text, the line before the block)."""
    blocks, lines, before = [], iter(page.read_text().splitlines()), ""
    for line in lines:
        if line.startswith("```"):
            text = []
            for inner in lines:
                if inner == "```":
                    break
                text.append(inner)
            blocks.append((line[3:], "\n".join(text) + "\n", before))
        elif line:
            before = line
    return blocks


def place_of(line):
    for kind, pattern in PLACES:
        found = pattern.fullmatch(line)
        if found:
            return kind, found.groups()
    return None, ()


def apply_text(copy, kind, names, text):
    """Writes the text of a block into the copy. Returns what is wrong, or None."""
    file = copy / names[0]
    if kind == "create":
        if file.exists():
            return f"{names[0]} exists already"
        file.write_text(text)
        return None
    if not file.exists():
        return f"there is no {names[0]}"
    lines = file.read_text().splitlines(keepends=True)
    at = len(lines)
    if kind != "append":
        found = [i for i, line in enumerate(lines) if names[1] in line]
        if len(found) != 1:
            return f"{names[0]}: {len(found)} lines contain {names[1]!r}, there must be one"
        at = found[0] + (kind == "below")
    file.write_text("".join(lines[:at]) + text + "".join(lines[at:]))
    return None


def copy_tree(copy):
    """Copies the files of the tree, without what git ignores."""
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                             capture_output=True, text=True)
    if listing.returncode:  # not a git checkout
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("build", ".git", ".venv"), dirs_exist_ok=True)
        return
    for name in filter(None, listing.stdout.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)


def configure(copy):
    env = {**os.environ, "CCACHE_BASEDIR": str(copy), "CCACHE_NOHASHDIR": "1"}
    if shutil.which("ccache"):
        env.setdefault("CMAKE_C_COMPILER_LAUNCHER", "ccache")
    result = subprocess.run(["cmake", "--preset", "release", "-Wno-dev", "-DCMAKE_BUILD_TYPE=Debug",
                             "-DCMAKE_C_FLAGS_DEBUG=-O0"], cwd=copy, env=env, capture_output=True, text=True)
    check(result.returncode == 0, "cmake --preset release", result.stdout + result.stderr)
    return env


def run_commands(copy, env, commands):
    """Runs each line. Returns the output of the last one, or None if one failed."""
    global skipped
    out = ""
    for line in commands.splitlines():
        if "gpu" in line:
            if not (BUILD / "gpu" / "env.sh").exists():
                skipped += 1
                continue
            line = line.replace(". build/gpu/env.sh", f". '{BUILD}/gpu/env.sh'")
        result = subprocess.run(["bash", "-c", line], cwd=copy, env=env, capture_output=True, text=True,
                                errors="replace", stdin=subprocess.DEVNULL)
        out = result.stdout
        if not check(result.returncode == 0, line, out + result.stderr):
            return None
        if "build/tests/" in line:  # a name that no operator has would pass with nothing tested
            last = out.rstrip().splitlines()[-1]
            check(re.match(r"[1-9]\d* passed, 0 failed", last), f"{line} tests something", last)
    return out


def perform(copy):
    """The walk-through, up to the first block that fails."""
    blocks = read_blocks(PAGE)
    env, out = configure(copy), ""
    for language, text, before in blocks:
        kind, names = place_of(before)
        if language == "":
            continue
        if language == "sh":
            out = run_commands(copy, env, text)
            if out is None:
                return
        elif kind == "prints":
            check(out == text, "the program prints what the page says", out)
        else:
            error = apply_text(copy, kind, names, text) if kind else "no line before the block says where it goes"
            if not check(not error, before, error):
                return
    new = [names[0] for _, _, before in blocks for kind, names in [place_of(before)] if kind == "create"]
    check(len(new) >= 3, "the page creates files", new)
    written = (copy / "docs" / "operators.md").read_text()
    for call in ("`exp10(Tensor input) -> Tensor`", "`unit_rows(Tensor input, float eps=1e-12) -> Tensor`"):
        check(call in written, f"docs/operators.md has {call}")


def main():
    with tempfile.TemporaryDirectory(prefix="cairn_walk_") as folder:
        copy_tree(Path(folder))
        perform(Path(folder))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
