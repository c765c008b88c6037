"""Builds and runs every test in every configuration, then the checks and the examples.

    scripts/test.sh [--long] [--only STAGE ...] [NAME ...]

STAGE is release, asan, tsan, clang, fuzz, arm, windows, checks, commands, examples, onnx, python or web; windows runs with
--long, or if it is named. NAME selects test programs and examples by a part of their name.

Programs with the name test_gpu* run on software GPUs, which scripts/gpu.sh installs into build/gpu. The release stage
runs them on two implementations of WebGPU, with --long the operators on a second driver too; test_gpu also runs with the
address sanitizer. Without software GPUs these programs use a graphics card, or are skipped if there is none.
The last line of a test program is "N passed, M failed", with ", K skipped" if there are any. A crash, a timeout, a
missing last line, or a non-zero exit status without a failed check counts as one failure. Every program runs in a
temporary folder and keeps its caches below build/. The last check compares the tree with its state before the first
program ran (tools/check_litter.py). The last line of this script is the sum.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
BUILD_DIR = {"release": BUILD, "asan": BUILD / "asan", "tsan": BUILD / "tsan", "clang": BUILD / "clang",
             "arm": BUILD / "arm", "static": BUILD / "static", "windows": BUILD / "windows"}
STAGES = ["release", "asan", "tsan", "clang", "fuzz", "arm", "windows", "checks", "commands", "examples", "onnx",
          "python", "web"]
SUMMARY = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?")

# An allocation that is too large must return NULL, as it does without a sanitizer.
SANITIZER_ENV = {
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_stack_use_after_return=1",
    "TSAN_OPTIONS": "allocator_may_return_null=1:second_deadlock_stack=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


# Caches of programs, instead of the user's. Compiled shaders stay from run to run.
CACHE_ENV = {"XDG_CACHE_HOME": str(BUILD / "cache"), "MESA_SHADER_CACHE_DIR": str(BUILD / "gpu" / "shaders")}
TREE_BEFORE = BUILD / "tree_before.txt"

# Software GPUs, by implementation and driver. scripts/gpu.sh writes env.sh, which has a function gpu_NAME for each.
GPUS = ["wgpu_lavapipe", "dawn_lavapipe"]
MORE_GPUS = ["dawn_swiftshader", "wgpu_swiftshader"]  # only for test_gpu_ops, with --long


class Result:
    """The result of a command: its exit status (None after a timeout), output, and time."""

    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def ending(self):
        if self.status is None:
            return "timeout"
        return f"killed by signal {-self.status}" if self.status < 0 else f"exit status {self.status}"


class Tally:
    """Adds up the results and prints them."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.lock = threading.Lock()

    def add(self, stage, name, result, passed, failed, skipped=0, note="", lines=4):
        counts = f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
        with self.lock:
            self.passed += passed
            self.failed += failed
            self.skipped += skipped
            print(f"{stage:<9} {name:<29} {result.seconds:7.1f} s  {counts}{note}")
            if failed:
                text = (result.out + result.err).rstrip().splitlines()
                omitted = [f"… {len(text) - 100} lines left out …"] if len(text) > 100 else []
                for line in text[:30] + omitted + text[-70:] if omitted else text:
                    print(f"    {line}")
            elif name.startswith("test_"):  # notes of a test program
                for line in result.out.rstrip().splitlines()[:-1][-lines:]:
                    print(f"    {line}")
            sys.stdout.flush()

    def check(self, stage, name, result):
        """Counts a command as one check."""
        ok = result.status == 0
        self.add(stage, name, result, int(ok), int(not ok), note="" if ok else f"  ({result.ending()})")
        return ok

    def summary(self):
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


running = set()  # live child processes, each the leader of a group


def measure_slowness():
    """How many times slower than two idle cores of a common machine this one is now; at least 1."""
    start = time.monotonic()
    sum(i * i % 7 for i in range(4_000_000))
    return max(1.0, (time.monotonic() - start) / 0.3)


SLOWNESS = measure_slowness()


def limit(seconds):
    """A limit ends what hangs; it says nothing about speed. `seconds`: what it takes on two idle cores, generously. A
    machine four times slower passes, and one on which others compute as well. CAIRN_TEST_PATIENCE multiplies it."""
    return (600 + 4 * seconds * SLOWNESS) * float(os.environ.get("CAIRN_TEST_PATIENCE", "1"))


# What it takes at most, in seconds.
BUILD_TIME, PROGRAM_TIME, GPU_TIME, CHECK_TIME, COMMAND_TIME, EXAMPLE_TIME = 1200, 300, 1500, 600, 600, 150


def run(command, timeout=None, env=None, cwd=ROOT):
    timeout = timeout or limit(CHECK_TIME)
    start = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], cwd=cwd, env={**os.environ, **(env or {})},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", start_new_session=True)
    running.add(process)
    try:
        out, err = process.communicate(timeout=timeout)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        status = None
    finally:
        running.discard(process)
    return Result(status, out, err, time.monotonic() - start)


def run_in_scratch(command, timeout, env=None, inputs=()):
    """Runs a program in a temporary folder with links to the inputs, which are paths relative to ROOT."""
    with tempfile.TemporaryDirectory(prefix="cairn_test_") as name:
        scratch = Path(name)
        (scratch / "build").mkdir()  # examples write there
        for path in (Path(path) for path in inputs):
            (scratch / path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / path).symlink_to(ROOT / path)
        return run(command, timeout, {**CACHE_ENV, "TMPDIR": name, **(env or {})}, name)


def build(tally, config, targets):
    """Configures and builds. A failure counts as one; success is not counted."""
    result = run(["cmake", "--preset", config])
    if result.status == 0:
        made = run(["cmake", "--build", BUILD_DIR[config], "--target", *targets], limit(BUILD_TIME))
        result = Result(made.status, made.out, made.err, result.seconds + made.seconds)
    if result.status != 0:
        tally.check(config, "build", result)
        return False
    print(f"{config:<9} {'build':<29} {result.seconds:7.1f} s", flush=True)
    return True


def without_address_randomisation():
    """The thread sanitizer needs less address randomisation than recent kernels use for its shadow memory."""
    command = ["setarch", "-R"]
    if shutil.which("setarch") and run([*command, "true"]).status == 0:
        return command
    return []


def test_programs(config):
    listing = run(["ctest", "--show-only=json-v1"], cwd=BUILD_DIR[config])
    tests = json.loads(listing.out)["tests"]
    return [(test["name"], test["command"]) for test in tests]


def run_test(tally, config, name, command, env, timeout):
    count_test(tally, config, name, run_in_scratch(command, timeout, env))


def count_test(tally, config, name, result, lines=4):
    """Counts a test program by the last line of its output; `lines` more are shown."""
    text = result.out.rstrip().splitlines()
    summary = SUMMARY.fullmatch(text[-1]) if text else None
    passed, failed, skipped = (int(n or 0) for n in summary.groups()) if summary else (0, 0, 0)
    note = ""
    if result.status != 0 and failed == 0:
        failed, note = 1, f"  ({result.ending()})"
    elif not summary:
        failed, note = 1, "  (no summary line)"
    tally.add(config, name, result, passed, failed, skipped, note, lines)


def software_gpus(tally, config, options):
    """The software GPUs that are installed; reports those that are missing."""
    if config != "onnx" and not any(options.wants(path.stem) for path in (ROOT / "tests").glob("test_gpu*.c")):
        return []
    result = run(["scripts/gpu.sh"], limit(CHECK_TIME))
    text = (BUILD / "gpu" / "env.sh").read_text() if result.status == 0 else ""
    missing = [gpu for gpu in GPUS + MORE_GPUS if f"gpu_{gpu}()" not in text]
    if missing and config == "release":
        message = "; ".join(result.err.strip().splitlines()[-4:])
        note = f"  (not installed: {', '.join(missing)}: {message})"
        tally.add(config, "scripts/gpu.sh", result, 0, 0, len(missing), note)
    return [gpu for gpu in GPUS + MORE_GPUS if gpu not in missing]


def on_gpu(gpu, command):
    return ["bash", "-c", '. "$0" && "$@"', BUILD / "gpu" / "env.sh", f"gpu_{gpu}", *command]


def gpu_jobs(config, gpus, name, command, env):
    """The runs of a GPU test on its adapters: (label, command, environment)."""
    if config == "release":
        # Compiling shaders takes most of the time: for operators lavapipe compiles without its optimizer, all dtypes on
        # one adapter and two, in vectors of 4, on the second. Its optimizer is tried by the other programs, and Dawn on
        # SwiftShader by the stage web, with every operator.
        ops, long = name == "test_gpu_ops", "CAIRN_TEST_LONG" in env
        wanted = GPUS + (MORE_GPUS if ops and long else [])
        own = {gpu: dict(env) for gpu in wanted}
        if ops and not long:
            own[GPUS[0]]["GALLIVM_PERF"] = own[GPUS[1]]["GALLIVM_PERF"] = "nopt"
            own[GPUS[1]].update(CAIRN_TEST_QUICK="1", LP_NATIVE_VECTOR_WIDTH="128")
        if ops and long:
            for gpu in MORE_GPUS:
                own[gpu]["CAIRN_TEST_QUICK"] = "1"
        return [(f"{name} {gpu}", on_gpu(gpu, command), own[gpu]) for gpu in gpus if gpu in wanted]
    if config == "asan" and name == "test_gpu" and GPUS[0] in gpus:  # the libraries have leaks of their own
        options = env["ASAN_OPTIONS"] + ":detect_leaks=0"
        return [(f"{name} {GPUS[0]}", on_gpu(GPUS[0], command), {**env, "ASAN_OPTIONS": options})]
    return []


def narrower_jobs(name, command, env):
    """The operators once more with each instruction set below the best; one that is absent is skipped by the test."""
    if name != "test_ops":
        return []
    return [(f"{name} {isa}", command, {**env, "CAIRN_ISA": isa, "CAIRN_TEST_QUICK": "1"}) for isa in ("baseline", "avx2")]


def run_tests(tally, config, options):
    if not build(tally, config, ["all_tests"]):
        return
    env, prefix = {}, []
    if options.long:
        env["CAIRN_TEST_LONG"] = "1"
    if config != "release":
        env.update(SANITIZER_ENV)
        if not options.long:
            env["CAIRN_TEST_QUICK"] = "1"
    if config == "tsan":
        prefix = without_address_randomisation()
    gpus = software_gpus(tally, config, options) if config != "tsan" else []
    wanted = []
    for name, command in test_programs(config):
        if not options.wants(name):
            continue
        if name.startswith("test_gpu") and gpus:
            wanted = gpu_jobs(config, gpus, name, command, env) + wanted  # the longest first
        elif not name.startswith("test_gpu") or config == "release":
            wanted.append((name, prefix + command, env))
            wanted += narrower_jobs(name, command, env) if config == "release" else []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        seconds = {True: GPU_TIME, False: PROGRAM_TIME}
        jobs = [pool.submit(run_test, tally, config, name, command, own,
                            limit(seconds[" " in name] * (3 if options.long else 1)))
                for name, command, own in wanted]
        for job in jobs:
            job.result()


def run_clang(tally):
    result = run(["cmake", "--preset", "clang"])
    if result.status == 0:
        result = run(["cmake", "--build", BUILD_DIR["clang"]], limit(BUILD_TIME))
    tally.check("clang", "builds without warnings", result)


def run_fuzzers(tally, options):
    """Runs each fuzzer for a short time. Status 77: there is no fuzzer runtime."""
    result = run(["scripts/fuzz.sh", "120" if options.long else "8"], limit(BUILD_TIME * (3 if options.long else 1)))
    if result.status == 77:
        tally.add("fuzz", "fuzzers", result, 0, 0, 1)
        return
    found = [line for line in result.out.splitlines() if line.endswith("nothing found")]
    missed = [line for line in result.out.splitlines() if "FOUND" in line]
    failed = len(missed) or int(result.status != 0)
    tally.add("fuzz", "test_fuzzers", result, len(found), failed)


# Test programs that run under emulation, where all of them would take an hour: kernels that have code of their own for
# NEON, the engine, threads, files, a training. Of test_ops these parts; cairn_results tries every operator.
EMULATED = ["test_rows", "test_math", "test_random", "test_fft", "test_rules", "test_core", "test_workers", "test_io",
            "test_checkpoint", "test_saving", "test_text", "test_graphs", "test_training"]
EMULATED_LONG = ["test_ops", "test_gemm", "test_conv", "test_gpt"]
EMULATED_PARTS = ["=matmul", "=conv", "softmax", "layer_norm", "attention"]


def compare_results(tally, stage, emulated, env):
    """The results of every operator's cases there and here (tools/results.c)."""
    if not build(tally, "release", ["cairn_results"]):
        return
    stored = BUILD_DIR[stage] / "results"
    written = run([BUILD / "cairn_results", "--write", stored], env={"CAIRN_ISA": "avx2"})
    if "this processor has at most" in written.err:
        tally.add(stage, "cairn_results", written, 0, 0, 1)  # this processor has no fused multiply-add
    elif written.status != 0:
        tally.check(stage, "cairn_results", written)
    else:
        run_test(tally, stage, "cairn_results", [*emulated, "--compare", stored], env, limit(PROGRAM_TIME))
    stored.unlink(missing_ok=True)


def run_arm(tally, options):
    """64-bit ARM under qemu: chosen programs, and the same bits as on this machine wherever docs/platforms.md says so."""
    wanted = [name for name in (EMULATED_LONG if options.long else []) + EMULATED if options.wants(name)]
    if not build(tally, "arm", [*wanted, "test_ops", "cairn_results"]):
        return
    commands, env = dict(test_programs("arm")), {"CAIRN_TEST_QUICK": "1"}
    programs = [(name, commands[name]) for name in wanted]
    if options.wants("test_ops") and not options.long:
        programs += [(f"test_ops {part}", [*commands["test_ops"], part]) for part in EMULATED_PARTS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(run_test, tally, "arm", name, command, env, limit(PROGRAM_TIME)) for name, command in programs]
        for job in jobs:
            job.result()
    if options.wants("cairn_results"):
        compare_results(tally, "arm", [*commands["test_ops"][:-1], BUILD_DIR["arm"] / "cairn_results"], env)


# No display, no question, and a system of its own.
WINE_ENV = {"WINEPREFIX": str(BUILD / "windows" / "wine"), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "DISPLAY": ""}


def run_windows(tally, options):
    """Windows programs under Wine: every test program that needs no POSIX system, and the command."""
    tools = run(["scripts/setup.sh", "mingw-gcc", "wine"])
    if tools.status != 0:
        tally.check("windows", "scripts/setup.sh", tools)
        return
    if not build(tally, "windows", ["all_tests", "cairn_shared", "cairn_cli", "cairn_results"]):
        return
    if not tally.check("windows", "wineboot", run(["wineboot", "--init"], env=WINE_ENV)):
        return
    env = {**WINE_ENV, "CAIRN_TEST_QUICK": "1"}
    programs = [(name, command) for name, command in test_programs("windows") if options.wants(name)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(run_test, tally, "windows", name, command, env, limit(PROGRAM_TIME)) for name, command in programs]
        for job in jobs:
            job.result()
    if options.wants("cairn_results"):
        compare_results(tally, "windows", ["wine", BUILD / "windows" / "cairn_results.exe"], {**env, "CAIRN_ISA": "avx2"})
    if options.wants("check"):
        run_test(tally, "windows", "check.py", [sys.executable, ROOT / "tests" / "windows" / "check.py"], env, limit(COMMAND_TIME))
    run(["wineserver", "--kill"], env=WINE_ENV)


def run_commands(tally, options):
    """Tests that run programs: tests/test_NAME.py. test_cli runs the static command too."""
    if not build(tally, "release", ["all"]) or not build(tally, "static", ["cairn_cli"]):
        return
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        if options.wants(path.stem):
            run_test(tally, "commands", path.stem, [sys.executable, path], {"CAIRN_BUILD": str(BUILD)}, limit(COMMAND_TIME))


def run_checks(tally):
    if not build(tally, "release", ["all"]):
        return
    tally.check("checks", "layers", run([sys.executable, "tools/check_includes.py"]))
    tally.check("checks", "names", run([sys.executable, "tools/check_names.py"]))
    tally.check("checks", "docs/layout.md", run([sys.executable, "tools/check_layout.py"]))
    tally.check("checks", "exported symbols", run(["tools/check_symbols.sh"]))
    tally.check("checks", "installation", run(["tests/install/check.sh"]))
    tally.check("checks", "documents", run(["tools/check_documents.sh"], env=CACHE_ENV))
    tally.check("checks", "planted bugs", run([sys.executable, "tools/mutate.py", "--check"]))
    tally.check("checks", "signatures", run([sys.executable, "tools/check_signatures.py"]))
    tally.check("checks", "static analysis", run([sys.executable, "tools/check_static.py"]))
    script = "build/cairn_opdoc | diff - docs/operators.md || { echo 'stale: run make docs'; exit 1; }"
    tally.check("checks", "docs/operators.md", run(["bash", "-c", script]))


def run_example(tally, name):
    """Examples read the tree by relative paths, and write below build/ or to the current folder."""
    inputs = ["docs/design.md", *(path.relative_to(ROOT) for path in (ROOT / "examples").glob("*.safetensors"))]
    digits = BUILD / "digits"
    if digits.exists():
        inputs.append(digits.relative_to(ROOT))
    tally.check("examples", name, run_in_scratch([BUILD / f"example_{name}"], limit(EXAMPLE_TIME), {"CAIRN_QUICK": "1"}, inputs))


def run_examples(tally, options):
    if not build(tally, "release", ["all_examples"]):
        return
    names = sorted(path.stem for path in (ROOT / "examples").glob("*.c"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(run_example, tally, name) for name in names if options.wants(name)]
        for job in jobs:
            job.result()


PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|error|skipped|xfailed|xpassed)")


def run_pytest(tally, name, command, env, timeout):
    """Runs one file of tests by pytest. The counts are in the last line of its output."""
    result = run_in_scratch(command, timeout, env)
    lines = result.out.rstrip().splitlines() or [""]
    count = {word: int(number) for number, word in PYTEST_COUNT.findall(lines[-1])}
    skipped = count.get("skipped", 0) + count.get("xfailed", 0)
    failed = count.get("failed", 0) + count.get("error", 0) + count.get("xpassed", 0)
    note = ""
    all_skipped = result.status == 5 and skipped
    if result.status != 0 and failed == 0 and not all_skipped:
        failed, note = 1, f"  ({result.ending()})"
    if not failed:
        result.out = ""  # dots are no notes
    tally.add("python", name, result, count.get("passed", 0), failed, skipped, note)


def python_tests(tally, options, python, env, label=""):
    """Jobs for python/tests: a process for each file, so that a crash ends one file only."""
    pytest = [python, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider",
              "-c", ROOT / "python" / "pyproject.toml"]
    timeout = limit(PROGRAM_TIME * (3 if options.long else 1))
    return [(run_pytest, tally, path.stem + label, [*pytest, path], env, timeout)
            for path in sorted((ROOT / "python" / "tests").glob("test_*.py")) if options.wants(path.stem)]


def compared_python_tests(tally, options, python, env):
    """Tests that compare with PyTorch, where that is installed for the same Python (scripts/peers.sh torch)."""
    peer = ROOT / ".venv" / "torch" / "bin" / "python"
    ask = ["-c", "import sys, sysconfig; print(sysconfig.get_config_var('SOABI'), sysconfig.get_path('purelib'))"]
    ours, theirs = run([python, *ask]).out.split(), run([peer, *ask]).out.split() if peer.exists() else [None]
    if ours[0] != theirs[0] or run([peer, "-c", "import torch, pytest"]).status != 0:
        return []
    jobs = python_tests(tally, options, peer, {**env, "PYTHONPATH": ours[1]}, " torch")
    return [job for job in jobs if 'importorskip("torch")' in job[3][-1].read_text(encoding="utf-8")]


def sanitized_python_tests(tally, options, python, env):
    """The same with the address sanitizer. Python itself leaks, so leaks are not looked for here."""
    package = BUILD / "python" / "asan"
    built = run([python, "python/build_modules.py", "--sanitize", "--dest", package], limit(BUILD_TIME))
    if built.status != 0:
        tally.check("python", "build with asan", built)
        return []
    sanitizer = {**SANITIZER_ENV, "ASAN_OPTIONS": SANITIZER_ENV["ASAN_OPTIONS"] + ":detect_leaks=0",
                 "LD_PRELOAD": run(["cc", "-print-file-name=libasan.so"]).out.strip(),
                 "PYTHONPATH": str(package), "PYTHONMALLOC": "malloc", "CAIRN_TEST_QUICK": "1"}
    return python_tests(tally, options, python, {**env, **sanitizer}, " asan")


def run_python_example(tally, python, path):
    inputs = ["README.md", "docs", *(path.relative_to(ROOT) for path in (ROOT / "examples").glob("*.safetensors"))]
    if (BUILD / "digits").exists():
        inputs.append("build/digits")
    result = run_in_scratch([python, path], limit(EXAMPLE_TIME), {"CAIRN_QUICK": "1"}, inputs)
    tally.check("python", f"examples/{path.stem}", result)


def run_mypy(tally, python, examples):
    """The types of the examples, by the stubs in the wheel."""
    command = [python, "-m", "mypy", "--strict", "--cache-dir", BUILD / "python" / "mypy"]
    results = [run_in_scratch([*command, path], limit(CHECK_TIME)) for path in examples]  # all are called __main__
    seconds = sum(result.seconds for result in results)
    wrong = [result.out + result.err for result in results if result.status != 0]
    result = Result(0, "\n".join(wrong), "", seconds)
    tally.add("python", "types of the examples", result, len(results) - len(wrong), len(wrong))


def run_python(tally, options):
    """The Python package: its wheel in an environment of its own, its tests, its examples and their types."""
    made = run(["scripts/python.sh", "env"], limit(BUILD_TIME))
    if not tally.check("python", "wheel", made):
        return
    python = ROOT / made.out.strip().splitlines()[-1] / "bin" / "python"
    env = {"CAIRN_ROOT": str(ROOT), "HYPOTHESIS_STORAGE_DIRECTORY": str(BUILD / "python" / "hypothesis")}
    if options.long:
        env["CAIRN_TEST_LONG"] = "1"
    examples = [path for path in sorted((ROOT / "examples" / "python").glob("*.py")) if options.wants(path.stem)]
    jobs = [(run_mypy, tally, python, examples)] if examples else []
    jobs += [(run_python_example, tally, python, path) for path in examples]
    jobs += python_tests(tally, options, python, env)
    jobs += compared_python_tests(tally, options, python, env)
    if options.long:
        jobs += sanitized_python_tests(tally, options, python, env)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for job in [pool.submit(*job) for job in jobs]:
            job.result()


def run_web(tally, options):
    """The library in a headless Chromium: WebAssembly and the browser's WebGPU (web/tests/run.mjs)."""
    for command in ("package", "page", "programs"):
        made = run(["scripts/web.sh", command], limit(2 * BUILD_TIME))
        if not tally.check("web", command, made):
            return
    env = {"CAIRN_GPU_STEPS": "200"} if options.long else {}  # of the larger GPT, on a GPU that is slow
    for name in ("types", "ops", "gpu-ops", "gpt", "steps", "lost", "api-single", "api-threads", "api-gpu", "api-async"):
        if options.wants(name):
            run_test(tally, "web", f"test_{name}", [ROOT / "scripts" / "web.sh", "test", name], env,
                     limit(GPU_TIME * (3 if options.long else 1)))
    if options.wants("bench"):
        run_test(tally, "web", "bench", [ROOT / "scripts" / "web.sh", "bench", "--smoke"], {}, limit(GPU_TIME))
    for name in ("cold", "plain", "isolated", "phone", "gpu", *(["patience"] if options.long else [])):
        if options.wants(f"rooms_{name}"):
            run_test(tally, "web", f"test_rooms_{name}", [ROOT / "scripts" / "web.sh", "rooms", name], {}, limit(GPU_TIME))


def run_cases(tally, name, command, env):
    """A run of test_onnx_cases. Cases that do not pass are listed by their reasons."""
    result = run_in_scratch(command, limit(GPU_TIME), env)
    groups, lines = {}, []
    for line in result.out.rstrip().splitlines():
        case = re.fullmatch(r"not passed: (?:test_)?(\S+): (.*)", line)
        if case:
            groups.setdefault(case[2], []).append(case[1])
        else:
            lines.append(line)
    listed = [f"not passed, {why} ({len(names)}): {' '.join(names)}" for why, names in sorted(groups.items())]
    wrapped = [part for line in listed for part in textwrap.wrap(line, 114, subsequent_indent="    ", break_on_hyphens=False)]
    result.out = "\n".join(wrapped + lines)
    count_test(tally, "onnx", name, result, 1000)


def run_onnx(tally, options):
    """ONNX files: the node suite of the package `onnx`, gradients, models from wheels, files that Cairn writes."""
    made = run(["scripts/onnx.sh", "make"], limit(BUILD_TIME))
    left_out = [line for line in made.out.splitlines() if line.startswith("left out")]
    if made.status != 0 or left_out:
        tally.add("onnx", "scripts/onnx.sh make", made, 0, int(made.status != 0), len(left_out), "  " + "; ".join(left_out))
    targets = ["test_onnx_cases", "test_onnx_write", "test_onnx_operators", "cairn_shared", "cairn_cli", "example_14_onnx"]
    if made.status != 0 or not build(tally, "release", targets):
        return
    made_by = run(["scripts/onnx.sh", "env"]).out.strip()
    cases, folder, expected = BUILD / "tests" / "test_onnx_cases", BUILD / "onnx", ROOT / "tests" / "onnx"
    suite = [cases, folder / "cases", "--expected"]
    jobs = [("test_onnx_cases suite", [*suite, expected / "expected.txt", "--turned"], {}),
            ("test_onnx_cases gradients", [cases, folder / "gradients", "--gradients", "--expected",
                                           expected / "expected_gradients.txt"], {}),
            ("test_onnx_cases drawn", [cases, folder / "drawn", "--turned"], {})]
    if (folder / "models" / "cases.txt").exists():
        jobs.append(("test_onnx_cases models", [cases, folder / "models", "--turned"], {}))
    if GPUS[0] in software_gpus(tally, "onnx", options):
        sample = ["--every", "1" if options.long else "16"]
        gpu = on_gpu(GPUS[0], [*suite, expected / "expected_gpu.txt", *sample])
        jobs.insert(0, ("test_onnx_cases gpu", gpu, {"CAIRN_DEVICE": "gpu", "GALLIVM_PERF": "nopt"}))
    written = [ROOT / made_by, expected / "check_written.py", BUILD, "--cases", folder / "cases"]
    if (folder / "models" / "cases.txt").exists():
        written += ["--models", folder / "models"]
    jobs.append(("check_written.py", written, {}))
    jobs.append(("check_programs.py", [ROOT / made_by, expected / "check_programs.py", BUILD], {}))
    env = {"CAIRN_TEST_LONG": "1"} if options.long else {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for job in [pool.submit(run_cases, tally, name, command, {**env, **own}) for name, command, own in jobs
                    if options.wants(name)]:
            job.result()


def run_litter(tally):
    """The last check: the tree has not changed. Status 77: this is not a git checkout."""
    result = run([sys.executable, "tools/check_litter.py", "--since", TREE_BEFORE])
    if result.status == 77:
        tally.add("checks", "litter", result, 0, 0, 1)
    else:
        tally.check("checks", "litter", result)


def parse_options():
    parser = argparse.ArgumentParser(prog="scripts/test.sh", description=__doc__.split("\n")[0])
    parser.add_argument("--long", action="store_true", help="run the long variants of the tests")
    parser.add_argument("--only", action="append", choices=STAGES, help="run this stage only (repeatable)")
    parser.add_argument("names", nargs="*", help="run only tests and examples whose name contains one of these")
    options = parser.parse_args()
    options.stages = options.only or [stage for stage in STAGES if options.long or stage != "windows"]
    options.wants = lambda name: not options.names or any(part in name for part in options.names)
    return options


def main():
    options = parse_options()
    tally = Tally()
    BUILD.mkdir(exist_ok=True)
    run([sys.executable, "tools/check_litter.py", "--record", TREE_BEFORE])
    print(f"this machine, now: {SLOWNESS:.1f} times slower than the one the limits are made for; a test program may take "
          f"{limit(PROGRAM_TIME):.0f} s, on a GPU {limit(GPU_TIME):.0f} s", flush=True)
    for config in ("release", "asan", "tsan"):
        if config in options.stages:
            run_tests(tally, config, options)
    if "clang" in options.stages:
        run_clang(tally)
    if "fuzz" in options.stages:
        run_fuzzers(tally, options)
    if "arm" in options.stages:
        run_arm(tally, options)
    if "windows" in options.stages:
        run_windows(tally, options)
    if "checks" in options.stages:
        run_checks(tally)
    if "commands" in options.stages:
        run_commands(tally, options)
    if "examples" in options.stages:
        run_examples(tally, options)
    if "onnx" in options.stages:
        run_onnx(tally, options)
    if "python" in options.stages:
        run_python(tally, options)
    if "web" in options.stages:
        run_web(tally, options)
    run_litter(tally)
    print(tally.summary())
    return 1 if tally.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        for process in list(running):
            os.killpg(process.pid, signal.SIGKILL)
        sys.exit(130)
