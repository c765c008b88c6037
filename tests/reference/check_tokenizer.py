"""Holds what Cairn saves against Hugging Face's package: both must give the same tokens. Needs the package tokenizers.

    python3 tests/reference/check_tokenizer.py build/libcairn.so [text file ...]

Cairn trains on the text, saves, and both encode the texts of make_tokenizer.py and the text itself: BPE with and without a
space in front, without the pattern, bytes, characters. With two texts, the second is what is encoded.
"""

import ctypes
import sys
import tempfile
import time
from pathlib import Path

try:
    from tokenizers import Tokenizer
except ImportError:
    print("skipped: the package tokenizers is not installed")
    sys.exit(0)

HERE = Path(__file__).resolve().parent


class BpeDesc(ctypes.Structure):
    _fields_ = [("min_frequency", ctypes.c_int64), ("special", ctypes.POINTER(ctypes.c_char_p)), ("n_special", ctypes.c_int),
                ("add_prefix_space", ctypes.c_bool), ("no_split", ctypes.c_bool)]


def open_library(path):
    lib = ctypes.CDLL(path)
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for name, result, arguments in [
        ("cn_open", pointer, [pointer]), ("cn_error", ctypes.c_char_p, [pointer]),
        ("cn_bpe_train", pointer, [pointer, ctypes.c_char_p, size, ctypes.c_int64, ctypes.POINTER(BpeDesc)]),
        ("cn_tokenizer_bytes", pointer, [pointer]), ("cn_tokenizer_characters", pointer, [pointer, ctypes.c_char_p, size, ctypes.c_char_p]),
        ("cn_tokenizer_save", ctypes.c_bool, [pointer, ctypes.c_char_p]),
        ("cn_encode", ctypes.c_int64, [pointer, ctypes.c_char_p, size, ctypes.POINTER(ctypes.c_int32), ctypes.c_int64]),
    ]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def encode(lib, tokenizer, text):
    room = len(text) + 16
    out = (ctypes.c_int32 * room)()
    start = time.perf_counter()
    count = lib.cn_encode(tokenizer, text, len(text), out, room)
    return out[:count], time.perf_counter() - start


def case_texts():
    lines = (HERE / "tokenizer" / "gpt2.cases").read_text().splitlines()
    return [bytes.fromhex(line.split(":")[0]) for line in lines]


def compare(lib, ctx, name, tokenizer, texts):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/tokenizer.json"
        if not tokenizer or not lib.cn_tokenizer_save(tokenizer, path.encode()):
            sys.exit(f"{name}: {lib.cn_error(ctx).decode()}")
        theirs = Tokenizer.from_file(path)
    ours_time = theirs_time = bad = 0
    for text in texts:
        got, seconds = encode(lib, tokenizer, text)
        ours_time += seconds
        string = text.decode()
        start = time.perf_counter()
        want = theirs.encode(string).ids
        theirs_time += time.perf_counter() - start
        bad += got != want
        if got == want and theirs.decode(want, skip_special_tokens=False) != string and "unk" not in name and "space" not in name:
            print(f"{name}: {string[:40]!r} is not decoded")
            bad += 1
    print(f"{name}: {len(texts)} texts, {bad} differ; cairn {ours_time:.3f} s, tokenizers {theirs_time:.3f} s")
    return bad


def main():
    lib = open_library(sys.argv[1])
    ctx = lib.cn_open(None)
    files = sys.argv[2:] or [str(HERE / "tokenizer" / "corpus.txt")]
    train, texts = Path(files[0]).read_bytes(), case_texts() + [Path(files[-1]).read_bytes()]
    special = (ctypes.c_char_p * 1)(b"<|endoftext|>")
    bad = 0
    for name, size, desc in [("BPE", 8000, BpeDesc(0, special, 1)), ("BPE, a space in front", 2000, BpeDesc(0, special, 1, True)),
                             ("BPE without pattern", 600, BpeDesc(5, None, 0, False, True))]:
        text = train if not desc.no_split else train[:20000].decode(errors="ignore").encode()
        start = time.perf_counter()
        tokenizer = lib.cn_bpe_train(ctx, text, len(text), size, ctypes.byref(desc))
        print(f"{name}: trained on {len(text)} bytes in {time.perf_counter() - start:.2f} s")
        bad += compare(lib, ctx, name, tokenizer, texts)
    bad += compare(lib, ctx, "bytes", lib.cn_tokenizer_bytes(ctx), texts)
    bad += compare(lib, ctx, "characters, unk", lib.cn_tokenizer_characters(ctx, train, len(train), None), texts)
    sys.exit(1 if bad else 0)


main()
