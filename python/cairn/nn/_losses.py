"""The losses of torch.nn.functional, as cairn.nn.functional has them.

``size_average`` and ``reduce`` are the former spellings of ``reduction``.
"""

import math
import warnings

import cairn
from cairn import _C

__all__ = [
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div", "gaussian_nll_loss", "poisson_nll_loss", "hinge_embedding_loss",
    "margin_ranking_loss", "cosine_embedding_loss", "soft_margin_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "ctc_loss",
]


def _reduction(size_average, reduce, reduction):
    """The reduction, also from its former spellings."""
    if size_average is None and reduce is None:
        return reduction
    warnings.warn("size_average and reduce args will be deprecated, please use reduction instead.", stacklevel=3)
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _known(reduction, more=()):
    if reduction not in ("none", "mean", "sum", *more):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _reduced(x, reduction):
    return x.mean() if reduction == "mean" else x.sum() if reduction == "sum" else x


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return _C.cross_entropy(input, target, weight, ignore_index, _known(reduction), label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return _C.nll_loss(input, target, weight, ignore_index, _known(reduction))


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    return _compared(_C.mse_loss, input, target, _reduction(size_average, reduce, reduction), weight)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    return _compared(_C.l1_loss, input, target, _reduction(size_average, reduce, reduction), weight)


def _compared(loss, input, target, reduction, weight, *numbers):
    """A loss of each element, reduced, perhaps with weights. It broadcasts, with a warning, as in PyTorch."""
    _known(reduction)
    if input.shape != target.shape:
        warnings.warn(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This "
                      "will likely lead to incorrect results due to broadcasting. Please ensure they have the same "
                      "size.", stacklevel=3)
        input, target = cairn.broadcast_tensors(input, target)
    if weight is None:
        return loss(input, target, reduction, *numbers)
    return _weighted(loss(input, target, "none", *numbers), weight, reduction)


def _weighted(losses, weight, reduction):
    """Weights of each element: their mean divides by the sum of weights."""
    if weight.shape != losses.shape:
        raise ValueError("Weights and input must have the same size.")
    total = losses * weight
    return total.sum() / weight.sum() if reduction == "mean" else _reduced(total, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    loss, numbers = (_C.smooth_l1_loss, (beta,)) if beta else (_C.l1_loss, ())
    return _compared(loss, input, target, _reduction(size_average, reduce, reduction), None, *numbers)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return _compared(_C.huber_loss, input, target, reduction, weight, delta)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    reduction = _known(_reduction(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is "
                         "deprecated. Please ensure they have the same size.")
    return _C.bce_loss(input, target, weight, reduction)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None):
    reduction = _known(_reduction(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return _C.bce_with_logits_loss(input, target, weight, reduction, pos_weight)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    reduction = _known(_reduction(size_average, reduce, reduction), ("batchmean",))
    if reduction == "mean":
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size."
                      "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
                      "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
                      stacklevel=2)
    if input.shape != target.shape:
        input, target = cairn.broadcast_tensors(input, target)
    return _C.kl_div(input, target, reduction, log_target)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    if isinstance(var, float):
        var = cairn.full(input.shape, var, dtype=input.dtype, device=input.device)
    if var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    elif var.shape != input.shape and not (tuple(input.shape[:-1]) == tuple(var.shape[:-1]) and var.shape[-1] == 1):
        if len(var.shape) != len(input.shape):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    if input.shape != target.shape:
        input, target = cairn.broadcast_tensors(input, target)
    return _C.gaussian_nll_loss(input, target, var, full, eps, reduction)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                     reduction="mean"):
    reduction = _reduction(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    if input.shape != target.shape:
        input, target = cairn.broadcast_tensors(input, target)
    return _C.poisson_nll_loss(input, target, log_input, full, eps, reduction)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    reduction = _known(_reduction(size_average, reduce, reduction))
    if input.shape != target.shape:
        input, target = cairn.broadcast_tensors(input, target)
    return _C.hinge_embedding_loss(input, target, margin, reduction)


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    reduction = _known(_reduction(size_average, reduce, reduction))
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{input1.shape}, input2: {input2.shape}, target: {target.shape} ")
    if not input1.shape == input2.shape == target.shape:
        input1, input2, target = cairn.broadcast_tensors(input1, input2, target)
    return _C.margin_ranking_loss(input1, input2, target, margin, reduction)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    reduction = _known(_reduction(size_average, reduce, reduction))
    return _C.cosine_embedding_loss(input1, input2, target, margin, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    reduction = _known(_reduction(size_average, reduce, reduction))
    if input.shape != target.shape:
        input, target = cairn.broadcast_tensors(input, target)
    return _C.soft_margin_loss(input, target, reduction)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    reduction = _known(_reduction(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _C.multi_margin_loss(input, target, p, margin, weight, reduction)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return _C.multilabel_margin_loss(input, target, _known(_reduction(size_average, reduce, reduction)))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    reduction = _reduction(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return _C.multilabel_soft_margin_loss(input, target, weight, reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None,
                        reduce=None, reduction="mean"):
    reduction = _known(_reduction(size_average, reduce, reduction))
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _C.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = _C.pairwise_distance if distance_function is None else distance_function
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(f"The anchor, positive, and negative tensors are expected to have the same number of "
                           f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and negative "
                           f"{negative.dim()}D inputs")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    return _reduced((near - far + margin).clamp(min=0), reduction)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    lengths = [n if isinstance(n, cairn.Tensor) else cairn.tensor(n, dtype=cairn.int64, device=log_probs.device)
               for n in (input_lengths, target_lengths)]
    return _C.ctc_loss(log_probs, targets, *lengths, blank, _known(reduction), zero_infinity)
