"""Writes loss.txt: losses as PyTorch computes them in f64, for tests/test_loss.c.

    python tests/reference/make_loss.py > tests/reference/loss.txt

A case is

    loss NAME key=number ...              the options, as the descriptors of cairn/loss.h call them
    input ROLE DTYPE * SHAPE : numbers    operands; with a * its gradient follows below
    value SHAPE : numbers
    grad ROLE : numbers                   one line for each * in order
    end

Element i of a loss that is not reduced gets the gradient 0.5 + 0.25 (i mod 5). Inputs are multiples of 1/64, so that
they are the same in f32.
"""

import math

import torch
import torch.nn.functional as F

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)

REDUCTIONS = {"mean": 0, "sum": 1, "none": 2, "batchmean": 3}
SHAPES = {"mean": [(3, 4), (7,), (), (2, 1, 3, 2), (3, 0)], "sum": [(5,), (0,)], "none": [(2, 3), (), (0, 2)]}


def numbers(tensor):
    """Each in as few digits as give the same f64 again."""
    return " ".join(f"{v:g}" if float(f"{v:g}") == v else repr(v) for v in tensor.detach().reshape(-1).tolist())


def sizes(tensor):
    return "".join(f"{n} " for n in tensor.shape)


def grid(x):
    return torch.round(x * 64) / 64


def uniform(low, high, *shape):
    return grid(torch.rand(shape) * (high - low) + low)


def normal(*shape):
    return grid(torch.randn(shape))


def signs(*shape):
    return torch.randint(0, 2, shape).double() * 2 - 1


def case(name, fn, inputs, options=None, **kwargs):
    """fn(*inputs, **kwargs). inputs: {role: tensor}; a floating one gets a gradient unless its role begins with _."""
    options = dict(options or {})
    if "reduction" in kwargs:
        options["reduction"] = REDUCTIONS[kwargs["reduction"]]
    leaves = {}
    for role, x in inputs.items():
        wants = x.is_floating_point() and not role.startswith("_")
        leaves[role] = x.clone().requires_grad_(wants)
    value = fn(*leaves.values(), **kwargs)
    seed = torch.ones_like(value)
    if options.get("reduction") == 2:
        seed = 0.5 + 0.25 * (torch.arange(value.numel()) % 5).double().reshape(value.shape)
    value.backward(seed)
    print("loss", name, *(f"{k}={float(v)!r}" for k, v in options.items()))
    for role, x in leaves.items():
        dtype = "f64" if x.is_floating_point() else "i64"
        print("input", role.strip("_"), dtype, "*" if x.requires_grad else "-", f"{sizes(x)}: {numbers(x)}")
    print(f"value {sizes(value)}: {numbers(value)}")
    for role, x in leaves.items():
        if x.requires_grad:
            print(f"grad {role} : {numbers(x.grad)}")
    print("end")


def pairs(name, fn, x, t, target="target"):
    """For every reduction and shape; x and t draw from a shape."""
    for reduction, shapes in SHAPES.items():
        for shape in shapes:
            case(name, fn, {"x": x(*shape), target: t(*shape)}, reduction=reduction)


def differences():
    kinks = torch.tensor([-2, -1, -0.5, 0, 0.5, 1, 2, 0.25])
    zero = torch.zeros(8)
    for name, fn in (("mse_loss", F.mse_loss), ("l1_loss", F.l1_loss)):
        pairs(name, fn, normal, normal)
        case(name, fn, {"x": kinks, "target": zero}, reduction="none")
    for name, fn, key in (("smooth_l1_loss", F.smooth_l1_loss, "beta"), ("huber_loss", F.huber_loss, "delta")):
        pairs(name, fn, normal, normal)
        for limit in (0.5, 2.0):
            for reduction in ("mean", "sum", "none"):
                inputs = {"x": normal(4, 3), "target": normal(4, 3)}
                case(name, fn, inputs, {key: limit}, reduction=reduction, **{key: limit})
            case(name, fn, {"x": kinks, "target": zero}, {key: limit}, reduction="none", **{key: limit})
        case(name, fn, {"x": kinks, "target": zero}, reduction="none")
        case(name, fn, {"x": torch.tensor([math.inf, -math.inf, 1e30]), "target": torch.zeros(3)}, reduction="none")


def probabilities():
    def inner(*shape):
        return uniform(0.1, 0.9, *shape)

    def unit(*shape):
        return uniform(0, 1, *shape)

    def bce(x, target, weight=None, pos_weight=None, reduction="mean"):
        return F.binary_cross_entropy(x, target, weight, reduction=reduction)

    def logits(x, target, weight=None, pos_weight=None, reduction="mean"):
        return F.binary_cross_entropy_with_logits(x, target, weight, pos_weight=pos_weight, reduction=reduction)

    def positive(x, target, pos_weight, reduction):
        return logits(x, target, None, pos_weight, reduction)

    pairs("bce_loss", bce, inner, unit)
    pairs("bce_with_logits_loss", logits, lambda *s: 3 * normal(*s), unit)
    for reduction in ("mean", "sum", "none"):
        for shape in ((2, 3), (3,), (2, 1), ()):
            x, target, w = normal(2, 3), unit(2, 3), uniform(0.5, 2, *shape)
            case("bce_loss", bce, {"x": inner(2, 3), "target": target, "_weight": w}, reduction=reduction)
            case("bce_with_logits_loss", logits, {"x": x, "target": target, "_weight": w}, reduction=reduction)
            case("bce_with_logits_loss", positive, {"x": x, "target": target, "_pos_weight": w}, reduction=reduction)
        weights = {"_weight": uniform(0.5, 2, 4, 3), "_pos_weight": uniform(0.5, 2, 3)}
        both = {"x": normal(4, 3), "target": unit(4, 3), **weights}
        case("bce_with_logits_loss", logits, both, reduction=reduction)
    edge = torch.tensor([0, 0, 1, 1, 0.0, 1.0])
    case("bce_loss", bce, {"x": edge, "_target": torch.tensor([0, 1, 0, 1, 0.5, 0.5])}, reduction="none")
    case("bce_loss", bce, {"x": torch.tensor([0.0, 1.0]), "_target": torch.tensor([0.0, 1.0])}, reduction="none")
    far = torch.tensor([-800.0, 800, -90, 90, 0, 30])
    for t in (0.0, 1.0):
        case("bce_with_logits_loss", logits, {"x": far, "target": torch.full((6,), t)}, reduction="none")


def divergences():
    def log_probs(*shape):
        return grid(F.log_softmax(torch.randn(shape), -1)) if shape else normal()

    def probs(*shape):
        return uniform(0.1, 0.9, *shape)

    for reduction in ("mean", "sum", "none", "batchmean"):
        for shape in ((2, 3), (), (2, 1, 2), (0, 3)):
            case("kl_div", F.kl_div, {"x": log_probs(*shape), "target": probs(*shape)}, reduction=reduction)
            inputs = {"x": log_probs(*shape), "target": log_probs(*shape)}
            case("kl_div", F.kl_div, inputs, {"log_target": 1}, reduction=reduction, log_target=True)
        hot = torch.tensor([[0.0, 1, 0], [0.5, 0, 0.5]])
        case("kl_div", F.kl_div, {"x": log_probs(2, 3), "_target": hot}, reduction=reduction)


def likelihoods():
    def gaussian(x, target, variance, **kwargs):
        return F.gaussian_nll_loss(x, target, variance, **kwargs)

    for reduction in ("mean", "sum", "none"):
        for full in (False, True):
            for var in ((2, 3), (2, 1), (2,)):
                inputs = {"x": normal(2, 3), "target": normal(2, 3), "variance": uniform(0.3, 2, *var)}
                case("gaussian_nll_loss", gaussian, inputs, {"full": full}, reduction=reduction, full=full)
        inputs = {"x": normal(4), "target": normal(4), "variance": torch.tensor([0, 0.125, 0.25, 1])}
        case("gaussian_nll_loss", gaussian, inputs, {"eps": 0.25}, reduction=reduction, eps=0.25)
        inputs = {"x": normal(0, 3), "target": normal(0, 3), "variance": normal(0, 3)}
        case("gaussian_nll_loss", gaussian, inputs, reduction=reduction)

    for log_input in (True, False):
        for full in (False, True):
            for reduction in ("mean", "sum", "none"):
                for shape in ((2, 3), (), (0, 2)):
                    x = normal(*shape) if log_input else uniform(0.2, 3, *shape)
                    inputs = {"x": x, "target": uniform(0.2, 6, *shape)}
                    options = {"no_log_input": not log_input, "full": full}
                    given = {"reduction": reduction, "log_input": log_input, "full": full}
                    case("poisson_nll_loss", F.poisson_nll_loss, inputs, options, **given)
    counts = torch.tensor([0.0, 1, 2, 7])
    inputs = {"x": torch.tensor([0.0, 0.5, 1, 2]), "_target": counts}
    options = {"no_log_input": 1, "full": 1, "eps": 0.5}
    case("poisson_nll_loss", F.poisson_nll_loss, inputs, options, reduction="sum", log_input=False, full=True, eps=0.5)


def margins():
    for margin in (None, 0.0, 0.5):
        given = {} if margin is None else {"margin": margin}
        options = {} if margin is None else {"margin": margin, "no_margin": margin == 0}
        for reduction in ("mean", "sum", "none"):
            for shape in ((2, 3), (), (0,)):
                inputs = {"x": normal(*shape), "_target": signs(*shape)}
                case("hinge_embedding_loss", F.hinge_embedding_loss, inputs, options, reduction=reduction, **given)
                inputs = {"x": normal(*shape), "y": normal(*shape), "_target": signs(*shape)}
                case("margin_ranking_loss", F.margin_ranking_loss, inputs, options, reduction=reduction, **given)
            for shape in ((3, 2), (3,), (0, 3)):
                inputs = {"x": normal(*shape), "y": normal(*shape), "_target": signs(*shape[:-1])}
                case("cosine_embedding_loss", F.cosine_embedding_loss, inputs, options, reduction=reduction, **given)
    x, t = torch.tensor([1.0, 1, 0, -1, 2, 0.5]), torch.tensor([-1.0, 1, -1, -1, 1, 0])
    case("hinge_embedding_loss", F.hinge_embedding_loss, {"x": x, "_target": t}, reduction="none")
    inputs = {"x": x, "y": torch.tensor([1.0, 0, 0, -1, 0, 1]), "_target": torch.tensor([1.0, -1, 1, -1, 1, -1])}
    case("margin_ranking_loss", F.margin_ranking_loss, inputs, reduction="none")
    case("margin_ranking_loss", F.margin_ranking_loss, inputs, {"margin": 0.5}, reduction="none", margin=0.5)
    pairs("soft_margin_loss", F.soft_margin_loss, normal, signs, "_target")


def classes():
    def weighted(x, target, weight, **kwargs):
        return F.multi_margin_loss(x, target, weight=weight, **kwargs)

    for reduction in ("mean", "sum", "none"):
        for p in (1, 2):
            for margin in (None, 0.5):
                given = {"p": p} if margin is None else {"p": p, "margin": margin}
                for shape, target in (((3, 4), torch.tensor([0, 3, 2])), ((4,), torch.tensor(3))):
                    inputs = {"x": normal(*shape), "target": target}
                    case("multi_margin_loss", F.multi_margin_loss, inputs, given, reduction=reduction, **given)
            inputs = {"x": normal(4, 5), "target": torch.tensor([1, 0, 4, 3]), "_weight": uniform(0.5, 2, 5)}
            case("multi_margin_loss", weighted, inputs, {"p": p}, reduction=reduction, p=p)
    kink = {"x": torch.tensor([[1.0, 0, 2, 1], [0.5, 0.5, -0.5, 1]]), "target": torch.tensor([0, 1])}
    for p in (1, 2):
        case("multi_margin_loss", F.multi_margin_loss, kink, {"p": p}, reduction="none", p=p)


def triplets():
    for reduction in ("mean", "sum", "none"):
        for shape in ((2, 3), (3,), (1, 2, 2), (0, 3)):
            for swap, p in ((False, 2), (True, 2), (True, 1), (False, 3)):
                inputs = {"x": normal(*shape), "y": normal(*shape), "z": normal(*shape)}
                given = {"swap": swap, "p": p, "margin": 0.75}
                case("triplet_margin_loss", F.triplet_margin_loss, inputs, given, reduction=reduction, **given)
    same = torch.tensor([[1.0, 2, 3], [0, 0, 0]])
    case("triplet_margin_loss", F.triplet_margin_loss, {"x": same, "y": same, "z": same}, reduction="sum")


def distances():
    def similarity(inputs, axis):
        case("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, axis), inputs, {"axis": axis, "reduction": 2})

    def distance(inputs, p, keepdim):
        options = {"p": p, "keepdim": keepdim, "reduction": 2}
        case("pairwise_distance", lambda x, y: F.pairwise_distance(x, y, p, keepdim=keepdim), inputs, options)

    for shape, axis in (((3, 4), 1), ((3, 4), 0), ((2, 3, 4), -1), ((5,), 0)):
        similarity({"x": normal(*shape), "y": normal(*shape)}, axis)
    similarity({"x": torch.tensor([[0.0, 0, 0], [1, 2, 2]]), "y": torch.tensor([[1.0, 2, 2], [0, 0, 0]])}, 1)
    similarity({"x": normal(3, 4), "y": normal(1, 4)}, 1)
    for p in (1, 2, 2.5, math.inf):
        distance({"x": normal(3, 4), "y": normal(3, 4)}, p, False)
        distance({"x": normal(3, 4), "y": normal(4)}, p, True)


def alignments():
    def ctc(x, targets, frames, lengths, **kwargs):
        return F.ctc_loss(F.log_softmax(x, -1), targets, frames, lengths, **kwargs)

    def both(T, N, C, targets, frames, lengths, blank=0, zero_infinity=False, reductions=("mean", "sum", "none")):
        for reduction in reductions:
            x = normal(*((T, N, C) if N else (T, C)))
            wholes = {"targets": targets, "frames": frames, "lengths": lengths}
            inputs = {"x": x, **{role: torch.tensor(v) for role, v in wholes.items()}}
            options = {"blank": blank, "zero_infinity": zero_infinity}
            case("ctc_loss", ctc, inputs, options, reduction=reduction, blank=blank, zero_infinity=zero_infinity)

    both(6, 2, 4, [[1, 2, 3], [2, 2, 0]], [6, 5], [3, 2])
    both(6, 2, 4, [1, 2, 3, 2, 2], [6, 5], [3, 2])
    both(5, 3, 3, [[0, 1], [1, 1], [0, 0]], [5, 4, 3], [2, 2, 1], blank=2)
    both(4, 2, 3, [[1, 2], [1, 1]], [4, 4], [0, 2])
    both(4, 2, 3, [[1, 2], [1, 1]], [4, 2], [2, 2], zero_infinity=True)
    both(4, 2, 3, [[1, 2], [1, 1]], [1, 3], [2, 2], zero_infinity=True)
    both(5, 0, 4, [3, 1, 1], [5], [3])
    both(1, 1, 2, [[1]], [1], [1])
    both(12, 2, 5, [[1, 2, 3, 4, 1, 1], [4, 4, 4, 1, 2, 0]], [12, 10], [6, 5], reductions=["mean"])


differences()
probabilities()
divergences()
likelihoods()
margins()
classes()
triplets()
distances()
alignments()
