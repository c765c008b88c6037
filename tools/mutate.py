"""Plants small bugs in a copy of the tree, one at a time, and says which test catches each.

    tools/mutate.py                   plants every bug of tools/mutants.txt
    tools/mutate.py NAME ...          only those whose name or file contains one of these
    tools/mutate.py --list NAME ...   lists them
    tools/mutate.py --check           only checks the records: quick, builds nothing

The copy is build/mutants/tree: the files of the tree as they are now, committed or not. The tree itself is never
changed. The first run builds the copy once for each configuration that the records name; after that a bug costs one
file and one link. Every test runs once before the first bug is planted: a test that fails already would catch
everything, so it is not used. A test that does not end within its time has caught the bug as well.

A record of tools/mutants.txt:

    [loader-order]
    file: src/data/loader.c
    breaks: a loader keeps its old order after its state is loaded
    tests: test_loader, tsan: test_loader
    -     l->ordered = false;
    -     return true;
    +     return true;

  -        the text that the bug replaces: part of a line, a line, or several; without the first two characters of
           each. It must occur exactly once in the file
  +        what stands there instead; no such line: nothing
  tests    the tests that matter, in the order in which they are tried: [CONFIGURATION:] PROGRAM [ARGUMENT ...].
           CONFIGURATION is release (the default), asan, tsan, gpu (release on a software GPU, see scripts/gpu.sh),
           quick (release with CAIRN_TEST_QUICK=1) or commands (tests/PROGRAM.py; arguments follow the path of the
           cairn command)
  seconds  how long a test may take (default 300)
  excuse   why the bug may survive: nothing can observe it, or only by chance

Exit status 0: every bug was caught; 1: a bug was not, a test fails without a bug, or a record is wrong.
"""

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "tools" / "mutants.txt"
SCRATCH = ROOT / "build" / "mutants"
TREE = SCRATCH / "tree"

sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import run_tests  # noqa: E402  what runs a program, and in what environment, is said there

BUILD_DIR = {"release": TREE / "build", "asan": TREE / "build" / "asan", "tsan": TREE / "build" / "tsan"}
BUILT_AS = {"gpu": "release", "quick": "release", "commands": "release"}
FIELDS = {"file", "breaks", "tests", "seconds", "excuse"}


class Wrong(Exception):
    """A record or the tree is wrong: words for the user."""


class Mutant:
    def __init__(self, name, line):
        self.name, self.line = name, line
        self.fields, self.old, self.new = {}, [], []

    file = property(lambda self: self.fields["file"])
    seconds = property(lambda self: int(self.fields.get("seconds", 300)))

    def tests(self):
        return [parse_test(word) for word in self.fields["tests"].split(",")]

    def planted(self, text):
        return text.replace("\n".join(self.old), "\n".join(self.new))


def parse_test(text):
    """"asan: test_io deflate" → ("asan", "test_io", ["deflate"])"""
    config, colon, rest = text.partition(":")
    words = (rest if colon else text).split()
    return config.strip() if colon else "release", words[0] if words else "", words[1:]


def test_label(test):
    config, program, arguments = test
    return ("" if config == "release" else f"{config}: ") + " ".join([program, *arguments])


# ---- records


def read_records():
    found = []
    for number, line in enumerate(RECORDS.read_text(encoding="utf-8").splitlines(), 1):
        head = re.fullmatch(r"\[([\w.-]+)\]", line)
        field = re.fullmatch(r"(\w+): *(.*)", line)
        if head:
            found.append(Mutant(head.group(1), number))
        elif not line.strip() or line.startswith("#"):
            continue
        elif not found:
            raise Wrong(f"{RECORDS.name}:{number}: a record must begin with [NAME]")
        elif line[:2].rstrip() in ("-", "+"):
            (found[-1].old if line[0] == "-" else found[-1].new).append(line[2:])
        elif field and field.group(1) in FIELDS:
            found[-1].fields[field.group(1)] = field.group(2).strip()
        else:
            raise Wrong(f"{RECORDS.name}:{number}: not a field, nor a line that begins with - or +: {line}")
    return found


def test_problems(test):
    config, program, _ = test
    source = ROOT / "tests" / (program + (".py" if config == "commands" else ".c"))
    if config not in BUILD_DIR and config not in BUILT_AS:
        yield f"configuration {config} is not one of {', '.join([*BUILD_DIR, *BUILT_AS])}"
    if not source.is_file():
        yield f"there is no {source.relative_to(ROOT)}"


def problems(mutant, names):
    missing = {"file", "breaks", "tests"} - mutant.fields.keys()
    if missing:
        yield f"lacks {', '.join(sorted(missing))}"
        return
    if names.count(mutant.name) > 1:
        yield "the name occurs twice"
    path = ROOT / mutant.file
    times = path.read_text(encoding="utf-8").count("\n".join(mutant.old)) if path.is_file() and mutant.old else 0
    if not path.is_file():
        yield f"there is no {mutant.file}"
    elif times != 1:
        yield f"the text occurs {times} times in {mutant.file}, it must occur once: {' / '.join(mutant.old)}"
    if mutant.old == mutant.new:
        yield "the replacement is the text itself"
    for test in mutant.tests():
        yield from test_problems(test)


def check_records(mutants):
    names = [m.name for m in mutants]
    wrong = [f"{RECORDS.name}:{m.line}: [{m.name}] {words}" for m in mutants for words in problems(m, names)]
    if wrong:
        raise Wrong("\n".join(wrong))


# ---- the copy


def lock_copy():
    """The lock lasts as long as the program: two runs in one copy would see each other's bugs."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    lock = open(SCRATCH / "lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Wrong(f"another run is using {SCRATCH}") from None
    return lock


def tree_files():
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "ls-files", "-z", "--cached", "--others"]
    listed = subprocess.run([*command, "--exclude-standard"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def refresh_copy():
    """Makes the copy equal to the tree. Files that are equal keep their times, so that little is built."""
    wanted = set(tree_files())
    TREE.mkdir(parents=True, exist_ok=True)
    for path in TREE.rglob("*"):
        name = path.relative_to(TREE)
        if path.is_file() and name.parts[0] != "build" and str(name) not in wanted:
            path.unlink()
    for name in wanted:
        data, to = (ROOT / name).read_bytes(), TREE / name
        if not to.is_file() or to.read_bytes() != data:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(data)
            shutil.copymode(ROOT / name, to)


def configure(config):
    result = run_tests.run(["cmake", "--preset", config, "-Wno-dev"], cwd=TREE)
    if result.status != 0:
        raise Wrong(f"cmake --preset {config} failed in {TREE}:\n{result.out}{result.err}")


def build(config, program, seconds=7200):
    """None, or the compiler's words."""
    real = BUILT_AS.get(config, config)
    target = "all" if config == "commands" else program
    result = run_tests.run(["cmake", "--build", BUILD_DIR[real], "--target", target], seconds, cwd=TREE)
    return None if result.status == 0 else (result.out + result.err)[-2000:]


# ---- tests


def command_of(test):
    config, program, arguments = test
    binary = BUILD_DIR[BUILT_AS.get(config, config)] / "tests" / program
    if config == "commands":
        command = [BUILD_DIR["release"] / "cairn"] if arguments else []
        return [sys.executable, TREE / "tests" / f"{program}.py", *command, *arguments]
    if config == "gpu":
        return run_tests.on_gpu(run_tests.GPUS[0], [binary, *arguments])
    prefix = run_tests.without_address_randomisation() if config == "tsan" else []
    return [*prefix, binary, *arguments]


def environment_of(test):
    config = test[0]
    if config in ("asan", "tsan"):
        return {**run_tests.SANITIZER_ENV, "CAIRN_TEST_QUICK": "1"}
    return {"quick": {"CAIRN_TEST_QUICK": "1"}, "commands": {"CAIRN_BUILD": str(BUILD_DIR["release"])}}.get(config, {})


def run_test(test, seconds):
    """None: it passed. Otherwise how it failed: the first words that say so."""
    result = run_tests.run_in_scratch(command_of(test), seconds, environment_of(test))
    if result.status is None:
        return f"no end within {seconds} s"
    lines = (result.out + result.err).splitlines()
    summary = [run_tests.SUMMARY.fullmatch(line) for line in result.out.rstrip().splitlines()[-1:]]
    if result.status == 0 and summary and summary[0]:
        return None
    told = [line for line in lines if re.search(r"FAILED|ERROR: |WARNING: ThreadSanitizer|runtime error", line)]
    return (told[0] if told else result.ending()).strip()


def check_baseline(mutants):
    """Builds and runs every test without a bug. Returns the labels of those that fail."""
    broken = set()
    tests = {test_label(t): (t, m.seconds) for m in mutants for t in m.tests()}
    for config in sorted({BUILT_AS.get(t[0], t[0]) for t, _ in tests.values()}):
        configure(config)
    for label, (test, seconds) in tests.items():
        start = time.monotonic()
        failed = build(test[0], test[1]) or run_test(test, seconds)
        print(f"{'FAILS' if failed else 'passes'} without a bug {time.monotonic() - start:6.0f} s  {label}", flush=True)
        if failed:
            print(f"         {failed}", flush=True)
            broken.add(label)
    return broken


def try_mutant(mutant, broken):
    """(how it ended, the words of the test): "caught by ...", "survived", "does not build"."""
    path = TREE / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.planted(original), encoding="utf-8")
    try:
        tests = [test for test in mutant.tests() if test_label(test) not in broken]
        for test in tests:
            words = build(test[0], test[1])
            if words:
                return "does not build", words
            words = run_test(test, mutant.seconds)
            if words:
                return f"caught by {test_label(test)}", words
        return "survived" if tests else "every test fails without it", mutant.fields.get("excuse", "")
    finally:
        path.write_text(original, encoding="utf-8")


def plant_all(mutants, broken, verbose):
    results = []
    for number, mutant in enumerate(mutants, 1):
        start = time.monotonic()
        ending, words = try_mutant(mutant, broken)
        results.append((mutant, ending))
        print(f"{number:3}/{len(mutants)}  {time.monotonic() - start:5.0f} s  {mutant.name:<34} {ending}", flush=True)
        if verbose or ending == "does not build":
            print(f"         {words}", flush=True)
    return results


def summarize(results, broken):
    print(f"\n| {'bug':<34} | {'file':<34} | {'result':<34} | what it breaks |\n|---|---|---|---|")
    for mutant, ending in results:
        shown = "survived, excused" if ending == "survived" and "excuse" in mutant.fields else ending
        print(f"| {mutant.name:<34} | {mutant.file:<34} | {shown:<34} | {mutant.fields['breaks']} |")
    caught = sum(ending.startswith("caught") for _, ending in results)
    excused = sum(ending == "survived" and "excuse" in mutant.fields for mutant, ending in results)
    bad = len(results) - caught - excused
    print(f"\n{len(results)} bugs: {caught} caught, {excused} excused, {bad} not caught")
    if broken:
        print(f"not used, because they fail without a bug: {', '.join(sorted(broken))}")
    return 1 if bad or broken else 0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="part of a name or of a file's path")
    parser.add_argument("--check", action="store_true", help="check the records, build nothing")
    parser.add_argument("--list", action="store_true", help="list the bugs, build nothing")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without a bug first")
    parser.add_argument("--verbose", action="store_true", help="print the words of the test that failed")
    return parser.parse_args()


def main():
    options = parse_options()
    mutants = read_records()
    check_records(mutants)
    if options.check:
        print(f"{len(mutants)} records: each text occurs once")
        return 0
    chosen = [m for m in mutants
              if not options.names or any(part in m.name or part in m.file for part in options.names)]
    if not chosen:
        raise Wrong(f"no record has {' or '.join(options.names)} in its name or file; --list shows them all")
    if options.list:
        print("\n".join(f"{m.name:<34} {m.file:<34} {m.fields['breaks']}" for m in chosen))
        return 0
    lock = lock_copy()  # noqa: F841
    refresh_copy()
    broken = set()
    if options.no_baseline:
        for config in sorted({BUILT_AS.get(t[0], t[0]) for m in chosen for t in m.tests()}):
            configure(config)
    else:
        broken = check_baseline(chosen)
    return summarize(plant_all(chosen, broken, options.verbose), broken)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        for process in list(run_tests.running):
            os.killpg(process.pid, 9)
        sys.exit(130)
