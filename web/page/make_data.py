#!/usr/bin/env python3
"""make_data.py OUT: the text and the digits that come with the page.

OUT/text.txt       prose of this project's documents, without tables, lists and code
OUT/digits.bin.gz  MNIST digits of build/digits (scripts/get_digits.sh): u32 for training, u32 for the test, labels, and
                   images of half a byte a pixel. Without build/digits the page asks its user for digits.
"""
import gzip
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = ["docs/design.md", "docs/gpu.md", "docs/cpu-or-gpu.md", "docs/add-an-operator.md", "docs/python.md", "docs/web.md",
         "docs/micrograd.md", "docs/from-pytorch.md", "docs/performance.md", "docs/dependencies.md", "docs/python-scripts.md",
         "docs/glossary.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "README.md", "CHANGELOG.md"]
TRAIN, TEST = 3000, 600
STRANGE = re.compile(r"[_/{}=|<>#~]|[0-9]{3}|[A-Z]{5}|[^\x00-\x7f]") # names, formulas, measurements: not prose


def sentences(text):
    """Paragraphs and items of lists, one a line, their Markdown taken away."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for block in re.split(r"\n\s*\n|\n(?=\s*- |\d+\. )", text):
        lines = [line.strip() for line in block.splitlines() if not line.startswith("|")]
        line = re.sub(r"^(- |\d+\. )", "", " ".join(lines).strip())
        line = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line)
        yield re.sub(r"[*`]", "", line)


def prose():
    for name in TEXTS:
        for line in sentences((ROOT / name).read_text()):
            parts = re.split(r"(?<=\.) (?=[A-Z])", line)
            plain = [part for part in parts if re.match(r"[A-Z].*\.$", part) and not STRANGE.search(part)]
            if len(" ".join(plain)) > 60:
                yield " ".join(plain)


def idx(part):
    folder = ROOT / "build/digits"
    images = (folder / f"{part}-images-idx3-ubyte").read_bytes()[16:]
    labels = (folder / f"{part}-labels-idx1-ubyte").read_bytes()[8:]
    return images, labels


def digits():
    """The first digits of each part of MNIST, packed."""
    (train, names), (test, others) = idx("train"), idx("t10k")
    pixels = train[:TRAIN * 784] + test[:TEST * 784]
    four = bytes(((a + 8) // 17) << 4 | ((b + 8) // 17) for a, b in zip(pixels[::2], pixels[1::2]))
    return struct.pack("<II", TRAIN, TEST) + names[:TRAIN] + others[:TEST] + four


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    (out / "text.txt").write_text("\n".join(prose()) + "\n")
    if (ROOT / "build/digits").is_dir():
        with gzip.GzipFile(out / "digits.bin.gz", "wb", 9, mtime=0) as f:
            f.write(digits())
    else:
        print("make_data.py: no build/digits: the page comes without digits (scripts/get_digits.sh)", file=sys.stderr)


main()
