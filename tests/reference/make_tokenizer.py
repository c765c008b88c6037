"""Makes tests/reference/tokenizer/: tokenizers trained by Hugging Face's package, and what they make of difficult texts.

    pip install tokenizers && python3 tests/reference/make_tokenizer.py

    gpt2.json        byte-level BPE, 1,000 tokens, GPT-2's pattern
    prefix.json      350 tokens, add_prefix_space, merges as "a b", added tokens that strip white space
    whole.json       350 tokens, no pattern (use_regex false)
    NAME.cases       one text a line: its bytes in hexadecimal, a colon, the tokens (with special tokens found), a colon, the
                     tokens with special tokens taken as text
    trained.cases    the merges that training on corpus.txt must give, as numbers: left right, one a line
"""

import json
import random
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = Path(__file__).resolve().parent / "tokenizer"

TEXTS = [
    "", " ", "  ", "a", "Hello world", "Hello  world", " Hello world ", "The quick brown fox jumps over the lazy dog.",
    "I'm you're he's they've we'll I'd don't 'twas 'S 'T 'RE o'clock ''s '' ' 's 't", "it's'll've", "x'", "'", "'l", "'r", "'v x",
    "a\nb", "a\n\nb", "a \n b", "a\n \nb", "\n\n\n", "\t\tint x;\n\t\treturn x;\n", "a \t b", "a\r\nb\r\n", "   \n   x", "x   ",
    "x \n", "a\u00a0b", "a\u00a0\u00a0b", "\u3000x", "a\u2003 b", "\u2028x\u2029", "\x85x", "a\x0bb\x0cc", "\x1cx\x1d\x1e\x1f",
    "123", "1234567890 12,345.67", "x1y2z3", "٣٤٥ ½ Ⅷ ² ₃ 𝟘𝟙", "3rd 2nd 1st", "v1.2.3-rc4",
    "!!!", "...", " ...", "a!b", "a !b", "--flag=value", "#include <stdio.h>", "x->y[i++] += 0x1F;", "{\"a\": [1, 2]}",
    "naïve café Ünïcödé Straße", "cafe\u0301 e\u0301\u0301", "\u0301", " \u0301a", "日本語のテキスト", "中文 字符 测试", "한국어 텍스트",
    "Привет, мир!", "Γειά σου Κόσμε", "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก", "ქართული", "ᏣᎳᎩ", "𐐷𐐮𐑀",
    "😀😃 👩‍👩‍👧‍👦 🇨🇭 👍🏽", "a😀b", " 😀", "x\u200dy\u200bz\ufeff", "\ufeffBOM", "e\u20dd", "ǅ ʰ ª º", "\U0001e030\U00016d40 \ua7cb",
    "\x00", "a\x00b", "\x01\x02\x7f", "\u0080\u009f\u00ad", "\ue000\U000f0000\U0010ffff", "\ufffd", "\ufffe\uffff",
    "<|endoftext|>", "a<|endoftext|>b", "a <|endoftext|> b", "<|endoftext|><|endoftext|>", "<|endoftext|", "<|<|endoftext|>|>",
    "x <mask> y", "x<mask>", "xx<ma<mask>", "x   <mask>   y", "<mask><mask>", "\u00a0<mask>\n", "foo<extra>bar", "foo<extra> bar", "<extra>extra>", "<ex<extra>",
    "A" * 300, " " * 200 + "x", "ab" * 150, "\n" * 64 + "end", "0" * 99, "=" * 80, "αβγ" * 40, "supercalifragilisticexpialidocious",
    "ĠtheĊ", "Ġ", "é", "\u0143", "Ā",
]


def corpus():
    files = ["README.md", "docs/layout.md", "docs/design.md", "src/core/dict.c", "src/core/object.c", "include/cairn/base.h"]
    return "".join((ROOT / name).read_text(encoding="utf-8") for name in files)


def draw_texts():
    """Random neighbours: characters of every kind beside each other."""
    random.seed(7)
    letters = "aZé中ж1٣½ \n\t\u00a0\u3000'.!-_<|>😀\u0301\x00\x7f\xad" + "strevmld'"
    texts = []
    for _ in range(50):
        texts.append("".join(random.choice(letters) for _ in range(random.randint(2, 40))))
    return texts


def new_tokenizer(size, text, **level):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(**level)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def write_cases(tokenizer, name, texts):
    lines = []
    for text in texts:
        tokenizer.encode_special_tokens = False
        ids = tokenizer.encode(text).ids
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text).ids
        tokenizer.encode_special_tokens = False
        lines.append(text.encode().hex() + ":" + " ".join(map(str, ids)) + ":" + " ".join(map(str, plain)))
    (OUT / f"{name}.cases").write_text("\n".join(lines) + "\n")


def compact(data):
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"


def main():
    OUT.mkdir(exist_ok=True)
    text, texts = corpus(), TEXTS + draw_texts()

    tokenizer = new_tokenizer(1000, text, add_prefix_space=False)
    (OUT / "gpt2.json").write_text(compact(json.loads(tokenizer.to_str())), encoding="utf-8")
    write_cases(tokenizer, "gpt2", texts)

    # Training is compared on a smaller text, which is stored with what came out. Cairn cuts special tokens out of it first.
    small = text[:12000] + " ".join(each for each in TEXTS if "<|endoftext|>" not in each)
    (OUT / "corpus.txt").write_text(small, encoding="utf-8", newline="")
    model = json.loads(new_tokenizer(700, small, add_prefix_space=False).to_str())["model"]
    merges = [f"{model['vocab'][left]} {model['vocab'][right]}" for left, right in model["merges"]]
    (OUT / "trained.cases").write_text("\n".join(merges) + "\n")

    tokenizer = new_tokenizer(350, text, add_prefix_space=True)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken("<extra>"), AddedToken("extra>"), AddedToken("<ex"), AddedToken("x<ma")])
    data = json.loads(tokenizer.to_str())
    data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    (OUT / "prefix.json").write_text(compact(data), encoding="utf-8")
    write_cases(tokenizer, "prefix", texts)

    tokenizer = new_tokenizer(350, text[:3000], add_prefix_space=False, use_regex=False)
    (OUT / "whole.json").write_text(compact(json.loads(tokenizer.to_str())), encoding="utf-8")
    write_cases(tokenizer, "whole", texts)


main()
