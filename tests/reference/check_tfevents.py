"""Reads a logbook's folder with TensorBoard's own reader and compares every scalar with log.csv.

    python -m venv .venv/tensorboard && .venv/tensorboard/bin/pip install tensorboard
    .venv/tensorboard/bin/python tests/reference/check_tfevents.py FOLDER

FOLDER is what cn_logbook_new was given. test_look.c reads the same files without TensorBoard; this says that TensorBoard agrees.
"""

import csv
import math
import struct
import sys
from collections import defaultdict

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def as_float(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


folder = sys.argv[1]
written = defaultdict(list)
with open(f"{folder}/log.csv", newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        written[row["name"]].append((int(row["step"]), float(row["time"]), as_float(float(row["value"]))))

events = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
events.Reload()
names = set(events.Tags()["scalars"])
wrong = [f"names differ: {sorted(names ^ set(written))}"] if names != set(written) else []
count = 0
for name in names & set(written):
    read = [(e.step, e.wall_time, e.value) for e in events.Scalars(name)]
    if len(read) != len(written[name]):
        wrong.append(f"{name}: {len(read)} of {len(written[name])} values")
    for (step, time, value), (s, t, v) in zip(read, written[name]):
        count += 1
        if step != s or abs(time - t) > 0.001 or not same(value, v):
            wrong.append(f"{name}: {(step, time, value)} and not {(s, t, v)}")
print("\n".join(wrong[:10]) if wrong else f"{count} scalars of {len(names)} names agree")
sys.exit(1 if wrong or not count else 0)
