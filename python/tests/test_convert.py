"""Tensors from and to Python's data: numbers, lists, NumPy arrays, buffers, DLPack, pickles."""

import array
import copy
import gc
import pickle
import threading
import weakref

import pytest

np = pytest.importorskip("numpy")
import cairn  # noqa: E402

NUMPY_TYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def kind(name):
    return getattr(cairn, name)


# ---- tensor(data) ----


@pytest.mark.parametrize("data, dtype", [
    (1, "int64"), (1.5, "float32"), (True, "bool"), ([1, 2], "int64"), ([1, 2.5], "float32"), ([True, 1], "int64"),
    ([True, 2.5], "float32"), ([], "float32"), ([[], []], "float32"), ((1, 2.0), "float32"), (range(3), "int64"),
    ([[1, 2], [3, 4]], "int64"), (np.float64(1), "float64"), ([np.float64(1)], "float64"), (np.float32(1), "float32"),
    (np.int32(3), "int32"), ([np.int32(3), 4], "int64"), ([np.bool_(True)], "bool"), (np.arange(3), "int64"),
    ([np.arange(3), np.arange(3)], "int64"), (np.array(2.5), "float64"), (array.array("d", [1, 2]), "float32"),
])
def test_inferred_dtypes(data, dtype):
    x = cairn.tensor(data)
    want = np.array(data if not isinstance(data, array.array) else list(data))
    assert x.dtype is kind(dtype), x.dtype
    assert tuple(x.shape) == want.shape and np.array_equal(x.numpy(), want)


def test_tensors_in_lists():
    one, two = cairn.tensor(1), cairn.tensor([2.5], dtype=cairn.float64)
    assert cairn.tensor([one, two]).tolist() == [1, 2.5]
    assert cairn.tensor([one, two]).dtype is cairn.float64
    assert cairn.tensor([one, 2]).dtype is cairn.int64
    x = cairn.ones(2, requires_grad=True)
    y = cairn.tensor(x)
    assert y.tolist() == [1, 1] and not y.requires_grad
    with pytest.raises(ValueError, match="one element"):
        cairn.tensor([cairn.ones(2)])


@pytest.mark.parametrize("data, error, words", [
    ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
    ([[[1]], [[2, 3]]], ValueError, r"expected sequence of length 1 at dim 2 \(got 2\)"),
    ([[1, 2], 3], TypeError, "not a sequence"),
    ([2 ** 70], ValueError, "Overflow"),
    ("abc", TypeError, "str"), (["a"], TypeError, "str"), (b"abc", TypeError, "bytes"),
    (None, RuntimeError, "Could not infer dtype of NoneType"), ([None], RuntimeError, "NoneType"),
    ({1: 2}, RuntimeError, "dict"), ([1j], TypeError, "complex"), (object(), RuntimeError, "object"),
    (np.array(["a"]), TypeError, "can't convert"), (np.array([1], dtype=np.uint16), TypeError, "can't convert"),
    (np.array([object()]), TypeError, "can't convert"),
    (np.arange(3, dtype=">i4"), ValueError, "byte order"),
])
def test_refused_data(data, error, words):
    with pytest.raises(error, match=words):
        cairn.tensor(data)


def test_numbers_beside_lists():
    with pytest.raises((TypeError, RuntimeError)):
        cairn.tensor([1, [2, 3]])
    nest = 1
    for _ in range(9):
        nest = [nest]
    with pytest.raises(ValueError, match="too many dimensions"):
        cairn.tensor(nest)
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too many dimensions"):
        cairn.tensor(endless)


def test_given_dtypes():
    assert cairn.tensor([1.7, -1.7], dtype=cairn.int64).tolist() == [1, -1]
    assert cairn.tensor([2, 0], dtype=cairn.bool).tolist() == [True, False]
    assert cairn.tensor([-1], dtype=cairn.uint8).tolist() == [255]
    assert cairn.tensor(2 ** 70, dtype=cairn.float32).item() == 2.0 ** 70
    assert cairn.tensor(1e39).item() == float("inf")
    assert cairn.tensor([1.0009765625, 70000], dtype=cairn.float16).tolist() == [1.0009765625, float("inf")]
    assert cairn.tensor([1.0, 3.14159], dtype=cairn.bfloat16).tolist() == [1.0, 3.140625]
    for value, dtype in [(300, "uint8"), (-200, "int8"), (1e10, "int32"), (float("nan"), "int32"),
                         (2.0 ** 63, "int64")]:
        with pytest.raises(RuntimeError, match="without overflow"):
            cairn.tensor(value, dtype=kind(dtype))
    for name in NUMPY_TYPES:
        x = cairn.tensor(np.array([0, 1, 1]), dtype=kind(name))
        assert x.dtype is kind(name) and x.numpy().dtype == np.dtype(name) and x.tolist() == [0, 1, 1]


def test_lists_that_change():
    class Number:
        def __float__(self):
            data.clear()
            return 1.0

    data = [1.0, Number(), 2.0, 3.0]
    with pytest.raises(RuntimeError, match="changed"):
        cairn.tensor(data)


def test_copies():
    a = np.ones(3)
    x, y = cairn.tensor(a), cairn.tensor([1.0])
    a[0] = 5
    assert x.tolist() == [1, 1, 1] and y.item() == 1


# ---- numbers ----


def test_item():
    assert cairn.tensor(2.5).item() == 2.5 and cairn.tensor([[3]]).item() == 3 and cairn.tensor(True).item() is True
    assert type(cairn.tensor(3).item()) is int and type(cairn.tensor(3.0, dtype=cairn.float16).item()) is float
    assert cairn.tensor(2 ** 62 + 1).item() == 2 ** 62 + 1
    with pytest.raises(RuntimeError, match="2 elements"):
        cairn.ones(2).item()


def test_python_numbers():
    assert float(cairn.tensor([1.5])) == 1.5 and int(cairn.tensor(1.5)) == 1 and bool(cairn.tensor(0.5))
    assert not cairn.tensor([0]) and range(5)[cairn.tensor(2)] == 2 and "abc"[cairn.tensor([1])] == "b"
    assert float(cairn.ones(1, requires_grad=True)) == 1
    for f in (int, float):
        with pytest.raises(ValueError):
            f(cairn.ones(2))
    for n in (0, 2):
        with pytest.raises(RuntimeError, match="ambiguous"):
            bool(cairn.ones(n))
    with pytest.raises(TypeError):
        range(5)[cairn.tensor(1.5)]
    assert f"{cairn.tensor(1.5):.3f}" == "1.500" and f"{cairn.ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(TypeError):
        f"{cairn.ones(2):.3f}"


def test_contains():
    x = cairn.tensor([[1, 2], [3, 4]])
    assert 3 in x and 3.0 in x and 9 not in x and cairn.tensor(4) in x and 2.5 not in x
    for value in ("a", None, [1]):
        with pytest.raises(RuntimeError, match="__contains__"):
            value in x


def test_tolist():
    assert cairn.tensor(1.5).tolist() == 1.5
    assert cairn.tensor([]).tolist() == [] and cairn.ones(2, 0).tolist() == [[], []]
    x = cairn.arange(24).reshape(2, 3, 4)
    assert x.tolist() == np.arange(24).reshape(2, 3, 4).tolist()
    assert x.permute(2, 0, 1).tolist() == np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1).tolist()
    assert cairn.ones(2, requires_grad=True).tolist() == [1, 1]


# ---- NumPy ----


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_numpy_round_trip(name):
    a = (np.random.default_rng(1).standard_normal((3, 4)) * 3).astype(name)
    x = cairn.from_numpy(a)
    assert x.dtype is kind(name) and x.numpy().dtype == a.dtype and np.array_equal(x.numpy(), a)
    assert x.data_ptr() == a.ctypes.data
    assert np.array_equal(x.t().numpy(), a.T) and np.array_equal(x[:, 1:3].numpy(), a[:, 1:3])


def test_numpy_shares_memory():
    x = cairn.arange(6.0)
    a = x.numpy()
    assert a.ctypes.data == x.data_ptr() and not a.flags.writeable
    assert np.asarray(x).ctypes.data == x.data_ptr()
    x += 1  # the tensor gets a new value, the array keeps the old one
    assert a.tolist() == [0, 1, 2, 3, 4, 5] and x.tolist() == [1, 2, 3, 4, 5, 6]
    b = np.array(x)
    b[0] = 9
    assert x[0].item() == 1
    view = cairn.arange(12.0).reshape(3, 4).t()
    assert view.numpy().strides == (4, 16)


def test_numpy_keeps_the_value():
    a = (cairn.arange(5.0) * 2).numpy()
    gc.collect()
    for _ in range(100):
        cairn.ones(5).sum().item()
    assert a.tolist() == [0, 2, 4, 6, 8]


def test_parameters_change_behind_arrays():
    w = cairn.ones(3, requires_grad=True)
    before = w.detach().numpy()
    with cairn.no_grad():
        w -= 0.5
    assert w.tolist() == [0.5] * 3 and before.tolist() == [1] * 3


def test_numpy_refuses():
    w = cairn.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        w.numpy()
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(w)
    assert w.numpy(force=True).tolist() == [1, 1] and w.detach().numpy().tolist() == [1, 1]
    with pytest.raises(TypeError, match="BFloat16"):
        cairn.ones(2, dtype=cairn.bfloat16).numpy()
    with pytest.raises(TypeError, match="expected np.ndarray"):
        cairn.from_numpy([1])


def test_array_protocol():
    x = cairn.tensor([1.5, 2.5])
    assert np.asarray(x, dtype=np.int64).tolist() == [1, 2] and x.__array__(np.float64).dtype == np.float64
    assert x.__array__(copy=True).flags.writeable
    assert np.add(x, 1).tolist() == [2.5, 3.5] and np.array(cairn.tensor(3)).item() == 3


def test_from_numpy_sees_the_memory():
    a = np.arange(6.0).reshape(2, 3)
    x = cairn.from_numpy(a)
    a[0, 0] = 9
    assert x[0, 0].item() == 9
    for view in (a.T, a[:, ::2], a[::-1]):
        assert np.array_equal(cairn.from_numpy(view).numpy(), view)
    frozen = a.copy()
    frozen.flags.writeable = False
    y = cairn.from_numpy(frozen)
    y += 1
    assert np.array_equal(frozen, a)
    crooked = np.frombuffer(b"x" + a.tobytes(), dtype=np.uint8)[1:].view(np.float64)
    assert np.array_equal(cairn.from_numpy(crooked.reshape(2, 3)).numpy(), a)
    assert cairn.from_numpy(np.empty((0, 3))).shape == (0, 3)


def test_from_numpy_keeps_the_owner():
    a = np.ones(1000)
    there = weakref.ref(a)
    x = cairn.from_numpy(a)
    y = x[10:20] * 2
    del a
    gc.collect()
    assert there() is not None and y.tolist() == [2] * 10
    del x, y
    gc.collect()
    cairn.ones(1).item()
    assert there() is None


def test_as_tensor():
    x = cairn.ones(2)
    assert cairn.as_tensor(x) is x and cairn.asarray(x) is x
    assert cairn.as_tensor(x, dtype=cairn.float64).dtype is cairn.float64
    a = np.ones(2)
    assert cairn.as_tensor(a).data_ptr() == a.ctypes.data and cairn.as_tensor([1, 2]).tolist() == [1, 2]
    assert cairn.as_tensor(a, dtype=cairn.int32).tolist() == [1, 1]
    assert cairn.asarray(a, copy=True).data_ptr() != a.ctypes.data
    w = cairn.ones(2, requires_grad=True)
    cairn.as_tensor(w, dtype=cairn.float64).sum().backward()
    assert w.grad.tolist() == [1, 1]
    with pytest.raises(ValueError):
        cairn.asarray([1], copy=False)


# ---- buffers ----


def test_buffer_protocol():
    x = cairn.arange(6, dtype=cairn.int32).reshape(2, 3)
    view = memoryview(x)
    assert view.readonly and view.shape == (2, 3) and view.format == "i" and view.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert bytes(x[:, 1]) == np.array([1, 4], dtype=np.int32).tobytes()
    assert memoryview(x.t()).tolist() == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(BufferError):
        memoryview(cairn.ones(1, requires_grad=True))
    with pytest.raises(BufferError):
        memoryview(cairn.ones(1, dtype=cairn.bfloat16))
    assert memoryview(cairn.tensor(True)).format == "?" and bytes(cairn.tensor([])) == b""


def test_frombuffer():
    memory = bytearray(b"abcdefgh")
    x = cairn.frombuffer(memory, dtype=cairn.uint8)
    memory[0] = 0
    assert x[:2].tolist() == [0, 98]
    assert cairn.frombuffer(b"abcd", dtype=cairn.int16).tolist() == [25185, 25699]
    assert cairn.frombuffer(memory, dtype=cairn.int16, count=1, offset=2).tolist() == [25699]
    assert cairn.frombuffer(memory, dtype=cairn.int16, offset=4).shape == (2,)
    assert cairn.frombuffer(array.array("f", [1, 2]), dtype=cairn.float32, requires_grad=True).requires_grad
    for options, words in [({"offset": 9}, "offset"), ({"offset": -1}, "offset"),
                           ({"count": 9}, "requested buffer length"), ({"count": 0}, "must not be 0"),
                           ({"offset": 1, "dtype": cairn.int32}, "multiple of element size")]:
        with pytest.raises(ValueError, match=words):
            cairn.frombuffer(memory, **{"dtype": cairn.uint8, **options})
    with pytest.raises(ValueError):
        cairn.frombuffer(b"", dtype=cairn.uint8)
    with pytest.raises(TypeError):
        cairn.frombuffer(memory)


# ---- DLPack ----


def test_dlpack_numpy():
    x = cairn.arange(6.0).reshape(2, 3)
    assert x.__dlpack_device__() == (1, 0)
    a = np.from_dlpack(x)
    assert a.ctypes.data == x.data_ptr() and a.tolist() == [[0, 1, 2], [3, 4, 5]]
    del x
    gc.collect()
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]]
    b = np.arange(6.0).reshape(2, 3)[:, ::2]
    y = cairn.from_dlpack(b)
    assert y.data_ptr() == b.ctypes.data and y.tolist() == [[0, 2], [3, 5]]
    with pytest.raises(BufferError, match="gradient"):
        cairn.ones(1, requires_grad=True).__dlpack__()
    capsule = y.__dlpack__()
    assert cairn.from_dlpack(capsule).tolist() == [[0, 2], [3, 5]]
    with pytest.raises(RuntimeError, match="once"):
        cairn.from_dlpack(capsule)
    with pytest.raises(TypeError):
        cairn.from_dlpack(3)
    x = cairn.ones(3)
    assert np.from_dlpack(cairn.from_dlpack(x)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", [*NUMPY_TYPES, "bfloat16"])
def test_dlpack_pytorch(name):
    torch = pytest.importorskip("torch")
    a = torch.arange(12).reshape(3, 4).to(getattr(torch, name))
    x = cairn.from_dlpack(a)
    assert x.dtype is kind(name) and x.data_ptr() == a.data_ptr() and x.tolist() == a.tolist()
    b = torch.from_dlpack(x.t())
    assert b.dtype == a.dtype and b.data_ptr() == a.data_ptr() and torch.equal(b, a.t())
    assert torch.equal(torch.from_dlpack(x[1:, ::2]), a[1:, ::2])
    assert cairn.tensor(a[:, 1]).tolist() == a[:, 1].tolist() and cairn.tensor(a).data_ptr() != a.data_ptr()
    del a, b
    gc.collect()
    assert x.tolist()[0] == ([0, 1, 2, 3] if name != "bool" else [0, 1, 1, 1])


# ---- pickles and copies ----


@pytest.mark.parametrize("name", [*NUMPY_TYPES, "bfloat16"])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(name, protocol):
    x = cairn.tensor([[1, 0], [0, 1]], dtype=kind(name)).t()
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.dtype is x.dtype and y.tolist() == x.tolist() and y.shape == x.shape


def test_pickle_more():
    w = cairn.ones(2, requires_grad=True)
    w.note = "kept"
    again = pickle.loads(pickle.dumps(w))
    assert again.requires_grad and again.is_leaf and again.note == "kept"
    assert pickle.loads(pickle.dumps(cairn.tensor(2.5))).item() == 2.5
    assert pickle.loads(pickle.dumps(cairn.ones(0, 3))).shape == (0, 3)


def test_copy():
    w = cairn.ones(2, requires_grad=True)
    (w * 3).sum().backward()
    w.note = ["a"]
    deep, flat = copy.deepcopy(w), copy.copy(w)
    assert deep.grad.tolist() == [3, 3] and deep.requires_grad and deep.note == ["a"] and deep.note is not w.note
    assert flat.note is w.note and flat.requires_grad
    with cairn.no_grad():
        deep[0] = 9
    assert w.tolist() == [1, 1] and flat.tolist() == [1, 1]
    first, second = copy.deepcopy([w, w])
    assert first is second
    with pytest.raises(RuntimeError, match="leaves"):
        copy.deepcopy(w * 2)


# ---- layout ----


def test_layout():
    x = cairn.arange(24.0).reshape(2, 3, 4)
    assert x.stride() == (12, 4, 1) and x.stride(1) == 4 and x.stride(-1) == 1 and x.element_size() == 4
    assert x.nbytes == 96 and x.itemsize == 4 and x.is_contiguous() and not x.permute(2, 0, 1).is_contiguous()
    assert x[1].storage_offset() == 12 and x[1].data_ptr() == x.data_ptr() + 48
    with pytest.raises(IndexError):
        x.stride(3)
    image = cairn.zeros(2, 5, 5, 3).permute(0, 3, 1, 2)
    assert image.is_contiguous(memory_format=cairn.channels_last) and not image.is_contiguous()


# ---- memory, threads ----


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def test_nothing_grows():
    a, numbers = np.ones(64), [1.0] * 64

    def conversions(n):
        for _ in range(n):
            x = cairn.from_numpy(a)
            x.numpy()
            memoryview(x)
            cairn.from_dlpack(x)
            cairn.tensor(numbers).tolist()
            x[3].item()
            x[[1, 2]]
            x[1:3] = 2

    conversions(2000)
    gc.collect()
    objects, memory = cairn._C._count_objects()[1], resident()
    conversions(100000 // 8)
    gc.collect()
    assert cairn._C._count_objects()[1] == objects
    assert resident() - memory < 4 << 20


def test_another_thread_drops_arrays():
    a = np.ones(100)
    there = weakref.ref(a)
    made = [cairn.from_numpy(a)]
    arrays = [(cairn.arange(10.0) * 2).numpy() for _ in range(100)]
    del a

    def drop():
        made.clear()
        arrays.clear()
        gc.collect()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    cairn.ones(1).item()
    gc.collect()
    assert there() is None


def test_values_of_another_thread():
    x = cairn.arange(3.0)
    found = []

    def read():
        found.extend([(cairn.ones(3) + x).tolist(), x[1:].tolist(), x.numpy().sum()])

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert found == [[1, 2, 3], [1, 2], 3]
