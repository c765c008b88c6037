#!/usr/bin/env python3
"""What the cairn command writes, and whose word it takes for it:  tests/test_cli_files.py [build/cairn]

Prints what failed, and as its last line "N passed, M failed".
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAIRN = str(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "cairn").resolve())
TRAIN = ["train", "mlp", "--data", "data.csv", "--target", "y", "--epochs", "1", "--hidden", "4", "--threads", "1",
         "--device", "cpu", "--quiet"]
passed = failed = 0


def check(ok, what, detail=""):
    global passed, failed
    if ok:
        passed += 1
        return
    failed += 1
    print(f"FAILED {what}\n    {str(detail)[-1500:]}")


def cairn(folder, *words, home=None):
    env = {**os.environ, "HOME": str(home or folder / "home")}
    env.pop("XDG_CONFIG_HOME", None)
    return subprocess.run([CAIRN, *map(str, words)], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=900)


def works(what, folder, *words, **more):
    result = cairn(folder, *words, **more)
    check(result.returncode == 0, what, f"exit {result.returncode}: {result.stderr}")
    return result


def refuses(what, parts, folder, *words, **more):
    result = cairn(folder, *words, **more)
    ok = result.returncode != 0 and result.stderr.count("\n") == 1 and all(p in result.stderr for p in parts)
    check(ok, what, f"exit {result.returncode}: {result.stderr}")


def config_of_the_working_folder(folder):
    """A cairn.conf that lies where the command is started may be anybody's: it names nothing that is written."""
    for key, command in [("profile", ["eval", "run", "--data", "data.csv"]), ("out", TRAIN), ("profile", TRAIN),
                         ("resume", TRAIN), ("force", TRAIN), ("runs", TRAIN)]:
        value = "yes" if key == "force" else "precious.json"
        (folder / "cairn.conf").write_text(f"threads = 1\n{key} = {value}\n")
        (folder / "precious.json").write_text("mine")
        refuses(f"{key} in ./cairn.conf", ["cairn.conf: line 2", f"'{key}'", f"--{key}", "--config"], folder, *command)
        check((folder / "precious.json").read_text() == "mine", f"{key} in ./cairn.conf: the file is as it was")
    (folder / "precious.json").unlink()
    (folder / "cairn.conf").write_text("[train.mlp]\nout = elsewhere\n")
    works("a section for another command", folder, "eval", "run", "--data", "data.csv")
    (folder / "cairn.conf").write_text("profile =\n")
    result = works("a profile without a file is only printed", folder, "eval", "run", "--data", "data.csv")
    check("kernel" in result.stderr or "ms" in result.stderr, "the profile is printed", result.stderr)
    (folder / "cairn.conf").unlink()
    (folder / "own.conf").write_text("out = elsewhere\nprofile = trace.json\n")
    works("--config may name what is written", folder, *TRAIN, "--config", "own.conf")
    check((folder / "elsewhere/config.conf").exists() and (folder / "trace.json").exists(), "both were written")


def config_of_the_user(folder):
    home = folder / "other home"
    (home / ".config/cairn").mkdir(parents=True)
    (home / ".config/cairn/cairn.conf").write_text("profile = users.json\nthreads = 3\n")
    works("the user's own config file", folder, "eval", "run", "--data", "data.csv", home=home)
    check((folder / "users.json").exists(), "the user's config file may name what is written")
    (folder / "cairn.conf").write_text("threads = nonsense\n")
    refuses("./cairn.conf is read after the user's", ["cairn.conf: line 1"], folder, "eval", "run", "--data",
            "data.csv", home=home)
    (folder / "cairn.conf").unlink()


def files_of_others(folder):
    trace = folder / "t.json"
    works("a new trace", folder, "eval", "run", "--data", "data.csv", "--profile", "t.json")
    first = trace.read_text()
    check(first.startswith("{") and "traceEvents" in first, "a trace was written", first[:200])
    works("a trace over a trace", folder, "eval", "run", "--data", "data.csv", "--profile", "t.json")
    for content in ["", "{\"name\": \"package\"}", "{\"displayTimeUnit\":\"ms\"}"]:
        trace.write_text(content)
        refuses("a trace over another file", ["t.json exists", "--force"], folder, "eval", "run", "--data", "data.csv",
                "--profile", "t.json")
        check(trace.read_text() == content, "the other file is as it was")
    works("--force", folder, "eval", "run", "--data", "data.csv", "--profile", "t.json", "--force")
    check("traceEvents" in trace.read_text(), "--force overwrites")
    link = folder / "link.json"
    link.symlink_to(folder / "nowhere.json")
    refuses("a trace over a link", ["link.json exists"], folder, "eval", "run", "--data", "data.csv", "--profile",
            "link.json")


def folders_of_others(folder):
    works("a run again in its own folder", folder, *TRAIN, "--out", "run")
    for name in ["config.conf", "log.csv", "loss.svg", "loss.png"]:
        other = folder / f"with-{name.replace(chr(46), chr(45))}"
        other.mkdir()
        (other / name).write_text("mine")
        refuses(f"a folder with a {name} of another program", [name, "exists", "--force"], folder, *TRAIN, "--out", other)
        check(sorted(p.name for p in other.iterdir()) == [name] and (other / name).read_text() == "mine",
              f"the folder with {name} is as it was")
    (folder / "table.csv").write_text("mine\n1\n")
    refuses("a table of another program", ["table.csv exists", "--force"], folder, *TRAIN, "--out", "run", "--runs",
            "table.csv")
    check((folder / "table.csv").read_text() == "mine\n1\n", "the table is as it was")
    mixed = folder / "mixed"
    mixed.mkdir()
    (mixed / "notes.txt").write_text("mine")
    works("a folder with files that are not in the way", folder, *TRAIN, "--out", mixed)
    check((mixed / "notes.txt").read_text() == "mine" and (mixed / "log.csv").exists(), "the notes are as they were")
    works("--force in a folder of another program", folder, *TRAIN, "--out", folder / "with-log-csv", "--force")
    model = next((folder / "run").glob("*.safetensors"))
    works("a run goes on in its own folder", folder, *TRAIN, "--resume", model)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [f"{i % 7},{i % 5},{i % 7 + 2 * (i % 5)}" for i in range(80)]
        (folder / "data.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
        works("a run", folder, *TRAIN, "--out", "run")
        config_of_the_working_folder(folder)
        config_of_the_user(folder)
        files_of_others(folder)
        folders_of_others(folder)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
