"""Optimizers against PyTorch's: the same parameters after 20 steps, with all options, groups and changes on the way."""

import copy

import numpy as np
import pytest

import cairn
import cairn.optim as optim

torch = pytest.importorskip("torch")

STEPS = 20


def values(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


SHAPES = [(4, 3), (3,), (2, 2, 3)]


def loss_of(lib, params, x, y):
    """Every parameter matters, not all of them linearly."""
    w, b, c = params
    out = lib.tanh(x @ w + b)
    return ((out - y) ** 2).mean() + (c * c).sum() * 0.1 + lib.sin(c).sum() * 0.3


def run(lib, make, change=None, steps=STEPS, shapes=SHAPES, loss=loss_of, seed=0):
    """Parameters after some steps. make(optim module, params) → optimizer; change(optimizer, step) before each step."""
    params = [lib.tensor(v, requires_grad=True) for v in values(seed, *shapes)]
    x, y = (lib.tensor(v) for v in values(seed + 1, (8, 4), (8, 3)))
    opt = make(lib.optim, params)
    for step in range(steps):
        if change:
            change(opt, step)
        opt.zero_grad()
        loss(lib, params, x, y).backward()
        opt.step()
    return [p.detach().numpy() for p in params], opt


def compare(make, tol=1e-5, **kwargs):
    mine, opt = run(cairn, make, **kwargs)
    theirs, other = run(torch, make, **kwargs)
    for a, b in zip(mine, theirs):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)
    return opt, other


OPTIONS = {
    "SGD": [{}, dict(lr=0.1), dict(lr=0.05, momentum=0.9), dict(lr=0.05, momentum=0.9, dampening=0.3),
            dict(lr=0.05, momentum=0.9, nesterov=True), dict(lr=0.05, weight_decay=0.1),
            dict(lr=0.05, momentum=0.5, weight_decay=0.1, maximize=True)],
    "Adam": [{}, dict(lr=0.05), dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4), dict(lr=0.05, weight_decay=0.1),
             dict(lr=0.05, amsgrad=True), dict(lr=0.05, maximize=True),
             dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)],
    "AdamW": [{}, dict(lr=0.05), dict(lr=0.05, weight_decay=0.3, amsgrad=True), dict(lr=0.05, weight_decay=0)],
    "RMSprop": [{}, dict(lr=0.02, alpha=0.8), dict(lr=0.02, momentum=0.9), dict(lr=0.02, centered=True),
                dict(lr=0.02, centered=True, momentum=0.5, weight_decay=0.1), dict(lr=0.02, maximize=True)],
    "Adagrad": [{}, dict(lr=0.1, lr_decay=0.1), dict(lr=0.1, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-4),
                dict(lr=0.1, maximize=True)],
    "Adadelta": [{}, dict(lr=0.5, rho=0.8, eps=1e-4), dict(weight_decay=0.1), dict(maximize=True)],
    "Adamax": [{}, dict(lr=0.05, betas=(0.8, 0.95)), dict(lr=0.05, weight_decay=0.1, maximize=True)],
    "NAdam": [{}, dict(lr=0.05, momentum_decay=0.01), dict(lr=0.05, weight_decay=0.1),
              dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True), dict(lr=0.05, maximize=True)],
    "RAdam": [{}, dict(lr=0.05, betas=(0.8, 0.9)), dict(lr=0.05, weight_decay=0.1),
              dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True), dict(lr=0.05, maximize=True)],
    "Rprop": [{}, dict(lr=0.05, etas=(0.4, 1.3), step_sizes=(1e-4, 0.2)), dict(maximize=True)],
    "ASGD": [{}, dict(lr=0.05, lambd=0.01, alpha=0.6, t0=5), dict(lr=0.05, weight_decay=0.1), dict(maximize=True)],
    "Adafactor": [{}, dict(lr=0.05, beta2_decay=-0.5, d=1.5), dict(lr=0.05, weight_decay=0.1, eps=(1e-3, 1e-2)),
                  dict(lr=0.05, maximize=True)],
}


@pytest.mark.parametrize("name,options", [(n, o) for n, list_ in OPTIONS.items() for o in list_])
def test_same_as_pytorch(name, options):
    compare(lambda o, params: getattr(o, name)(params, **options))


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_groups_and_numbers_that_change(name):
    def make(o, params):
        return getattr(o, name)([{"params": params[:1], "lr": 0.03}, {"params": params[1:]}], lr=0.01)

    def change(opt, step):
        opt.param_groups[0]["lr"] = 0.03 * 0.9**step
        if step == 7 and "weight_decay" in opt.param_groups[1]:
            opt.param_groups[1]["weight_decay"] = 0.2
        if step == 9 and "betas" in opt.param_groups[1]:
            opt.param_groups[1]["betas"] = (0.7, 0.9)
        if step == 11 and "momentum" in opt.param_groups[1] and name == "SGD":
            opt.param_groups[1]["momentum"] = 0.5

    compare(make, change=change)


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_state_dict_of_pytorch_continues_here(name):
    def make(o, params):
        return getattr(o, name)(params, lr=0.02)

    theirs, other = run(torch, make, steps=6)
    state = other.state_dict()
    carried = {"state": {k: {n: cairn.tensor(v.numpy()) if isinstance(v, torch.Tensor) else v for n, v in s.items()}
                         for k, s in state["state"].items()}, "param_groups": state["param_groups"]}
    params = [cairn.tensor(v, requires_grad=True) for v in theirs]
    again = [torch.tensor(v, requires_grad=True) for v in theirs]
    mine = make(optim, params)
    mine.load_state_dict(carried)
    fresh = make(torch.optim, again)
    fresh.load_state_dict(state)
    for lib, p, opt in ((cairn, params, mine), (torch, again, fresh)):
        x, y = (lib.tensor(v) for v in values(1, (8, 4), (8, 3)))
        for _ in range(6):
            opt.zero_grad()
            loss_of(lib, p, x, y).backward()
            opt.step()
    for a, b in zip(params, again):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_state_dict_round_trip_has_the_same_bits(name):
    def make(o, params):
        return getattr(o, name)(params, lr=0.02, **(dict(momentum=0.9) if name == "SGD" else {}))

    whole, _ = run(cairn, make, steps=10)
    half, opt = run(cairn, make, steps=5)
    saved = copy.deepcopy(opt.state_dict())
    params = [cairn.tensor(v, requires_grad=True) for v in half]
    again = make(optim, params)
    again.load_state_dict(saved)
    x, y = (cairn.tensor(v) for v in values(1, (8, 4), (8, 3)))
    for _ in range(5):
        again.zero_grad()
        loss_of(cairn, params, x, y).backward()
        again.step()
    for a, b in zip(params, whole):
        np.testing.assert_array_equal(a.detach().numpy(), b)


def test_sparse_adam_changes_rows_with_gradients_only():
    table = values(0, (10, 4))[0]
    mine = cairn.tensor(table, requires_grad=True)
    theirs = torch.tensor(table, requires_grad=True)
    a, b = optim.SparseAdam([mine], lr=0.1), torch.optim.SparseAdam([theirs], lr=0.1)
    for step in range(STEPS):
        rows = [step % 10, (3 * step) % 10]
        a.zero_grad(), b.zero_grad()
        (mine[cairn.tensor(rows)] ** 2).sum().backward()
        emb = torch.nn.functional.embedding(torch.tensor(rows), theirs, sparse=True)
        (emb**2).sum().backward()
        a.step(), b.step()
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{}, dict(momentum=0.8, nesterov=False), dict(adjust_lr_fn="match_rms_adamw")])
def test_muon(options):
    def loss(lib, params, x, y):
        return ((lib.tanh(x @ params[0]) - y) ** 2).mean()

    # PyTorch rounds to bfloat16 on the way: both do, but not sums in the same order
    compare(lambda o, p: o.Muon(p, lr=0.02, **options), shapes=[(4, 3)], loss=loss, tol=2e-2)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs(search):
    results = []
    for lib in (cairn, torch):
        params = [lib.tensor(v, requires_grad=True) for v in values(0, *SHAPES)]
        x, y = (lib.tensor(v) for v in values(1, (8, 4), (8, 3)))
        opt = lib.optim.LBFGS(params, lr=0.5, max_iter=6, history_size=5, line_search_fn=search)

        def closure():
            opt.zero_grad()
            loss = loss_of(lib, params, x, y)
            loss.backward()
            return loss

        losses = [float(opt.step(closure)) for _ in range(4)]
        results.append((losses, [p.detach().numpy() for p in params]))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-4)
    for a, b in zip(results[0][1], results[1][1]):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_lbfgs_state_and_errors():
    w = cairn.tensor([1.0, -2.0, 3.0], requires_grad=True)
    opt = optim.LBFGS([w], lr=0.1, max_iter=4)

    def closure():
        opt.zero_grad()
        loss = (w**4).sum()
        loss.backward()
        return loss

    opt.step(closure)
    saved = copy.deepcopy(opt.state_dict())
    assert saved["state"][0]["n_iter"] >= 3 and len(saved["state"][0]["old_dirs"]) > 0
    at = w.detach().numpy().copy()
    opt.step(closure)
    once = w.detach().numpy().copy()
    with cairn.no_grad():
        w.copy_(cairn.tensor(at))
    opt.load_state_dict(saved)
    opt.step(closure)
    np.testing.assert_array_equal(w.detach().numpy(), once)

    def broken():
        raise LookupError("the closure's own")

    with pytest.raises(LookupError, match="the closure's own"):
        opt.step(broken)
    opt.step(closure)  # goes on
    with pytest.raises(ValueError):
        optim.LBFGS([{"params": [w]}, {"params": [cairn.zeros(2, requires_grad=True)]}])


class Plain(optim.Optimizer):
    """A program's own optimizer: momentum, written with in-place methods and self.state."""

    def __init__(self, params, lr=0.1, momentum=0.9):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["buf"] = cairn.zeros_like(p)
                buf = state["buf"]
                buf.mul_(group["momentum"]).add_(p.grad)
                p.data.add_(buf, alpha=-group["lr"])


def test_optimizer_of_a_program():
    mine, opt = run(cairn, lambda o, params: Plain(params, lr=0.05))
    theirs, _ = run(torch, lambda o, params: o.SGD(params, lr=0.05, momentum=0.9))
    for a, b in zip(mine, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert set(opt.state_dict()["state"]) == {0, 1, 2}


def test_parameters_without_gradients_are_skipped():
    a, b = cairn.ones(2, requires_grad=True), cairn.ones(2, requires_grad=True)
    opt = optim.Adam([a, b], lr=0.1)
    (a * 2).sum().backward()
    opt.step()
    assert b.tolist() == [1, 1] and a.tolist() != [1, 1]
    assert a in opt.state and b not in opt.state and opt.state[a]["step"] == 1
    assert a.grad is not None  # step() leaves gradients as they are
    opt.zero_grad()
    assert a.grad is None
    (a * 2).sum().backward()
    opt.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0, 0]


def test_state_can_be_replaced():
    """What programs do that add rows to their parameters while they train."""
    w = cairn.ones(2, requires_grad=True)
    opt = optim.Adam([w], lr=0.1)
    (w * w).sum().backward()
    opt.step()
    state = opt.state.pop(w)
    new = cairn.cat([w.detach(), cairn.ones(1)]).requires_grad_()
    opt.state[new] = {"step": state["step"], "exp_avg": cairn.cat([state["exp_avg"], cairn.zeros(1)]),
                      "exp_avg_sq": cairn.cat([state["exp_avg_sq"], cairn.zeros(1)])}
    opt.param_groups[0]["params"][0] = new
    (new * new).sum().backward()
    opt.step()
    assert opt.state[new]["step"] == 2 and new.shape == (3,)


def test_closure_hooks_and_repr():
    w = cairn.ones(1, requires_grad=True)
    opt = optim.SGD([w], lr=0.5)
    calls = []
    handle = opt.register_step_pre_hook(lambda o, a, k: calls.append("before"))
    opt.register_step_post_hook(lambda o, a, k: calls.append("after"))

    def closure():
        opt.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    assert opt.step(closure).item() == 1
    handle.remove()
    opt.step(closure)
    assert calls == ["before", "after", "after"] and w.item() == 0
    assert repr(opt).startswith("SGD (\nParameter Group 0\n    dampening: 0\n")


def test_mistakes():
    w = cairn.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="empty parameter list"):
        optim.SGD([])
    with pytest.raises(TypeError):
        optim.SGD(w)
    with pytest.raises(TypeError):
        optim.SGD([3])
    with pytest.raises(ValueError, match="Invalid learning rate"):
        optim.Adam([w], lr=-1)
    with pytest.raises(ValueError, match="Invalid beta parameter at index 1"):
        optim.Adam([w], betas=(0.9, 1.0))
    with pytest.raises(ValueError, match="non-leaf"):
        optim.SGD([w * 2])
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([{"params": [w]}, {"params": [w]}])
    opt = optim.SGD([w], lr=0.1)
    (w * 2).sum().backward()
    opt.param_groups[0]["lr"] = -1.0
    with pytest.raises(ValueError, match="lr must be finite"):
        opt.step()
    assert w.tolist() == [1, 1]
    opt.param_groups[0]["lr"] = "fast"
    with pytest.raises(TypeError):
        opt.step()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        opt.load_state_dict({"state": {}, "param_groups": []})


def test_named_parameters_and_added_groups():
    a, b = cairn.ones(2, requires_grad=True), cairn.ones(2, requires_grad=True)
    opt = optim.AdamW([("a", a)], lr=0.1)
    opt.add_param_group({"params": [("b", b)], "lr": 0.01})
    assert [g["param_names"] for g in opt.state_dict()["param_groups"]] == [["a"], ["b"]]
    (a.sum() + b.sum()).backward()
    opt.step()
    np.testing.assert_allclose((1 - a.detach().numpy())[0] * 0.1, (1 - b.detach().numpy())[0], rtol=1e-3)


def test_a_new_rate_builds_no_plan():
    w = cairn.randn(8, 8, requires_grad=True)
    x = cairn.randn(4, 8)
    opt = optim.AdamW([w], lr=0.1)
    for step in range(6):
        opt.param_groups[0]["lr"] = 0.1 / (step + 1)
        opt.param_groups[0]["weight_decay"] = 0.01 * step
        opt.zero_grad()
        (x @ w).square().mean().backward()
        opt.step()
        if step == 2:
            before = cairn._C.counters()
    after = cairn._C.counters()
    assert after["plan_misses"] == before["plan_misses"] and after["evaluations"] == before["evaluations"] + 3


def test_half_parameters_have_wide_states():
    w = cairn.ones(4, dtype=cairn.float16, requires_grad=True)
    opt = optim.Adam([w], lr=0.01)
    (w.float() ** 2).sum().backward()
    opt.step()
    assert w.dtype == cairn.float16 and opt.state[w]["exp_avg"].dtype == cairn.float32
    opt.load_state_dict(opt.state_dict())
    assert opt.state[w]["exp_avg"].dtype == cairn.float32
