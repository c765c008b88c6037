"""save and load: the same objects come back, from files and from memory; files of PyTorch and safetensors."""

import collections
import io
import json
import os
import pickle
import struct

import numpy as np
import pytest

import cairn


def equal(a, b):
    if isinstance(a, cairn.Tensor):
        return isinstance(b, cairn.Tensor) and a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


NESTED = {
    "model": {"0.weight": cairn.arange(6.0).reshape(2, 3), "0.bias": cairn.zeros(2)},
    "epoch": 3, "best": 0.1 + 0.2, "inf": float("inf"), "nan": float("nan"), "name": "Straße\n", "on": True,
    "none": None,
    "list": [1, 2.0, [cairn.tensor([True, False])], ()], "tuple": (1, "a", cairn.tensor(5)), 7: "seven", (1, 2): "pair",
    "large": 2**70, "empty": {}, "dtype": cairn.bfloat16, "bytes": b"\x00\xff", "size": cairn.Size([2, 3]),
}


def test_nested_objects(tmp_path):
    path = tmp_path / "run.pt"
    cairn.save(NESTED, path)
    assert equal(NESTED, cairn.load(path))
    assert os.listdir(tmp_path) == ["run.pt"]
    memory = io.BytesIO()
    cairn.save(NESTED, memory)
    assert equal(NESTED, cairn.load(io.BytesIO(memory.getvalue()), weights_only=True))
    cairn.save(cairn.arange(3), path)  # replaces the file
    assert cairn.load(path).tolist() == [0, 1, 2]
    cairn.save([1, 2], str(path))
    assert cairn.load(str(path)) == [1, 2]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
                                   "float64"])
def test_dtypes(tmp_path, dtype):
    t = cairn.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(cairn, dtype))
    cairn.save({"a": t, "scalar": t[0, 1], "none": t[:0], "turned": t.t()}, tmp_path / "x")
    out = cairn.load(tmp_path / "x")
    assert equal({"a": t, "scalar": t[0, 1], "none": t[:0], "turned": t.t().contiguous()}, out)


def test_a_dict_of_tensors_is_plain_safetensors(tmp_path):
    state = collections.OrderedDict(weight=cairn.arange(4.0), bias=cairn.ones(1))
    cairn.save(state, tmp_path / "m.safetensors")
    data = (tmp_path / "m.safetensors").read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    assert header["weight"]["dtype"] == "F32" and header["weight"]["shape"] == [4]
    assert "cairn.structure" not in header.get("__metadata__", {})
    assert equal(dict(state), cairn.load(tmp_path / "m.safetensors"))


def test_modules_and_optimizers(tmp_path):
    model = cairn.nn.Linear(3, 2)
    opt = cairn.optim.Adam(model.parameters(), lr=0.01)
    schedule = cairn.optim.lr_scheduler.StepLR(opt, 2)

    def step(m, o, s):
        o.zero_grad()
        m(cairn.ones(4, 3)).square().mean().backward()
        o.step()
        s.step()

    step(model, opt, schedule)
    cairn.save({"model": model.state_dict(), "optim": opt.state_dict(), "schedule": schedule.state_dict()},
               tmp_path / "c")
    step(model, opt, schedule)
    other = cairn.nn.Linear(3, 2)
    again = cairn.optim.Adam(other.parameters(), lr=1)
    s2 = cairn.optim.lr_scheduler.StepLR(again, 2)
    saved = cairn.load(tmp_path / "c", map_location="cpu")
    other.load_state_dict(saved["model"])
    again.load_state_dict(saved["optim"])
    s2.load_state_dict(saved["schedule"])
    step(other, again, s2)
    assert equal(dict(model.state_dict()), dict(other.state_dict()))
    assert again.param_groups[0]["lr"] == opt.param_groups[0]["lr"]


def test_later_changes_do_not_reach_the_file(tmp_path):
    t = cairn.zeros(3)
    cairn.save({"t": t}, tmp_path / "x")
    out = cairn.load(tmp_path / "x")["t"]
    t.add_(1)
    out.add_(5)
    assert cairn.load(tmp_path / "x")["t"].tolist() == [0, 0, 0] and out.tolist() == [5, 5, 5]


def test_numpy_files(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.arange(3), b=np.ones((2, 2), np.float32))
    out = cairn.load(tmp_path / "x.npz")
    assert out["a"].tolist() == [0, 1, 2] and out["b"].shape == (2, 2)


def test_files_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    w = torch.nn.Parameter(torch.randn(3, 2))
    opt = torch.optim.AdamW([w], lr=0.1)
    w.sum().backward()
    opt.step()
    big = torch.arange(10.0)
    data = {"model": collections.OrderedDict(w=w, view=big[2:6:2]), "optim": opt.state_dict(), "epoch": 4, "lr": 1.0,
            "list": [1, (2.5, "x"), None, True], 3: torch.tensor(7)}
    torch.save(data, tmp_path / "x.pt")
    out = cairn.load(tmp_path / "x.pt")
    assert list(out) == list(data) and out["epoch"] == 4 and type(out["lr"]) is float
    assert out["list"] == [1, (2.5, "x"), None, True] and out[3].item() == 7
    np.testing.assert_array_equal(out["model"]["w"].numpy(), w.detach().numpy())
    assert out["model"]["view"].tolist() == [2, 4]
    assert out["optim"]["param_groups"][0]["betas"] == (0.9, 0.999)
    np.testing.assert_array_equal(out["optim"]["state"][0]["exp_avg"].numpy(),
                                  opt.state_dict()["state"][0]["exp_avg"].numpy())
    mine = cairn.optim.AdamW([cairn.tensor(w.detach().numpy(), requires_grad=True)])
    mine.load_state_dict(out["optim"])
    assert mine.param_groups[0]["lr"] == 0.1 and mine.state_dict()["state"][0]["step"] == 1
    memory = io.BytesIO()
    torch.save([torch.ones(2)], memory)
    memory.seek(0)
    assert cairn.load(memory)[0].tolist() == [1, 1]
    torch.save(torch.arange(3), tmp_path / "t.pt")
    assert cairn.load(tmp_path / "t.pt").tolist() == [0, 1, 2]


class Net(cairn.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = cairn.nn.LSTM(3, 4)
        self.norm = cairn.nn.BatchNorm1d(4)
        self.out = cairn.nn.Linear(4, 4)
        self.tied = cairn.nn.Linear(4, 4)
        self.tied.weight = self.out.weight

    def forward(self, x):
        return self.tied(self.out(self.norm(self.rnn(x)[0])))


def test_whole_modules(tmp_path):
    model, x = Net(), cairn.randn(5, 3)
    model(x)
    model.eval()
    model.out.register_forward_hook(double)
    cairn.save(model, tmp_path / "m.pt")
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
        cairn.load(tmp_path / "m.pt")
    out = cairn.load(tmp_path / "m.pt", weights_only=False)
    assert type(out) is Net and not out.training and out.tied.weight is out.out.weight
    assert isinstance(out.out.weight, cairn.nn.Parameter) and out.out.weight.requires_grad
    assert equal(dict(model.state_dict()), dict(out.state_dict())) and equal(model(x), out(x))
    out(x).sum().backward()
    assert out.rnn.weight_ih_l0.grad is not None and model.rnn.weight_ih_l0.grad is None
    memory = io.BytesIO()
    nested = {"model": model, "epoch": 3, "parts": [cairn.nn.ModuleList([model.out]), slice(1)], "loop": []}
    nested["loop"].append(nested)
    cairn.save(nested, memory)
    with pytest.raises(pickle.UnpicklingError):
        cairn.load(io.BytesIO(memory.getvalue()))
    back = cairn.load(io.BytesIO(memory.getvalue()), weights_only=False, map_location="cpu")
    assert back["epoch"] == 3 and back["loop"][0] is back and back["parts"][1] == slice(1)
    assert back["parts"][0][0] is back["model"].out and equal(model(x), back["model"](x))
    moved = cairn.load(io.BytesIO(memory.getvalue()), weights_only=False, map_location=lambda storage, where: storage + 1)
    assert equal(moved["model"].norm.weight.detach(), model.norm.weight.detach() + 1)


def double(module, args, out):
    return 2 * out


def test_optimizers_and_schedules_as_objects(tmp_path):
    model = cairn.nn.Linear(2, 1)
    for optimizer in (cairn.optim.Adam(model.parameters(), 0.1), cairn.optim.SGD(model.parameters(), 0.1, momentum=0.9)):
        schedule = cairn.optim.lr_scheduler.StepLR(optimizer, 1)
        model(cairn.ones(1, 2)).sum().backward()
        optimizer.step()
        schedule.step()
        cairn.save([model, optimizer, schedule], tmp_path / "x")
        net, opt, plan = cairn.load(tmp_path / "x", weights_only=False)
        assert opt.param_groups[0]["params"][0] is net.weight and plan.optimizer is opt
        for m, o in ((model, optimizer), (net, opt)):
            o.zero_grad()
            m(cairn.ones(1, 2)).sum().backward()
            o.step()
        assert equal(model.weight.detach(), net.weight.detach())


def test_numpy_arrays_come_back(tmp_path):
    data = {"a": np.arange(6.0).reshape(2, 3), "b": np.float32(0.1), "c": [np.array([True]), np.int64(7)],
            "d": np.zeros((0, 2), np.float16)}
    cairn.save(data, tmp_path / "x")
    out = cairn.load(tmp_path / "x")
    for was, now in ((data["a"], out["a"]), (data["b"], out["b"]), *zip(data["c"], out["c"]), (data["d"], out["d"])):
        assert type(was) is type(now) and was.dtype == now.dtype and was.shape == now.shape and (was == now).all()
    out["a"] += 1
    cairn.save(np.arange(3, dtype="u2"), tmp_path / "x")  # no dtype of tensors
    assert cairn.load(tmp_path / "x", weights_only=False).dtype == np.uint16


def test_programs_in_files_are_not_run(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"a": slice(1)}, tmp_path / "x.pt")
    with pytest.raises(Exception, match="slice"):
        cairn.load(tmp_path / "x.pt", weights_only=False)


def test_map_location(tmp_path):
    cairn.save({"a": cairn.ones(2)}, tmp_path / "x")
    for where in ("cpu", cairn.device("cpu"), None, lambda storage, location: storage, {"cpu": "cpu"}):
        assert cairn.load(tmp_path / "x", map_location=where)["a"].device == cairn.device("cpu")


def test_mistakes(tmp_path):
    with pytest.raises(FileNotFoundError):
        cairn.load(tmp_path / "none.pt")
    with pytest.raises((AttributeError, pickle.PicklingError)):
        cairn.save({"a": lambda x: x}, tmp_path / "x")
    assert os.listdir(tmp_path) == []
    (tmp_path / "bad").write_bytes(b"nonsense")
    with pytest.raises(OSError, match="not a safetensors"):
        cairn.load(tmp_path / "bad")
    cairn.save([1], tmp_path / "x")
    data = (tmp_path / "x").read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    with pytest.raises(OSError):
        cairn.load(tmp_path / "cut")
    with pytest.raises(OSError):
        cairn.save([1], tmp_path / "no" / "folder")
