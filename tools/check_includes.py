"""Checks that every folder of src/ refers only to folders below it: by #include, and by symbols of object files.
The command, the examples and what they share include public headers only, with the exceptions in PROGRAMS.

    tools/check_includes.py [BUILD]

BUILD is the build directory with the object files; default: build. Prints each reference to a folder that is not below,
and exits with 1 if there is one. Public headers (include/cairn) and system headers may be included anywhere, but a
function that they declare counts as a reference to the folder that defines it. A folder may always refer to itself.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# From the bottom up: each folder, and the folders it may refer to.
BELOW = {
    "core": "",
    "windows": "core",
    "plan": "core",
    "cpu": "core plan",
    "gpu": "core plan",
    "ops": "core cpu gpu",
    "grad": "core ops",
    "data": "core ops",
    "nn": "core ops grad",
    "gpt": "core ops grad nn",
    "metric": "core ops",
    "optim": "core ops grad nn",
    "io": "core ops nn optim data",
    "text": "core io",
    "look": "core plan gpu",
    "open.c": "core plan cpu gpu ops grad",
    "onnx": "core plan ops grad nn io open.c",
}

# The headers that a folder offers to other folders. A folder without an entry offers all its headers.
OFFERS = {
    "plan": "plan/plan.h plan/evaluate.h plan/record.h",
    "cpu": "cpu/kernel.h cpu/workers.h cpu/gemm.h cpu/gemm_cpu.h cpu/gather_cpu.h cpu/open.h cpu/isa.h cpu/each_type.h "
           "cpu/fma.h cpu/processor.h cpu/random_words.h",
    "gpu": "gpu/shaders.h gpu/variants.h gpu/open.h",
    "grad": "grad/walk.h",
    "io": "io/files.h io/json.h",
}

# Programs that people install or learn from, and what they may include besides public and system headers.
PROGRAMS = {
    "cli": "cli.h prototypes.inc trials/ bench/workloads/workloads.h",  # prototypes.inc: made of the public headers
    "trials": "trials/ core/dtype.h",  # which has the conversions of half types
    "bench/workloads": "bench/workloads/",
    "examples": "",
}

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    return path.split("/")[0]


def may_refer(source, target):
    return source == target or target in BELOW[source].split()


def target_of(source, quote, name):
    """The included header relative to src/, or None for public and system headers."""
    if quote == "<" or name.startswith("cairn/"):
        return None
    beside = os.path.normpath(source.parent / name)
    path = Path(beside) if os.path.exists(beside) else ROOT / "src" / name
    return os.path.relpath(path, ROOT / "src")


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, target_of(path, *found.groups()), found.group(2)


def permitted(source, target):
    mine, other = folder_of(source), folder_of(target)
    if mine == other:
        return True
    offered = OFFERS.get(other)
    return may_refer(mine, other) and (not offered or target in offered.split())


def wrong_includes():
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        source = path.relative_to(ROOT / "src").as_posix()
        if folder_of(source) not in BELOW:
            yield f"src/{source}: the folder is not in the table of {Path(__file__).name}"
            continue
        for number, target, _ in includes(path):
            if target and not permitted(source, target):
                yield f"src/{source}:{number}: must not include {target}"
    for path in sorted((ROOT / "include" / "cairn").rglob("*.h")):
        for number, target, name in includes(path):
            if target and not (path.parent / name).exists():
                yield f"{path.relative_to(ROOT)}:{number}: a public header must not include {name}"


def wrong_includes_of_programs():
    for folder, allowed in PROGRAMS.items():
        headers = [name for name in allowed.split() if not name.endswith("/")]
        folders = tuple(name for name in allowed.split() if name.endswith("/"))
        for path in sorted((ROOT / folder).glob("*.[ch]")):
            for number, target, name in includes(path):
                if target and name not in headers and not name.startswith(folders):
                    yield f"{folder}/{path.name}:{number}: must not include {name}"


def symbols(path):
    """The symbols that an object file defines for others, and those it needs."""
    listing = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listing.splitlines() if len(line.split()) >= 2]
    return {w[-1] for w in rows if w[-2].isupper() and w[-2] != "U"}, {w[-1] for w in rows if w[-2] == "U"}


def objects_of(build):
    """Every object file of the library, by the path of its source below src/."""
    for path in sorted(build.glob("CMakeFiles/cairn_*.dir/src/**/*.o")):
        source = path.as_posix().split(".dir/src/", 1)[1].removesuffix(".o")
        if folder_of(source) in BELOW and (ROOT / "src" / source).exists():
            yield source, path


def wrong_symbols(build):
    needs, home = {}, {}
    for source, path in objects_of(build):
        defined, needed = symbols(path)
        needs.setdefault(source, set()).update(needed)  # a kernel file has an object for each instruction set
        home.update(dict.fromkeys(defined, source))
    for source in sorted(needs):
        for name in sorted(needs[source] & home.keys()):
            if not may_refer(folder_of(source), folder_of(home[name])):
                yield f"src/{source}: must not use {name}, which src/{home[name]} defines"
    if not needs:
        yield f"{build}: has no object files of the library; build it first"


def main():
    build = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"
    found = [*wrong_includes(), *wrong_includes_of_programs(), *wrong_symbols(build)]
    print("\n".join(found) if found else "all includes and symbols refer to folders below")
    return 1 if found else 0


sys.exit(main())
