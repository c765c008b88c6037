"""x[...] and x[...] = v: random indices against PyTorch, or against NumPy where PyTorch is missing."""

import random
import warnings

import pytest

np = pytest.importorskip("numpy")
import cairn  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

warnings.filterwarnings("ignore", "Using a non-tuple sequence")


# ---- random indices ----


def some_slice(rng, size):
    ends = [None, *range(-size - 2, size + 3)]
    return slice(rng.choice(ends), rng.choice(ends), rng.choice([None, 1, 1, 2, 3]))


def some_numbers(rng, size, shape):
    """Whole numbers that index an axis of this size."""
    values = [rng.randrange(-size, size) for _ in range(int(np.prod(shape)))]
    return np.array(values, dtype=rng.choice([np.int64, np.int64, np.int32])).reshape(shape)


class Some:
    """One part of an index, as every library writes it."""

    def __init__(self, kind, value):
        self.kind, self.value = kind, value

    def __repr__(self):
        return f"{self.kind} {self.value!r}"

    @property
    def advanced(self):
        return self.kind in ("tensor", "list", "array", "range", "mask", "bool")

    def made(self, tensor):
        if self.kind in ("tensor", "mask", "number tensor"):
            return tensor(self.value)
        if self.kind == "list":
            return self.value.tolist()
        return self.value

    def for_numpy(self):
        if self.kind == "number tensor":
            return int(self.value)
        return list(self.value) if self.kind == "range" else self.value


def some_index(rng, shape):
    """Parts of an index into a tensor of this shape: at most one for each axis."""
    parts, axis, masked = [], 0, False
    common = rng.choice([(2,), (3,), (2, 3), (1,), (2, 1, 2)])
    named = rng.randint(0, len(shape))
    while axis < named:
        size = shape[axis]
        choice = rng.random()
        if choice < 0.1:
            parts.append(Some("none", None))
            continue
        if choice < 0.3:
            parts.append(Some("slice", some_slice(rng, size)))
        elif choice < 0.5:
            parts.append(Some("int", rng.randrange(-size, size)))
        elif choice < 0.57:
            parts.append(Some("number tensor", np.array(rng.randrange(-size, size))))
        elif choice < 0.67 and not masked and not any(p.advanced for p in parts):
            axes = rng.randint(1, min(2, named - axis))
            mask = np.array([rng.random() < 0.5 for _ in range(int(np.prod(shape[axis:axis + axes])))], dtype=bool)
            parts.append(Some("mask", mask.reshape(shape[axis:axis + axes])))
            masked = True
            axis += axes - 1
        else:
            shapes = [(1,)] if masked else [common, common[-1:], (1,), (1,) * len(common)]
            kind = rng.choice(["tensor", "tensor", "list", "array", "range"])
            if kind == "range":
                length = min(size, 1 if masked else common[-1])
                parts.append(Some("range", range(length if length == common[-1] or length == 1 else 1)))
            else:
                numbers = some_numbers(rng, size, rng.choice(shapes))
                parts.append(Some(kind, numbers.astype(np.int64) if kind == "list" else numbers))
        axis += 1
    if not any(p.advanced for p in parts) and rng.random() < 0.1:
        parts.insert(rng.randint(0, len(parts)), Some("bool", rng.random() < 0.7))
    if rng.random() < 0.3:
        at = rng.randint(0, len(parts))
        parts.insert(at, Some("ellipsis", ...))
        if not fits(parts, shape):
            parts.pop(at)
    return parts


def fits(parts, shape):
    """Whether each part behind `...` fits the axis that it falls on then."""
    try:
        np.empty(shape)[tuple(p.for_numpy() for p in parts)]
    except IndexError:
        return False
    return True


def some_shape(rng):
    return tuple(rng.choice([1, 2, 3, 4, 5]) for _ in range(rng.randint(1, 4)))


def as_index(rng, parts, tensor):
    made = tuple(p.made(tensor) for p in parts)
    alone = len(made) == 1 and not (isinstance(made[0], list) and made[0] and isinstance(made[0][0], list))
    return made[0] if alone and rng.random() < 0.7 else made


def same_in_numpy(parts):
    """Beside index arrays, numbers count as such in NumPy, and `...` parts them also where it stands for no axis."""
    others = any(p.kind in ("int", "number tensor", "ellipsis") for p in parts)
    return not (others and any(p.advanced for p in parts))


def reference(values, parts):
    """values[parts], and what every element of the result is the source of."""
    places = np.arange(values.size).reshape(values.shape)
    if torch is not None:
        index = tuple(p.made(torch.tensor) for p in parts)
        found = torch.tensor(places)[index].numpy()
    else:
        found = places[tuple(p.for_numpy() for p in parts)]
    return values.reshape(-1)[found], found


@pytest.mark.parametrize("seed", range(10))
def test_subscript(seed):
    rng = random.Random(seed)
    checked = 0
    while checked < 100:
        shape = some_shape(rng)
        parts = some_index(rng, shape)
        if torch is None and not same_in_numpy(parts):
            continue
        checked += 1
        values = np.random.default_rng(checked).standard_normal(shape)
        want, places = reference(values, parts)
        x = cairn.tensor(values, requires_grad=True)
        y = x[as_index(rng, parts, cairn.tensor)]
        assert tuple(y.shape) == want.shape, (shape, parts)
        assert (y.detach().numpy() == want).all(), (shape, parts)
        weights = np.random.default_rng(checked + 1).standard_normal(want.shape)
        (y * cairn.tensor(weights)).sum().backward()
        grad = np.zeros(values.size)
        np.add.at(grad, places.reshape(-1), weights.reshape(-1))
        assert np.allclose(x.grad.numpy(), grad.reshape(shape)), (shape, parts)


def some_value_shape(rng, shape):
    """A shape that broadcasts to this one, perhaps with axes of size 1 in front."""
    kept = list(shape)[rng.randint(0, len(shape)):] if rng.random() < 0.4 else list(shape)
    kept = [1 if rng.random() < 0.2 else n for n in kept]
    return tuple([1] * (rng.random() < 0.15) + kept)


@pytest.mark.parametrize("seed", range(10))
def test_assignment(seed):
    rng = random.Random(100 + seed)
    checked = 0
    while checked < 100:
        shape = some_shape(rng)
        parts = some_index(rng, shape)
        if torch is None and not same_in_numpy(parts):
            continue
        checked += 1
        values = np.random.default_rng(checked).standard_normal(shape)
        _, places = reference(values, parts)
        index = as_index(rng, parts, cairn.tensor)
        source = cairn.tensor(values, requires_grad=True)
        x = source * 1
        want, kept = values.reshape(-1).copy(), np.ones(values.size)
        unique = np.unique(places).size == places.size
        value = None
        if unique and rng.random() < 0.7:
            given = np.random.default_rng(checked + 1).standard_normal(some_value_shape(rng, places.shape))
            value = cairn.tensor(given, requires_grad=True)
            x[index] = value
            flat = given.reshape([n for k, n in enumerate(given.shape) if k >= given.ndim - places.ndim])
            want[places.reshape(-1)] = np.broadcast_to(flat, places.shape).reshape(-1)
        else:
            x[index] = 2.5
            want[places.reshape(-1)] = 2.5
        kept[places.reshape(-1)] = 0
        assert np.array_equal(x.detach().numpy(), want.reshape(shape)), (shape, parts)
        weights = np.random.default_rng(checked + 2).standard_normal(shape)
        (x * cairn.tensor(weights)).sum().backward()
        assert np.allclose(source.grad.numpy(), weights * kept.reshape(shape)), (shape, parts)
        if value is not None:
            taken = np.broadcast_to(np.arange(given.size).reshape(flat.shape), places.shape)
            grad = np.zeros(given.size)
            np.add.at(grad, taken.reshape(-1), weights.reshape(-1)[places.reshape(-1)])
            assert np.allclose(value.grad.numpy().reshape(-1), grad), (shape, parts)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
                                   "bool"])
def test_every_dtype(dtype):
    kind = getattr(cairn, dtype)
    x = cairn.tensor([[1, 0, 1], [0, 1, 1]], dtype=kind)
    assert x[1, 1:].tolist() == [1, 1] and x[:, [0, 2]].tolist() == [[1, 1], [0, 1]]
    x[0, 0] = 0
    x[1] = cairn.tensor([1.0, 0.0, 1.0])
    x[x[:, 1] == 0, 2] = 1
    x[:, [1]] = cairn.tensor([[1], [0]])
    assert x.dtype is kind and x.tolist() == [[0, 1, 1], [1, 0, 1]]


def test_large_whole_numbers():
    x = cairn.zeros(2, dtype=cairn.int64)
    x[0] = 2 ** 62 + 1
    x[1] = -(2 ** 53) - 1
    assert x.tolist() == [2 ** 62 + 1, -(2 ** 53) - 1]
    with pytest.raises(RuntimeError, match="overflow"):
        cairn.zeros(1, dtype=cairn.uint8).__setitem__(0, 300)


def test_errors():
    x = cairn.arange(24.0).reshape(2, 3, 4)
    zero = cairn.tensor(3)
    for index, error, words in [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (-3, IndexError, "index -3 is out of bounds"),
        ((0, 3), IndexError, "index 3 is out of bounds"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        ((..., 0, 0, 0, 0), IndexError, "too many indices"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (1.5, IndexError, "only integers"),
        ("a", IndexError, "only integers"),
        (cairn.tensor([0.5]), IndexError, "tensors used as indices"),
        (cairn.tensor([0], dtype=cairn.int8), IndexError, "tensors used as indices"),
        ([0, 7], IndexError, "index 7 is out of bounds"),
        (cairn.ones(1, 3, dtype=cairn.bool), IndexError, "The shape of the mask"),
        (cairn.ones(2, 3, 4, 1, dtype=cairn.bool), IndexError, "too many indices"),
        ((cairn.tensor([0, 1]), cairn.tensor([0, 1, 2])), IndexError, "shape mismatch"),
        (2 ** 70, IndexError, "cannot fit"),
    ]:
        with pytest.raises(error, match=words):
            x[index]
        with pytest.raises(error, match=words):
            x[index] = 1
    for index in (0, slice(None), [0]):
        with pytest.raises(IndexError):
            zero[index]
    with pytest.raises(IndexError):
        x[cairn.tensor([0, 9])].numpy()
    with pytest.raises(TypeError):
        del x[0]
    for value in ("a", None, {}, 1j):
        with pytest.raises(TypeError):
            x[0] = value
    with pytest.raises(ValueError):
        x[0] = cairn.ones(5)
    with pytest.raises(ValueError):
        x[[0, 1]] = cairn.ones(5)
    assert (x.numpy() == np.arange(24.0).reshape(2, 3, 4)).all()


def test_zero_dimensions():
    x = cairn.tensor(3.0)
    assert x[...].item() == 3 and x[()].item() == 3 and x[None].shape == (1,) and x[True].shape == (1,)
    assert x[False].shape == (0,)
    x[...] = 4
    x[()] = x + 1
    assert x.item() == 5
    source = cairn.tensor(2.0, requires_grad=True)
    y = cairn.tensor(0.0)
    y[...] = source * 3
    y.backward()
    assert source.grad.item() == 3


def test_values_are_lists_and_arrays():
    x = cairn.zeros(2, 3)
    x[0] = [1, 2, 3]
    x[1] = np.array([4.0, 5.0, 6.0])
    x[:, 0] = np.float32(9)
    assert x.tolist() == [[9, 2, 3], [9, 5, 6]]


def test_leaves():
    w = cairn.ones(3, requires_grad=True)
    for index in (0, slice(None), ..., [0]):
        with pytest.raises(RuntimeError, match="leaf"):
            w[index] = 1
    with cairn.no_grad():
        w[0] = 5
        w[[1]] = 6
    assert w.tolist() == [5, 6, 1] and w.requires_grad and w.is_leaf
    w.data[2] = 7
    assert w.tolist() == [5, 6, 7] and w.requires_grad
    (w * w).sum().backward()
    assert w.grad.tolist() == [10, 12, 14]
    w.grad[0] = 1
    w.grad.data[1] = 2
    assert w.grad.tolist() == [1, 2, 14]


def test_a_part_changed_in_place_changes_the_whole():
    x = cairn.zeros(3, 3)
    x[0].fill_(1)
    x[1, 1:].add_(2)
    x[2][0] = 5
    x[:, 0] += 1
    x[0][1:].mul_(4)
    assert x.tolist() == [[2, 4, 4], [1, 2, 2], [6, 0, 0]]
    x.data[1].zero_()
    assert x[1].tolist() == [0, 0, 0]
    w = cairn.ones(2, 2, requires_grad=True)
    w.data[0].fill_(3)
    assert w.tolist() == [[3, 3], [1, 1]] and w.is_leaf and w.requires_grad


def test_parts_see_what_the_whole_becomes():
    x = cairn.zeros(3)
    v, w = x[0], x[1:]
    deep = w[0]
    x.fill_(5)
    v += 1
    assert x.tolist() == [6, 5, 5] and w.tolist() == [5, 5] and deep.item() == 5
    x[1] = 9
    assert w.tolist() == [9, 5] and deep.item() == 9 and (w * 2).tolist() == [18, 10]
    deep.zero_()
    assert x.tolist() == [6, 0, 5]
    x.data.fill_(2)
    assert v.item() == 2 and w.sum().item() == 4
    x = x + 1  # another object: the parts are those of the first one
    assert v.item() == 2


def test_an_assignment_that_would_be_lost_is_an_error():
    x = cairn.zeros(2, 2)
    with pytest.raises(RuntimeError, match="would be lost"):
        x.t()[0] = 1


def test_gradients_flow_through_in_place_forms():
    w = cairn.ones(3, requires_grad=True)
    y = cairn.zeros(3)
    y += w * 2
    y.mul_(3)
    z = cairn.zeros(3)
    z.copy_(w * 5)
    (y.sum() + z.sum()).backward()
    assert w.grad.tolist() == [11, 11, 11]


def test_in_place_operators_through_an_index():
    x = cairn.arange(6.0).reshape(2, 3)
    x[0] += 10
    x[:, 1] *= 2
    x[x > 11] -= 1
    assert x.tolist() == [[10, 21, 11], [3, 8, 5]]


def test_shifts_read_old_values():
    x = cairn.arange(5.0)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_iteration():
    x = cairn.arange(6).reshape(3, 2)
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert len(x) == 3 and [*map(int, x[0])] == [0, 1]
    a, b, c = x
    assert b.tolist() == [2, 3]
    for row in x:
        row += 10
    assert x.tolist() == [[10, 11], [12, 13], [14, 15]]
    with pytest.raises(TypeError):
        iter(cairn.tensor(1))
    with pytest.raises(TypeError):
        len(cairn.tensor(1))


def test_sequences_of_sequences_are_tuples():
    x = cairn.arange(24).reshape(2, 3, 4)
    with pytest.warns(UserWarning, match="non-tuple"):
        assert x[[[0, 1], [1, 2]]].shape == (2, 4)
    with pytest.warns(UserWarning, match="uint8"):
        assert x[cairn.tensor([0, 1], dtype=cairn.uint8)].shape == (1, 3, 4)


def test_many_assignments():
    x = cairn.zeros(50)
    for k in range(2000):
        x[k % 50] = k
    assert x.tolist() == list(range(1950, 2000))
