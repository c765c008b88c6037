"""cairn.onnx: files as modules, their tensors, training, copies; modules as files."""

import copy
import io
import pickle
import threading

import onnx_files
import pytest

import cairn
import cairn.nn.functional as F
from cairn import nn


@pytest.fixture
def layer():
    return cairn.onnx.load(onnx_files.layer())


def expected(x):
    weight, bias = cairn.tensor(onnx_files.WEIGHT).view(2, 3), cairn.tensor(onnx_files.BIAS)
    return F.relu(F.linear(x, weight, bias))


# ---- loading ----


def test_a_module(layer):
    assert isinstance(layer, nn.Module) and not layer.training
    assert [name for name, _ in layer.named_parameters()] == ["fc.weight", "fc.bias"]
    assert layer.fc.weight.shape == (2, 3) and layer.get_parameter("fc.bias").tolist() == onnx_files.BIAS
    assert "x -> y" in repr(layer) and "weight: 2×3" in repr(layer)
    (x,), (y,) = layer.inputs, layer.outputs
    assert (x.name, x.type, x.shape, x.kind, x.has_default) == ("x", "float", ("batch", 3), "tensor", False)
    assert (y.name, y.shape) == ("y", ("batch", 2))


@pytest.mark.parametrize("rows", [1, 4, 0])
def test_any_batch(layer, rows):
    x = cairn.randn(rows, 3)
    assert cairn.equal(layer(x), expected(x)) and cairn.equal(layer(x=x), expected(x))


def test_sources(tmp_path):
    path, data, x = tmp_path / "layer.onnx", onnx_files.layer(), cairn.randn(2, 3)
    path.write_bytes(data)
    with open(path, "rb") as file:
        loaded = [cairn.onnx.load(s) for s in (path, str(path), data, bytearray(data), io.BytesIO(data), file)]
    path.unlink()  # the file is needed no more
    for m in loaded:
        assert cairn.equal(m(x), expected(x))


def test_several_results_and_inner_values(layer):
    x = cairn.randn(2, 3, 4)
    m = cairn.onnx.load(onnx_files.normalized())
    y, z = m(x)
    assert cairn.equal(y, -z)
    assert list(m.run([x])) == ["y", "z"] and cairn.equal(m.run({"x": x}, ["z"])["z"], z)
    rows = cairn.randn(2, 3)
    assert cairn.equal(F.relu(layer.run([rows], ["h"])["h"]), layer(rows))
    assert layer.reads("fc.weight") == "x" and layer.reads("nobody") is None
    with pytest.raises(KeyError, match="nobody"):
        layer.run([rows], ["nobody"])


def test_results_are_values_of_their_own():
    m = cairn.onnx.load(onnx_files.model([onnx_files.node("Add", ["x", "w"], ["y"])], [
        onnx_files.tensor("w", [2], [1, 2])], [onnx_files.info("x", [2])],
        [onnx_files.info("w", [2]), onnx_files.info("y", [2])]))
    x = cairn.zeros(2)
    w, y = m(x)
    with cairn.no_grad():
        w += 1
    assert m.w.tolist() == [1, 2] and w.tolist() == [2, 3] and y.tolist() == [1, 2]


# ---- the module's tensors are what a call uses ----


def test_whatever_changes_a_parameter(layer):
    x = cairn.randn(5, 3)
    with cairn.no_grad():
        layer.fc.bias += 1
        layer.fc.weight.data = layer.fc.weight.data * 2
    weight, bias = 2 * cairn.tensor(onnx_files.WEIGHT).view(2, 3), cairn.tensor(onnx_files.BIAS) + 1
    assert cairn.equal(layer(x), F.relu(F.linear(x, weight, bias)))
    layer.load_state_dict({"fc.weight": cairn.zeros(2, 3), "fc.bias": cairn.ones(2)})
    assert layer(x).tolist() == [[1, 1]] * 5
    layer.fc.weight = nn.Parameter(cairn.ones(4, 3))  # another number of results
    layer.fc.bias = nn.Parameter(cairn.zeros(4))
    assert layer(x).shape == (5, 4)
    layer.fc = nn.Linear(3, 7)
    assert cairn.equal(layer(x), F.relu(layer.fc(x)))
    assert len(list(layer.parameters())) == 2


def test_functional_call_and_parametrizations(layer):
    x = cairn.randn(5, 3)
    values = {"fc.weight": cairn.zeros(2, 3), "fc.bias": cairn.ones(2)}
    assert cairn.func.functional_call(layer, values, (x,)).tolist() == [[1, 1]] * 5
    assert cairn.equal(layer(x), expected(x))
    nn.utils.parametrizations.weight_norm(layer.fc, "weight")
    assert cairn.allclose(layer(x), expected(x), atol=1e-6) and len(list(layer.parameters())) == 3


def test_training_is_that_of_the_same_layers(layer):
    own = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    own.load_state_dict({"0." + k[3:]: v for k, v in layer.state_dict().items()})
    x, y = cairn.randn(32, 3), cairn.rand(32, 2)
    losses = []
    for m in (layer, own):
        opt = cairn.optim.AdamW(m.parameters(), lr=0.05)
        m.train()
        losses.append([])
        for _ in range(20):
            loss = F.mse_loss(m(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses[-1].append(loss.item())
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]


def test_freezing(layer):
    layer.requires_grad_(False)
    layer.fc.bias.requires_grad_(True)
    layer(cairn.ones(1, 3)).sum().backward()
    assert layer.fc.weight.grad is None and layer.fc.bias.grad is not None
    with cairn.no_grad():
        assert not layer(cairn.ones(1, 3)).requires_grad


def test_modes():
    m, own = cairn.onnx.load(onnx_files.normalized()), nn.BatchNorm1d(3)
    own.load_state_dict({k[3:]: v for k, v in m.state_dict().items()}, strict=False)
    assert [name for name, _ in m.named_buffers()] == ["bn.running_mean", "bn.running_var"]
    x = cairn.randn(8, 3, 4)
    for mode in (False, True, False):
        m.train(mode), own.train(mode)
        assert cairn.allclose(m(x)[0], own(x), atol=1e-6)
        assert cairn.allclose(m.bn.running_mean, own.running_mean, atol=1e-6)
    assert cairn.allclose(m.bn.running_mean, 0.9 * cairn.tensor([0.0, 0, 1]) + 0.1 * x.mean((0, 2)), atol=1e-6)


# ---- copies ----


def test_copies(layer, tmp_path):
    x = cairn.randn(4, 3)
    with cairn.no_grad():
        layer.fc.bias += 1
    y = layer(x)
    cairn.save(layer, tmp_path / "module.pt")
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)),
                  cairn.load(tmp_path / "module.pt", weights_only=False)):
        assert cairn.equal(other(x), y)
        with cairn.no_grad():
            other.fc.bias.zero_()
        assert cairn.equal(layer(x), y) and not cairn.equal(other(x), y)
    cairn.save(layer.state_dict(), tmp_path / "state.pt")
    fresh = cairn.onnx.load(onnx_files.layer())
    fresh.load_state_dict(cairn.load(tmp_path / "state.pt"))
    assert cairn.equal(fresh(x), y)


def test_dtypes(layer):
    x = cairn.randn(4, 3)
    y = layer(x)
    other = copy.deepcopy(layer).double()
    assert other.fc.weight.dtype == cairn.float64
    with pytest.raises(cairn.DTypeError, match="f32"):
        other(x.double())
    assert cairn.equal(other.float()(x), y)


def test_threads(layer):
    x, found = cairn.randn(4, 3), []
    thread = threading.Thread(target=lambda: found.append(layer(x).tolist()))
    thread.start()
    thread.join()
    assert found == [layer(x).tolist()]


def test_a_part_of_a_larger_module(layer):
    net = nn.Sequential(nn.Linear(5, 3), layer, nn.Linear(2, 1))
    assert {"1.fc.weight", "1.fc.bias"} < set(net.state_dict())
    net(cairn.randn(4, 5)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_names_without_parts():
    names = ["a", "a.b", ".c", "forward", "x/y:0"]
    nodes = [onnx_files.node("Mul", ["x" if i == 0 else f"v{i}", name], [f"v{i + 1}"]) for i, name in enumerate(names)]
    m = cairn.onnx.load(onnx_files.model(nodes, [onnx_files.tensor(name, [2], [2, 3]) for name in names],
                                         [onnx_files.info("x", [2])], [onnx_files.info("v5", [2])]))
    assert set(m.state_dict()) == set(names)
    m.load_state_dict({name: cairn.full((2,), 2.0) for name in names})
    assert m(cairn.ones(2)).tolist() == [32, 32] and not m.training


# ---- errors of loading ----


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        cairn.onnx.load(tmp_path / "none.onnx")
    (tmp_path / "empty.onnx").write_bytes(b"")
    for bad in (tmp_path / "empty.onnx", b"", b"not a model", onnx_files.layer()[:-40]):
        with pytest.raises(cairn.FileError):
            cairn.onnx.load(bad)
    strange = onnx_files.model([onnx_files.node("Foo", ["x"], ["y"], domain="org.example")], [],
                               [onnx_files.info("x", [1])], [onnx_files.info("y", [1])])
    with pytest.raises(NotImplementedError, match=r"org\.example\.Foo \(1\)"):
        cairn.onnx.load(strange)


def test_bad_calls(layer):
    x = cairn.randn(1, 3)
    with pytest.raises(TypeError, match="i64"):
        layer(cairn.ones(1, 3, dtype=cairn.int64))
    with pytest.raises(ValueError, match="Gemm"):
        layer(cairn.randn(1, 4))
    with pytest.raises(TypeError, match="1 inputs, got 2"):
        layer(x, x)
    with pytest.raises(TypeError, match="no input 'z'"):
        layer(z=x)
    with pytest.raises(ValueError, match='"x" is missing'):
        layer()
    with pytest.raises(TypeError):
        layer("text")
    with pytest.raises(AttributeError):
        del layer.fc.weight
        layer(x)
