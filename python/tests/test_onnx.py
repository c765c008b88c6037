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


@cairn.no_grad()
def test_an_inner_value_before_a_normalisation(tmp_path):
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)).eval()
    net[1].running_mean.fill_(0.5)
    x = cairn.randn(2, 1, 6, 6)
    cairn.onnx.save(net, x, tmp_path / "net.onnx")
    m = cairn.onnx.load(tmp_path / "net.onnx")
    name = m.reads("1.weight")
    for _ in range(5):
        assert cairn.allclose(m.run([x], [name])[name], net[0](x), atol=1e-5)
        assert cairn.allclose(m(x), net(x), atol=1e-5)


def test_results_are_values_of_their_own():
    m = cairn.onnx.load(onnx_files.model([onnx_files.node("Add", ["x", "w"], ["y"])], [
        onnx_files.tensor("w", [2], [1, 2])], [onnx_files.info("x", [2])],
        [onnx_files.info("w", [2]), onnx_files.info("y", [2])]))
    x = cairn.zeros(2)
    w, y = m(x)
    with cairn.no_grad():
        w += 1
    assert m.w.tolist() == [1, 2] and w.tolist() == [2, 3] and y.tolist() == [1, 2]


def test_weights_that_are_constants(tmp_path):
    """Some programs write weights as nodes. Beside initializers, such nodes are constants."""
    constants = [onnx_files.node("Constant", [], [name], value=onnx_files.tensor("", shape, values))
                 for name, shape, values in [("w", [2, 3], onnx_files.WEIGHT), ("two", [], [2])]]
    nodes = [*constants, onnx_files.node("Gemm", ["x", "w"], ["h"], transB=1),
             onnx_files.node("Mul", ["h", "two"], ["y"])]
    ports = [onnx_files.info("x", ["n", 3])], [onnx_files.info("y", ["n", 2])]
    m, x = cairn.onnx.load(onnx_files.model(nodes, [], *ports)), cairn.randn(4, 3)
    assert [name for name, _ in m.named_parameters()] == ["w"] and not list(m.buffers())
    m(x).sum().backward()
    with cairn.no_grad():
        m.w -= m.w.grad
    cairn.onnx.save(m, x, tmp_path / "new.onnx")
    check_round_trip(m, tmp_path / "new.onnx", x)
    nodes[-1] = onnx_files.node("Mul", ["h", "scale"], ["y"])
    m = cairn.onnx.load(onnx_files.model(nodes, [onnx_files.tensor("scale", [2], [1, 2])], *ports))
    assert [name for name, _ in m.named_parameters()] == ["scale"]


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


# ---- saving ----


def run_onnxruntime(path, *inputs):
    """Results as tensors; the test is skipped where onnxruntime is not installed."""
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    named = {port.name: x.numpy() for port, x in zip(session.get_inputs(), inputs)}
    return [cairn.from_numpy(y) for y in session.run(None, named)]


def check_round_trip(module, path, *inputs):
    """Cairn reads back what it wrote, and onnxruntime reads the same."""
    module.eval()
    want = module(*inputs)
    want = want if isinstance(want, (tuple, list)) else [want]
    again = cairn.onnx.load(path)
    got = again(*inputs)
    for a, b in zip(got if isinstance(got, tuple) else [got], want):
        assert a.shape == b.shape and cairn.allclose(a, b, atol=1e-5)
    for a, b in zip(run_onnxruntime(path, *inputs), want):
        assert a.shape == b.shape and cairn.allclose(a, b, atol=1e-5)
    return again


def small_cnn():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Dropout(0.5), nn.Linear(64, 5), nn.LogSoftmax(dim=1))


class Own(nn.Module):
    """Control flow, a parameter and a buffer of its own, a nested result."""

    def __init__(self, turns=3):
        super().__init__()
        self.turns = turns
        self.scale = nn.Parameter(cairn.tensor([1.0, 2, 3]))
        self.register_buffer("shift", cairn.tensor([0.5, 0, -0.5]))
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(turns)])

    def forward(self, x, *, mask=None):
        for i, layer in enumerate(self.layers):
            x = layer(x).tanh() if i % 2 else F.gelu(layer(x)) + x
        if x.shape[-1] == 3:
            x = x * self.scale + self.shift
        if mask is not None:
            x = x.masked_fill(mask, 0)
        return {"rows": x, "norms": (x.norm(dim=1), x.mean(dim=0))}


@pytest.mark.parametrize("opset", [13, 17, 20, 23])
def test_a_network(tmp_path, opset):
    path, net = tmp_path / "net.onnx", small_cnn()
    net.train()
    cairn.onnx.save(net, cairn.zeros(1, 1, 8, 8), path, opset_version=opset)
    assert net.training and net[1].training  # its mode stays
    for rows in (1, 2, 7):  # any batch
        again = check_round_trip(net, path, cairn.randn(rows, 1, 8, 8))
    assert {"0.weight", "1.running_var", "6.bias"} <= set(again.state_dict())
    assert again.inputs[0].shape == ("batch", 1, 8, 8) and again.outputs[0].shape == ("batch", 5)


def test_a_module_of_ones_own(tmp_path):
    path, net = tmp_path / "own.onnx", Own()
    cairn.onnx.save(net, cairn.randn(2, 3), path, input_names=["x"], output_names=["rows", "norms", "mean"])
    again = cairn.onnx.load(path)
    assert {"scale", "shift", "layers.2.weight"} <= set(again.state_dict())
    assert [port.name for port in again.outputs] == ["rows", "norms", "mean"]
    for rows in (2, 5):
        x = cairn.randn(rows, 3)
        want = net(x)
        for got in (again(x), run_onnxruntime(path, x)):
            assert cairn.allclose(got[0], want["rows"], atol=1e-5)
            assert cairn.allclose(got[1], want["norms"][0], atol=1e-5)
            assert cairn.allclose(got[2], want["norms"][1], atol=1e-5)


def test_export_as_pytorch_calls_it(tmp_path):
    net, path, x = Own(), tmp_path / "own.onnx", cairn.randn(4, 3)
    mask = cairn.tensor([[True, False, True]] * 4)
    cairn.onnx.export(net, (x, {"mask": mask}), str(path), export_params=True, opset_version=17,
                      do_constant_folding=True, input_names=["x", "mask"], output_names=["a", "b", "c"],
                      dynamic_axes={"x": {0: "rows"}, "mask": {0: "rows"}, "a": {0: "rows"}})
    again = cairn.onnx.load(path)
    assert again.inputs[1] == ("mask", "bool", ("rows", 3), "tensor", False)
    assert cairn.allclose(again(x[:2], mask[:2])[0], net(x[:2], mask=mask[:2])["rows"], atol=1e-5)
    assert cairn.allclose(run_onnxruntime(path, x, mask)[0], net(x, mask=mask)["rows"], atol=1e-5)
    fixed = io.BytesIO()
    cairn.onnx.export(net, (x,), fixed)  # without dynamic_axes: the sizes of the example
    assert cairn.onnx.load(fixed.getvalue()).inputs[0].shape == (4, 3)
    program = cairn.onnx.export(net, (x,), kwargs={"mask": mask}, dynamo=True)
    program.save(tmp_path / "program.onnx")
    assert (tmp_path / "program.onnx").read_bytes() == program.data


def test_several_sizes_that_vary(tmp_path):
    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(11, 8), nn.Linear(8, 11)

        def forward(self, ids):
            b, t = ids.shape
            x = self.table(ids).view(b, t, 2, 4).transpose(1, 2)
            x = F.scaled_dot_product_attention(x, x, x, is_causal=True)
            return self.out(x.transpose(1, 2).reshape(b, t, 8)), x.reshape(b * t, 8).mean()

    path, net = tmp_path / "rows.onnx", Rows()
    cairn.onnx.export(net, (cairn.randint(0, 11, (1, 6)),), path, input_names=["ids"], output_names=["y", "mean"],
                      dynamic_axes={"ids": {0: "batch", 1: "time"}})
    for shape in ((1, 1), (1, 6), (3, 4), (2, 9)):
        again = check_round_trip(net, path, cairn.randint(0, 11, shape))
    assert again.inputs[0].shape == ("batch", "time") and again.outputs[0].shape == ("batch", "time", 11)


def test_training_goes_on_in_the_file(tmp_path):
    """The losses of a module and of its file are the same, step by step."""
    net, path = small_cnn(), tmp_path / "net.onnx"
    net[5].p = 0.0
    x, y = cairn.randn(16, 1, 8, 8), cairn.randint(0, 5, (16,))
    cairn.onnx.save(net, x, path)
    losses = []
    for m in (net, cairn.onnx.load(path)):
        opt = cairn.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
        m.train()
        losses.append([])
        for _ in range(8):
            loss = F.nll_loss(m(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], abs=1e-5) and losses[0][-1] < losses[0][0]


def test_a_file_is_written_as_it_was_read(tmp_path):
    data = onnx_files.model([onnx_files.node("Gemm", ["x", "w"], ["y"], name="the layer", transB=1)],
                            [onnx_files.tensor("w", [2, 3], onnx_files.WEIGHT)], [onnx_files.info("x", ["rows", 3])],
                            [onnx_files.info("y", ["rows", 2])], metadata=[("author", "somebody")])
    m, path, x = cairn.onnx.load(data), tmp_path / "again.onnx", cairn.randn(2, 3)
    with cairn.no_grad():
        m.w += 1
    cairn.onnx.save(m, x, path)
    written = path.read_bytes()
    assert b"the layer" in written and b"somebody" in written and b"rows" in written
    check_round_trip(m, path, x)
    m.w = nn.Parameter(cairn.randn(5, 3))  # another shape: the graph is traced
    cairn.onnx.save(m, x, path)
    assert check_round_trip(m, path, cairn.randn(4, 3)).w.shape == (5, 3)
    net = nn.Sequential(m, nn.ReLU())
    cairn.onnx.save(net, x, path)
    assert "0.w" in check_round_trip(net, path, cairn.randn(4, 3)).state_dict()


@pytest.mark.parametrize("make", [
    lambda: (nn.LSTM(3, 4, batch_first=True), (2, 5, 3)), lambda: (nn.GRU(3, 4), (5, 2, 3)),
    lambda: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8)),
    lambda: (nn.Sequential(nn.LayerNorm(6), nn.GELU(), nn.Softmax(-1)), (2, 6))])
def test_layers(tmp_path, make):
    module, shape = make()
    x = cairn.randn(*shape)
    path = tmp_path / "layer.onnx"
    cairn.onnx.save(module.eval(), x, path, dynamic_batch=False)
    want = module(x)
    want = cairn.onnx._export._tensors(want)
    for got in (cairn.onnx._export._tensors(cairn.onnx.load(path)(x)), run_onnxruntime(path, x)):
        assert all(cairn.allclose(a, b, atol=1e-5) for a, b in zip(got, want)) and len(got) == len(want)


# ---- errors of saving ----


class Decides(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


class ForTwo(nn.Module):
    def forward(self, x):
        return x.view(2, -1)


class Odd(nn.Module):
    def forward(self, x):
        return x.repeat(x.shape[0] ** 3, 1)[: 2 ** x.shape[0]]


def test_what_a_trace_cannot_see(tmp_path):
    with pytest.warns(cairn.onnx.TracerWarning, match="reads values"):
        cairn.onnx.save(Decides(), cairn.ones(2, 3), tmp_path / "d.onnx")
    assert cairn.onnx.load(tmp_path / "d.onnx")(cairn.full((2, 3), -5.0)).tolist() == [[-4] * 3] * 2
    with pytest.warns(cairn.onnx.TracerWarning, match="sizes of the example"):
        cairn.onnx.save(Odd(), cairn.ones(2, 3), tmp_path / "o.onnx")
    m = cairn.onnx.load(tmp_path / "o.onnx")
    assert m.inputs[0].shape == (2, 3) and m(cairn.ones(2, 3)).shape == (4, 3)
    with pytest.warns(cairn.onnx.TracerWarning, match="sizes of the example") as caught:
        cairn.onnx.save(ForTwo(), cairn.ones(4, 3), tmp_path / "f.onnx")
    assert caught[0].filename == __file__
    assert cairn.onnx.load(tmp_path / "f.onnx")(cairn.ones(4, 3)).shape == (2, 6)


def test_bad_saves(tmp_path):
    path, x = tmp_path / "x.onnx", cairn.ones(2, 3)
    with pytest.raises(ValueError, match="2 names"):
        cairn.onnx.save(nn.ReLU(), x, path, input_names=["a", "b"])
    with pytest.raises(ValueError, match="opset"):
        cairn.onnx.save(nn.ReLU(), x, path, opset_version=3)
    with pytest.raises(TypeError, match="return tensors"):
        cairn.onnx.save(lambda t: None, x, path)
    with pytest.raises(cairn.FileError):
        cairn.onnx.save(nn.ReLU(), x, tmp_path / "none" / "x.onnx")
    with pytest.raises(ZeroDivisionError):
        cairn.onnx.save(lambda t: 1 // 0, x, path)
    with pytest.raises(NotImplementedError, match="dynamic_shapes"):
        cairn.onnx.export(nn.ReLU(), (x,), path, dynamic_shapes={"x": {0: "batch"}})
    net = nn.Dropout()
    with pytest.raises(NotImplementedError, match="evaluation"):
        cairn.onnx.export(net, (x,), path, training=cairn.onnx.TrainingMode.TRAINING)
    assert net.training and not path.exists() and not list(tmp_path.iterdir())
    assert not cairn.onnx.is_in_onnx_export() and cairn.is_grad_enabled() and (x + 1).sum().item() == 12


def test_operators_that_cannot_be_written(tmp_path):
    with pytest.raises(NotImplementedError, match="cannot be written"):
        cairn.onnx.save(lambda t: cairn.linalg.qr(t)[0], cairn.randn(3, 3), tmp_path / "x.onnx")
    assert not (tmp_path / "x.onnx").exists()
