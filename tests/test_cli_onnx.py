#!/usr/bin/env python3
"""cairn info and cairn run with ONNX files:  tests/test_cli_onnx.py [build/cairn]

Prints what failed, and as its last line "N passed, M failed". The files are written here, byte by byte: no package is
needed.
"""

import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAIRN = str(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "cairn").resolve())
passed = failed = 0


def check(ok, what, detail=""):
    global passed, failed
    if ok:
        passed += 1
        return
    failed += 1
    print(f"FAILED {what}\n    {str(detail)[-1500:]}")


def cairn(folder, *words):
    return subprocess.run([CAIRN, *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300)


def works(what, folder, *words):
    result = cairn(folder, *words)
    check(result.returncode == 0 and not result.stderr, what, f"exit {result.returncode}: {result.stderr}")
    return result.stdout


def refuses(what, parts, folder, *words):
    result = cairn(folder, *words)
    ok = result.returncode == 1 and result.stderr.count("\n") == 1 and all(part in result.stderr for part in parts)
    check(ok, what, f"exit {result.returncode}: {result.stderr}")


# ---- files: fields of protobuf, and arrays of NumPy


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def value_info(name, *sizes):
    shape = b"".join(field(1, field(2, size) if isinstance(size, str) else field(1, size)) for size in sizes)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model(op="MatMul", result="y"):
    """y = x · w, and z = relu(y); w is (3, 2)."""
    weight = b"".join([field(1, 3), field(1, 2), field(2, 1), field(8, "w"), field(9, struct.pack("<6f", 1, 0, 0, 1, 1, 1))])
    nodes = [field(1, "x") + field(1, "w") + field(2, result) + field(4, op), field(1, result) + field(2, "z") + field(4, "Relu")]
    graph = b"".join([*(field(1, node) for node in nodes), field(2, "small"), field(5, weight), field(11, value_info("x", "n", 3)),
                      field(12, value_info(result, "n", 2)), field(12, value_info("z", "n", 2))])
    return field(1, 8) + field(2, "by hand") + field(7, graph) + field(8, field(1, "") + field(2, 13))


def npy(shape, values):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}f", *values)


def numbers(path):
    data = path.read_bytes()
    data = data[10 + struct.unpack("<H", data[8:10])[0]:]
    return list(struct.unpack(f"<{len(data) // 4}f", data))


# ---- tests


def test_info(folder):
    text = works("info", folder, "info", "m.onnx")
    for part in ["graph    small", "producer by hand", "x: float [n,3]", "z: float [n,2]", "6 numbers", "MatMul (1)", "Relu (1)"]:
        check(part in text, f"info says '{part}'", text)
    check("missing" not in text, "nothing is missing", text)
    text = works("info with an operator that is missing", folder, "info", "odd.onnx")
    check("missing  Frobnicate (1)" in text, "info names what is missing", text)
    refuses("info of a file that is none", ["text.onnx"], folder, "info", "text.onnx")
    refuses("info of no file", ["none.onnx"], folder, "info", "none.onnx")
    text = works("info of a name with control characters", folder, "info", "escape.onnx")
    check("\x1b" not in text, "they are not printed", repr(text))


def test_run(folder):
    text = works("run", folder, "run", "m.onnx", "--input", "x.npy")
    check("y: f32 [2,2]" in text and "z: f32 [2,2]" in text, "results are described", text)
    works("run by names", folder, "run", "m.onnx", "--input", "x=x.npy", "--output", "z=z.npy", "y=y.npy")
    check(numbers(folder / "y.npy") == [4, 5, -2, 0], "the first result is written", numbers(folder / "y.npy"))
    check(numbers(folder / "z.npy") == [4, 5, 0, 0], "the second, too", numbers(folder / "z.npy"))
    works("run in order", folder, "run", "m.onnx", "--input", "x.npy", "--output", "first.npy")
    check(numbers(folder / "first.npy") == [4, 5, -2, 0], "without a name the first result is written")
    refuses("an input that is missing", ["input \"x\" is missing"], folder, "run", "m.onnx")
    refuses("another name", ["q"], folder, "run", "m.onnx", "--input", "q=x.npy")
    refuses("another shape", ["MatMul"], folder, "run", "m.onnx", "--input", "wide.npy")
    refuses("no such array", ["none.npy"], folder, "run", "m.onnx", "--input", "none.npy")
    refuses("no such result", ["q"], folder, "run", "m.onnx", "--input", "x.npy", "--output", "q=q.npy")
    refuses("an operator that is missing", ["Frobnicate (1)"], folder, "run", "odd.onnx", "--input", "x.npy")
    refuses("a file that is none", ["text.onnx"], folder, "run", "text.onnx")
    text = works("run with a name with control characters", folder, "run", "escape.onnx", "--input", "x.npy")
    check("\x1b" not in text, "they are not printed", repr(text))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "m.onnx").write_bytes(model())
        (folder / "odd.onnx").write_bytes(model("Frobnicate"))
        (folder / "escape.onnx").write_bytes(model(result="y\x1b[31m"))
        (folder / "text.onnx").write_text("this is no model\n")
        (folder / "x.npy").write_bytes(npy((2, 3), [1, 2, 3, -1, 1, -1]))
        (folder / "wide.npy").write_bytes(npy((1, 4), [1, 2, 3, 4]))
        test_info(folder)
        test_run(folder)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
