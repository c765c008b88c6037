"""Prints the size of the stripped shared library and where its bytes are: by folder and by instruction set.

    tools/size.py [BUILD] [--most MEGABYTES]

BUILD is a build directory with libcairn.so and its object files; default: build. With --most, exits with 1 if the
stripped library is larger. Needs strip and size of binutils.
"""

import argparse
import collections
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OBJECT = re.compile(r"CMakeFiles/cairn_(objects|kernels_(\w+))\.dir/(?:(src/.*)|.*)$")
SECTIONS = {".text": "code", ".rodata": "constants", ".data": "data", ".bss": "data", ".eh_frame": "unwinding"}


def sections(path):
    """Bytes of one object file by kind: code, constants, data, unwinding."""
    found = collections.Counter()
    listing = subprocess.run(["size", "-A", path], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        fields = line.split()
        kind = next((k for s, k in SECTIONS.items() if fields and (fields[0] + ".").startswith(s + ".")), None)
        if kind:
            found[kind] += int(fields[1])
    return found


def stripped_size(library):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "-o", out.name, library], check=True)
        return Path(out.name).stat().st_size


def collect(build):
    """{folder: bytes by kind}, where code stands under the name of its instruction set, or under "once"."""
    table = collections.defaultdict(collections.Counter)
    for path in sorted(build.glob("CMakeFiles/cairn_*.dir/**/*.o")):
        match = OBJECT.search(path.as_posix())
        if not match:
            continue
        _, isa, source = match.groups()
        if source and not (ROOT / source).with_suffix("").exists():
            continue  # left over from a source file that is gone
        folder = str(Path(source).parent) if source else "generated"
        for kind, count in sections(path).items():
            table[folder][(isa or "once") if kind == "code" else kind] += count
    return table


def show(table, columns):
    total = sum(table.values(), collections.Counter())
    print(f"{'KB':18}" + "".join(f"{c:>11}" for c in columns) + f"{'all':>11}")
    rows = sorted(table.items(), key=lambda row: -sum(row[1].values()))
    for name, counts in rows + [("all", total)]:
        numbers = [counts[c] for c in columns] + [sum(counts.values())]
        print(f"{name:18}" + "".join(f"{n / 1000:11.1f}" for n in numbers))
    return sum(total.values())


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("build", nargs="?", default="build", type=Path)
    options.add_argument("--most", type=float, help="megabytes; more is an error")
    given = options.parse_args()
    library = given.build / "libcairn.so"
    table = collect(given.build)
    if not library.exists() or not table:
        sys.exit(f"{given.build} has no libcairn.so with its object files: run make build")
    sets = {isa for counts in table.values() for isa in counts} - {"once", "constants", "data", "unwinding"}
    sets = sorted(sets, key=lambda isa: (isa != "baseline", len(isa), isa))
    whole = stripped_size(library)
    print("Code that is compiled once, code of kernels for each instruction set, constants, data, tables for unwinding:\n")
    known = show(table, ["once"] + sets + ["constants", "data", "unwinding"])
    print(f"\nsymbols, relocations, padding: {(whole - known) / 1000:.1f} KB")
    print(f"libcairn.so, stripped: {whole / 1e6:.2f} MB")
    if given.most and whole > given.most * 1e6:
        sys.exit(f"libcairn.so is {whole / 1e6:.2f} MB; at most {given.most} MB are allowed")


if __name__ == "__main__":
    main()
