#!/usr/bin/env python3
"""cairn.exe and cairn.dll as a person uses them on Windows, under Wine:  tests/windows/check.py

Backslashes, names in UTF-8, mapped files that are replaced, Ctrl-C, a bundle. The last line is "N passed, M failed".
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "windows"
TINY = ["--layers", "2", "--heads", "2", "--width", "32", "--context", "32", "--batch", "4", "--warmup", "5",
        "--eval-windows", "8", "--tokens", "20", "--threads", "2", "--quiet"]
passed = failed = 0


def check(ok, what, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAILED {what}\n    {str(detail)[-1500:]}")


def run(program, *words, **more):
    return subprocess.run(["wine", program, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, timeout=600, **more)


def works(program, *words, **more):
    result = run(program, *words, **more)
    check(result.returncode == 0, " ".join(map(str, words)), (result.returncode, result.stdout, result.stderr))
    return result.stdout


def check_dll():
    """The library alone: it needs what every Windows has, and exports the public functions."""
    dump = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", BUILD / "libcairn.dll"], capture_output=True, text=True).stdout
    needed = {line.split(":")[1].strip().lower() for line in dump.splitlines() if "DLL Name:" in line}
    check(needed and needed <= {"kernel32.dll", "msvcrt.dll", "advapi32.dll"}, "libraries that the DLL needs", needed)
    check("cn_matmul" in dump and "cn__fail" not in dump, "functions that the DLL exports")


def check_interrupt(cairn, folder):
    """Ctrl-C: the step ends, the checkpoint is written."""
    process = subprocess.Popen(["wine", cairn, "train", "gpt", *TINY, "--data", "text.txt", "--out", "stopped", "--steps", "1000000"],
                               cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(600):
        if (folder / "stopped" / "log.csv").exists():
            break
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    check(list((folder / "stopped").glob("*.safetensors")), "Ctrl-C leaves a checkpoint", (process.returncode, out, err))


def main():
    cairn = BUILD / "cairn.exe"
    check_dll()
    with tempfile.TemporaryDirectory(prefix="cairn_windows_") as name:
        folder = Path(name)
        (folder / "text.txt").write_text("the cat sees milk. the dog likes a bone.\n" * 400)
        check(works(cairn, "--version").startswith(b"cairn "), "--version")
        run_folder = folder / "Läufe" / "été"
        train = ["train", "gpt", *TINY, "--data", "text.txt", "--out", "Läufe/été", "--steps", 10, "--stop-at", 5]
        works(cairn, *train, cwd=folder)
        check(list(run_folder.glob("*.safetensors")), "a folder with a name in UTF-8", os.listdir(folder))
        model = next(iter(run_folder.glob("*.safetensors")), Path("none")).name
        # the checkpoint is mapped while the new one replaces it
        works(cairn, "train", "gpt", "--resume", f"Läufe/été/{model}", "--quiet", cwd=folder)
        check(not list(run_folder.glob("*.tmp*")), "no temporary file is left", os.listdir(run_folder))
        drawn = ["--prompt", "the ", "--tokens", 30, "--seed", 3]
        text = works(cairn, "generate", f"Läufe\\été\\{model}", *drawn, cwd=folder)
        check(text.startswith(b"the ") and len(text) > 20, "text by a path with backslashes", text)
        check(works(cairn, "generate", "Läufe/été", *drawn, cwd=folder) == text, "the same text by the folder")
        works(cairn, "bundle", "Läufe\\été", "--out", "chat.exe", "--quiet", cwd=folder)
        (folder / "alone").mkdir()
        (folder / "chat.exe").rename(folder / "alone" / "chat.exe")
        check(works("chat.exe", *drawn, cwd=folder / "alone") == text, "a bundle writes the same text")
        missing = run(cairn, "generate", "none", cwd=folder)
        check(missing.returncode == 1 and b"No such file" in missing.stderr, "a missing file", missing.stderr)
        check_interrupt(cairn, folder)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
