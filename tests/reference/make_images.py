"""Writes what test_images.c compares with: images.txt (torch's resizing and turning), resize.txt (Pillow's resizing of
bytes) and small PNG and JPEG files.

    python tests/reference/make_images.py      in an environment with torch and Pillow 13

The image that is resized and turned is x[c, r, i] = ((37 k + 11) mod 101) / 100, k the number of the element. That of
bytes is (k k + 29 k) mod 256.
"""

import math
import struct
import zlib
from pathlib import Path

import torch
import torch.nn.functional as F
from PIL import Image

HERE = Path(__file__).parent


def image(c, h, w):
    k = torch.arange(c * h * w, dtype=torch.float64)
    return (((37 * k + 11) % 101) / 100).reshape(1, c, h, w)


def turned(x, degrees):
    """Bilinear, zeros from outside, about the centre, counter-clockwise."""
    h, w = x.shape[-2:]
    a = math.radians(degrees)
    theta = torch.tensor([[math.cos(a), -math.sin(a) * h / w, 0], [math.sin(a) * w / h, math.cos(a), 0]], dtype=torch.float64)
    grid = F.affine_grid(theta[None], list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def write_numbers():
    lines = []
    for c, h, w, to_h, to_w in [(1, 5, 7, 9, 8), (3, 12, 9, 5, 4), (2, 7, 6, 7, 3), (1, 20, 20, 3, 3), (1, 1, 4, 3, 9)]:
        y = F.interpolate(image(c, h, w), (to_h, to_w), mode="bilinear", antialias=True, align_corners=False)
        lines.append(f"resize {c} {h} {w} {to_h} {to_w} " + " ".join(f"{v:.9g}" for v in y.flatten().tolist()))
    for c, h, w, degrees in [(1, 6, 6, 30), (2, 5, 8, -17.5), (1, 7, 4, 90), (1, 4, 5, 200)]:
        y = turned(image(c, h, w), degrees)
        lines.append(f"rotate {c} {h} {w} {degrees} 0 " + " ".join(f"{v:.9g}" for v in y.flatten().tolist()))
    (HERE / "images.txt").write_text("\n".join(lines) + "\n")


def write_bytes():
    """A line for each filter and size: its number, height, width, the new ones, and a CRC-32 of the pixels."""
    lines = []
    filters = [Image.BILINEAR, Image.NEAREST, Image.BOX, Image.HAMMING, Image.BICUBIC, Image.LANCZOS]
    for h, w, to_h, to_w in [(40, 50, 23, 17), (9, 7, 31, 30), (60, 20, 11, 19), (60, 20, 11, 40), (33, 64, 33, 20),
                             (33, 64, 50, 64), (1, 5, 3, 2), (64, 64, 1, 1), (12, 90, 13, 9)]:
        image = Image.frombytes("L", (w, h), bytes((k * k + 29 * k) % 256 for k in range(h * w)))
        for number, kind in enumerate(filters):
            lines.append(f"{number} {h} {w} {to_h} {to_w} {zlib.crc32(image.resize((to_w, to_h), kind).tobytes())}")
    (HERE / "resize.txt").write_text("\n".join(lines) + "\n")


def png(path, width, height, depth, colour, rows, palette=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    body = b"".join(b"\0" + bytes(row) for row in rows)
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))]
    if palette:
        parts.append(chunk(b"PLTE", palette))
    parts += [chunk(b"IDAT", zlib.compress(body)), chunk(b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def bits_of(difference):
    """A DC difference: its category in 4 bits, then the number as JPEG writes it."""
    n = abs(difference).bit_length()
    value = difference if difference >= 0 else difference + (1 << n) - 1
    return f"{n:04b}" + (f"{value:0{n}b}" if n else "")


def jpeg(path, width, components, blocks):
    """Flat blocks of 8 by 8: each has its DC coefficient alone. blocks: one tuple of levels (sample - 128) a block."""
    last, bits = [0] * components, ""
    for levels in blocks:
        for c, level in enumerate(levels):
            bits += bits_of(level * 8 - last[c]) + "0"
            last[c] = level * 8
    bits += "1" * (-len(bits) % 8)
    data = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\x00")

    def segment(marker, body):
        return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body

    frame = b"".join(bytes([c + 1, 0x11, 0]) for c in range(components))
    scan = b"".join(bytes([c + 1, 0]) for c in range(components))
    path.write_bytes(
        b"\xff\xd8"
        + segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
        + segment(0xDB, b"\0" + b"\1" * 64)
        + segment(0xC0, struct.pack(">BHHB", 8, 8, width, components) + frame)
        + segment(0xC4, b"\0" + bytes([0, 0, 0, 12] + [0] * 12) + bytes(range(12)))
        + segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\0")
        + segment(0xDA, bytes([components]) + scan + b"\0\x3f\0")
        + data
        + b"\xff\xd9"
    )


if __name__ == "__main__":
    write_numbers()
    write_bytes()
    png(HERE / "rgb.png", 3, 2, 8, 2, [range(10, 19), range(100, 109)])
    png(HERE / "grey16.png", 2, 2, 16, 0, [[1, 200, 2, 0], [255, 255, 0, 0]])
    png(HERE / "palette.png", 4, 1, 2, 3, [[0b00011011]], bytes([0, 0, 0, 255, 0, 0, 0, 255, 0, 1, 2, 3]))
    png(HERE / "alpha.png", 1, 2, 8, 6, [[9, 8, 7, 0], [6, 5, 4, 128]])
    jpeg(HERE / "grey.jpg", 16, 1, [(-28,), (72,)])
    jpeg(HERE / "colour.jpg", 8, 3, [(0, -20, 50)])
