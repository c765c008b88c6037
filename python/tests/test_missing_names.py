"""tools/missing_names.py: what it finds in scripts."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "missing_names.py"

SCRIPT = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader
import numpy as np

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)
    def forward(self, x):
        return F.relu(self.fc(x)).flatten(1)

optimizer = optim.SGD(Net().parameters(), lr=0.1)
print(torch.zeros(3).sum().item(), np.zeros(3).nonzero(), "a".split(), torch.float32)
"""


def run(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(TOOL), str(path)], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def test_a_script_that_runs(tmp_path):
    status, lines = run(tmp_path, SCRIPT)
    assert (status, lines[-1].endswith(" 0 missing")) == (0, True), lines


def test_missing_names_are_listed_with_their_line(tmp_path):
    status, lines = run(tmp_path, SCRIPT + "\nx = torch.zero(3)\ny = nn.Linaer(2, 3)\nz = x.sparse_mask(y)\n"
                                           "import torch.fx as fx\nfx.symbolic_trace(y)\n")
    assert status == 1
    first = len(SCRIPT.splitlines()) + 2
    text = "\n".join(lines)
    assert f":{first}: torch.zero is missing; nearest: cairn.zero" in text
    assert f":{first + 1}: torch.nn.Linaer is missing; nearest: cairn.nn.Linear" in text
    assert f":{first + 2}: Tensor.sparse_mask is missing" in text
    assert "torch.fx.symbolic_trace is missing; nothing has to be traced" in text
    assert lines[-1].endswith(" 4 missing")
