"""Schedules of learning rates, as torch.optim.lr_scheduler.

Most schedules compute a new rate from the one that a group has (`_next`), so that they can be chained and a rate that a
program sets has an effect. Some also know the rate of any epoch from the initial one (`_closed`).
"""

import math
from bisect import bisect_right

from .._C import Tensor
from .optimizer import Optimizer

__all__ = [
    "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "SequentialLR",
    "CosineAnnealingLR", "ChainedScheduler", "ReduceLROnPlateau", "CyclicLR", "CosineAnnealingWarmRestarts",
    "OneCycleLR", "PolynomialLR", "LRScheduler",
]


def _warn(text):
    import warnings

    warnings.warn(text, UserWarning, stacklevel=4)


def _numbers_of(optimizer, key):
    return [g[key].clone() if isinstance(g[key], Tensor) else g[key] for g in optimizer.param_groups]


def _set_number(group, key, value):
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def _each(name, optimizer, value):
    """One number for every group, from a number or a list."""
    n = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != n:
            raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
                             f"values, param_groups has {n}.")
        return list(value)
    return [value] * n


def _must_be_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """Base class of schedules. Derived classes give get_lr(), or _next(lr, base_lr) for one group."""

    _get_lr_called_within_step = False
    _is_initial = False
    _left_out = ("optimizer",)  # not part of the state

    def __init__(self, optimizer, last_epoch=-1):
        _must_be_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                               "last_epoch >= 0: load the optimizer's state first, or leave last_epoch out")
        self.base_lrs = _numbers_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        return {key: value for key, value in self.__dict__.items() if key not in self._left_out}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates of all groups that the last step set."""
        return self._last_lr

    def get_lr(self):
        """The rates that step() sets."""
        if not self._get_lr_called_within_step:
            _warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return [self._next(g["lr"], base) for g, base in zip(self.optimizer.param_groups, self.base_lrs)]

    def _next(self, lr, base_lr):
        raise NotImplementedError

    def _get_closed_form_lr(self):
        if not hasattr(self, "_closed"):
            return self.get_lr()
        return [self._closed(base) for base in self.base_lrs]

    def step(self, epoch=None):
        """Sets the rates of all groups; call it after the optimizer's step."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            _warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first value of the schedule "
                  "is skipped. Call `optimizer.step()` before `lr_scheduler.step()`.")
        self._step_count += 1
        if epoch is not None:
            _warn("The epoch parameter in `scheduler.step()` is deprecated: call `scheduler.step()` without it.")
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            rates = self.get_lr() if epoch is None else self._get_closed_form_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates):
        for group, lr in zip(self.optimizer.param_groups, rates):
            _set_number(group, "lr", lr)
        self._last_lr = _numbers_of(self.optimizer, "lr")


_LRScheduler = LRScheduler


# ---- functions of the program ----


class _Functions(LRScheduler):
    _left_out = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        _must_be_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * groups
        elif len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Functions are not saved; objects that can be called are, by their attributes."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if type(fn).__name__ in ("function", "builtin_function_or_method") else dict(fn.__dict__)
            for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict):
        self.__dict__.update((k, v) for k, v in state_dict.items() if k != "lr_lambdas")
        for fn, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if saved is not None:
                fn.__dict__.update(saved)


class LambdaLR(_Functions):
    """The rate is the initial one times lr_lambda(epoch)."""

    def get_lr(self):
        return [base * fn(self.last_epoch) for base, fn in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_Functions):
    """Each step multiplies the rate by lr_lambda(epoch)."""

    def get_lr(self):
        if self._is_initial:
            return _numbers_of(self.optimizer, "lr")
        return [g["lr"] * fn(self.last_epoch) for g, fn in zip(self.optimizer.param_groups, self.lr_lambdas)]


# ---- factors ----


class StepLR(LRScheduler):
    """Multiplies the rate by gamma every step_size epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, lr, base_lr):
        return lr * self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else lr

    def _closed(self, base_lr):
        return base_lr * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiplies the rate by gamma at each milestone."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        from collections import Counter

        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def load_state_dict(self, state_dict):
        from collections import Counter

        super().load_state_dict(state_dict)
        self.milestones = Counter(self.milestones)  # a file has a plain dict

    def _next(self, lr, base_lr):
        times = self.milestones[self.last_epoch]
        return lr * self.gamma**times if times else lr

    def _closed(self, base_lr):
        return base_lr * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(LRScheduler):
    """Multiplies the rate by factor for the first total_iters epochs."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next(self, lr, base_lr):
        if self.last_epoch == 0:
            return lr * self.factor
        return lr * (1.0 / self.factor) if self.last_epoch == self.total_iters else lr

    def _closed(self, base_lr):
        return base_lr if self.last_epoch >= self.total_iters else base_lr * self.factor


class LinearLR(LRScheduler):
    """The factor of the rate goes from start_factor to end_factor in total_iters epochs: a warm-up or a cool-down."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next(self, lr, base_lr):
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        return lr * (1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _closed(self, base_lr):
        done = min(self.total_iters, self.last_epoch)
        return base_lr * (self.start_factor + (self.end_factor - self.start_factor) * done / self.total_iters)


class ExponentialLR(LRScheduler):
    """Multiplies the rate by gamma at every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, lr, base_lr):
        return lr if self._is_initial else lr * self.gamma

    def _closed(self, base_lr):
        return base_lr * self.gamma**self.last_epoch


class PolynomialLR(LRScheduler):
    """The rate falls to 0 in total_iters epochs, as (1 - epoch / total_iters) to a power."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _next(self, lr, base_lr):
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        now, before = (1.0 - e / self.total_iters for e in (self.last_epoch, self.last_epoch - 1))
        return lr * (now / before) ** self.power

    def _closed(self, base_lr):
        return base_lr * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


# ---- cosines ----


class CosineAnnealingLR(LRScheduler):
    """The rate goes from the initial one to eta_min in T_max epochs along a cosine, then back, and so on."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch):
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _next(self, lr, base_lr):
        epoch = self.last_epoch
        if self._is_initial:
            return lr
        if self._step_count == 1 and epoch > 0:
            return self._closed(base_lr)
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the height before was 0
            return lr + (base_lr - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        return self._height(epoch) / self._height(epoch - 1) * (lr - self.eta_min) + self.eta_min

    def _closed(self, base_lr):
        return self.eta_min + (base_lr - self.eta_min) * self._height(self.last_epoch) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rate goes to eta_min in T_0 epochs, then starts again and takes T_mult times as many epochs, and so on."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def _next(self, lr, base_lr):
        return self.eta_min + (base_lr - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2

    def _find(self, epoch):
        """The place of any epoch, whole or not: T_cur epochs after a start, of T_i."""
        if epoch < self.T_0:
            return self.T_0, epoch
        if self.T_mult == 1:
            return self.T_0, epoch % self.T_0
        n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        return self.T_0 * self.T_mult**n, epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)

    def step(self, epoch=None):
        """A step, or the rate of any epoch: epoch + batch / batches."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = epoch or 0
            self.T_i, self.T_cur = self._find(epoch)
        self.last_epoch = math.floor(epoch)
        self._set([self._next(g["lr"], base) for g, base in zip(self.optimizer.param_groups, self.base_lrs)])

    def _update_lr(self, epoch=None):
        self.step(epoch)


# ---- cycles, of the momentum as well ----


class _Cycle(LRScheduler):
    def _begin_momentum(self, optimizer, base_momentum, max_momentum, last_epoch):
        if not self.cycle_momentum:
            return
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        self.base_momentums = _each("base_momentum", optimizer, base_momentum)
        self.max_momentums = _each("max_momentum", optimizer, max_momentum)
        if last_epoch != -1:
            return
        for group, low, high in zip(optimizer.param_groups, self.base_momentums, self.max_momentums):
            self._set_momentum(group, high)
            group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group, momentum):
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_Cycle):
    """The rate rises from base_lr to max_lr and falls again, in cycles. The momentum goes the other way."""

    _left_out = ("optimizer", "_scale")

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0,
                 scale_fn=None, scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9,
                 last_epoch=-1):
        _must_be_optimizer(optimizer)
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError("mode is invalid and scale_fn is None")
        base_lrs = _each("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                _set_number(group, "lr", lr)
        self.max_lrs = _each("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale = scale_fn
        self.scale_mode = scale_mode if scale_fn else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        if self._scale is not None:
            return self._scale(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]


class OneCycleLR(_Cycle):
    """The rate rises to max_lr, then falls far below its start. The momentum goes the other way."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=1e4, three_phase=False, last_epoch=-1):
        _must_be_optimizer(optimizer)
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        counts = {"total_steps": total_steps} if total_steps is not None else {
            "epochs": epochs, "steps_per_epoch": steps_per_epoch}
        for name, value in counts.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps = total_steps if total_steps is not None else epochs * steps_per_epoch
        self.anneal_strategy = anneal_strategy
        # The end of each phase, and the keys of the numbers that it goes between.
        rise = (float(pct_start * self.total_steps) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        last = float(self.total_steps - 1)
        if three_phase:
            fall = (float(2 * pct_start * self.total_steps) - 2, "max_lr", "initial_lr", "base_momentum",
                    "max_momentum")
            self._phases = [rise, fall, (last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            self._phases = [rise, (last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, _each("max_lr", optimizer, max_lr)):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start, end, share):
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))

    def get_lr(self):
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._phases:
            end, lr_from, lr_to, momentum_from, momentum_to = phase
            if step <= end or phase is self._phases[-1]:
                break
            begin = end
        share = (step - begin) / (end - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[lr_from], group[lr_to], share))
            if self.cycle_momentum:
                self._set_momentum(group, self._between(group[momentum_from], group[momentum_to], share))
        return rates


# ---- the metric decides ----


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by factor when the metric has not improved for more than patience epochs."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0,
                 min_lr=0, eps=1e-8):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _must_be_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = optimizer
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        if isinstance(min_lr, (list, tuple)) and len(min_lr) != len(optimizer.param_groups):
            raise ValueError(f"expected {len(optimizer.param_groups)} min_lrs, got {len(min_lr)}")
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _each("min_lr", optimizer, min_lr)
        self.last_epoch = 0
        self._last_lr = _numbers_of(optimizer, "lr")
        self._reset()

    def _reset(self):
        self.best = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self):
        return self.cooldown_counter > 0

    def _is_better(self, value, best):
        sign = 1 if self.mode == "max" else -1
        margin = best * self.threshold if self.threshold_mode == "rel" else self.threshold
        limit = best + sign * margin if math.isfinite(best) else best
        return value > limit if self.mode == "max" else value < limit

    def step(self, metrics, epoch=None):
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _numbers_of(self.optimizer, "lr")

    def _reduce_lr(self):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                                   f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}): modify `min_lrs`.")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set_number(group, "lr", new)


# ---- schedules of schedules ----


class _Several(LRScheduler):
    _left_out = ("optimizer", "_schedulers")

    def _check(self, optimizer, schedulers):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        for i, s in enumerate(schedulers):
            if not hasattr(s, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(s, ReduceLROnPlateau):
                raise ValueError(f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional "
                                 f"kwargs to be specified when calling `step`, but got one at index {i} in the given "
                                 "sequence.")
            if s.optimizer is not optimizer:
                raise ValueError(f"{name} expects all schedulers to belong to the same optimizer, but the scheduler "
                                 f"{type(s).__name__} at index {i} belongs to another one.")

    def state_dict(self):
        state = super().state_dict()
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        self.__dict__.update((k, v) for k, v in state_dict.items() if k != "_schedulers")
        for s, saved in zip(self._schedulers, state_dict["_schedulers"]):
            s.load_state_dict(saved)


class SequentialLR(_Several):
    """One schedule after the other: at each milestone the next one begins."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("Sequential Schedulers expects number of schedulers provided to be one more than the "
                             f"number of milestone points, but got number of schedulers {len(schedulers)} and the number "
                             f"of milestones to be equal to {len(milestones)}")
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # as before the first steps that the schedules made when they were made
            _set_number(group, "lr", group["initial_lr"])
        self._undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo(self, scheduler):
        if hasattr(scheduler, "_schedulers"):
            for part in scheduler._schedulers:
                self._undo(part)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self):
        self.last_epoch += 1
        now = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[now]
        if now > 0 and self._milestones[now - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Several):
    """All schedules step at every step."""

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        self._check(optimizer, schedulers)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = _numbers_of(optimizer, "lr")

    def step(self):
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _numbers_of(self.optimizer, "lr")
