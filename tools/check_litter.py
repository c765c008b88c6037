"""Checks that programs have left no files in the tree.

    tools/check_litter.py                  git status is empty
    tools/check_litter.py --record FILE    writes the present state of the tree to FILE
    tools/check_litter.py --since FILE     nothing changed or appeared since FILE was recorded

--since also finds new files that .gitignore names, except those of a build. In all forms, no tracked file may be binary
outside of the folders in BINARY. Exit status 1: litter was found; 77: this is not a git checkout.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINARY = ("tests/reference/", "tests/fuzz/corpus/", "examples/")  # where tracked files may be binary
BUILT = re.compile(r"!! (build/|\.venv/|(.*/)?__pycache__/)")      # ignored files that may appear at any time
NO_CHECKOUT = 77


def git(*arguments):
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def is_checkout():
    try:
        return (ROOT / ".git").exists() and git("rev-parse", "--is-inside-work-tree").strip() == "true"
    except (OSError, subprocess.CalledProcessError):
        return False


def state():
    """Lines of git status: differences from the last commit, and ignored files."""
    lines = git("status", "--porcelain", "--untracked-files=all", "--ignored=matching").splitlines()
    return [line for line in lines if not BUILT.match(line)]


def is_binary(path):
    data = path.read_bytes()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return b"\0" in data


def tracked_binaries():
    names = git("ls-files", "-z").split("\0")
    paths = [name for name in names if name and not name.startswith(BINARY) and (ROOT / name).is_file()]
    return [name for name in paths if is_binary(ROOT / name)]


def litter(since):
    before = set(Path(since).read_text(encoding="utf-8").splitlines()) if since else set()
    for line in state():
        if line not in before and (since or not line.startswith("!!")):
            yield f"{line[3:]}: changed or appeared" + (" while the tests ran" if since else ", and is not committed")
    for name in tracked_binaries():
        yield f"{name}: a tracked binary file; binary files must be below {', '.join(BINARY)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", metavar="FILE", help="write the present state to FILE")
    parser.add_argument("--since", metavar="FILE", help="compare with the state in FILE")
    options = parser.parse_args()
    if not is_checkout():
        print("not a git checkout: nothing to compare with")
        return NO_CHECKOUT
    if options.record:
        Path(options.record).write_text("".join(line + "\n" for line in state()), encoding="utf-8")
        return 0
    found = list(litter(options.since))
    print("\n".join(found) if found else "the tree is clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
