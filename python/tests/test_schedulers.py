"""Schedules against PyTorch's: the same rates and momenta, step by step, chained, in sequence, and resumed."""

import math
import warnings

import pytest

import cairn

torch = pytest.importorskip("torch")

STEPS = 40


def optimizer(lib, kind="SGD", groups=2):
    params = [lib.zeros(1, requires_grad=True) for _ in range(groups)]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(lib.optim, kind)([{"params": [p], "lr": 0.1 * (i + 1)} for i, p in enumerate(params)], lr=0.1,
                                    **options)


def numbers(opt):
    return [(g["lr"], g.get("momentum", g.get("betas", (0,))[0])) for g in opt.param_groups]


def trace(lib, make, kind="SGD", steps=STEPS, metric=None, interfere=False):
    opt = optimizer(lib, kind)
    schedule = make(lib.optim.lr_scheduler, opt)
    rows = [numbers(opt)]
    for i in range(steps):
        opt.step()
        if interfere and i == 5:
            opt.param_groups[0]["lr"] *= 0.5
        schedule.step(*([metric(i)] if metric else []))
        rows.append(numbers(opt))
        assert schedule.get_last_lr() == [lr for lr, _ in rows[-1]]
    return rows


def same(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        for (lr, m), (lr2, m2) in zip(x, y):
            assert math.isclose(lr, lr2, rel_tol=1e-9, abs_tol=1e-12), (i, lr, lr2)
            assert math.isclose(m, m2, rel_tol=1e-9), (i, m, m2)


SCHEDULES = {
    "step": lambda s, o: s.StepLR(o, 7, 0.5),
    "milestones": lambda s, o: s.MultiStepLR(o, [3, 9, 9, 20], 0.3),
    "constant": lambda s, o: s.ConstantLR(o, 0.4, 6),
    "linear": lambda s, o: s.LinearLR(o, 0.1, 0.8, 12),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.93),
    "polynomial": lambda s, o: s.PolynomialLR(o, 15, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 8, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
    "restarts, equal": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.5, STEPS + 1),
    "one cycle, linear": lambda s, o: s.OneCycleLR(o, [0.5, 0.3], epochs=4, steps_per_epoch=11,
                                                   anneal_strategy="linear"),
    "one cycle, three": lambda s, o: s.OneCycleLR(o, 0.5, STEPS + 1, three_phase=True, cycle_momentum=False),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 4),
    "cyclic 2": lambda s, o: s.CyclicLR(o, 0.01, [0.2, 0.4], 4, 7, mode="triangular2"),
    "cyclic, exp": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 5, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "cyclic, own": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 5, scale_fn=lambda x: 1 / x),
    "lambda": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 if e % 2 else 1.05),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
    "sequence": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=5), s.CosineAnnealingLR(o, 20)], [5]),
    "sequence of three": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9), s.StepLR(o, 3)], [2, 10]),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_same_as_pytorch(name, kind):
    same(trace(cairn, SCHEDULES[name], kind), trace(torch, SCHEDULES[name], kind))


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_rate_that_the_program_sets(name):
    same(trace(cairn, SCHEDULES[name], interfere=True), trace(torch, SCHEDULES[name], interfere=True))


@pytest.mark.parametrize("options", [{}, dict(patience=2, factor=0.5), dict(mode="max", patience=1, cooldown=3),
                                     dict(threshold_mode="abs", threshold=0.1, patience=0, min_lr=[0.01, 0.02]),
                                     dict(mode="max", threshold_mode="abs", threshold=0.05, patience=3, eps=0.01)])
def test_plateau(options):
    def make(s, o):
        return s.ReduceLROnPlateau(o, **options)

    def metric(i):
        return math.sin(i * 0.7) + 0.05 * i

    same(trace(cairn, make, metric=metric), trace(torch, make, metric=metric))


@pytest.mark.parametrize("name", SCHEDULES)
def test_resumed(name):
    whole = trace(cairn, SCHEDULES[name], steps=20)
    opt = optimizer(cairn)
    schedule = SCHEDULES[name](cairn.optim.lr_scheduler, opt)
    for _ in range(9):
        opt.step()
        schedule.step()
    saved = opt.state_dict(), schedule.state_dict()
    opt = optimizer(cairn)
    schedule = SCHEDULES[name](cairn.optim.lr_scheduler, opt)
    opt.load_state_dict(saved[0])
    schedule.load_state_dict(saved[1])
    rows = []
    for _ in range(11):
        opt.step()
        schedule.step()
        rows.append(numbers(opt))
    same(rows, whole[10:])


def test_states_can_be_saved_to_a_file(tmp_path):
    opt = optimizer(cairn)
    for name, make in SCHEDULES.items():
        schedule = make(cairn.optim.lr_scheduler, opt)
        state = schedule.state_dict()
        cairn.save(state, tmp_path / "state")
        again = cairn.load(tmp_path / "state")
        if "OneCycle" not in type(schedule).__name__:
            assert again.keys() == state.keys(), name
        schedule.load_state_dict(again)
        if name not in ("one cycle", "one cycle, linear", "one cycle, three"):
            opt.step()
            schedule.step()


def test_fractions_of_epochs():
    def rates(lib):
        opt = optimizer(lib)
        s = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 3, 2)
        out = []
        for i in range(30):
            opt.step()
            s.step(i / 2)
            out.append(s.get_last_lr()[0])
        return out

    assert rates(cairn) == pytest.approx(rates(torch))


def test_a_schedule_of_the_program():
    class Half(cairn.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            return [base * 0.5**self.last_epoch for base in self.base_lrs]

    opt = optimizer(cairn)
    s = Half(opt)
    opt.step()
    s.step()
    assert s.get_last_lr() == pytest.approx([0.05, 0.1])


def test_swalr():
    same(trace(cairn, lambda s, o: cairn.optim.swa_utils.SWALR(o, 0.01, 6)),
         trace(torch, lambda s, o: torch.optim.swa_utils.SWALR(o, 0.01, 6)))
    same(trace(cairn, lambda s, o: cairn.optim.swa_utils.SWALR(o, 0.01, 4, "linear")),
         trace(torch, lambda s, o: torch.optim.swa_utils.SWALR(o, 0.01, 4, "linear")))


def test_averaged_model():
    model = cairn.nn.Linear(2, 1)
    averaged = cairn.optim.swa_utils.AveragedModel(model)
    seen = []
    for i in range(3):
        with cairn.no_grad():
            model.weight.fill_(float(i))
        seen.append(float(i))
        averaged.update_parameters(model)
    assert averaged.module.weight.tolist()[0] == pytest.approx([sum(seen) / 3] * 2)
    assert int(averaged.n_averaged) == 3
    ema = cairn.optim.swa_utils.AveragedModel(model, multi_avg_fn=cairn.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    ema.update_parameters(model)
    with cairn.no_grad():
        model.weight.fill_(0.0)
    ema.update_parameters(model)
    assert ema.module.weight.tolist()[0] == pytest.approx([1.8, 1.8])


def test_mistakes():
    s = cairn.optim.lr_scheduler
    opt = optimizer(cairn)
    with pytest.raises(TypeError, match="not an Optimizer"):
        s.StepLR(3, 1)
    with pytest.raises(ValueError):
        s.OneCycleLR(opt, 0.1)
    with pytest.raises(ValueError, match="one more than"):
        s.SequentialLR(opt, [s.StepLR(opt, 1)], [1])
    with pytest.raises(ValueError, match="ReduceLROnPlateau"):
        s.ChainedScheduler([s.ReduceLROnPlateau(opt)])
    with pytest.raises(KeyError, match="initial_lr"):
        s.StepLR(optimizer(cairn), 3, last_epoch=4)
    one = s.OneCycleLR(optimizer(cairn), 0.1, total_steps=2)
    one.optimizer.step()
    one.step()
    one.step()
    with pytest.raises(ValueError, match="total steps"):
        one.step()


def test_the_wrong_order_warns():
    opt = optimizer(cairn)
    s = cairn.optim.lr_scheduler.StepLR(opt, 3)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        s.step()
    opt = optimizer(cairn)
    s = cairn.optim.lr_scheduler.StepLR(opt, 3)
    opt.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s.step()
