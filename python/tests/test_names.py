"""The names that scripts use most (docs/torch-names.md): all are there, or say what to use instead."""

import re
from pathlib import Path

import pytest

import cairn

PAGE = Path(__file__).resolve().parents[2] / "docs" / "torch-names.md"
NAMES = [name for row in re.findall(r"^\| \d+ \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.M)
         for name in re.findall(r"`([^`]+)`", row)]

# Names that Cairn has not: using one says so, and names the nearest thing.
ABSENT = {"torch.sparse.FloatTensor"}

# What a name of the page begins with, and the objects that must have it.
HOMES = {
    "nn.": lambda: [cairn.nn],
    "F.": lambda: [cairn.nn.functional],
    "optim.": lambda: [cairn.optim],
    "autograd.": lambda: [cairn.autograd],
    "utils.data.": lambda: [cairn.utils.data],
    "torch.": lambda: [cairn],
    "Tensor.": lambda: [cairn.Tensor],
    "Module.": lambda: [cairn.nn.Module],
    "Optimizer.": lambda: [cairn.optim.SGD([cairn.zeros(1)])],
    "Tensor/Module.": lambda: [cairn.Tensor, cairn.nn.Module],
    "lr_scheduler.": lambda: [cairn.optim.lr_scheduler.LRScheduler],
    "": lambda: [cairn.nn.Module, cairn.optim.Optimizer],
}


def look_up(home, path):
    for part in path.split("."):
        home = getattr(home, part)
    return home


def plain():
    return [name for name in NAMES if re.fullmatch(r"[\w./]+", name) and name not in ABSENT]


def test_the_page_has_all_names():
    assert len(re.findall(r"^\| \d+ \|", PAGE.read_text(encoding="utf-8"), re.M)) == 210
    assert ABSENT <= set(NAMES)


@pytest.mark.parametrize("name", plain())
def test_name(name):
    if name == "Module.training":
        assert cairn.nn.Module().training is True
        return
    prefix = max((prefix for prefix in HOMES if name.startswith(prefix)), key=len)
    for home in HOMES[prefix]():
        assert look_up(home, name[len(prefix):]) is not None or name == "Tensor.grad"


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_absent_name_says_what_to_use(name):
    with pytest.raises(NotImplementedError, match=r"index_select|gather|index_add"):
        look_up(cairn, name[len("torch."):])()


def test_subscripts_and_operators():
    x = cairn.arange(12.0).reshape(3, 4)
    assert x[0:2, 1].tolist() == [1.0, 5.0]
    assert x[None].shape == (1, 3, 4)
    assert x[..., -1].tolist() == [3.0, 7.0, 11.0]
    assert x[x > 8].tolist() == [9.0, 10.0, 11.0]
    assert (x @ x.T).shape == (3, 3)
