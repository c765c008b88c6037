"""Others read what Cairn writes: the files that build/tests/test_io leaves behind, opened with safetensors, numpy, zipfile and, if
it is installed, PyTorch, and compared number by number.

    python tests/reference/check_io.py [build/tests/test_io]        exits with 0 where a package is missing, and says so
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

try:
    import numpy as np
    from safetensors import deserialize, safe_open
except ImportError as missing:
    print(f"not checked: {missing}")
    sys.exit(0)

ROOT = Path(__file__).resolve().parent.parent.parent
SHAPES = [(), (3,), (0,), (2, 3, 4), (0, 5), (1, 2, 1, 3, 1, 2, 1, 1)]  # as in tests/support/dicts.c
TYPES = {"bool": ("BOOL", "?"), "u8": ("U8", "u1"), "i8": ("I8", "i1"), "i16": ("I16", "<i2"), "i32": ("I32", "<i4"),
         "i64": ("I64", "<i8"), "f16": ("F16", "<f2"), "bf16": ("BF16", None), "f32": ("F32", "<f4"),
         "f64": ("F64", "<f8")}
TEXTS = {"empty text": "", "text": "line\n\ttab \"quotes\" \\ \x01 ünïcode 重み 🙂", "rate": "0.10000000000000001"}


def expected(shape, name):
    v = ((np.arange(int(np.prod(shape)), dtype=np.float32) - 3) * np.float32(0.75)).reshape(shape)
    if name == "bf16":
        return (v.view(np.uint32) >> 16).astype("<u2")  # 0.75 k needs few bits: nothing is rounded
    kind = np.dtype(TYPES[name][1])
    return v.astype(np.int64).astype(kind) if kind.kind in "iu" else v.astype(kind)


def everything(with_bf16):
    arrays = {f"layer.{k}.{name}": (name, expected(shape, name)) for name in TYPES for k, shape in enumerate(SHAPES)
              if with_bf16 or name != "bf16"}
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    arrays["view"] = ("f32", base.T)
    arrays["pending"] = ("f32", None)  # exp: not to the last bit
    arrays["number"] = ("f64", np.array(2.5))
    arrays[""] = ("i32", np.array(7, np.int32))
    arrays['größe "quoted" \\ / 🙂'] = ("f32", base)
    return arrays


def check_safetensors(path):
    found = dict(deserialize(path.read_bytes()))
    wanted = everything(True)
    assert set(found) == set(wanted), set(found) ^ set(wanted)
    for key, (name, array) in wanted.items():
        tensor = found[key]
        assert tensor["dtype"] == TYPES[name][0], key
        if array is not None:
            assert tuple(tensor["shape"]) == array.shape and bytes(tensor["data"]) == array.tobytes(), key
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == TEXTS
        assert np.allclose(file.get_tensor("pending"), np.exp(np.arange(12, dtype=np.float32)).reshape(3, 4))
    return len(found)


def check_npz(path):
    assert zipfile.ZipFile(path).testzip() is None
    file = np.load(path)
    wanted = everything(False)
    assert set(file.files) == set(wanted) | set(TEXTS)
    for key, (name, array) in wanted.items():
        assert file[key].dtype == np.dtype(TYPES[name][1]), key
        assert array is None or (file[key].shape == array.shape and file[key].tobytes() == array.tobytes()), key
    for key, text in TEXTS.items():
        assert file[key].item() == text, key
    return len(file.files)


def check_torch(path):
    try:
        import torch
        from safetensors.torch import load_file
    except ImportError:
        return "PyTorch with safetensors is not installed"
    tensors = load_file(path)
    half = tensors["layer.3.bf16"]
    assert half.dtype == torch.bfloat16 and torch.equal(half.float().flatten(), (torch.arange(24) - 3) * 0.75)
    return f"PyTorch {torch.__version__}: {len(tensors)} tensors"


program = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "tests" / "test_io").resolve()
with tempfile.TemporaryDirectory() as scratch:
    subprocess.run([program], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    folder = Path(scratch)
    print(f"safetensors: {check_safetensors(folder / 'all.safetensors')} tensors")
    print(f"npz: {check_npz(folder / 'all.npz')} arrays")
    assert np.array_equal(np.load(folder / "one.npy"), np.arange(12, dtype=np.float32).reshape(3, 4))
    print("npy: as expected")
    print(check_torch(folder / "all.safetensors"))
