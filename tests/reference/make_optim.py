"""Writes optim.txt and schedules.txt: what PyTorch's optimizers, clipping, averages and schedulers give.

    python tests/reference/make_optim.py

The problem is the same in tests/test_optimizers.c: element i of parameter k starts as cos(i/2 + k) + k/10 and has at
step t the gradient (0.1 + k/20) p + sin(0.7 t + 0.3 i + k). Parameter 1 has none at steps 1 and 2, parameter 2 none at
every fourth. A line: name, type, step, then all elements of all parameters.
"""

import math
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
SHAPES = [(3, 4), (5,), (), (1,)]
MATRICES = [(3, 5), (6, 4), (4, 4)]
STEPS = 100
SHOWN = (1, 2, 10, 100)
O = torch.optim


class Lion(torch.optim.Optimizer):
    """The paper's formula, in numpy."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad.numpy() * (-1 if group["maximize"] else 1)
                m = self.state[p].setdefault("m", np.zeros_like(g))
                way = np.sign(b1 * m + (1 - b1) * g)
                self.state[p]["m"] = (b2 * m + (1 - b2) * g).astype(g.dtype)
                x = p.numpy()
                p.copy_(torch.tensor(x - group["lr"] * (way + group["weight_decay"] * x), dtype=p.dtype))


class FullMuon(O.Muon):
    """Newton-Schulz in the parameter's own type."""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            a, b, c = group["ns_coefficients"]
            for p in group["params"]:
                state = self.state[p]
                buf = state.setdefault("momentum_buffer", torch.zeros_like(p))
                buf.lerp_(p.grad, 1 - group["momentum"])
                x = p.grad.lerp(buf, group["momentum"]) if group["nesterov"] else buf.clone()
                tall = x.size(0) > x.size(1)
                x = x.T if tall else x
                x = x / x.norm().clamp(min=group["eps"])
                for _ in range(group["ns_steps"]):
                    gram = x @ x.T
                    x = a * x + (b * gram + c * gram @ gram) @ x
                x = x.T if tall else x
                lr = torch.optim._muon._adjust_lr(group["lr"], group["adjust_lr_fn"], p.shape)
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(x, alpha=-lr)


CASES = {
    "sgd": (O.SGD, dict()),
    "sgd_decay_maximize": (O.SGD, dict(lr=0.05, weight_decay=0.1, maximize=True)),
    "sgd_momentum": (O.SGD, dict(lr=0.05, momentum=0.9)),
    "sgd_dampening": (O.SGD, dict(lr=0.05, momentum=0.9, dampening=0.5, weight_decay=0.01)),
    "sgd_nesterov": (O.SGD, dict(lr=0.02, momentum=0.8, nesterov=True)),
    "adam": (O.Adam, dict()),
    "adam_decay_maximize": (O.Adam, dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, maximize=True)),
    "adam_amsgrad": (O.Adam, dict(lr=0.05, betas=(0.9, 0.9), amsgrad=True)),
    "adam_beta1_zero": (O.Adam, dict(lr=0.01, betas=(0.0, 0.99))),
    "adam_lr_zero": (O.Adam, dict(lr=0.0)),
    "adamw": (O.AdamW, dict()),
    "adamw_no_decay": (O.AdamW, dict(lr=0.02, weight_decay=0.0)),
    "adamw_amsgrad": (O.AdamW, dict(lr=0.05, weight_decay=0.3, amsgrad=True)),
    "nadam": (O.NAdam, dict()),
    "nadam_decay": (O.NAdam, dict(lr=0.02, weight_decay=0.1, momentum_decay=0.02)),
    "nadam_decoupled": (O.NAdam, dict(lr=0.02, weight_decay=0.1, decoupled_weight_decay=True, maximize=True)),
    "radam": (O.RAdam, dict()),
    "radam_decay": (O.RAdam, dict(lr=0.02, betas=(0.8, 0.98), weight_decay=0.1)),
    "radam_decoupled": (O.RAdam, dict(lr=0.02, weight_decay=0.1, decoupled_weight_decay=True, maximize=True)),
    "adamax": (O.Adamax, dict()),
    "adamax_decay": (O.Adamax, dict(lr=0.05, betas=(0.8, 0.95), weight_decay=0.1, maximize=True)),
    "rmsprop": (O.RMSprop, dict()),
    "rmsprop_centered": (O.RMSprop, dict(lr=0.005, alpha=0.9, centered=True, eps=1e-3)),
    "rmsprop_momentum": (O.RMSprop, dict(lr=0.005, momentum=0.9, weight_decay=0.1)),
    "rmsprop_all": (O.RMSprop, dict(lr=0.005, alpha=0.95, momentum=0.5, centered=True, maximize=True, eps=1e-3)),
    "adagrad": (O.Adagrad, dict()),
    "adagrad_all": (O.Adagrad, dict(lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.3,
                                    maximize=True)),
    "adadelta": (O.Adadelta, dict()),
    "adadelta_all": (O.Adadelta, dict(lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.1, maximize=True)),
    "rprop": (O.Rprop, dict()),
    "rprop_all": (O.Rprop, dict(lr=0.05, etas=(0.4, 1.3), step_sizes=(1e-3, 0.1), maximize=True)),
    "asgd": (O.ASGD, dict()),
    "asgd_all": (O.ASGD, dict(lr=0.05, lambd=0.02, alpha=0.6, t0=5, weight_decay=0.1, maximize=True)),
    "adafactor": (O.Adafactor, dict()),
    "adafactor_all": (O.Adafactor, dict(lr=0.05, beta2_decay=-0.6, eps=(1e-4, 1e-2), d=1.5, weight_decay=0.1,
                                        maximize=True)),
    "lion": (Lion, dict()),
    "lion_decay": (Lion, dict(lr=0.01, betas=(0.8, 0.95), weight_decay=0.3, maximize=True)),
    "muon": (O.Muon, dict()),
    "muon_rms": (O.Muon, dict(lr=0.02, weight_decay=0.2, momentum=0.9, nesterov=False, adjust_lr_fn="match_rms_adamw")),
    "muon_full": (FullMuon, dict(lr=0.02)),
    "muon_full_spectral": (FullMuon, dict(lr=0.02, nesterov=False, ns_steps=3, ns_coefficients=(2.0, -1.5, 0.5),
                                          adjust_lr_fn="spectral_unclamped", weight_decay=0.0)),
}


def start(shapes, dtype):
    def one(k, shape):
        i = torch.arange(math.prod(shape), dtype=torch.float64)
        return torch.nn.Parameter((torch.cos(i / 2 + k) + k / 10).to(dtype).reshape(shape))

    return [one(k, shape) for k, shape in enumerate(shapes)]


def gradient(p, k, t):
    i = torch.arange(p.numel(), dtype=torch.float64)
    tilt = torch.sin(0.7 * t + 0.3 * i + k).to(p.dtype).reshape(p.shape)
    return (0.1 + k / 20) * p.detach() + tilt


def has_gradient(k, t):
    return not (k == 1 and t <= 2) and not (k == 2 and t % 4 == 0)


def line(out, name, dtype, step, tensors):
    digits = 17 if dtype == torch.float64 else 9
    short = {torch.float64: "f64", torch.float32: "f32"}[dtype]
    numbers = " ".join(f"{v:.{digits}g}" for x in tensors for v in x.detach().reshape(-1).tolist())
    print(name, short, step, numbers, file=out)


def optimizers(out):
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        for name, (kind, options) in CASES.items():
            muon = name.startswith("muon")
            params = start(MATRICES if muon else SHAPES, dtype)
            opt = kind(params, **options)
            for t in range(1, STEPS + 1):
                for k, p in enumerate(params):
                    p.grad = gradient(p, k, t) if muon or has_gradient(k, t) else None
                opt.step()
                if t in SHOWN:
                    line(out, name, dtype, t, params)


LBFGS = {
    "lbfgs": dict(lr=0.01),
    "lbfgs_search": dict(line_search_fn="strong_wolfe"),
    "lbfgs_short": dict(lr=0.5, max_iter=7, history_size=3, line_search_fn="strong_wolfe"),
    "lbfgs_maximize": dict(max_iter=5, max_eval=9, line_search_fn="strong_wolfe", maximize=True),
}


def lbfgs(out):
    """Rosenbrock's function of two parameters in a row, plus a parameter that it does not depend on."""
    torch.set_default_dtype(torch.float64)
    for name, options in LBFGS.items():
        x, y, z = (torch.nn.Parameter(torch.tensor(v)) for v in ([[-1.2, 1.0], [0.5, -0.3]], [0.7, 0.1, 1.5], 2.0))
        opt = O.LBFGS([x, y, z], **options)

        def loss():
            opt.zero_grad()
            v = torch.cat([x.reshape(-1), y])
            value = (100 * (v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2).sum()
            value = -value if options.get("maximize") else value
            value.backward()
            return value

        for t in range(1, 6):
            first = opt.step(loss)
            if t in (1, 2, 5):
                line(out, name, torch.float64, t, [first, x, y, z])


def groups(out):
    """Two groups; the second has numbers of its own."""
    torch.set_default_dtype(torch.float64)
    params = start(SHAPES, torch.float64)
    second = dict(params=params[2:], lr=0.05, weight_decay=0.0, betas=(0.5, 0.9))
    opt = O.AdamW([dict(params=params[:2]), second], lr=0.01)
    for t in range(1, 11):
        for k, p in enumerate(params):
            p.grad = gradient(p, k, t)
        opt.step()
    line(out, "groups", torch.float64, 10, params)


def clips(out):
    """Norms first, then gradients."""
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        for name, order, most in (("clip_2", 2.0, 1.0), ("clip_1", 1.0, 0.5), ("clip_inf", math.inf, 0.25),
                                  ("clip_3", 3.0, 1.0), ("clip_loose", 2.0, 100.0)):
            params = start(SHAPES, dtype)
            for k, p in enumerate(params):
                p.grad = gradient(p, k, 4) if has_gradient(k, 4) else None
            norm = torch.nn.utils.clip_grad_norm_(params, most, norm_type=order)
            line(out, name, dtype, 4, [norm] + [p.grad for p in params if p.grad is not None])
        params = start(SHAPES, dtype)
        for k, p in enumerate(params):
            p.grad = gradient(p, k, 4)
        torch.nn.utils.clip_grad_value_(params, 0.4)
        line(out, "clip_value", dtype, 4, [p.grad for p in params])


def averages(out):
    """A layer with statistics; its weights are w + t, its statistics 2 w - t after step t."""
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, get_swa_multi_avg_fn

    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        for name, fn, buffers in (("ema", get_ema_multi_avg_fn(0.9), False), ("swa", get_swa_multi_avg_fn(), True)):
            model = torch.nn.BatchNorm1d(4)
            model.num_batches_tracked = None  # whole numbers cannot be averaged
            averaged = AveragedModel(model, multi_avg_fn=fn, use_buffers=buffers)
            w = torch.arange(4, dtype=torch.float64)
            for t in range(1, 11):
                with torch.no_grad():
                    model.weight.copy_(torch.cos(w) + t)
                    model.bias.copy_(torch.sin(w) - t / 7)
                    model.running_mean.copy_(2 * torch.cos(w) - t)
                    model.running_var.copy_(torch.cos(w) / 3 + t * t)
                averaged.update_parameters(model)
            m = averaged.module
            line(out, name, dtype, 10, [m.weight, m.bias, m.running_mean, m.running_var])


# ---- schedulers ----

S = torch.optim.lr_scheduler


def metric(t):
    return 1 / (1 + 0.3 * min(t, 12)) + (0.02 * math.sin(t) if t > 8 else 0)


def waves(step):
    return 1 + 0.5 * math.sin(0.4 * step)


SCHEDULES = {
    "every": lambda o: S.StepLR(o, 7),
    "every_gamma": lambda o: S.StepLR(o, 4, 0.6),
    "milestones": lambda o: S.MultiStepLR(o, [5, 9, 9, 30], 0.5),
    "milestones_zero": lambda o: S.MultiStepLR(o, [0, 20]),
    "exponential": lambda o: S.ExponentialLR(o, 0.93),
    "constant": lambda o: S.ConstantLR(o),
    "constant_long": lambda o: S.ConstantLR(o, 0.25, 17),
    "linear": lambda o: S.LinearLR(o),
    "linear_down": lambda o: S.LinearLR(o, 1.0, 0.1, 40),
    "polynomial": lambda o: S.PolynomialLR(o),
    "polynomial_square": lambda o: S.PolynomialLR(o, 33, 2.0),
    "cosine": lambda o: S.CosineAnnealingLR(o, 50),
    "cosine_back": lambda o: S.CosineAnnealingLR(o, 13, 0.002),
    "restarts": lambda o: S.CosineAnnealingWarmRestarts(o, 9),
    "restarts_longer": lambda o: S.CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
    "one_cycle": lambda o: S.OneCycleLR(o, 0.3, total_steps=60),
    "one_cycle_linear": lambda o: S.OneCycleLR(o, 0.3, total_steps=61, anneal_strategy="linear", pct_start=0.4,
                                               base_momentum=0.7, max_momentum=0.9),
    "one_cycle_three": lambda o: S.OneCycleLR(o, 0.3, total_steps=75, three_phase=True, div_factor=10.0,
                                              final_div_factor=100.0, cycle_momentum=False),
    "cyclic": lambda o: S.CyclicLR(o, 0.01, 0.2, step_size_up=8),
    "cyclic_halves": lambda o: S.CyclicLR(o, 0.01, 0.2, step_size_up=5, step_size_down=9, mode="triangular2"),
    "cyclic_exp": lambda o: S.CyclicLR(o, 0.01, 0.2, step_size_up=6, mode="exp_range", gamma=0.97,
                                       cycle_momentum=False),
    "plateau": lambda o: S.ReduceLROnPlateau(o, patience=3),
    "plateau_max": lambda o: S.ReduceLROnPlateau(o, mode="max", factor=0.5, patience=2, cooldown=3, min_lr=0.004),
    "plateau_abs": lambda o: S.ReduceLROnPlateau(o, factor=0.7, patience=0, threshold=0.01, threshold_mode="abs"),
    "plateau_max_abs": lambda o: S.ReduceLROnPlateau(o, mode="max", factor=0.7, threshold=0.05, threshold_mode="abs",
                                                     patience=1),
    "lambda": lambda o: S.LambdaLR(o, waves),
    "multiplicative": lambda o: S.MultiplicativeLR(o, waves),
    "chained": lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 12), S.ExponentialLR(o, 0.95)]),
    "chained_three": lambda o: S.ChainedScheduler([S.LinearLR(o, 0.2, 1.0, 9), S.StepLR(o, 10, 0.7),
                                                   S.MultiStepLR(o, [3, 33])]),
    "sequential": lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 10), S.CosineAnnealingLR(o, 50)], [10]),
    "sequential_many": lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 20), S.ExponentialLR(o, 0.9),
                                                    S.StepLR(o, 3, 0.5), S.LambdaLR(o, waves),
                                                    S.CosineAnnealingWarmRestarts(o, 4)], [8, 20, 31, 45]),
    "sequential_poly": lambda o: S.SequentialLR(o, [S.CosineAnnealingWarmRestarts(o, 6), S.PolynomialLR(o, 30, 1.5),
                                                    S.ConstantLR(o, 0.5, 4), S.LinearLR(o, 0.3, 0.9, 8)], [12, 30, 44]),
}


def schedules(out):
    torch.set_default_dtype(torch.float64)
    for name, make in SCHEDULES.items():
        params = start(SHAPES, torch.float64)
        opt = O.SGD([dict(params=params[:2]), dict(params=params[2:], lr=0.02)], lr=0.1, momentum=0.9)
        s = make(opt)
        rates, momenta = [[], []], []
        for t in range(61):
            for g in range(2):
                rates[g].append(opt.param_groups[g]["lr"])
            momenta.append(opt.param_groups[0]["momentum"])
            if t < 60:
                s.step(metric(t)) if name.startswith("plateau") else s.step()
        for g in range(2):
            print(name, f"lr{g}", 0, " ".join(f"{float(v):.17g}" for v in rates[g]), file=out)
        if len(set(momenta)) > 1:
            print(name, "momentum", 0, " ".join(f"{float(v):.17g}" for v in momenta), file=out)


warnings.simplefilter("ignore")
with open(HERE / "optim.txt", "w") as out:
    optimizers(out)
    lbfgs(out)
    groups(out)
    clips(out)
    averages(out)
with open(HERE / "schedules.txt", "w") as out:
    schedules(out)
print("written with torch", torch.__version__, file=sys.stderr)
