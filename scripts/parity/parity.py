#!/usr/bin/env python3
"""Compares every operator of Cairn with PyTorch: values, dtypes, shapes, errors, gradients.

    make parity [ARGS="--only add,sum --calls 2000"]
    make parity ARGS=--python                             through the Python package: functions and methods
    make parity ARGS="--search 100"                       with Hypothesis, which looks for differences and shrinks them

Operators and their parameters come from build/operators.json; their arguments are drawn at random, the same for the
same seed. A comparison is one question asked of both: does the call fail, which dtype, which shape, which values, which
gradient. A difference that the table in docs/from-pytorch.md names is counted; any other is printed with an example, and
the exit status is 1.
"""

import argparse
import collections
import mmap
import os
import pickle
import random
import sys
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import torch  # noqa: E402

import library  # noqa: E402
import package  # noqa: E402
import cases  # noqa: E402
import compare  # noqa: E402
import pytorch  # noqa: E402
import search  # noqa: E402

ROOT = library.ROOT
KINDS = ["error", "dtype", "shape", "value", "gradient", "second gradient"]


# ---- an operator ----

def compare_operator(lib, name, args, tell):
    """Compares one operator. tell(case text) is called before each call, so that a crash has a name."""
    if args.search:
        return search.search_operator(lib, name, args, tell)
    counts, found = collections.Counter(), {}
    forms = lib.forms(name)
    for form in forms:
        calls = args.calls if len(forms) == 1 or not form else args.calls // 2
        if form.endswith("_"):
            calls //= 3
        for turn in range(calls):
            draw = cases.Draw(random.Random(args.seed * 1000003 + turn), turn)
            compare.compare_call(lib, name, form, draw, tell, counts, found)
    return counts, found


def binding(args):
    return (package.Package if args.python else library.Library)(Path(args.build))


def in_child(name, args):
    """Compares one operator in a process of its own: a crash ends that process and is a difference."""
    reading, writing = os.pipe()
    note = mmap.mmap(-1, 1 << 16)  # shared with the child: the call it is at
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading, note
    os.close(reading)

    def tell(text):
        data = text.encode()[:(1 << 16) - 1]
        note[:len(data) + 1] = data + b"\0"
    status = 1
    try:
        with os.fdopen(writing, "wb") as out:
            pickle.dump(compare_operator(binding(args), name, args, tell), out)
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def finish(child, reading, note):
    with os.fdopen(reading, "rb") as source:
        data = source.read()
    _, status = os.waitpid(child, 0)
    if status == 0:
        return pickle.loads(data)
    text = note[:].split(b"\0")[0].decode(errors="replace")
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
    return collections.Counter(), {("crash", frozenset()): [1, text, f"the process ended with {how}"]}


# ---- the run ----

def report(name, found, rows, out):
    """Prints the differences of an operator that are not known. Returns the numbers of known and unknown ones."""
    known, groups = 0, collections.defaultdict(lambda: [0, None, None])
    for (kind, tags), (count, text, what) in found.items():
        if compare.is_known(rows, name, kind, tags, count):
            known += count
            continue
        group = groups[kind]
        group[0] += count
        if group[1] is None or len(text) < len(group[1][0]):
            group[1] = (text, what)
        group[2] = tags if group[2] is None else group[2] & tags
    for kind, (count, (text, what), tags) in sorted(groups.items()):
        common = f" (all: {', '.join(sorted(tags))})" if tags else ""
        print(f"{name}: {kind}, {count} times{common}\n    {text}\n    {what}", file=out)
    return known, sum(g[0] for g in groups.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="operators, by name, separated by commas")
    parser.add_argument("--calls", type=int, default=108, help="calls of each operator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--search", type=int, default=0, metavar="N", help="N examples that Hypothesis draws, of each form")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--python", action="store_true", help="call the Python package, not the C library")
    parser.add_argument("--build", default=str(ROOT / "build"))
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    begin = time.monotonic()
    signatures = library.listed(Path(args.build))
    names = [n for n in signatures if not args.only or n in args.only.split(",")]
    alone = [n for n in names if pytorch.counterpart(n) is None]
    names = [n for n in names if n not in alone]
    rows, counts, known, unknown = compare.known_differences(), collections.Counter(), 0, 0
    queue, running = list(names), []
    while queue or running:
        while queue and len(running) < args.jobs:
            name = queue.pop(0)
            running.append((name, in_child(name, args)))
        name, process = running.pop(0)
        own, found = finish(*process)
        counts += own
        a, b = report(name, found, rows, sys.stdout)
        sys.stdout.flush()
        known, unknown = known + a, unknown + b
    compared = sum(counts[kind] for kind in KINDS)
    print(f"\n{len(names)} operators compared with PyTorch {torch.__version__}; "
          f"without a counterpart: {', '.join(alone) or 'none'}")
    print(f"{compared} comparisons: " + ", ".join(f"{counts[k]} of {plural(k)}" for k in KINDS))
    print(f"left out: {counts['PyTorch has no kernel']} calls for which PyTorch has no kernel, "
          f"{counts['no such call']} that only one of the two can express")
    idle = [f"{' '.join(sorted(names))}: {', '.join([kind, *sorted(tags)])}" for names, kind, tags, used in rows if not used]
    if idle and not args.only:
        print("rows of the table that this run did not need: " + "; ".join(idle))
    print(f"{known} known differences (docs/from-pytorch.md), {unknown} others, {time.monotonic() - begin:.0f} s")
    return 1 if unknown else 0


def plural(kind):
    return kind + "s"


if __name__ == "__main__":
    sys.exit(main())
