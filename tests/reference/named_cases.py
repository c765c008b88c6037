"""The file format of stored references, read by tests/support/named_cases.c: a count, then cases of named tensors.

    u32 cases; a case: text name, text options, u32 tensors; a tensor: text name, u8 dtype, u8 axes, i64 sizes, data
    a text: u16 length, bytes; dtypes: 0 bool, 1 i64, 2 f32, 3 f64; little-endian, row-major
"""
import struct

import torch

DTYPES = {torch.bool: 0, torch.int64: 1, torch.float32: 2, torch.float64: 3}


def text(s):
    return struct.pack("<H", len(s.encode())) + s.encode()


def tensor(name, t):
    t = t.detach().contiguous()
    head = text(name) + struct.pack("<BB", DTYPES[t.dtype], t.dim()) + struct.pack(f"<{t.dim()}q", *t.shape)
    return head + t.numpy().tobytes()


def write(path, cases):
    """cases: (name, options, {name: tensor})"""
    with open(path, "wb") as f:
        f.write(struct.pack("<I", len(cases)))
        for name, options, tensors in cases:
            f.write(text(name) + text(options) + struct.pack("<I", len(tensors)))
            for key, t in tensors.items():
                f.write(tensor(key, t))


def weights(t, k):
    """What result number k is multiplied by before everything is summed: a fixed wave."""
    i = torch.arange(t.numel(), dtype=torch.float64)
    return torch.sin(1 + k + 0.37 * i).reshape(t.shape).to(t.dtype)
