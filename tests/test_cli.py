#!/usr/bin/env python3
"""The cairn command, every part of it on tiny sizes:  tests/test_cli.py [build/cairn [NAME ...]]

Prints what failed, and as its last line "N passed, M failed".
"""

import csv
import gzip
import json
import math
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAIRN = str(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "cairn").resolve())
passed = failed = 0

TINY = ["--layers", "2", "--heads", "2", "--width", "32", "--context", "32", "--batch", "4", "--warmup", "5",
        "--eval-windows", "8", "--tokens", "20", "--threads", "2"]
GPT = "gpt-l2-h2-w32-c32-cpu.safetensors"
COMMANDS = ["train gpt", "train mlp", "train cnn", "generate", "eval", "info", "run", "convert", "bench", "ops", "devices",
            "runs", "doctor", "bundle"]


def check(ok, what, detail=""):
    global passed, failed
    if ok:
        passed += 1
        return
    failed += 1
    print(f"FAILED {what}\n    {str(detail)[-1500:]}")


def cairn(*words, **more):
    more.setdefault("timeout", 900)
    return subprocess.run([CAIRN, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, **more)


def works(*words, **more):
    result = cairn(*words, **more)
    check(result.returncode == 0 and not result.stderr, f"cairn {' '.join(map(str, words))}",
          f"exit {result.returncode}: {result.stderr.decode(errors='replace')}")
    return result.stdout.decode(errors="replace")


def refuses(code, words, *parts, **more):
    """One line that names what is wrong, and this exit status."""
    result = cairn(*words, **more)
    err = result.stderr.decode(errors="replace")
    ok = result.returncode == code and err.count("\n") == 1 and all(part in err for part in parts)
    check(ok, f"cairn {' '.join(map(str, words))} is refused with {code} and {parts}", f"exit {result.returncode}: {err}")


def without_gpu():
    """An environment in which no graphics card is found."""
    return {**os.environ, "CAIRN_WEBGPU_LIB": "/nonexistent/libwebgpu.so"}


def with_gpu():
    """The environment of a software GPU, if scripts/gpu.sh was run; else None."""
    script = ROOT / "build" / "gpu" / "env.sh"
    if not script.exists():
        return None
    result = subprocess.run(["bash", "-c", f". '{script}' && gpu_wgpu_lavapipe env -0"], capture_output=True)
    words = [word.split("=", 1) for word in result.stdout.decode().split("\0") if "=" in word]
    return dict(words) if result.returncode == 0 else None


def tensors(path):
    """The texts of a safetensors file, and its tensors as bytes."""
    data = Path(path).read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    texts = header.pop("__metadata__", {})
    return texts, {k: (v["dtype"], v["shape"], data[8 + n:][slice(*v["data_offsets"])]) for k, v in header.items()}


def log_of(folder, name):
    rows = [line.split(",") for line in (Path(folder) / "log.csv").read_text().splitlines()[1:]]
    return [(int(row[0]), float(row[3])) for row in rows if row[2] == name]


def wait_for(path, text, process, seconds=600):
    """Until a log holds some text."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if path.exists() and text in path.read_text():
            return True
        time.sleep(0.01)
    return False


# ---- data


def write_text(path, words=4000, seed=1):
    rng = random.Random(seed)
    subject, verb, thing = "the cat|a dog|my bird|the fox".split("|"), "sees|likes|finds".split("|"), "milk|a bone|seeds|été".split("|")
    path.write_text("".join(f"{rng.choice(subject)} {rng.choice(verb)} {rng.choice(thing)}.\n" for _ in range(words // 4)))


def write_tables(folder):
    rng = random.Random(2)
    circle, line = ["a,b,where"], ["a,b,y"]
    for _ in range(300):
        a, b = rng.gauss(100, 20), rng.gauss(0, 0.01)
        circle.append(f"{a},{b},{'in' if ((a - 100) / 20) ** 2 + (b / 0.01) ** 2 < 1.4 else 'out'}")
        line.append(f"{a},{b},{1000 * a - 2e5 * b + 7}")
    (folder / "circle.csv").write_text("\n".join(circle) + "\n")
    (folder / "line.csv").write_text("\n".join(line) + "\n")


def write_images(folder, n, images, labels, opener, seed):
    """Upright and level strokes."""
    rng = random.Random(seed)
    with opener(folder / images, "wb") as x, opener(folder / labels, "wb") as y:
        x.write(struct.pack(">IIII", 0x803, n, 8, 8))
        y.write(struct.pack(">II", 0x801, n))
        for _ in range(n):
            pixels, label, at = [rng.randrange(80) for _ in range(64)], rng.randrange(2), rng.randrange(8)
            for i in range(8):
                pixels[i * 8 + at if label else at * 8 + i] = 255
            x.write(bytes(pixels))
            y.write(bytes([label]))


# ---- tests; each has a folder with text.txt, the tables and the images


def test_help(folder):
    union = set()
    for name in COMMANDS:
        text = works(*name.split(), "--help", cwd=folder)
        options = set(re.findall(r"--([a-z0-9-]+)", text))
        union |= options
        check("usage: cairn " + name in text and "Examples" in text, f"{name} --help", text)
        wide = [line for line in text.splitlines() if len(line) > 100]
        check(not wide, f"{name} --help ends before column 100", wide)
        refuses(2, [*name.split(), "--no-such-option"], "no option '--no-such-option'", cwd=folder)
        # every option that the help does not name is unknown to the command, every one that it names is known
        for option in sorted(options - {"help"}):
            err = cairn(*name.split(), f"--{option}=", cwd=folder).stderr.decode()
            check("no option" not in err, f"{name} has --{option}", err)
    source = (ROOT / "cli" / "options.c").read_text()
    table = re.findall(r'\{ *[A-Z_"a-zA-Z]+, ([^"{}]*?), "([a-z0-9-]+)",', source)
    check(len(table) > 50, "the table of options is read", len(table))
    check({name for _, name in table} <= union, "every option is in a help text", {n for _, n in table} - union)
    train = works("train", "--help", cwd=folder)
    for bits, name in table:
        if "TRAIN" in bits:
            check(f"--{name}" in train, f"train --help has --{name}")
    check("train gpt" in works("--help") and "usage" in works("help"), "--help")
    check(re.fullmatch(r"cairn \d+\.\d+\.\d+\n", works("--version")), "--version")


def test_wrong_words(folder):
    refuses(2, ["trian"], "did you mean 'train'")
    refuses(2, ["evaluate"], "no command 'evaluate'")
    refuses(2, ["train"], "gpt, mlp or cnn")
    refuses(2, ["train", "gtp"], "did you mean 'train gpt'")
    refuses(2, ["train", "gpt", "--layesr", "3"], "did you mean --layers")
    refuses(2, ["train", "gpt", "--layers"], "--layers needs a value")
    refuses(2, ["train", "gpt", "--layers", "many"], "--layers", "must be a whole number, got 'many'")
    refuses(2, ["train", "gpt", "--layers", "0"], "--layers", "must be between")
    refuses(2, ["train", "gpt", "--lr", "nan"], "--lr", "must be a number")
    refuses(2, ["train", "gpt", "--steps", "99999999999999999999"], "--steps")
    refuses(2, ["train", "gpt", "--quiet=perhaps"], "--quiet")
    refuses(2, ["train", "gpt", "--device", "tpu"], "must be one of auto|cpu|gpu", "got 'tpu'")
    refuses(2, ["train", "gpt", "stray"], "has no argument, got 'stray'")
    refuses(2, ["train", "gpt"], "--data")
    refuses(2, ["train", "mlp", "--data", folder / "line.csv"], "--target")
    refuses(2, ["train", "mlp", "--data", "x", "--target", "y", "--hidden", "4,,4"], "--hidden")
    refuses(2, ["train", "cnn"], "--images")
    refuses(2, ["generate"], "needs the argument MODEL")
    refuses(2, ["generate", "a", "b"], "has one argument MODEL")
    refuses(2, ["train", "gpt", "--data", folder / "text.txt", "--width", "33", "--heads", "2"], "multiple", cwd=folder)
    check(cairn().returncode == 2, "no command at all")


def test_bad_files(folder):
    (folder / "empty.txt").write_text("")
    (folder / "short.txt").write_text("too short")
    (folder / "nothing").mkdir()
    train = ["train", "gpt", *TINY]
    refuses(1, [*train, "--data", "none.txt"], "none.txt: No such file", cwd=folder)
    refuses(1, [*train, "--data", "empty.txt"], "empty", cwd=folder)
    refuses(1, [*train, "--data", "short.txt", "--quiet"], "tokens", "33", cwd=folder)
    refuses(1, [*train, "--data", "nothing"], "no text file", cwd=folder)
    refuses(1, [*train, "--data", "text.txt", "--tokenizer", "none.json"], "none.json", cwd=folder)
    refuses(1, [*train, "--data", "text.txt", "--out", "text.txt/x"], "text.txt", cwd=folder)
    refuses(1, [*train, "--data", "text.txt", "--resume", "none"], "none", cwd=folder)
    refuses(1, [*train, "--data", "text.txt", "--resume", "text.txt"], "text.txt", cwd=folder)
    refuses(1, [*train, "--data", "text.txt", "--device", "gpu"], "--device gpu", "there is no GPU", "CAIRN_WEBGPU_LIB", cwd=folder,
            env=without_gpu())
    refuses(1, ["bench", "--only", "mlp", "--device", "gpu"], "--device gpu", "there is no GPU", env=without_gpu())
    refuses(1, ["doctor"], "--device gpu", "there is no GPU", env=without_gpu())
    refuses(1, ["train", "mlp", "--data", "none.csv", "--target", "y"], "none.csv", cwd=folder)
    refuses(1, ["train", "mlp", "--data", "line.csv", "--target", "z"], "z", cwd=folder)
    refuses(1, ["train", "mlp", "--data", "circle.csv", "--target", "where"], "circle.csv", cwd=folder)
    refuses(1, ["train", "cnn", "--images", "text.txt", "--labels", "y.idx"], "text.txt", cwd=folder)
    refuses(1, ["train", "cnn", "--images", "y.idx", "--labels", "y.idx"], "y.idx", cwd=folder)
    refuses(1, ["info", "none"], "none", cwd=folder)
    refuses(1, ["info", "text.txt"], "text.txt", cwd=folder)
    refuses(1, ["generate", "none"], "none", cwd=folder)
    refuses(1, ["generate", "nothing"], "no .safetensors", cwd=folder)
    refuses(1, ["eval", "text.txt", "--data", "text.txt"], "text.txt", cwd=folder)
    refuses(1, ["ops", "no-such-operator"], "no-such-operator")


def test_train_gpt(folder):
    out = works("train", "gpt", "--data", "text.txt", *TINY, "--steps", 150, "--eval-every", 50, "--lr", "0.003",
                "--sample-every", 100, "--out", "run", "--profile", "trace.json", cwd=folder)
    run = folder / "run"
    for name in [GPT, "tokenizer.json", "log.csv", "loss.svg", "loss.png", "config.conf"]:
        check((run / name).stat().st_size > 0 if (run / name).exists() else False, f"{name} is written")
    check(list(run.glob("events.out.tfevents.*")), "TensorBoard's events are written")
    for words in ["2 threads", "parameters", "unigram entropy", "bits per byte", "sample, before", "sample, after",
                  "tokens/s", "generate run --prompt", "outside matmul", "held out"]:
        check(words in out, f"train says '{words}'", out)
    losses, held = log_of(run, "loss/train"), log_of(run, "loss/held_out")
    check([step for step, _ in losses] == list(range(1, 151)), "every step is logged once")
    check([step for step, _ in held] == [0, 50, 100, 150], "measured every 50 steps", held)
    unigram = float(re.search(r"unigram entropy: a loss of ([\d.]+)", out)[1])
    check(held[-1][1] < unigram - 0.5 < held[0][1], "the loss falls below the unigram entropy", (unigram, held))
    check("traceEvents" in (folder / "trace.json").read_text(), "a trace is written")
    check("unigram entropy" in (run / "loss.svg").read_text(), "the picture shows the unigram entropy")
    texts, named = tensors(run / GPT)
    check(texts["model"] == "gpt" and texts["step"] == "150", "the checkpoint says what it is", texts)
    check(named["wte.weight"][1] == [256, 32] and "optim/state/0/exp_avg" in named, "it has model and optimizer")
    score = works("eval", "run", "--data", "text.txt", cwd=folder)
    loss = float(re.search(r"loss ([\d.]+)", score)[1])
    check(abs(loss - held[-1][1]) < 0.3 and "perplexity" in score, "eval measures about the same", score)
    check("wte.weight" in works("info", "run", cwd=folder), "info of a folder")
    check("256 tokens" in works("info", run / "tokenizer.json", cwd=folder), "info of a tokenizer")
    checkpoint = works("info", ROOT / "tests" / "reference" / "pt" / "checkpoint.pt", cwd=folder)
    check("model.0.weight" in checkpoint and "epoch" in checkpoint, "info of a file of torch.save", checkpoint)
    works("train", "gpt", "--config", run / "config.conf", "--steps", 2, "--quiet", "--out", "again", cwd=folder)


def test_tokenizers(folder):
    tree = folder / "tree" / "deep"
    tree.mkdir(parents=True)
    write_text(tree / "a.md")
    (tree / "b.bin").write_bytes(b"\0\1binary")
    (tree / "c.c").write_text("int main(void) { return 0; }\n" * 200)
    (tree / "loop").symlink_to("..")
    for kind, count in [("chars", None), ("bpe", 300)]:
        out = works("train", "gpt", "--data", "tree", *TINY, "--tokenizer", kind, "--vocab", 300, "--steps", 3, "--out", kind,
                    cwd=folder)
        kinds = int(re.search(r"of (\d+) kinds", out)[1])
        check(kinds == count if count else 10 < kinds < 100, f"{kind}: {kinds} tokens")
        check("text: 2 files" in out, "binary files and circles are passed over", out)
        works("generate", kind, "--prompt", "the été", "--tokens", 5, "--seed", 1, cwd=folder)
        works("eval", kind, "--data", "tree", "--include", "*.md", "--quiet", cwd=folder)
    out = works("train", "gpt", "--data", "tree", "--include", "*.c", *TINY, "--tokenizer", "bpe/tokenizer.json", "--steps", 2,
                "--out", "reused", cwd=folder)
    check("text: 1 files" in out and "300 kinds" in out, "a tokenizer of a file, and --include", out)


def same_files(a, b, what):
    one, other = tensors(a), tensors(b)
    different = [name for name in one[1] if one[1][name] != other[1].get(name)]
    check(one[1].keys() == other[1].keys() and not different, f"{what}: every tensor is the same", different[:5])
    check(Path(a).read_bytes() == Path(b).read_bytes(), f"{what}: the files are the same",
          {k: (v, other[0].get(k)) for k, v in one[0].items() if v != other[0].get(k)})


RUN = ["--data", "text.txt", *TINY, "--dropout", "0.1", "--accumulate", "2", "--quiet"]


def test_resume(folder):
    works("train", "gpt", *RUN, "--steps", 40, "--eval-every", 7, "--out", "whole", cwd=folder)
    works("train", "gpt", *RUN, "--steps", 40, "--eval-every", 7, "--stop-at", 20, "--out", "parts", cwd=folder)
    half = (folder / "parts" / GPT).read_bytes()
    check(tensors(folder / "parts" / GPT)[0]["step"] == "20", "--stop-at stops there")
    works("train", "gpt", "--resume", f"parts/{GPT}", "--quiet", cwd=folder)
    same_files(folder / "whole" / GPT, folder / "parts" / GPT, "20 + 20 steps")
    check(log_of(folder / "whole", "loss/train") == log_of(folder / "parts", "loss/train"), "the log goes on")
    check("nothing to do" in works("train", "gpt", "--resume", f"parts/{GPT}", cwd=folder), "a run that is done")
    works("train", "gpt", *RUN[:-1], "--steps", 40, "--eval-every", 3, "--sample-every", 4, "--save-every", 11, "--out", "watched",
          cwd=folder)
    check(tensors(folder / "watched" / GPT)[1] == tensors(folder / "whole" / GPT)[1], "watching a run does not change it")
    works("train", "gpt", *RUN, "--steps", 40, "--eval-every", 7, "--seed", 2, "--out", "other", cwd=folder)
    check((folder / "other" / GPT).read_bytes() != (folder / "whole" / GPT).read_bytes(), "another seed, another model")
    (folder / "half.safetensors").write_bytes(half)
    refuses(1, ["train", "gpt", "--resume", "half.safetensors", "--width", "64"], "width", cwd=folder)
    refuses(1, ["train", "mlp", "--resume", "half.safetensors"], "of a gpt, not of a mlp", cwd=folder)
    (folder / "cut.safetensors").write_bytes(half[:len(half) // 2])
    refuses(1, ["train", "gpt", "--resume", "cut.safetensors"], "cut.safetensors", cwd=folder)
    text = (folder / "text.txt").read_bytes()
    (folder / "text.txt").write_bytes(text + b"more")
    refuses(1, ["train", "gpt", "--resume", "half.safetensors"], "another text", cwd=folder)
    (folder / "text.txt").write_bytes(text)
    for kind, words, file in [("mlp", ["--data", "circle.csv", "--target", "where", "--classes"], "mlp-h8-cpu.safetensors"),
                              ("cnn", ["--images", "x.idx", "--labels", "y.idx", "--channels", "4,4"], "cnn-c4-4-h8-cpu.safetensors")]:
        words = ["train", kind, *words, "--epochs", 4, "--batch", 32, "--hidden", 8, "--dropout", "0.2", "--quiet"]
        works(*words, "--out", kind + "1", cwd=folder)
        works(*words, "--out", kind + "2", "--stop-at", 9, cwd=folder)
        works("train", kind, "--resume", f"{kind}2/{file}", "--quiet", cwd=folder)
        same_files(folder / (kind + "1") / file, folder / (kind + "2") / file, kind)


def start(folder, *words):
    return subprocess.Popen([CAIRN, *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def test_interrupt(folder):
    words = ["train", "gpt", "--data", "text.txt", *TINY, "--dropout", "0.1", "--steps", 400, "--eval-every", 0, "--save-every", 0]
    for number, name in [(signal.SIGINT, "int"), (signal.SIGTERM, "term")]:
        process = start(folder, *words, "--out", name)
        check(wait_for(folder / name / "log.csv", "loss/train", process), "training begins")
        process.send_signal(number)
        out, err = process.communicate(timeout=600)
        check(process.returncode == 128 + number, f"{name}: exit {128 + number}", (process.returncode, err))
        check(b"interrupted after step" in out and b"--resume" in out, f"{name}: says how to go on", out)
        step = int(tensors(folder / name / GPT)[0]["step"])
        check(0 < step < 400, f"{name}: saved in the middle", step)
        works("train", "gpt", "--resume", f"{name}/{GPT}", "--quiet", cwd=folder)
    process = start(folder, *words, "--accumulate", 100000, "--out", "twice")  # a step of minutes
    check(wait_for(folder / "twice" / "log.csv", "step", process), "training begins")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    check(process.poll() is None, "after the first Ctrl-C the step is finished")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=600)
    check(process.returncode == -signal.SIGINT, "the second ends it at once", process.returncode)
    works(*words, "--quiet", "--out", "calm", cwd=folder)
    for name in ["int", "term"]:
        same_files(folder / "calm" / GPT, folder / name / GPT, f"interrupted by {name}")


def test_kill(folder):
    """Whenever it is ended by force, the checkpoint is whole: the last one or the one before."""
    words = ["train", "gpt", "--data", "text.txt", *TINY, "--steps", 100000, "--save-every", 1, "--eval-every", 0]
    rng = random.Random(3)
    for i in range(6):
        process = start(folder, *words, "--out", f"kill{i}")
        end = time.monotonic() + 60
        while not (folder / f"kill{i}" / GPT).exists() and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(rng.random() * 0.2)
        process.kill()
        process.communicate()
        path = folder / f"kill{i}" / GPT
        check(int(tensors(path)[0]["step"]) > 0, "a checkpoint after kill -9")
        works("info", path, cwd=folder)
        works("train", "gpt", "--resume", path, "--stop-at", int(tensors(path)[0]["step"]) + 1, "--quiet", cwd=folder)


def test_generate(folder):
    works("train", "gpt", "--data", "text.txt", *TINY, "--steps", 30, "--quiet", "--out", "run", cwd=folder)
    words = ["generate", "run", "--prompt", "the ", "--tokens", 120]
    one, two, other = (works(*words, "--seed", seed, cwd=folder) for seed in (7, 7, 8))
    check(one == two and one.startswith("the ") and len(one) > 40, "the same seed gives the same text", (one, two))
    check(one != other, "another seed gives another text")
    check(works(*words, cwd=folder) != works(*words, cwd=folder), "no seed: another text each time")
    greedy = [works(*words, "--greedy", "--seed", seed, cwd=folder) for seed in (1, 2)]
    check(greedy[0] == greedy[1], "--greedy leaves nothing to chance")
    check(works(*words, "--top-k", 1, "--seed", 5, cwd=folder) == greedy[0], "--top-k 1 is greedy")
    check(works(*words, "--top-p", "0.000001", "--seed", 5, cwd=folder) == greedy[0], "--top-p of nearly 0 is greedy")
    (folder / "prompt.txt").write_text("the ")
    check(works("generate", "run", "--prompt-file", "prompt.txt", "--tokens", 120, "--seed", 7, cwd=folder) == one, "--prompt-file")
    check(works("generate", "run", "--prompt", "x", "--tokens", 0, cwd=folder) == "x", "--tokens 0")
    result = cairn("generate", "run", "--tokens", 20, "-v", cwd=folder)
    check(b"tokens/s" in result.stderr and result.returncode == 0, "-v says the speed", result.stderr)
    result.stdout.decode()  # whole characters: UTF-8, whatever the bytes that were drawn
    refuses(2, ["generate", "run", "--prompt", "a", "--prompt-file", "prompt.txt"], "not both", cwd=folder)
    hugging_face = folder / "hf"
    hugging_face.mkdir()
    texts, named = tensors(folder / "run" / GPT)
    write_safetensors(hugging_face / "model.safetensors",
                      {"transformer." + k: v for k, v in named.items() if not k.startswith("optim/")}, {"format": "pt"})
    (hugging_face / "tokenizer.json").write_bytes((folder / "run" / "tokenizer.json").read_bytes())
    (hugging_face / "config.json").write_text('{"model_type": "gpt2", "n_head": 2}')
    again = works("generate", "hf", "--prompt", "the ", "--tokens", 120, "--seed", 7, cwd=folder)
    check(again == one, "a Hugging Face folder, heads from config.json", again)
    (hugging_face / "config.json").unlink()
    check(works("generate", "hf", "--heads", 2, "--prompt", "the ", "--tokens", 120, "--seed", 7, cwd=folder) == one, "--heads")
    check("perplexity" in works("eval", "hf", "--heads", 2, "--data", "text.txt", cwd=folder), "eval of a Hugging Face folder")
    (hugging_face / "tokenizer.json").unlink()
    refuses(1, ["generate", "hf", "--prompt", "a"], "tokenizer.json", cwd=folder)
    refuses(1, ["generate", "hf", "--tokenizer", "prompt.txt"], "prompt.txt", cwd=folder)
    (folder / "alone.safetensors").write_bytes((folder / "run" / GPT).read_bytes())
    alone = works("generate", "alone.safetensors", "--prompt", "the ", "--tokens", 120, "--seed", 7, cwd=folder)
    check(alone == one, "a checkpoint has its tokenizer, and can travel alone", alone)


def test_configs_come_back(folder):
    for i, prompt in enumerate(["A tensor is ", " both ends ", "issue #7", "# not a comment", "tab\tline\n\\n", " ", "\r x"]):
        words = ["train", "gpt", *TINY, "--steps", 1, "--quiet"]
        works(*words, "--data", "text.txt", "--prompt", prompt, "--out", f"a{i}", cwd=folder)
        works("train", "gpt", "--config", f"a{i}/config.conf", "--threads", 2, "--quiet", "--out", f"b{i}", cwd=folder)
        check(tensors(folder / f"b{i}" / GPT)[0]["option/prompt"] == prompt, f"the prompt {prompt!r} comes back from config.conf",
              (folder / f"a{i}" / "config.conf").read_text())


def test_measurements(folder):
    """Numbers do not depend on how the work is cut: batches, their sum in a step, tokens."""
    words = ["train", "gpt", "--data", "text.txt", *TINY, "--steps", 2, "--quiet"]
    works(*words, "--batch", 8, "--out", "one", cwd=folder)
    works(*words, "--batch", 4, "--accumulate", 2, "--out", "two", cwd=folder)
    for name in ["loss/train", "grad_norm"]:
        one, two = log_of(folder / "one", name), log_of(folder / "two", name)
        check(all(abs(a[1] - b[1]) < 1e-3 * a[1] for a, b in zip(one, two)), f"{name} of 8 windows or of 4 and 4", (one, two))
    words = ["train", "mlp", "--data", "circle.csv", "--target", "where", "--classes", "--epochs", 1, "--val", "0.3", "--quiet"]
    works(*words, "--batch", 7, "--out", "few", cwd=folder)
    works(*words, "--batch", 1000, "--out", "many", cwd=folder)
    few, many = (log_of(folder / name, "loss/held_out")[0] for name in ("few", "many"))
    check(few[0] == 0 and abs(few[1] - many[1]) < 1e-4 * many[1], "every held-out row is measured", (few, many))
    works("train", "gpt", "--data", "text.txt", *TINY, "--tokenizer", "bpe", "--vocab", 300, "--steps", 2, "--quiet", "--out", "bpe",
          cwd=folder)
    score = works("eval", "bpe", "--data", "text.txt", cwd=folder)
    loss, perplexity, bits, tokens = (float(re.search(p, score)[1]) for p in
                                      (r"loss ([\d.]+)", r"perplexity ([\d.]+)", r"([\d.]+) bits", r"over (\d+)"))
    size = (folder / "text.txt").stat().st_size
    check(tokens < 0.9 * size and abs(bits / (loss / math.log(2) * tokens / size) - 1) < 0.05, "bits per byte", (score, size))
    check(abs(perplexity / math.exp(loss) - 1) < 0.01, "perplexity", score)


def write_safetensors(path, named, texts):
    header, offset = {"__metadata__": texts}, 0
    for name, (dtype, shape, data) in named.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(data for _, _, data in named.values()))


def test_mlp(folder):
    out = works("train", "mlp", "--data", "circle.csv", "--target", "where", "--classes", "--epochs", 60, "--lr", "0.01",
                "--val", "0.2", "--out", "m", cwd=folder)
    check(log_of(folder / "m", "accuracy/held_out")[-1][1] > 0.85, "an MLP learns a circle", out)
    check(float(re.search(r"accuracy ([\d.]+)", works("eval", "m", "--data", "circle.csv", cwd=folder))[1]) > 0.85, "eval")
    rows = (folder / "circle.csv").read_text().splitlines()
    (folder / "outs.csv").write_text("\n".join([rows[0], *(r for r in rows if r.endswith("out"))]))
    check(float(re.search(r"accuracy ([\d.]+)", works("eval", "m", "--data", "outs.csv", cwd=folder))[1]) > 0.8,
          "classes go by name, not by their number in the table")
    (folder / "alien.csv").write_text("a,b,where\n1,2,elsewhere\n")
    refuses(1, ["eval", "m", "--data", "alien.csv"], "no class 'elsewhere'", cwd=folder)
    (folder / "wide.csv").write_text("a,b,c,where\n1,2,3,in\n")
    refuses(1, ["eval", "m", "--data", "wide.csv"], "3 columns", cwd=folder)
    works("train", "mlp", "--data", "line.csv", "--target", "y", "--epochs", 60, "--lr", "0.01", "--quiet", "--out", "v", cwd=folder)
    check(log_of(folder / "v", "R2/held_out")[-1][1] > 0.97, "an MLP learns a plane")
    check("R2 0.9" in works("eval", "v", "--data", "line.csv", cwd=folder), "eval of quantities")
    refuses(1, ["generate", "m", "--prompt", "x"], "writes no text", cwd=folder)


def test_cnn(folder):
    out = works("train", "cnn", "--images", "x.idx", "--labels", "y.idx", "--test-images", "tx.gz", "--test-labels", "ty.gz",
                "--channels", "4,8", "--hidden", 16, "--epochs", 12, "--batch", 32, "--lr", "0.005", "--out", "c", cwd=folder)
    check(log_of(folder / "c", "accuracy/held_out")[-1][1] > 0.9, "a CNN tells strokes apart", out)
    check(float(re.search(r"accuracy ([\d.]+)", works("eval", "c", "--images", "tx.gz", "--labels", "ty.gz", cwd=folder))[1]) > 0.9, "eval")
    refuses(2, ["eval", "c"], "--images", cwd=folder)
    refuses(2, ["train", "cnn", "--images", "x.idx", "--labels", "y.idx", "--channels", "4"], "--channels", cwd=folder)


def test_convert(folder):
    """To ONNX and back: the same tensors, the same text and measurements. tests/onnx/check_programs.py asks onnxruntime."""
    works("train", "gpt", "--data", "text.txt", *TINY, "--steps", 3, "--quiet", "--out", "g", cwd=folder)
    check("written from g" in works("convert", "g", "g.onnx", cwd=folder), "convert says what it wrote")
    shown = works("info", "g.onnx", cwd=folder)
    check(all(word in shown for word in ["ids", "logits", "int64", "cairn/heads", "batch", "time"]), "what a GPT becomes", shown)
    works("convert", "g.onnx", "back.safetensors", "--quiet", cwd=folder)
    texts, back = tensors(folder / "back.safetensors")
    former, own = tensors(folder / "g" / GPT)
    check(back == {k: v for k, v in own.items() if k in back} and len(back) > 20, "the same tensors", set(back))
    check(all(texts[k] == former[k] for k in ["model", "heads", "tokenizer.json", "option/width"]), "the same texts", texts)
    words = ["--prompt", "the ", "--tokens", 20, "--seed", 1]
    check(works("generate", "g", *words, cwd=folder) == works("generate", "back.safetensors", *words, cwd=folder), "the same text")
    write_safetensors(folder / "gpt2.safetensors", {f"transformer.{k}": v for k, v in back.items()}, {})
    works("convert", "gpt2.safetensors", "gpt2.onnx", "--heads", 2, cwd=folder)
    works("convert", "gpt2.onnx", "gpt2-back.safetensors", cwd=folder)
    check(tensors(folder / "gpt2-back.safetensors")[1] == back, "GPT-2's file")
    check(works("generate", "gpt2-back.safetensors", "--tokenizer", "g/tokenizer.json", *words, cwd=folder)
          == works("generate", "g", *words, cwd=folder), "GPT-2's file writes the same text")
    works("train", "mlp", "--data", "line.csv", "--target", "y", "--epochs", 2, "--quiet", "--out", "m", cwd=folder)
    works("train", "cnn", "--images", "x.idx", "--labels", "y.idx", "--epochs", 1, "--quiet", "--out", "c", cwd=folder)
    for name, data in [("m", ["--data", "line.csv"]), ("c", ["--images", "x.idx", "--labels", "y.idx"])]:
        works("convert", name, f"{name}.onnx", cwd=folder)
        works("convert", f"{name}.onnx", f"{name}.safetensors", cwd=folder)
        check(works("eval", name, *data, cwd=folder) == works("eval", f"{name}.safetensors", *data, cwd=folder),
              f"{name} measures the same after a round trip")
    works("convert", "m.onnx", "m.npz", cwd=folder)
    refuses(1, ["convert", "g", "g.onnx"], "g.onnx exists", "--force", cwd=folder)
    works("convert", "g", "g.onnx", "--force", "--opset", 17, cwd=folder)
    refuses(2, ["convert", "g"], "the arguments IN OUT", cwd=folder)
    refuses(2, ["convert", "g", "a.onnx", "b.onnx"], "got 'b.onnx' as well", cwd=folder)
    refuses(2, ["convert", "g", "x.safetensors"], "must be an .onnx file", cwd=folder)
    refuses(2, ["convert", "g.onnx", "x.txt"], "OUT", cwd=folder)
    refuses(1, ["convert", "none.onnx", "x.npz"], "none.onnx", cwd=folder)
    (folder / "bad.onnx").write_bytes((folder / "g.onnx").read_bytes()[:5000])
    refuses(1, ["convert", "bad.onnx", "x.npz"], "bad.onnx", cwd=folder)
    write_safetensors(folder / "alien.safetensors", {"w": ("F32", [1], b"\0\0\0\0")}, {})
    refuses(1, ["convert", "alien.safetensors", "alien.onnx"], "kind of its model", cwd=folder)
    check(not (folder / "alien.onnx").exists(), "nothing is written after an error")


def test_config(folder):
    (folder / "cairn.conf").write_text("threads = 1\n[train.gpt]\nlayers = 1   # a comment\nheads = 1\n\n[train]\nbatch = 3\n")
    (folder / "mine.conf").write_text("# mine\n[train.gpt]\nheads = 2\nwidth = 32\ndata = text.txt\ndata = text.txt\n[generate]\ntokens = 4\n")
    base = ["train", "gpt", "--context", 32, "--steps", 1, "--tokens", 4]
    out = works(*base, "--data", "text.txt", "--width", 16, "--out", "a", cwd=folder)
    check("gpt-l1-h1-w16-c32-cpu on cpu, 1 threads" in out, "./cairn.conf is read", out)
    out = works(*base, "--config", "mine.conf", "--out", "b", cwd=folder)
    check("gpt-l1-h2-w32-c32" in out and "text: 2 files" in out, "--config overrides ./cairn.conf", out)
    out = works(*base, "--config", "mine.conf", "--heads", 4, "--layers", 2, "--data", "text.txt", "--out", "c", cwd=folder)
    check("gpt-l2-h4-w32-c32" in out and "text: 1 files" in out, "the command line overrides both", out)
    check("batch = 3" in (folder / "a" / "config.conf").read_text(), "[train] speaks of every kind")
    check(len(works("generate", "c", "--config", "mine.conf", "--prompt", "ab", "--seed", 1, cwd=folder).encode()) <= 18, "[generate]")
    for text, words in [("[train.gpt]\n\nlayesr = 3\n", ["line 3", "'layesr'", "did you mean 'layers'"]),
                        ("[train.gpt]\ntarget = 3\n", ["line 2", "'target'"]), ("[nonsense]\n", ["line 1", "nonsense"]),
                        ("[train.gpt\n", ["line 1"]), ("layers\n", ["line 1", "key = value"]),
                        ("\nlayers = x\n", ["line 2", "must be a whole number"]), ("a\0b", ["bytes that are 0"])]:
        (folder / "bad.conf").write_text(text)
        refuses(1, [*base, "--data", "text.txt", "--config", "bad.conf"], "bad.conf", *words, cwd=folder)
    refuses(1, [*base, "--config", "none.conf"], "none.conf", cwd=folder)
    (folder / "cairn.conf").unlink()


def test_others(folder):
    check("matmul" in works("ops") and "operators" in works("ops"), "ops")
    check(0 < works("ops", "SOFTMAX").count("\n") < works("ops").count("\n"), "ops by a word")
    topk = works("ops", "topk")
    check(topk.startswith("topk(Tensor input, int k, int dim=-1, bool largest=True) -> (Tensor values, Tensor indices)"),
          "ops by a name: its signature", topk)
    check("cn_tensor *cn_topk(cn_tensor *input" in topk and "cpu, gpu" in topk, "ops by a name: prototype, devices", topk)
    check("cn_mse_loss(" in works("ops", "mse_loss"), "a function of several operators")
    devices = works("devices")
    check(re.search(r"cpu +\d+ cores", devices) and "gpu" in devices, "devices", devices)
    check("gpt-mini" in works("bench", "--list"), "bench --list")
    line = works("bench", "--only", "mlp", "--seconds", "0.05", "--threads", 1)
    check(re.fullmatch(r"mlp [\d.]+ \d+\n", line), "bench", line)
    benchmark_program("bench_workloads", ["--only", "mlp-tiny", "--seconds", "0.01", "--turns"],
                           r"mlp-tiny ready\n(mlp-tiny [\d.]+ \d+\n){2}", lines="\n\n")
    benchmark_program("bench_workloads", ["--only", "matmul-256", "--seconds", "0.01", "--work"],
                           r"matmul-256 [\d.]+ \d+ 0\.034 GFLOP 0\.8 MB: \d+ GFLOP/s [\d.]+ GB/s\n")
    benchmark_program("bench_limits", ["--gain", "1"], r"\d\.\d\d\n")


def benchmark_program(name, words, expected, lines=""):
    """One that stands beside the command in the build folder; lines: its input."""
    out = subprocess.run([Path(CAIRN).parent / name, *words], input=lines, capture_output=True, text=True, timeout=600)
    check(re.fullmatch(expected, out.stdout), name, out.stdout + out.stderr)


def table_of(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def test_runs(folder):
    """runs.csv: a line for each training, also of trainings that end together; cairn runs compares them."""
    odd = 'a, "b"\nc'
    jobs = [subprocess.Popen([CAIRN, "train", "gpt", *RUN, "--steps", "3", "--prompt", odd, "--seed", str(i), "--out", f"many/{i}"],
                             cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for i in range(6)]
    check([job.wait(900) for job in jobs] == [0] * 6, "six trainings at the same time")
    lines = table_of(folder / "many" / "runs.csv")
    check(sorted(line["folder"] for line in lines) == [f"many/{i}" for i in range(6)], "six whole lines, one header", lines)
    check(all(None not in line and None not in line.values() for line in lines), "every line has every column", lines)
    line = lines[0]
    check(f"prompt={odd}" in line["settings"] and "dropout=0.1" in line["settings"] and "lr=" not in line["settings"],
          "the settings that are not the default, quoted", line)
    check(line["model"] == "gpt-l2-h2-w32-c32-cpu" and line["device"] == "cpu" and line["steps"] == "3"
          and line["command"] == "train gpt" and int(line["parameters"]) > 1000, "what was trained, and where", line)
    check(float(line["seconds_per_100_steps"]) > 0 and line["seconds_per_epoch"] == "" and 0 < float(line["train_loss"]) < 9
          and 0 < float(line["held_out_loss"]) < 9 and "bits per byte=" in line["metrics"], "its time and its losses", line)
    trained = log_of(folder / "many/0", "loss/train")[-1][1]
    mine = next(line for line in lines if line["folder"] == "many/0")
    check(abs(float(mine["train_loss"]) - trained) < 1e-5, "the last loss of the log", (mine, trained))
    # names by default: model, device, and the settings that are not the default
    mlp = ["train", "mlp", "--data", "line.csv", "--target", "y", "--hidden", 4, "--quiet"]
    works(*mlp, "--epochs", 1, cwd=folder)
    works(*mlp, "--epochs", 1, "--lr", "0.02", "--seed", 3, cwd=folder)
    works(*mlp, "--epochs", 2, "--out", "else/where/", "--runs", "own.csv", cwd=folder)
    for name in ("mlp-h4-cpu-epochs1", "mlp-h4-cpu-epochs1-lr0.02-seed3"):
        check((folder / "runs" / name / "mlp-h4-cpu.safetensors").exists(), f"the folder is named by its settings: {name}",
              list((folder / "runs").iterdir()))
    check(float(table_of(folder / "runs" / "runs.csv")[0]["seconds_per_epoch"]) > 0, "time per epoch")
    check(len(table_of(folder / "own.csv")) == 1 and not (folder / "else" / "runs.csv").exists(), "--runs names the table")
    # compare
    shown = works("runs", cwd=folder).splitlines()
    check(len(shown) == 6 and shown[0].split()[:3] == ["device", "adapter", "model"], "cairn runs", shown)
    check(works("runs", "runs", cwd=folder) == works("runs", "runs/runs.csv", cwd=folder), "a folder, or the file")
    (folder / "made.csv").write_text("model,device,held_out_loss,seconds_per_100_steps,date,unknown\n"
                                     "a,gpu,3,0.1,2,x\nb,cpu,2,9,1,x\nc,gpu,1,5,3,x\nd,cpu,4,1,4,x\n")
    for sort, wanted in (("device", "bdca"), ("loss", "cbad"), ("time", "adcb"), ("date", "bacd"), ("model", "abcd")):
        rows = works("runs", "made.csv", "--sort", sort, cwd=folder).splitlines()[1:5]
        order = "".join(next(word for word in row.split() if word in "abcd") for row in rows)
        check(order == wanted, f"sorted by {sort}", rows)
    refuses(1, ["runs", "line.csv"], "not a log of runs", cwd=folder)
    before = (folder / "line.csv").read_bytes()
    refuses(1, [*mlp, "--epochs", 1, "--out", "again", "--runs", "line.csv"], "line.csv exists, and cairn did not write it", cwd=folder)
    check((folder / "line.csv").read_bytes() == before, "a file that is no log of runs is left alone")
    refuses(1, ["runs", "nowhere"], "nowhere", cwd=folder)
    for bad in (b"model\n\"open quote, and no end\n", b"", b"model,\x00\n", b"model\r\na\r\n", b"model\n\n\n,,,,\n"):
        (folder / "bad.csv").write_bytes(bad)
        check(cairn("runs", "bad.csv", cwd=folder).returncode in (0, 1), f"a damaged table: {bad}")


def test_meter(folder):
    """A training ends with where its time went; --quiet does not print it, --profile prints more."""
    words = ["train", "gpt", "--data", "text.txt", *TINY, "--steps", 40, "--out", "m"]
    out = works(*words, cwd=folder)
    shares = [float(share) for share in re.findall(r" s +([\d.]+) %", out)]
    check("40 steps in" in out and "matrix products, cpu" in out and "other kernels, cpu" in out and "outside of kernels" in out
          and "measured in 3 of the steps" in out, "where the time went", out)
    check(abs(sum(shares) - 100) < 0.5 and shares[0] > 0, "shares sum to 100 %", shares)
    check("matrix products" not in works(*words, "--quiet", cwd=folder), "--quiet")
    check(re.search(r"class +device", works(*words, "--profile", cwd=folder)), "--profile: the long form")


def test_compare(folder):
    """One table of several devices. A software GPU never pays, but the CPU does against it."""
    out = works("bench", "--compare", "cpu,cpu", "--only", "mlp-tiny,matmul-sizes", "--seconds", "0.01", cwd=folder)
    rows = [(int(n), float(a), float(b)) for n, a, b in re.findall(r"^matmul-sizes (\d+) +([\d.]+) +([\d.]+)", out, re.M)]
    check([n for n, _, _ in rows] == [16, 32, 64, 128, 256, 512, 1024] and "mlp-tiny" in out, "a table of any devices", out)
    check(re.search(r"cpu is faster than cpu (never here|from n = \d+ on)", out), "the size from which on it pays", out)
    refuses(2, ["bench", "--compare", "cpu"], "two to 6 devices", "got 'cpu'")
    refuses(1, ["bench", "--compare", "cpu,gpu", "--only", "mlp-tiny"], "--device gpu", env=without_gpu())
    env = with_gpu()
    if not env:
        print("skipped: no software GPU: run scripts/gpu.sh")
        return
    env["MESA_SHADER_CACHE_DIR"] = str(ROOT / "build" / "gpu" / "shaders")
    words = ["bench", "--only", "mlp-tiny,batch-sizes", "--seconds", "0.01", "--compare", "gpu,cpu"]
    result = cairn(*words, cwd=folder, env=env, timeout=1800)
    out = result.stdout.decode()
    check(result.returncode == 0 and b"gpu:0 is" in result.stderr, "the adapter's line", result)
    rows = [(int(n), float(a), float(b), float(r)) for n, a, b, r in
            re.findall(r"^batch-sizes (\d+) +([\d.]+) +([\d.]+) +([\d.]+)$", out, re.M)]
    check(len(rows) == 7 and all(abs(b / a - r) < 0.01 for _, a, b, r in rows), "times, and their ratio", out)
    check("cpu is faster than gpu from n = 1 on" in out, "where it pays", out)
    out = cairn(*words[:-1], "cpu,gpu", cwd=folder, env=env, timeout=1800).stdout.decode()
    check("gpu is faster than cpu never here (n up to 4096)" in out, "where it does not pay", out)


def test_auto(folder):
    """--device auto: a hardware GPU, else the CPU, and why. No --device: the CPU, or what CAIRN_DEVICE says."""
    plain = ["train", "gpt", "--data", "text.txt", *TINY, "--steps", 2]
    tiny = [*plain, "--device", "auto"]
    none = works(*tiny, "--out", "a", cwd=folder, env=without_gpu())
    check("auto: cpu, because there is no GPU: " in none and " on cpu" in none, "auto without a GPU", none)
    out = works(*plain, "--out", "p", cwd=folder, env=without_gpu())
    check("auto" not in out and "gpu" not in out and " on cpu" in out, "no --device: the CPU, without words", out)
    env = with_gpu()
    if not env:
        print("skipped: no software GPU: run scripts/gpu.sh")
        return
    env["MESA_SHADER_CACHE_DIR"] = str(ROOT / "build" / "gpu" / "shaders")
    software = works(*tiny, "--out", "b", cwd=folder, env=env)
    check("auto: cpu, because" in software and "in software" in software and " on cpu" in software, "auto: a software GPU is no GPU", software)
    hardware = works(*tiny, "--out", "c", cwd=folder, env={**env, "CAIRN_GPU_KIND": "discrete"})
    check("is hardware (discrete, vulkan)" in hardware and " on gpu" in hardware, "auto takes a card", hardware)
    by_name = {**env, "CAIRN_GPU_KIND": "discrete", "CAIRN_GPU": "no such card"}
    check("CAIRN_GPU" in works(*tiny, "--out", "d", cwd=folder, env=by_name), "auto obeys CAIRN_GPU")
    by_variable = works(*plain, "--out", "e", cwd=folder, env={**env, "CAIRN_DEVICE": "auto"})
    check("auto: cpu, because" in by_variable, "CAIRN_DEVICE=auto", by_variable)


def test_gpu(folder):
    env = with_gpu()
    if not env:
        print("skipped: no software GPU: run scripts/gpu.sh")
        return
    env["XDG_CACHE_HOME"] = str(folder / "cache")
    env["MESA_SHADER_CACHE_DIR"] = str(ROOT / "build" / "gpu" / "shaders")  # compiled once, not each time
    more = {"cwd": folder, "env": env, "timeout": 1800}
    check(re.search(r"gpu:0 +\S.*software", works("devices", **more)), "devices", works("devices", **more))
    steps = ["--data", "text.txt", *TINY, "--steps", 12, "--eval-every", 6, "--lr", "0.003"]
    out = works("train", "gpt", *steps, "--device", "gpu", "--out", "g", "--profile", **more)
    check("on gpu" in out and "dispatches" in out, "train --device gpu says where it was", out)
    check(re.search(r'gpu:0 is "\S.*" \(software, vulkan, by wgpu-native\)', out), "the adapter's line", out)
    short = works("train", "gpt", *steps, "--device", "gpu", "--out", "h", **more)
    check("matrix products, gpu" in short and "transfers, gpu" in short, "where the time went, on a GPU", short)
    works("train", "gpt", *steps, "--out", "c", cwd=folder)
    lines = {line["device"]: line for line in table_of(folder / "runs.csv")}
    check(lines["gpu"]["model"].endswith("-gpu") and "llvmpipe" in lines["gpu"]["adapter"] and lines["cpu"]["model"].endswith("-cpu"),
          "the device and its adapter in runs.csv", lines)
    on_gpu, on_cpu = log_of(folder / "g", "loss/train"), log_of(folder / "c", "loss/train")
    check([s for s, _ in on_gpu] == list(range(1, 13)), "every loss is logged, under its step", on_gpu)
    check(len(on_gpu) == len(on_cpu) and all(abs(a - b) < 0.01 for (_, a), (_, b) in zip(on_gpu, on_cpu)),
          "losses on the GPU are the CPU's", (on_gpu, on_cpu))
    works("train", "gpt", "--resume", f"g/{GPT.replace('cpu', 'gpu')}", "--steps", 14, "--device", "gpu:0", "--quiet", **more)
    check(works("generate", "g", "--tokens", 5, "--seed", 1, "--device", "gpu", "--quiet", **more), "generate")
    check(re.search(r"loss [\d.]+", works("eval", "g", "--data", "text.txt", "--device", "gpu", "--quiet", **more)), "eval")
    loud = cairn("generate", "g", "--tokens", 5, "--seed", 1, "--device", "gpu", **more)
    check(loud.returncode == 0 and b"gpu:0 is" in loud.stderr and b"gpu:0" not in loud.stdout, "generate: the adapter's line", loud)
    result = cairn("bench", "--only", "mlp", "--seconds", "0.05", "--device", "gpu", **more)
    line = result.stdout.decode()
    check(result.returncode == 0 and b"gpu:0 is" in result.stderr, "bench: the adapter's line", result)
    check(re.fullmatch(r"mlp [\d.]+ \d+( [\d.]+){5}\n", line) and float(line.split()[4]) > 1, "bench", line)
    refuses(1, ["bench", "--only", "mlp", "--device", "gpu:9"], "gpu:9", **more)
    out = works("doctor", "--only", "relu", **more)
    check(re.search(r"PASS +relu +\d+ checks +worst", out) and ", 0 failed" in out, "doctor", out)
    check(not (folder / "cache").exists(), "a partial verdict is not kept")
    homeless = {name: value for name, value in env.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    refuses(1, ["doctor"], "no folder for the verdict", "HOME", **{**more, "env": homeless})


def test_hostile(folder):
    """Damaged checkpoints: an error of one line or a success, never a crash."""
    works("train", "gpt", *RUN, "--steps", 2, "--out", "run", cwd=folder)
    good = (folder / "run" / GPT).read_bytes()
    (n,) = struct.unpack("<Q", good[:8])
    rng = random.Random(4)
    (folder / "bad").mkdir()
    (folder / "bad" / "tokenizer.json").write_bytes((folder / "run" / "tokenizer.json").read_bytes())
    for i in range(40):
        data = bytearray(good)
        for _ in range(rng.choice([1, 3, 20])):
            data[rng.randrange(8 + n)] = rng.randrange(256) if i % 2 else rng.choice(b'0123456789{}[],":-')
        (folder / "bad" / "m.safetensors").write_bytes(data)
        for words in (["generate", "bad", "--tokens", 2, "--seed", 1], ["info", "bad"],
                      ["train", "gpt", "--resume", "bad/m.safetensors", "--quiet", "--stop-at", 2, "--out", "hostile"]):
            result = cairn(*words, cwd=folder)
            check(result.returncode in (0, 1, 2), f"a damaged file {i}: {words[0]} ends well", (result.returncode, result.stderr[-500:]))


def bundled(path, *words, **more):
    return subprocess.run([path, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, timeout=900, **more)


def refuses_bundle(path, part, what):
    """A damaged bundle says so in one line."""
    result = bundled(path, "--tokens", 2)
    err = result.stderr.decode(errors="replace")
    check(result.returncode == 1 and err.count("\n") == 1 and part in err, what, f"exit {result.returncode}: {err}")


def test_bundle(folder):
    """A model bound into a program writes what `cairn generate` writes; damaged ones are refused."""
    refuses(2, ["bundle"], "needs the argument MODEL", cwd=folder)
    refuses(2, ["bundle", "run"], "--out", cwd=folder)
    refuses(1, ["bundle", "run", "--out", "chat"], "run", cwd=folder)
    works("train", "gpt", *RUN, "--steps", 5, "--out", "run", cwd=folder)
    drawn = ["--prompt", "the ", "--tokens", 30, "--seed", 3]
    expected = works("generate", "run", *drawn, cwd=folder)
    refuses(1, ["bundle", "run", "--out", "chat", "--program", "text.txt"], "text.txt: not a cairn program", cwd=folder)
    check(sorted(path.name for path in folder.glob("chat*")) == [], "a failure leaves nothing", list(folder.glob("chat*")))
    check("chat" in works("bundle", "run", "--out", "chat", cwd=folder), "bundle names what it wrote")
    refuses(1, ["bundle", "run", "--out", "chat"], "chat exists", cwd=folder)
    works("bundle", "run", "--out", "chat", "--force", "--quiet", cwd=folder)
    check(sorted(path.name for path in folder.glob("chat*")) == ["chat"], "no part is left", list(folder.glob("chat*")))

    alone = folder / "elsewhere"
    alone.mkdir()
    (folder / "chat").rename(alone / "chat")
    (alone / "cairn.conf").write_text("nonsense\n")  # a bundle reads no config file that happens to lie there
    chat = str(alone / "chat")
    result = bundled(chat, *drawn, cwd=alone)
    check(result.stdout.decode(errors="replace") == expected and not result.stderr, "a bundle writes the same text", result)
    check(bundled(chat, "--tokens", 5, cwd=alone).returncode == 0, "a bundle needs no option")
    named = bundled("chat", *drawn, cwd="/", env={**os.environ, "PATH": f"/nonexistent:{alone}"}, executable=chat)
    check(named.stdout.decode(errors="replace") == expected, "a bundle is found by PATH", named)
    text = bundled(chat, "--help").stdout.decode()
    check("part of this program" in text and "--prompt" in text and "cairn generate" not in text, "--help of a bundle", text)
    check(bundled(chat, "stray").returncode == 2 and bundled(chat, "--no-such").returncode == 2, "wrong words to a bundle")

    good = (alone / "chat").read_bytes()
    at = good.index(b"the model in this cairn program") + 32  # model_at, model_bytes, tokenizer_at, .._bytes, file_bytes
    model_at, model_bytes, tokenizer_at, tokenizer_bytes, size = struct.unpack_from("<5Q", good, at)
    check(size == len(good) and model_at % 4096 == 0, "where the parts lie", (model_at, size, len(good)))
    bad = alone / "bad"

    def write_bad(data):
        bad.write_bytes(data)
        bad.chmod(0o755)

    for length in (size - 1, tokenizer_at, model_at + 100):
        write_bad(good[:length])
        refuses_bundle(bad, "incomplete", f"a bundle of {length} bytes")
    huge = 2 ** 64 - 8
    for numbers in ([huge, 16, tokenizer_at, tokenizer_bytes], [model_at, huge, tokenizer_at, tokenizer_bytes],
                    [model_at, model_bytes, tokenizer_at, huge], [model_at, 0, tokenizer_at, tokenizer_bytes],
                    [model_at, model_bytes, size, 1]):
        data = bytearray(good)
        struct.pack_into("<4Q", data, at, *numbers)
        write_bad(data)
        refuses_bundle(bad, "damaged", f"a bundle with {numbers}")
    for begin, length in ((model_at, 200), (tokenizer_at, tokenizer_bytes)):
        data = bytearray(good)
        data[begin:begin + length] = b"\xff" * length
        write_bad(data)
        result = bundled(bad, "--tokens", 2)
        check(result.returncode == 1 and result.stderr.count(b"\n") == 1, "a bundle with other bytes inside", result)


def test_standalone(folder):
    """The static program in a folder that is all it sees; `make static` builds it."""
    static = ROOT / "build" / "static" / "cairn"
    if not static.exists():
        print(f"skipped: no {static}; make static")
        return
    works("train", "gpt", *RUN, "--steps", 5, "--out", "run", cwd=folder)
    drawn = ["--prompt", "the ", "--tokens", "30", "--greedy"]
    expected = works("generate", "run", *drawn, cwd=folder)
    (folder / "empty").mkdir()
    works("bundle", "run", "--out", "empty/chat", "--program", static, "--quiet", cwd=folder)
    enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "-r", "chroot"]
    result = subprocess.run([*enter, folder / "empty", "/chat", *drawn], capture_output=True, timeout=900)
    check(result.stdout.decode(errors="replace") == expected and not result.stderr, "a bundle in an empty chroot", result)
    check(os.listdir(folder / "empty") == ["chat"], "it leaves nothing", os.listdir(folder / "empty"))


def main():
    wanted = sys.argv[2:]  # parts of names
    tests = [value for name, value in globals().items()
             if name.startswith("test_") and (not wanted or any(part in name for part in wanted))]
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="cairn_cli_") as name:
            folder = Path(name)
            write_text(folder / "text.txt")
            write_tables(folder)
            write_images(folder, 300, "x.idx", "y.idx", open, 5)
            write_images(folder, 100, "tx.gz", "ty.gz", gzip.open, 6)
            try:
                test(folder)
            except Exception as error:  # what went wrong before may leave no file to look at
                check(False, f"{test.__name__}: {type(error).__name__}", error)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    os.environ.pop("CAIRN_EAGER", None)
    sys.exit(main())
