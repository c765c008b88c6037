"""The text of tensors: PyTorch's, word for word."""

import math
import random

import pytest

import cairn
from cairn import _repr

FLOATS = ["float32", "float64", "float16", "bfloat16"]
WHOLE = ["int64", "int32", "int16", "int8", "uint8"]


@pytest.fixture(autouse=True)
def usual_options():
    _repr.set_printoptions(profile="default")
    yield
    _repr.set_printoptions(profile="default")


def test_known_texts():
    """PyTorch's, also where it is missing."""
    for x, text in [
        (cairn.tensor(3), "tensor(3)"),
        (cairn.tensor(2.5), "tensor(2.5000)"),
        (cairn.tensor(True), "tensor(True)"),
        (cairn.tensor([]), "tensor([])"),
        (cairn.ones(0, 3), "tensor([], size=(0, 3))"),
        (cairn.ones(0, dtype=cairn.int64), "tensor([], dtype=cairn.int64)"),
        (cairn.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (cairn.tensor([1, -20]), "tensor([  1, -20])"),
        (cairn.tensor([True, False]), "tensor([ True, False])"),
        (cairn.tensor([1.5, math.nan, math.inf]), "tensor([1.5000,    nan,    inf])"),
        (cairn.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
        (cairn.tensor([1e9]), "tensor([1.0000e+09])"),
        (cairn.tensor([1.0], dtype=cairn.float64), "tensor([1.], dtype=cairn.float64)"),
        (cairn.tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
        (cairn.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
        (cairn.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
    ]:
        assert repr(x) == text
        assert str(x) == text


def test_gradient_functions():
    y = cairn.ones(2, requires_grad=True) * 2
    assert repr(y).startswith("tensor([2., 2.], grad_fn=<") and repr(y).endswith(">)")
    assert repr(y.detach()) == "tensor([2., 2.])"


def some_shape(rng):
    n = rng.randint(0, 4)
    if n == 1 and rng.random() < 0.4:
        return (rng.choice([999, 1000, 1001, 5000]),)
    if n == 2 and rng.random() < 0.3:
        return rng.choice([1, 3, 6, 7, 40]), rng.choice([5, 6, 7, 300, 1001])
    return tuple(rng.choice([0, 1, 2, 3, 5, 7, 8, 13, 30]) for _ in range(n))


def some_values(rng, name, count):
    if name == "bool":
        return [rng.random() < 0.5 for _ in range(count)]
    if name in WHOLE:
        most = {"uint8": 255, "int8": 127, "int16": 10 ** rng.randint(1, 4)}.get(name, 10 ** rng.randint(1, 9))
        return [rng.randint(0 if name == "uint8" else -most, most) for _ in range(count)]
    scale, kind = 10 ** rng.uniform(-8, 8), rng.random()
    values = [rng.gauss(0, 1) * scale for _ in range(count)]
    if kind < 0.3:
        values = [float(round(v)) for v in values]
    elif kind < 0.4:
        values = [v * 10 ** rng.uniform(-3, 3) for v in values]
    for _ in range(3 if count and rng.random() < 0.3 else 0):
        values[rng.randrange(count)] = rng.choice([math.nan, math.inf, -math.inf, 0.0, -0.0])
    return values


def some_options(rng):
    if rng.random() < 0.6:
        return {}
    return {"precision": rng.randint(0, 8), "edgeitems": rng.randint(1, 5), "linewidth": rng.choice([40, 80, 120]),
            "threshold": rng.choice([5, 100, 1000]), "sci_mode": rng.choice([None, True, False])}


@pytest.mark.parametrize("seed", range(8))
def test_like_pytorch(seed):
    torch = pytest.importorskip("torch")
    rng = random.Random(seed)
    try:
        for _ in range(75):
            name, shape, options = rng.choice([*FLOATS, *WHOLE, "bool"]), some_shape(rng), some_options(rng)
            values = some_values(rng, name, math.prod(shape))
            theirs = torch.tensor(values, dtype=getattr(torch, name)).reshape(shape)
            ours = cairn.tensor(values, dtype=getattr(cairn, name)).reshape(shape)
            if name in FLOATS and rng.random() < 0.2:
                theirs, ours = theirs.requires_grad_(), ours.requires_grad_()
            for library in (torch, cairn):
                library.set_printoptions(profile="default")
                library.set_printoptions(**options)
            assert repr(ours).replace("cairn.", "torch.") == repr(theirs), (shape, name, options)
    finally:
        torch.set_printoptions(profile="default")


def test_options():
    x = cairn.tensor([1.23456789])
    with cairn.printoptions(precision=2):
        assert repr(x) == "tensor([1.23])"
        assert cairn.get_printoptions()["precision"] == 2
    assert repr(x) == "tensor([1.2346])"
    cairn.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([1.2346e+00])"
    cairn.set_printoptions(profile="full")
    assert "..." not in repr(cairn.arange(2000))
    cairn.set_printoptions(profile="short")
    assert repr(x) == "tensor([1.23])"
    with pytest.raises(ValueError, match="profile"):
        cairn.set_printoptions(profile="long")


def test_default_dtype_is_not_shown():
    cairn.set_default_dtype(cairn.float64)
    try:
        assert repr(cairn.tensor([1.5])) == "tensor([1.5000])"
        assert repr(cairn.tensor([1.5], dtype=cairn.float32)) == "tensor([1.5000], dtype=cairn.float32)"
    finally:
        cairn.set_default_dtype(cairn.float32)


def test_large_tensors_are_read_in_part():
    x = cairn.zeros(3000, 3000)
    text = repr(x)
    assert text.count("...") == 7 and len(text) < 600


def test_html():
    html = cairn.tensor([[1.5, 2.0], [3.0, 4.0]])._repr_html_()
    assert html.count("<tr>") == 2 and html.count("<td>") == 4 and "1.5000" in html and "[2, 2]" in html
    assert cairn.ones(3)._repr_html_().count("<td>") == 3
    for x in (cairn.tensor(1), cairn.ones(0), cairn.ones(2, 2, 2), cairn.ones(1000)):
        assert x._repr_html_() is None
