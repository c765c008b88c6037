"""Writes tests/reference/io/: small files made by the packages safetensors and numpy, which test_io.c reads.

    python tests/reference/make_io.py        (needs: pip install 'safetensors>=0.8' numpy)

Element i of every array is v = (7 i + 3) mod 100, less 50 if the type is signed, divided by 4 if it is floating, and
v mod 3 == 0 if it is boolean: test_io.c computes the same.
"""

import json
import struct
import zipfile
from pathlib import Path

import numpy as np
from safetensors import TensorSpec, serialize_file

OUT = Path(__file__).resolve().parent / "io"


def values(dtype, shape, order="C"):
    dtype = np.dtype(dtype)
    v = (7 * np.arange(int(np.prod(shape)), dtype=np.int64) + 3) % 100
    if dtype.kind == "b":
        v = v % 3 == 0
    elif dtype.kind == "i":
        v = v - 50
    elif dtype.kind == "f":
        v = (v - 50) / 4
    return np.asarray(v.astype(dtype).reshape(shape), order=order)


def bfloat16(shape):
    return (values("<f4", shape).view(np.uint32) >> 16).astype("<u2")


def write(name, tensors, metadata=None):
    """tensors: {name: array, or (array of the same bytes, the type's name)}"""
    pairs = {key: t if isinstance(t, tuple) else (t, t.dtype.name) for key, t in tensors.items()}
    specs = {key: TensorSpec(dtype=dtype, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes)
             for key, (array, dtype) in pairs.items()}
    serialize_file(specs, OUT / name, metadata)


def safetensors_files():
    names = ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
    tensors = {name: values(name, (2, 3, 4)) for name in names}
    tensors["bfloat16"] = (bfloat16((2, 3, 4)), "bfloat16")
    tensors["scalar"] = values("float32", ())
    tensors["empty"] = values("float32", (0, 5))
    tensors["größe.重み"] = values("int8", (3,))
    write("all.safetensors", tensors, {"format": "pt", "note": "line\nwith \"quotes\" and ünïcode 🙂"})
    write("float8.safetensors", {"w": (np.zeros(4, np.uint8), "float8_e4m3fn")})
    write("large_u64.safetensors", {"w": np.array([1, 2**63], np.uint64)})
    write("nothing.safetensors", {})
    misaligned()


def misaligned():
    """Valid, though the package would not write it: a byte first, then everything else."""
    header, data = {}, b""
    for name, code, dtype in [("a", "U8", "uint8"), ("b", "F64", "float64"), ("c", "I32", "int32"), ("d", "F16", "float16")]:
        array = values(dtype, (3,))
        header[name] = {"dtype": code, "shape": [3], "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    (OUT / "misaligned.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def npy_files():
    for kind in ["b1", "u1", "i1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", ">i2", ">u4", ">i8", ">f2", ">f4", ">f8"]:
        name = kind.replace("<", "little_").replace(">", "big_")
        np.save(OUT / f"{name}.npy", values(kind, (2, 3, 4)))
    np.save(OUT / "fortran.npy", values("<f4", (2, 3, 4), "F"))
    np.save(OUT / "fortran_big.npy", values(">i2", (3, 5), "F"))
    np.save(OUT / "scalar.npy", values("<f8", ()))
    np.save(OUT / "empty.npy", values("<f4", (4, 0)))
    np.save(OUT / "complex.npy", np.zeros(3, np.complex64))
    np.save(OUT / "objects.npy", np.array([{}, None], dtype=object))
    np.save(OUT / "records.npy", np.zeros(2, dtype=[("x", "<f4"), ("y", "<i4")]))
    for version in (2, 3):
        with open(OUT / f"version{version}.npy", "wb") as file:
            np.lib.format.write_array(file, values("<f4", (5,)), version=(version, 0))


def npz_files():
    arrays = {
        "weight": values("<f4", (2, 3)), "bias": values(">f8", (4,)), "steps": values("<i8", ()), "nested/name": values("u1", (2, 2)),
        "none": values("<f4", (0,)), "note": np.array("ünïcode 🙂"), "bytes": np.array(b"plain"), "fortran": values("<i4", (3, 4), "F"),
    }
    np.savez(OUT / "stored.npz", **arrays)
    np.savez_compressed(OUT / "deflated.npz", **arrays)
    np.savez(OUT / "nothing.npz")
    with zipfile.ZipFile(OUT / "other.npz", "w") as file:
        file.writestr("readme.txt", b"hello")


OUT.mkdir(exist_ok=True)
safetensors_files()
npy_files()
npz_files()
print(f"{sum(1 for _ in OUT.iterdir())} files, {sum(p.stat().st_size for p in OUT.iterdir())} bytes in {OUT.name}/")
