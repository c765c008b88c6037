"""Static analysis without running anything:  tools/check_static.py [PART ...]

Three passes, each over the files where it is quick enough (together a minute of processor time):
    clang-tidy                     mistakes by pattern, .clang-tidy says which: all of src/, cli/, trials/, bench/
    clang's analyser, by clang-tidy  paths through the code that reads untrusted files: src/io, src/text
    gcc -fanalyzer                 the same by another compiler, and src/core and src/data as well
PART selects files whose path contains it. Prints each finding; exits with 1 if there is one, and with 77 if neither
clang-tidy nor gcc is installed.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["-std=c17", "-D_DEFAULT_SOURCE", "-Iinclude", "-Isrc", "-Ibuild/generated", "-I.", "-Icli"]
FOLDERS = ["src", "cli", "trials", "bench"]
PATHS = ["src/io", "src/text"]  # for clang's analyser
MORE_PATHS = PATHS + ["src/core", "src/data"]  # for gcc's
OPTIONAL = {"zlib.h": "-DCAIRN_HAVE_ZLIB", "png.h": "-DCAIRN_HAVE_PNG", "jpeglib.h": "-DCAIRN_HAVE_JPEG"}
# What clang's analyser says of every memcpy is no finding.
PATH_CHECKS = "-*,clang-analyzer-*,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling"


def c_files(folders):
    """Kernel files are left out: they need the flags of an instruction set; and Windows' files, its headers."""
    wanted = sys.argv[1:]
    files = (path.relative_to(ROOT) for folder in folders for path in sorted((ROOT / folder).rglob("*.c")))
    return [str(path) for path in files if not path.name.endswith("_cpu.c") and path.parent.name != "windows"
            and (not wanted or any(part in str(path) for part in wanted))]


def optional_flags():
    has = [flag for header, flag in OPTIONAL.items() if Path("/usr/include", header).exists()]
    return FLAGS + has


def jobs():
    flags = optional_flags()
    if shutil.which("clang-tidy"):
        for path in c_files(PATHS):
            yield ["clang-tidy", "--quiet", f"--checks={PATH_CHECKS}", path, "--", *flags]
        for path in c_files(FOLDERS):
            yield ["clang-tidy", "--quiet", "--checks=-clang-analyzer-*", path, "--", *flags]
    if shutil.which("gcc"):
        for path in c_files(MORE_PATHS):
            yield ["gcc", "-fanalyzer", "-Werror", "-O1", "-D__clang_analyzer__", *flags, "-c", path, "-o", "/dev/null"]


def analyse(command):
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    return "" if result.returncode == 0 else result.stdout + result.stderr


def main():
    todo = list(jobs())
    if not todo:
        print("neither clang-tidy nor gcc is installed")
        return 77
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [text for text in pool.map(analyse, todo) if text]
    for text in found:
        print(text.rstrip())
    print(f"{len(todo)} analyses, {len(found)} with findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
