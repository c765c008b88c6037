"""Averages of weights, as torch.optim.swa_utils: plain (SWA) or exponential (EMA)."""

import math
from copy import deepcopy

import cairn

from .. import _C
from ..nn import Module
from .lr_scheduler import LRScheduler, _each

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
           "update_bn"]


def get_ema_avg_fn(decay=0.999):
    """average, weight → decay average + (1 - decay) weight."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def ema_update(average, weight, n_averaged):
        return decay * average + (1 - decay) * weight

    return ema_update


def get_swa_avg_fn():
    """The mean of all weights so far."""

    def swa_update(average, weight, n_averaged):
        return average + (weight - average) / (n_averaged + 1)

    return swa_update


def _of_lists(one):
    def update(averages, weights, n_averaged):
        for average, weight in zip(averages, weights):
            average.copy_(one(average, weight, n_averaged) if average.is_floating_point() else weight)

    return update


def get_ema_multi_avg_fn(decay=0.999):
    return _of_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn():
    return _of_lists(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose weights are averages of those that update_parameters has seen."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", cairn.tensor(0, dtype=cairn.int64))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Counts the weights of model into the averages."""
        before = _C._set_grad_enabled(False)
        try:
            self._update(model)
        finally:
            _C._set_grad_enabled(before)

    def _update(self, model):
        def tensors(m):
            return list(m.parameters()) + (list(m.buffers()) if self.use_buffers else [])

        averages, weights = tensors(self.module), [w.detach().to(a.device) for a, w in
                                                   zip(tensors(self.module), tensors(model))]
        n = int(self.n_averaged)
        if n == 0:
            for average, weight in zip(averages, weights):
                average.copy_(weight)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, weights, n)
        else:
            _of_lists(self.avg_fn or get_swa_avg_fn())(averages, weights, n)
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers()):
                mine.copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1
        _C._eval_all()


def update_bn(loader, model, device=None):
    """Computes the running statistics of all batch norms anew, from the batches of loader."""
    norms = {m: m.momentum for m in model.modules() if hasattr(m, "running_mean") and hasattr(m, "reset_running_stats")}
    if not norms:
        return
    training = model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    before = _C._set_grad_enabled(False)
    try:
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x.to(device) if device is not None else x)
            _C._eval_all()
    finally:
        _C._set_grad_enabled(before)
        for m, momentum in norms.items():
            m.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """The rate goes to swa_lr in anneal_epochs epochs, along a cosine or a line, and stays there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, lr in zip(optimizer.param_groups, _each("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = lr
        self.anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch):
        t = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return t if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self):
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
