"""Where the time goes: torch.profiler, on Cairn's own profiles.

    with cairn.profiler.profile() as p:
        train()
    print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    p.export_chrome_trace("trace.json")

A row is a kernel of a plan: operations that were fused are one row. The table ends with the time between evaluations.
"""

from contextlib import contextmanager
from enum import Enum

from . import _C

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    CPU = 0
    CUDA = 1
    XPU = 2
    GPU = 3


class ProfilerAction(Enum):
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class Row:
    """One kernel: key, count, the seconds of all calls, and what is known of its work."""

    def __init__(self, row):
        self.key, self.device, self.kind, self.count, self.seconds, self.share, self.flops, self.bytes = row
        self.name = self.key
        self.cpu_time_total = self.self_cpu_time_total = self.seconds * 1e6  # in µs, as PyTorch
        self.cpu_time = self.cpu_time_total / self.count if self.count else 0.0

    def __repr__(self):
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.0f} µs>"


def _sort_value(row, sort_by):
    if sort_by in ("count", "calls"):
        return row.count
    if sort_by in ("flops", "bytes"):
        return getattr(row, sort_by)
    return row.seconds


def _time(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3f}{unit}"
    return f"{seconds * 1e6:.3f}us"


class Rows(list):
    """Rows of kernels; total is the whole time in seconds."""

    def __init__(self, rows, total):
        super().__init__(rows)
        self.total = total

    def table(self, sort_by="self_cpu_time_total", row_limit=100, max_name_column_width=55, **ignored):
        """The rows as text, those that took most first."""
        rows = sorted(self, key=lambda r: _sort_value(r, sort_by), reverse=True)
        if row_limit is not None and row_limit >= 0:
            rows = rows[:row_limit]
        width = max([4, *(min(len(r.key), max_name_column_width) for r in rows)])
        head = f"{'Name':<{width}}  {'Class':<12} {'Self CPU %':>10}  {'Self CPU':>10}  {'CPU avg':>10}  {'# Calls':>8}"
        lines = ["-" * len(head), head, "-" * len(head)]
        for r in rows:
            name = r.key if len(r.key) <= width else r.key[: width - 3] + "..."
            mean = _time(r.seconds / r.count) if r.count else "-"
            lines.append(f"{name:<{width}}  {r.kind:<12} {r.share * 100:>9.2f}%  {_time(r.seconds):>10}  {mean:>10}  "
                         f"{r.count:>8}")
        lines += ["-" * len(head), f"Self CPU time total: {_time(self.total)}"]
        return "\n".join(lines)

    __str__ = table


class profile:
    """Measures what runs inside `with`. activities, record_shapes and the like are accepted; schedule and
    on_trace_ready work with step()."""

    def __init__(self, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
                 with_stack=False, with_flops=False, with_modules=False, **ignored):
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.step_num = 0
        self._profile = None
        self._running = False

    def _begin(self):
        self._profile = _C.profile_begin(_C._get_default_device())
        self._running = True

    def _end(self):
        if self._running:
            self._running = False
            _C.profile_end(self._profile)

    def _ready(self):
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def start(self):
        if self.schedule is None or self.schedule(0) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self._begin()

    def stop(self):
        was = self._running
        self._end()
        if was:
            self._ready()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()
        return False

    def step(self):
        """The next step of the schedule."""
        if self.schedule is None:
            self.step_num += 1
            return
        saved = self.schedule(self.step_num) is ProfilerAction.RECORD_AND_SAVE
        self.step_num += 1
        wanted = self.schedule(self.step_num) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if self._running and (saved or not wanted):
            self._end()
            self._ready()
        if wanted and not self._running:
            self._begin()

    def _rows(self):
        if self._profile is None:
            raise RuntimeError("profiler: nothing has been measured")
        return _C.profile_rows(self._profile)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """A row for each kernel, and one for each kind of time outside of kernels."""
        seconds, kernels, totals = self._rows()
        other = [t for t in totals if t[2] in ("planning", "engine", "outside") and t[4] > 0]
        return Rows([Row(r) for r in [*kernels, *other]], seconds)

    def events(self):
        return self.key_averages()

    def table(self):
        """Cairn's own table: classes, then kernels, with shares of the time."""
        return _C.profile_text(self._profile)

    def total_average(self):
        seconds, _, totals = self._rows()
        return Rows([Row(r) for r in totals], seconds)

    def export_chrome_trace(self, path):
        """A timeline for chrome://tracing or ui.perfetto.dev."""
        _C.profile_trace(self._profile, str(path))


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A function of the step: waits, warms up, records `active` steps; again `repeat` times (0: for ever)."""

    def action(step):
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        length = wait + warmup + active
        if repeat and step // length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """Writes a trace for each time that profile is ready."""

    def handler(p):
        import os

        os.makedirs(dir_name, exist_ok=True)
        p.export_chrome_trace(os.path.join(dir_name, f"{worker_name or 'cairn'}.{p.step_num}.pt.trace.json"))

    return handler


@contextmanager
def record_function(name, args=None):
    """Has no effect: work is measured when it is computed, not where it is written."""
    yield
