"""Builds the extension modules of the package and puts them beside its Python files.

    python3 python/build_modules.py [--dest FOLDER] [--sanitize]

setup.py calls `build` and `write_stubs` for wheels; called as a program it prepares python/cairn itself, for work on the package: then
PYTHONPATH=python is enough. --dest copies the whole package to FOLDER instead. --sanitize builds with the address and
undefined-behaviour sanitizers.

The library is built by the project's CMake in build/ (build/asan), the directory that `make build` uses too; the
modules in build/python/NAME, where NAME tells the Python they are for. Both only build what has changed. The
environment variable CAIRN_BUILD names another build directory of the library.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "build" / "python"


def version():
    """The version of the C library, which is the package's."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^project\(cairn VERSION ([\d.]+)", text, re.M).group(1)


def run(*command):
    """Runs a command and shows what it printed only if it failed."""
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, errors="replace")
    if result.returncode != 0:
        raise SystemExit(f"{result.stdout}\nfailed: {' '.join(str(word) for word in command)}")
    warnings = [line for line in result.stdout.splitlines() if "warning:" in line]
    if warnings:
        print("\n".join(warnings), file=sys.stderr)


def need(tool, package):
    if not shutil.which(tool):
        raise SystemExit(f"{tool} is needed to build cairn (Debian: apt-get install {package})")


def configure(source, build, sanitize, **variables):
    """Configures a build directory. One that has been configured keeps its generator."""
    command = ["cmake", "-S", source, "-B", build]
    if not (build / "CMakeCache.txt").exists() and shutil.which("ninja"):
        command += ["-G", "Ninja"]
    variables["CMAKE_BUILD_TYPE"] = "Debug" if sanitize else "Release"
    variables["CAIRN_SANITIZE"] = "address,undefined" if sanitize else ""
    if sanitize:
        variables["CMAKE_C_FLAGS_DEBUG"] = "-O1 -g"
    if shutil.which("ccache"):
        variables["CMAKE_C_COMPILER_LAUNCHER"] = "ccache"
    run(*command, *(f"-D{name}={value}" for name, value in variables.items()))


def build_library(sanitize):
    """libcairn.a and operators.json; returns their folder."""
    folder = Path(os.environ.get("CAIRN_BUILD", ROOT / "build"), "asan" if sanitize else "").resolve()
    if not (folder / "CMakeCache.txt").exists():
        configure(ROOT, folder, sanitize)
    run("cmake", "--build", folder, "--target", "cairn_static", "operators_json")
    return folder


def build(package, sanitize=False):
    """Builds the modules for this Python and puts them into `package`, the folder of cairn/__init__.py."""
    need("cmake", "cmake")
    library = build_library(sanitize)
    work = WORK / (sysconfig.get_config_var("SOABI") + ("-asan" if sanitize else ""))
    configure(HERE, work, sanitize, Python_EXECUTABLE=sys.executable, CAIRN_BUILD=library)
    run("cmake", "--build", work)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for module in (work / "cairn").glob("*" + suffix):
        replace(module, package / module.name)
    return library


def write_stubs(package, library):
    """Writes what type checkers read, from the operators' signatures and the package itself."""
    run(sys.executable, HERE / "src" / "generate_stubs.py", library / "operators.json", package)


def replace(source, target):
    """A copy under a new inode: a process that has the old module open keeps it."""
    new = target.with_name(target.name + ".new")
    shutil.copy2(source, new)
    os.replace(new, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dest", type=Path, help="copy the package to this folder")
    parser.add_argument("--sanitize", action="store_true", help="with the address and undefined-behaviour sanitizers")
    options = parser.parse_args()
    package = HERE / "cairn"
    if options.dest:
        shutil.rmtree(options.dest / "cairn", ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        package = Path(shutil.copytree(package, options.dest / "cairn", ignore=ignored))
    build(package, options.sanitize)


if __name__ == "__main__":
    main()
