#!/usr/bin/env python3
"""One line links every program: the `cc` line of README.md, on all examples and on a program that needs the whole library.

    tests/test_linking.py

Also without zlib, libpng and libjpeg: reading such a file is then an error that names the library.
Prints what failed, and as its last line "N passed, M failed".
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("CAIRN_BUILD", ROOT / "build"))
REFERENCE = ROOT / "tests" / "reference"
QUICK = ["01_tensors", "02_autograd", "10_own_module", "12_profiling", "13_devices"]  # these also run
passed = failed = 0

# Reads the files that need other libraries: prints "ok", or the error.
READER = r"""
#include <cairn/cairn.h>
#include <stdio.h>

int main(int n, char **path)
{
    for (int i = 1; i < n; i++) {
        cn_ctx *cn = cn_open(NULL);
        if (i == 1) cn_load(cn, path[i]);
        else cn_image_read(cn, path[i], 0);
        printf("%s\n", cn_failed(cn) ? cn_error(cn) : "ok");
        cn_close(cn);
    }
}
"""


def check(ok, what, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAILED {what}\n    {str(detail)[-1500:]}")
    return ok


def compile_line():
    """The words between `cc` and `&&` on the one line of README.md that compiles a program."""
    lines = re.findall(r"^cc (program\.c .*?) *&& ", (ROOT / "README.md").read_text(), re.M)
    check(len(lines) == 1, "README.md has one line that begins with cc and compiles program.c", lines)
    return lines[0].replace("build/", f"{BUILD}/").split()


def link(line, source, program, *more):
    words = [{"program.c": str(source), "program": str(program)}.get(word, word) for word in line]
    result = subprocess.run(["cc", *more, *words], cwd=ROOT, capture_output=True, text=True)
    return check(result.returncode == 0, f"cc {' '.join(words)}", result.stderr)


def test_examples(line, folder):
    for source in sorted((ROOT / "examples").glob("*.c")):
        program = folder / source.stem
        if link(line, source, program) and source.stem in QUICK:
            result = subprocess.run([program], cwd=folder, env={**os.environ, "CAIRN_QUICK": "1"}, capture_output=True)
            check(result.returncode == 0, f"{source.stem} runs", result.stderr)


def test_whole_library(line, folder):
    """Every object of the archive is taken: no function is left that another library would have to bring."""
    whole = [f"-Wl,--whole-archive,{word},--no-whole-archive" if word.endswith(".a") else word for word in line]
    (folder / "program.c").write_text(READER)
    link(whole, folder / "program.c", folder / "whole")


def warnings_of(statements):
    source = f"#include <cairn/cairn.h>\nvoid f(cn_ctx *cn, cn_tensor *x, cn_tensor **i, cn_dict *d) {{ (void)cn, (void)x, (void)i, (void)d; {statements} }}\n"
    words = ["cc", "-std=c17", "-Wall", "-Wextra", "-Iinclude", "-c", "-x", "c", "-", "-o", "/dev/null"]
    result = subprocess.run(words, input=source, cwd=ROOT, capture_output=True, text=True)
    return result.stderr.count("warning:") if result.returncode == 0 else result.stderr


def test_unused_results(line, folder):
    """An operator whose result is not used is a mistake; what is called for what it does is none."""
    mistakes = ["cn_add(x, x);", "cn_relu(x);", "cn_mse_loss(x, x, NULL);", "cn_ones(cn, CN_F32, CN_DIMS(2));", "cn_map(x, fabs);",
                "cn_load(cn, \"a.npz\");", "cn_open(NULL);", "cn_matmul(x, x); cn_sub(x, x);"]
    for statement in mistakes:
        text = statement.replace("fabs", "(double (*)(double))0")
        check(warnings_of(text) == statement.count(";"), f"{statement} warns", warnings_of(text))
    for statement in ("cn_keep(x);", "cn_add_(x, x);", "cn_backward(x);", "cn_eval(x);", "cn_sort(x, 0, false, i);", "cn_assign(x, x);",
                      "cn_save(d, \"a.npz\");", "cn_release(x);", "cn_tensor *y = cn_add(x, x); cn_eval(y);"):
        check(warnings_of(statement) == 0, f"{statement} does not warn", warnings_of(statement))


def test_other_libraries(line, folder):
    (folder / "program.c").write_text(READER)
    program = folder / "reader"
    if not link(line, folder / "program.c", program):
        return
    files = [next(REFERENCE.rglob(name)) for name in ("deflated.npz", "rgb.png", "colour.jpg")]
    found = subprocess.run([program, *files], capture_output=True, text=True).stdout.splitlines()
    check(found == ["ok"] * 3, "a program of that line reads npz, PNG and JPEG", found)
    missing = folder / "missing"  # empty files stand in the way of the libraries
    missing.mkdir()
    for name in ("libz.so.1", "libpng16.so.16", "libjpeg.so.62", "libjpeg.so.8"):
        (missing / name).touch()
    result = subprocess.run([program, *files], env={**os.environ, "LD_LIBRARY_PATH": str(missing)}, capture_output=True, text=True)
    said = result.stdout.splitlines() + [""] * 3
    for i, remedy in enumerate(("install zlib", "install libpng", "install libjpeg")):
        check(remedy in said[i], f"without the library the error says '{remedy}'", said)


def main():
    line = compile_line()
    for test in (test_examples, test_whole_library, test_unused_results, test_other_libraries):
        with tempfile.TemporaryDirectory(prefix="cairn_link_") as name:
            test(line, Path(name))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
