"""Small namespaces that scripts ask: cuda, accelerator, backends, amp, compile, profiler, random, utils.checkpoint."""

import importlib
import json

import pytest

import cairn


def test_questions():
    assert not cairn.cuda.is_available() and cairn.cuda.device_count() == 0
    assert not cairn.backends.mps.is_available() and not cairn.backends.cudnn.is_available()
    assert not cairn.distributed.is_available() and not cairn.distributed.is_initialized()
    assert not cairn.mps.is_available() and not cairn.xpu.is_available()
    assert not cairn.accelerator.is_available() and cairn.accelerator.current_accelerator() is None
    device = cairn.accelerator.current_accelerator().type if cairn.accelerator.is_available() else "cpu"
    assert device == "cpu"
    assert not cairn.onnx.is_in_onnx_export()
    assert cairn.version.__version__ == cairn.__version__


def test_calls_without_effect():
    cairn.cuda.manual_seed_all(1)
    cairn.cuda.empty_cache()
    cairn.cuda.synchronize()
    cairn.backends.cudnn.benchmark = True
    cairn.backends.cudnn.deterministic = True
    cairn.backends.cuda.matmul.allow_tf32 = True
    with cairn.backends.cuda.sdp_kernel(enable_flash=False):
        pass
    importlib.import_module("cairn._dynamo").config.suppress_errors = True
    importlib.import_module("cairn.backends.cudnn")


def test_what_is_not_there():
    for call in (cairn.cuda.current_device, cairn.cuda.get_device_name, lambda: cairn.cuda.Event(enable_timing=True)):
        with pytest.raises(RuntimeError, match="gpu"):
            call()
    for call in (lambda: cairn.distributed.init_process_group("nccl"), lambda: cairn.hub.load("a/b", "c"),
                 lambda: cairn.jit.load("x.pt"), lambda: cairn.jit.save(None, "x.pt"),
                 lambda: cairn.utils.tensorboard.SummaryWriter()):
        with pytest.raises(NotImplementedError):
            call()


def test_compile_and_script_return_their_argument():
    def f(x):
        return x + 1

    assert cairn.compile(f) is f and cairn.compile(mode="max-autotune")(f) is f
    assert cairn.jit.script(f) is f and cairn.jit.trace(f, cairn.ones(1)) is f
    with pytest.raises(TypeError):
        cairn.compile(3)

    @cairn.jit.ignore
    def g():
        return 1

    @cairn.jit.ignore(drop=True)
    def h():
        return 1

    assert g() == h() == 1


def test_autocast():
    with cairn.autocast("cpu", enabled=False):
        assert (cairn.ones(2, 2) @ cairn.ones(2, 2)).dtype == cairn.float32
    cairn.amp._warned.clear()
    with pytest.warns(UserWarning, match="no effect"):
        with cairn.amp.autocast(device_type="cpu", dtype=cairn.bfloat16):
            assert (cairn.ones(2, 2) @ cairn.ones(2, 2)).dtype == cairn.float32

    @cairn.amp.autocast("cpu", enabled=False)
    def f():
        return 1

    assert f() == 1
    with pytest.raises(ValueError):
        cairn.autocast(3)


@pytest.mark.parametrize("enabled", [False, True])
def test_scaler_that_does_nothing(enabled):
    cairn.amp._warned.clear()
    if enabled:
        with pytest.warns(UserWarning, match="CUDA is not available"):
            scaler = cairn.cuda.amp.GradScaler()
    else:
        scaler = cairn.amp.GradScaler(enabled=False)
    w = cairn.ones(2, requires_grad=True)
    opt = cairn.optim.SGD([w], lr=0.5)
    loss = scaler.scale(w.sum())
    assert loss.item() == 2
    loss.backward()
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
    assert w.tolist() == [0.5, 0.5] and scaler.get_scale() == 1.0 and scaler.state_dict() == {}


def test_scaler():
    scaler = cairn.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    w = cairn.ones(2, requires_grad=True)
    opt = cairn.optim.SGD([w], lr=0.5)
    for factor, scale in ((1.0, 8.0), (1.0, 16.0), (float("inf"), 8.0)):
        opt.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(opt)
        scaler.update()
        assert scaler.get_scale() == scale
    assert w.tolist() == [0, 0]  # two steps of 0.5; the third was skipped
    again = cairn.amp.GradScaler("cpu")
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == 8.0


def test_profiler(tmp_path):
    x = cairn.randn(64, 64)
    with cairn.profiler.profile(activities=[cairn.profiler.ProfilerActivity.CPU], record_shapes=True) as p:
        with cairn.profiler.record_function("forward"):
            for _ in range(3):
                (x @ x).sum().item()
    rows = p.key_averages()
    assert rows and rows.total > 0 and max(r.count for r in rows) >= 3
    text = rows.table(sort_by="cpu_time_total", row_limit=5)
    assert "Self CPU time total" in text and "Name" in text
    assert "matmul" in p.table()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text())


def test_profiler_with_a_schedule():
    traces = []
    plan = cairn.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with cairn.profiler.profile(schedule=plan, on_trace_ready=lambda p: traces.append(p.step_num)) as p:
        for _ in range(8):
            cairn.ones(3).add(1).sum().item()
            p.step()
    assert traces == [4]


def test_random_states():
    cairn.manual_seed(7)
    cairn.rand(3).tolist()
    state = cairn.get_rng_state()
    a = cairn.rand(3).tolist()
    cairn.set_rng_state(state)
    assert cairn.rand(3).tolist() == a
    cairn.set_rng_state(state)
    with cairn.random.fork_rng():
        cairn.rand(100).tolist()
        cairn.manual_seed(1)
    assert cairn.rand(3).tolist() == a
    assert state.dtype == cairn.uint8
    with pytest.raises(RuntimeError):
        cairn.set_rng_state(cairn.zeros(3, dtype=cairn.uint8))


def test_checkpoint():
    cairn.manual_seed(1)
    net = cairn.nn.Sequential(cairn.nn.Linear(4, 8), cairn.nn.Tanh(), cairn.nn.Dropout(0.5), cairn.nn.Linear(8, 1))
    x = cairn.randn(3, 4, requires_grad=True)
    state = cairn.get_rng_state()
    net(x).sum().backward()
    want = [p.grad.numpy().copy() for p in [x, *net.parameters()]]
    for t in [x, *net.parameters()]:
        t.grad = None
    cairn.set_rng_state(state)
    calls = []

    def run(v, scale):
        calls.append(1)
        return net(v) * scale

    y = cairn.utils.checkpoint.checkpoint(run, x, 1.0, use_reentrant=False)
    y.sum().backward()
    assert len(calls) == 2
    for t, w in zip([x, *net.parameters()], want):
        assert abs(t.grad.numpy() - w).max() < 1e-6
    two = cairn.utils.checkpoint.checkpoint(lambda v: (v, v + 1), x, use_reentrant=False)
    assert isinstance(two, tuple)

    def broken(v):
        raise LookupError("here")

    with pytest.raises(LookupError):
        cairn.utils.checkpoint.checkpoint(broken, x)
    z = cairn.utils.checkpoint.checkpoint_sequential(net, 2, x)
    assert z.shape == (3, 1)


def test_functions_of_checkpoints_are_released():
    import gc
    import weakref

    class Scale:
        def __call__(self, v):
            return v * 2

    x = cairn.ones(3, requires_grad=True)
    scale = Scale()
    alive = weakref.ref(scale)
    y = cairn.utils.checkpoint.checkpoint(scale, x)
    y.sum().backward()
    x.grad.tolist()
    del scale, y
    x.grad = None
    cairn.utils.checkpoint.checkpoint(lambda v: v + 1, x)
    gc.collect()
    assert alive() is None


def test_counters():
    before = cairn._C.counters()
    cairn.ones(5).add(1).sum().item()
    after = cairn._C.counters()
    assert after["evaluations"] > before["evaluations"] and after["nodes"] > before["nodes"]


def test_trees():
    from collections import OrderedDict, namedtuple

    from cairn.utils import _pytree
    Point = namedtuple("Point", "x y")
    tree = {"a": [1, (2, None)], "b": Point(3, OrderedDict(c=4))}
    leaves, spec = _pytree.tree_flatten(tree)
    assert leaves == [1, 2, None, 3, 4] and spec.num_leaves == 5
    assert _pytree.tree_unflatten(leaves, spec) == tree
    doubled = _pytree.tree_map(lambda x, y: (x or 0) + (y or 0), tree, tree)
    assert doubled == {"a": [2, (4, 0)], "b": Point(6, OrderedDict(c=8))} and type(doubled["b"]) is Point
    assert _pytree.tree_map_only(int, lambda x: -x, [1, "a"]) == [-1, "a"]
    assert spec == _pytree.tree_structure(tree) and spec != _pytree.tree_structure([1])
    with pytest.raises(ValueError, match="leaves"):
        _pytree.tree_unflatten([1], spec)


def test_names_that_packages_import():
    from cairn.autograd.function import Function, FunctionCtx, once_differentiable  # noqa: F401
    from cairn.utils.checkpoint import get_device_states, set_device_states
    from cairn.utils.hooks import RemovableHandle
    from cairn.utils.model_zoo import load_url  # noqa: F401

    assert Function is cairn.autograd.Function and isinstance(
        cairn.nn.Linear(1, 1).register_forward_hook(print), RemovableHandle)
    set_device_states(*get_device_states(cairn.ones(1)))
    assert cairn.ones(2, 3).untyped_storage().nbytes() == 24


def test_derivatives_of_functions():
    functional = cairn.autograd.functional
    a, b = cairn.tensor([1.0, 2.0]), cairn.tensor([3.0])

    def several(a, b):
        return a * b, (a * a).sum() + b.sum()

    def one(a, b):
        return (a * a * b).sum()

    def lists(x):
        return x.tolist() if isinstance(x, cairn.Tensor) else [lists(y) for y in x]

    assert lists(functional.jacobian(several, (a, b))) == [[[[3, 0], [0, 3]], [[1], [2]]], [[2, 4], [1]]]
    assert lists(functional.hessian(one, (a, b))) == [[[[6, 0], [0, 6]], [[2], [4]]], [[[2, 4]], [[0]]]]
    assert lists(functional.vjp(several, (a, b), (a, cairn.tensor(2.0)))) == [[[3, 6], 8], [[7, 14], [7]]]
    assert lists(functional.jvp(several, (a, b), (a, b))) == [[[3, 6], 8], [[6, 12], 13]]
    assert lists(functional.vhp(one, (a, b), (a, b))) == [15, [[12, 24], [10]]]
    assert lists(functional.hvp(lambda x: (x ** 3).sum(), a, b.expand(2))) == [9, [18, 36]]
    assert lists(functional.jacobian(lambda x: x[:0], a)) == []
    with pytest.raises(RuntimeError, match="invalid size"):
        functional.vjp(several, (a, b), (a, a))


def test_einops():
    einops = pytest.importorskip("einops")
    from cairn.einops import pack, rearrange, reduce, repeat
    from cairn.einops.layers.torch import EinMix, Rearrange, Reduce

    x = cairn.arange(24.0).reshape(2, 3, 4).requires_grad_()
    assert rearrange(x, "a b c -> c (a b)").equal(x.permute(2, 0, 1).reshape(4, 6))
    assert einops.rearrange(x, "a b c -> (c a b)").shape == (24,)
    for kind in ("min", "max", "sum", "mean", "prod"):
        want = getattr(einops, "reduce")(x.detach().numpy(), "a b c -> b", kind)
        assert reduce(x, "a b c -> b", kind).tolist() == pytest.approx(want.tolist())
    assert repeat(x, "a b c -> a (r b) c", r=2).shape == (2, 6, 4) and pack([x, x], "* c")[0].shape == (12, 4)
    assert einops.einsum(x, x, "a b c, a b c -> a").shape == (2,)
    net = cairn.nn.Sequential(Rearrange("a b c -> a (b c)"), EinMix("a k -> a m", "k m", "m", k=12, m=5),
                              Reduce("a m -> a", "mean"))
    net(x).sum().backward()
    assert x.grad.shape == (2, 3, 4) and "Rearrange" in repr(net)
