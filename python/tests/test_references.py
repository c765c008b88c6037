"""No call leaks: for every function that is made from an operator's signature, as a function, as a method and in place,
repeated calls leave the number of Python's objects, of Cairn's tensors and of references to the operands as they were,
whether the calls succeed or fail."""

import gc
import re
import sys

import pytest

import cairn
from cairn import _C

REPEAT = 32
SLACK = REPEAT - 1  # blocks of memory that Python's own caches may take: less than one for each call

SIGNATURE = re.compile(r"(\w+)\((.*)\) -> ")
FLOATS = [(4, 4), (2, 3), (3,), (), (1, 2, 6, 6), (2, 3, 5), (1, 2, 4, 4, 4)]


def signatures():
    found = {}
    for name, value in vars(_C).items():
        match = SIGNATURE.match(getattr(value, "__doc__", None) or "")
        if match and match.group(1) == name:
            found[name] = [word for word in re.split(r",\s*(?![^\[{(]*[\]})])", match.group(2)) if word != "*"]
    return found


SIGNATURES = signatures()


def argument(text, shape, whole):
    """A value for a parameter without a default."""
    kind = text.split()[0]
    if kind.startswith("Tensor[]"):
        return [cairn.ones(shape), cairn.ones(shape)]
    if kind.startswith("Tensor"):
        return cairn.ones(shape, dtype=cairn.int64) if whole else cairn.ones(shape)
    if kind.startswith("int["):
        return (1,) * int(kind[4]) if kind[4:5].isdigit() else (1,)
    return {"float": 1.0, "int": 1, "bool": True, "dtype": cairn.float32, "str": "ij,jk->ik"}.get(kind.rstrip("?"), "none")


def arguments(parameters):
    """Lists of arguments, of several shapes and dtypes: one of them fits most functions; the others must fail cleanly."""
    needed = [text for text in parameters if "=" not in text]
    for shape in FLOATS:
        yield [argument(text, shape, False) for text in needed]
        yield [argument(text, shape, i > 0) for i, text in enumerate(needed)]
    yield ["no tensor"] * max(1, len(needed))


def attempt(function, given):
    try:
        return function(*given), None
    except Exception as error:  # of any kind: what is looked at is what is left behind
        return None, type(error)


def objects():
    return _C._count_objects()[1]


def leaks(function, given):
    """(blocks of memory, Cairn's objects, references to operands) that repeated calls left behind."""
    tensors = [x for x in given if isinstance(x, cairn.Tensor)]
    before, after = [0, 0, 0], [0, 0, 0]

    def count(into):
        into[2] = sum(sys.getrefcount(x) for x in tensors)
        into[1] = objects()
        into[0] = sys.getallocatedblocks()

    def repeat(n):
        for _ in range(n):
            attempt(function, given)

    repeat(3)
    count(before)  # the first time makes numbers of its own
    for round_ in range(20):  # objects that wait for their next use are no leak: their number ends growing
        count(before)
        repeat(REPEAT)
        if round_:
            gc.collect()  # cycles are no leak either
        count(after)
        if after[0] - before[0] <= SLACK and after[1:] == before[1:]:
            break
    return [b - a for a, b in zip(before, after)]


def check(function, name, parameters):
    worked = 0
    for given in arguments(parameters):
        _, error = attempt(function, given)
        worked += error is None
        blocks, tensors, references = leaks(function, given)
        assert tensors == 0 and references == 0 and blocks <= SLACK, (
            f"{name}: {blocks} blocks, {tensors} tensors, {references} references in {REPEAT} calls; {error}")
    return worked


def test_there_are_functions():
    assert len(SIGNATURES) > 300


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_function(name):
    check(getattr(_C, name), name, SIGNATURES[name])


@pytest.mark.parametrize("name", sorted(n for n in SIGNATURES if SIGNATURES[n][0].startswith("Tensor ")))
def test_method(name):
    if not hasattr(_C.Tensor, name):
        pytest.skip("is no method")
    check(lambda *given: getattr(given[0], name)(*given[1:]), name, SIGNATURES[name])
    if hasattr(_C.Tensor, name + "_"):
        check(lambda *given: getattr(cairn.clone(given[0]), name + "_")(*given[1:]), name + "_", SIGNATURES[name])


def test_most_functions_were_called():
    """Else the tests above would look at errors only."""
    worked = [name for name, parameters in SIGNATURES.items()
              if any(attempt(getattr(_C, name), given)[1] is None for given in arguments(parameters))]
    assert len(worked) > 0.8 * len(SIGNATURES), sorted(set(SIGNATURES) - set(worked))


def test_gradients_and_graphs_leave_nothing():
    weight = cairn.ones(3, 3, requires_grad=True)

    def step():
        weight.grad = None
        (weight @ weight).tanh().sum().backward()
        return weight.grad.sum().item()

    blocks, tensors, _ = leaks(step, [])
    assert tensors == 0 and blocks <= SLACK


class Exp(cairn.autograd.Function):
    """Its context keeps its own result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


@pytest.mark.parametrize("back", [True, False])
def test_functions_with_a_gradient_of_their_own(back):
    x = cairn.ones(3, requires_grad=True)

    def step():
        y = Exp.apply(x).sum()
        if back:
            y.backward()
            x.grad = None
        return y.item()

    blocks, tensors, _ = leaks(step, [])
    assert tensors == 0 and blocks <= SLACK


def test_hooks_end_with_their_graph():
    x = cairn.ones(3, requires_grad=True)

    def step():
        y = x * 2
        y.register_hook(lambda grad: grad * 2)
        y.sum().backward()
        x.grad = None

    blocks, tensors, _ = leaks(step, [])
    assert tensors == 0 and blocks <= SLACK
