#!/usr/bin/env python3
"""Measures Cairn, PyTorch and JAX on the same workloads and prints a table.

    make bench [ARGS="--rounds 3"]        builds first
    scripts/bench.py [--rounds 9] [--seconds 0.5] [--extra | --all | --only gpt-mini,lstm] [--threads 2]
                     [--no-peers | --python]

Without an option it measures the reference workloads; --extra measures the extra workloads, --all both in two tables.
With --python the only peer is Cairn's own Python package, as python/build_inplace.sh makes it: what Python costs.

For each workload all programs are started and made ready. Then they take short turns, for several rounds: machines that
others share change their speed within seconds, and neighbouring turns see the same machine. A round waits up to a
minute until threads have cores of their own: until all of them multiply registers at least 0.9 times as fast as they
should (bench_limits --gain). Times are medians over the rounds. A ratio is peer / Cairn, the median of the rounds'
ratios: above 1, Cairn is faster or smaller. A peer that is not installed is left out. A peer that fails, or is not
ready after 180 s, is shown as "-". The figures are written to build/bench.json, the ratios of time also to
build/bench.svg.
"""
import argparse
import json
import math
import os
import platform
import select
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LIMIT = 180  # seconds in which a program is ready, and in which it takes a turn
WAIT = 60  # seconds in which threads get cores of their own
PAUSE = 0.1  # seconds between turns: idle threads of the program before stop spinning
BUSY = 0.1  # if other programs use more cores on average, the figures are not reliable

# key, name in the table, folder below .venv, script, flags
PEERS = [
    ("torch", "PyTorch", "torch", "peer_torch.py", []),
    ("torch_compile", "compiled", "torch", "peer_torch.py", ["--compile"]),
    ("jax", "JAX", "jax", "peer_jax.py", []),
]
NAMES = {"cairn": "Cairn", "python": "Python", **{key: name for key, name, *_ in PEERS}}
LEGEND = {"torch": "PyTorch, eager", "torch_compile": "PyTorch, torch.compile", "jax": "JAX, jit",
          "python": "Cairn from Python"}
COLORS = {"torch": "#d9541e", "torch_compile": "#8a3ab9", "jax": "#1f77b4", "python": "#2e8b57"}


def runners(args):
    """Commands by key, Cairn first. Leaves out peers without a virtual environment, and prints their names."""
    found = {"cairn": [str(BUILD / "bench_workloads")]}
    if args.python:
        os.environ["PYTHONPATH"] = str(ROOT / "python")
        found["python"] = [sys.executable, str(ROOT / "bench/peers/peer_torch.py"), "--cairn"]
    for key, _, folder, script, flags in PEERS if not (args.no_peers or args.python) else []:
        venv = ROOT / ".venv" / folder
        if (venv / "ready").exists():
            found[key] = [str(venv / "bin/python"), str(ROOT / "bench/peers" / script), *flags]
        else:
            print(f"left out: {LEGEND[key]} is not in .venv/{folder} (scripts/peers.sh installs it)")
    return found


class Program:
    """A program that has a workload ready and takes turns. `process` is None after a failure."""

    def __init__(self, command, workload, args):
        self.command = [*command, "--turns", "--only", workload, "--threads", str(args.threads),
                        "--seconds", str(args.seconds)]
        self.workload = workload
        # The programs fork: a session of its own lets `end` end all of them.
        self.process = subprocess.Popen(self.command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        self.answer()

    def answer(self):
        """The fields of the next line of this workload; [] after a failure."""
        end = time.monotonic() + LIMIT
        while select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
            line = self.process.stdout.readline()
            fields = line.split()
            if not line or fields[1:2] == ["FAILED"]:
                note(f"{' '.join(self.command)}: no result {line.strip()}")
                break
            if fields and fields[0] == self.workload:
                return fields[1:]
        else:
            note(f"{' '.join(self.command)}: no result in {LIMIT} s")
            os.killpg(self.process.pid, signal.SIGKILL)
        self.end()
        return []

    def turn(self):
        """{"ms", "mb"}, and "compile_s" of some peers; None after a failure."""
        if not self.process:
            return None
        time.sleep(PAUSE)
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.end()
            return None
        fields = self.answer()
        return dict(zip(("ms", "mb", "compile_s"), map(float, fields))) if fields else None

    def end(self):
        """At the end of its input a program ends by itself; one that hangs is killed."""
        if not self.process:
            return
        process, self.process = self.process, None
        try:
            process.communicate(timeout=10)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def note(text, end="\n"):
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    print(text, end=end, file=sys.stderr, flush=True)


def cpu_seconds():
    """Processor time of the whole machine, and of the programs started here; both in seconds."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return 0, 0
    user, nice, system, _, _, _, _, steal = map(int, fields[1:9])
    used = os.times()
    mine = used.user + used.system + used.children_user + used.children_system
    return (user + nice + system + steal) / os.sysconf("SC_CLK_TCK"), mine


def wait_for_cores(threads):
    """False: the threads still shared their cores after WAIT seconds."""
    end = time.monotonic() + WAIT
    while True:
        asked = subprocess.run([BUILD / "bench_limits", "--gain", str(threads)], stdout=subprocess.PIPE, check=True)
        if float(asked.stdout) >= 0.9 * threads:
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.5)


def measure(commands, workloads, args):
    """samples[workload][key]: figures of the rounds, the same number for all programs, none for one that failed.
    Beside it the number of rounds in which threads shared cores."""
    samples, shared = {}, 0
    for w in workloads:
        programs = {}
        try:
            for key, command in commands.items():
                if sys.stderr.isatty():
                    note(f"{w}: {LEGEND.get(key, 'Cairn')} gets ready", end="")
                programs[key] = Program(command, w, args)
            rounds = {key: [] for key in commands}
            for n in range(args.rounds):
                if sys.stderr.isatty():
                    note(f"{w}: round {n + 1} of {args.rounds}", end="")
                shared += not wait_for_cores(args.threads)
                for key, program in programs.items():
                    rounds[key].append(program.turn())
        finally:
            for program in programs.values():
                program.end()
        samples[w] = {key: [] if None in figures else figures for key, figures in rounds.items()}
    if sys.stderr.isatty():
        note("", end="")
    return samples, shared


def medians(samples):
    return {w: {key: {what: statistics.median(f[what] for f in rounds) for what in rounds[0]} if rounds else None
                for key, rounds in by_key.items()} for w, by_key in samples.items()}


def ratios_of(samples):
    """ratios[workload][key][what]: the median over the rounds of peer / Cairn."""
    return {w: {key: {what: statistics.median(theirs[what] / ours[what] for theirs, ours in zip(rounds, by_key["cairn"]))
                      for what in ("ms", "mb")} if rounds and by_key["cairn"] else None
                for key, rounds in by_key.items()} for w, by_key in samples.items()}


def ratio(row, key, what):
    return row[key][what] if row[key] else None


# ---- the table


def number(x):
    """With three significant digits."""
    if x is None:
        return "-"
    return f"{x:.0f}" if x >= 100 else f"{x:.{max(0, 2 - math.floor(math.log10(x)))}f}" if x > 0 else "0"


def print_table(results, ratios, keys):
    peers = keys[1:]
    groups = [("ms a step", keys, lambda w, key: number(results[w][key] and results[w][key]["ms"]))]
    if peers:
        groups.append(("time: peer / Cairn", peers, lambda w, key: number(ratio(ratios[w], key, "ms"))))
    groups.append(("peak memory, MB", keys, lambda w, key: number(results[w][key] and results[w][key]["mb"])))
    if peers:
        groups.append(("memory: peer / Cairn", peers, lambda w, key: number(ratio(ratios[w], key, "mb"))))
    first = max(len(w) for w in ["workload", *results])
    head, names = " " * first, "workload".ljust(first)
    for title, columns, _ in groups:
        width = max(9 * len(columns), len(title) + 2)
        head += " | " + title.center(width)
        names += " | " + "".join(NAMES[c].rjust(9) for c in columns).rjust(width)
    print(f"{head.rstrip()}\n{names}")
    for w in results:
        line = w.ljust(first)
        for title, columns, cell in groups:
            width = max(9 * len(columns), len(title) + 2)
            line += " | " + "".join(cell(w, c).rjust(9) for c in columns).rjust(width)
        print(line)
    for key in peers:
        found = [r for w in results if (r := ratio(ratios[w], key, "ms"))]
        if len(found) > 1:
            print(f"{LEGEND[key]}: geometric mean of peer / Cairn {number(statistics.geometric_mean(found))}")


# ---- the picture


def ticks(low, high):
    steps = [m * 10.0 ** e for e in range(-3, 5) for m in (1, 2, 5)]
    return [t for t in steps if low <= t <= high]


def svg(ratios, peers, subtitle):
    """Bars on a logarithmic axis that start at 1. A bar to the right: the peer is slower; to the left: it is faster."""
    rows = {w: [(key, ratio(row, key, "ms")) for key in peers] for w, row in ratios.items()}
    found = [r for bars in rows.values() for _, r in bars if r]
    low, high = min(0.5, min(found) / 1.5), max(2, max(found) * 1.5)
    left, width, bar, gap, top = 24 + 8 * max(map(len, rows)), 660, 14, 12, 92
    step = bar * len(peers) + gap
    bottom = top + step * len(rows)

    def x(r):
        return left + width * math.log(r / low) / math.log(high / low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 30}" height="{bottom + 48}" '
           f'font-family="sans-serif" font-size="13" fill="#222">',
           '<rect width="100%" height="100%" fill="#fff"/>',
           '<text x="16" y="26" font-size="17" font-weight="bold">Time of a step: peer / Cairn</text>',
           f'<text x="16" y="46" fill="#666">{escape(subtitle)}</text>']
    at = 16
    for key in peers:
        out.append(f'<rect x="{at}" y="60" width="12" height="12" fill="{COLORS[key]}"/>'
                   f'<text x="{at + 18}" y="71">{escape(LEGEND[key])}</text>')
        at += 40 + 7.5 * len(LEGEND[key])
    for t in ticks(low, high):
        out.append(f'<line x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{top - 6}" y2="{bottom}" '
                   f'stroke="{"#222" if t == 1 else "#ddd"}"/>'
                   f'<text x="{x(t):.1f}" y="{bottom + 18}" text-anchor="middle" fill="#666">{t:g}</text>')
    out.append(f'<text x="{x(1) + 6:.1f}" y="{bottom + 38}" fill="#666">Cairn is faster →</text>'
               f'<text x="{x(1) - 6:.1f}" y="{bottom + 38}" fill="#666" text-anchor="end">←</text>')
    for i, (w, bars) in enumerate(rows.items()):
        y = top + i * step
        out.append(f'<text x="{left - 10}" y="{y + bar * len(peers) / 2 + 5:.1f}" text-anchor="end">{escape(w)}</text>')
        for k, (key, r) in enumerate(bars):
            a, b = sorted((x(1), x(r or 1)))
            side = 'text-anchor="end"' if r and r < 1 else ""
            out.append(f'<rect x="{a:.1f}" y="{y + k * bar + 1}" width="{max(b - a, 1):.1f}" height="{bar - 2}" '
                       f'fill="{COLORS[key]}"/>'
                       f'<text x="{a - 4 if r and r < 1 else b + 4:.1f}" y="{y + (k + 1) * bar - 3}" '
                       f'font-size="11" {side}>{number(r)}</text>')
    return "\n".join([*out, "</svg>", ""])


# ---- main


def cpu_name():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def versions(commands):
    """Versions of the peers, from the folders that pip writes; nothing is imported."""
    found = {}
    for folder in sorted({f for key, _, f, *_ in PEERS if key in commands}):
        for info in (ROOT / ".venv" / folder).glob(f"lib/python3*/site-packages/{folder}-*.dist-info"):
            found[folder] = info.name[len(folder) + 1:-len(".dist-info")]
    return found


def known_workloads():
    """The names of both lists: the reference workloads and the extra ones. A third list is for --compare alone."""
    out = subprocess.run([BUILD / "bench_workloads", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    reference, extra, *_ = ([line.split()[0] for line in part.splitlines()] for part in out.split("\n\n"))
    return reference, extra


def options():
    parser = argparse.ArgumentParser(prog="scripts/bench.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="how often all programs take turns [9]")
    parser.add_argument("--seconds", type=float, default=0.5, help="time of a turn [0.5]")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--extra", action="store_true", help="measure the extra workloads instead")
    which.add_argument("--all", action="store_true", help="measure both lists")
    which.add_argument("--only", default="", metavar="NAME,NAME", help="measure only these workloads, from both lists")
    parser.add_argument("--threads", type=int, default=2, help="threads of every program [2]")
    peers = parser.add_mutually_exclusive_group()
    peers.add_argument("--no-peers", action="store_true", help="measure Cairn only; install nothing")
    peers.add_argument("--python", action="store_true", help="compare with Cairn's Python package; install nothing")
    args = parser.parse_args()
    if args.rounds < 1 or args.threads < 1 or args.seconds <= 0:
        parser.error("--rounds, --threads and --seconds are above zero")
    if not (BUILD / "bench_workloads").exists():
        parser.error("build/bench_workloads is not there: run `make build`, or `make bench` for all of it")
    reference, extra = known_workloads()
    lists = extra if args.extra else reference + extra if args.all else reference
    chosen = args.only.split(",") if args.only else lists
    for w in chosen:
        if w not in reference + extra:
            parser.error(f"no workload is called '{w}'; there are {', '.join(reference + extra)}")
    args.lists = [names for names in ([w for w in chosen if w in part] for part in (reference, extra)) if names]
    return args


def main():
    args = options()
    sys.stdout.reconfigure(line_buffering=True)
    if not args.no_peers and not args.python:
        subprocess.run([ROOT / "scripts/peers.sh"], check=False)
    commands = runners(args)
    if not args.only and not args.extra and not args.python:
        subprocess.run([BUILD / "bench_overhead"], check=True)
        print()
    all_before, mine_before, start = *cpu_seconds(), time.monotonic()
    samples, shared = measure(commands, sum(args.lists, []), args)
    all_after, mine_after = cpu_seconds()
    others = (all_after - all_before - (mine_after - mine_before)) / (time.monotonic() - start)
    results, ratios = medians(samples), ratios_of(samples)
    peers = [key for key in commands if key != "cairn"]
    rounds = "1 round" if args.rounds == 1 else f"median of {args.rounds} rounds"
    have = versions(commands)
    threads = "1 thread" if args.threads == 1 else f"{args.threads} threads"
    subtitle = "; ".join([cpu_name(), threads, f"{rounds} of {args.seconds:g} s", *map(" ".join, have.items())])
    print(subtitle)
    for names in args.lists:
        print()
        print_table({w: results[w] for w in names}, ratios, list(commands))
    if shared:
        print(f"in {shared} rounds the threads shared cores with each other or with other machines")
    if others > BUSY:
        print(f"NOT RELIABLE: other programs used {others:.1f} cores during the measurement; threads that wait for each "
              "other lose far more than that share")
    (BUILD / "bench.json").write_text(json.dumps(
        {"cpu": cpu_name(), "threads": args.threads, "rounds": args.rounds, "seconds": args.seconds, "versions": have,
         "cores_used_by_others": round(others, 2), "rounds_with_shared_cores": shared,
         "results": results, "ratios": ratios, "samples": samples}, indent=1) + "\n")
    written = ["build/bench.json"]
    if any(ratio(row, key, "ms") for row in ratios.values() for key in peers):
        (BUILD / "bench.svg").write_text(svg(ratios, peers, subtitle))
        written.append("build/bench.svg")
    print("written:", ", ".join(written))
    return 0 if all(row["cairn"] for row in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
