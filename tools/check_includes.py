"""Checks the direction of includes: nn optim data io dist → ops → core; grad, plan, cpu and gpu know core only; look
looks on: at core, and at plans.

Prints each include that points the wrong way and exits with 1 if there is one. Public headers and system headers
may be included anywhere; a folder may always include itself.
"""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What each folder of src/ may include besides itself: a folder, or a single header.
ALLOWED = {
    "core": [],
    "ops": ["core/"],
    "grad": ["core/"],
    "plan": ["core/"],
    "cpu": ["core/", "plan/plan.h"],
    "gpu": ["core/", "plan/plan.h"],
    "nn": ["core/", "ops/"],
    "gpt": ["core/", "nn/"],
    "optim": ["core/", "ops/"],
    "data": ["core/", "ops/"],
    "io": ["core/", "ops/"],
    "dist": ["core/", "ops/"],
    "look": ["core/", "plan/plan.h"],
    "text": ["core/", "io/files.h", "io/json.h"],
}

# (file or folder, header): what is let through, and why.
EXCEPTIONS = [
    ("core/context.c", "cpu/cpu.h"),  # the context opens the device it always has
    ("core/context.c", "gpu/backend.h"),  # and the one it was asked for
    ("gpu/", "cpu/cpu.h"),            # steps without a kernel run there
    ("ops/", "gpu/kernel.h"),         # operators say what runs on the GPU
    ("ops/", "gpu/variants.h"),       # and ask which form of it is to be trusted
    ("ops/", "cpu/gemm.h"),           # CPU kernels of operators share the matrix product
    ("ops/", "cpu/workers.h"),        # and the threads
]

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def matches(path, pattern):
    return path.startswith(pattern) if pattern.endswith("/") else path == pattern


def target_of(source, quote, name):
    """The included header relative to src/, or None for public and system headers."""
    if quote == "<" or name.startswith("cairn/"):
        return None
    beside = os.path.normpath(source.parent / name)
    path = Path(beside) if os.path.exists(beside) else ROOT / "src" / name
    return os.path.relpath(path, ROOT / "src")


def permitted(source, target):
    folder = source.split("/")[0]
    if target.startswith(folder + "/") or any(matches(target, rule) for rule in ALLOWED[folder]):
        return True
    return any(matches(source, file) and target == header for file, header in EXCEPTIONS)


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, target_of(path, *found.groups()), found.group(2)


def violations():
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        source = path.relative_to(ROOT / "src").as_posix()
        if source.split("/")[0] not in ALLOWED:
            yield f"src/{source}: not in a folder that {Path(__file__).name} knows"
            continue
        for number, target, _ in includes(path):
            if target and not permitted(source, target):
                yield f"src/{source}:{number}: must not include {target}"
    for path in sorted((ROOT / "include" / "cairn").glob("*.h")):
        for number, target, name in includes(path):
            if target and not (path.parent / name).exists():
                yield f"include/cairn/{path.name}:{number}: a public header must not include {name}"


found = list(violations())
print("\n".join(found) if found else "includes point the right way")
sys.exit(1 if found else 0)
