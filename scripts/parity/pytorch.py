"""PyTorch's side of a comparison: which of its functions does what an operator does, and how it is called.

An operator is called under its own name with its own parameters: torch.nn.functional.NAME, torch.NAME or the method
NAME of a tensor. ADAPTERS has the operators for which that does not fit.
"""

import math

import torch
import torch.nn.functional as F

from library import DTYPES


class NoCounterpart(Exception):
    """PyTorch has no such operator, or no such call of it."""


def number(value):
    """A plain number as a Python program would write it: a whole one is an int."""
    whole = isinstance(value, float) and abs(value) < 1e15 and value.is_integer()
    return int(value) if whole else value


def one(values):
    return values[0] if isinstance(values, list) and len(values) == 1 else values


def prod(input, dim, keepdim):
    if dim is None:
        if keepdim:
            raise NoCounterpart
        return torch.prod(input)
    if len(dim) != 1:
        raise NoCounterpart
    return torch.prod(input, dim[0], keepdim)


def argument(function):
    def call(input, dim, keepdim):
        return function(input, dim=None if dim is None else dim[0], keepdim=keepdim)
    return call


def extreme(function):
    return lambda input, dim, keepdim: function(input, dim=() if dim is None else dim, keepdim=keepdim)


def topk(input, k, dim, largest):
    values, indices = torch.topk(input, k, dim, largest)
    return values, (input, dim, indices)


def ranked(function):
    def call(input, dim, keepdim, **rest):
        # of elements that share memory, median reads others
        values, indices = function(input.contiguous(), dim=dim, keepdim=keepdim, **rest)
        return values, (input, dim, indices)
    return call


def unique(function):
    def call(input, dim, **rest):
        return function(input, return_inverse=True, return_counts=True, dim=None if dim is None else dim[0], **rest)
    return call


def quantile(function):
    def call(input, q, dim, keepdim, interpolation):
        return function(input, q, None if dim is None else dim[0], keepdim, interpolation=interpolation)
    return call


def take_along_dim(input, indices, dim):
    if dim is None:  # which refuses some layouts
        return torch.take_along_dim(input.contiguous(), indices.contiguous())
    return torch.take_along_dim(input, indices, dim[0])


def index_reduce(input, dim, index, source, reduce, include_self):
    if reduce == "sum":
        raise NoCounterpart
    return torch.index_reduce(input, dim, index, source, reduce, include_self=include_self)


def slice_of(input, dim, start, end, step):
    if not -input.dim() <= dim < input.dim():
        raise IndexError("dim")
    if step <= 0:
        raise ValueError("step")
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


def layer_norm(input, normalized_dims, weight, bias, eps):
    return F.layer_norm(input, input.shape[input.dim() - normalized_dims:], weight, bias, eps)


def rms_norm(input, normalized_dims, weight, eps):
    return F.rms_norm(input, input.shape[input.dim() - normalized_dims:], weight, eps)


def batch_norm(input, running_mean, running_var, **rest):
    copies = [None if t is None else t.detach().clone() for t in (running_mean, running_var)]
    return F.batch_norm(input, *copies, **rest)


def attention(query, key, value, **rest):
    return F.scaled_dot_product_attention(query, key, value, **rest)


def embedding(weight, indices):
    return F.embedding(indices, weight)


def embedding_bag(weight, indices, offsets, **rest):
    return F.embedding_bag(indices, weight, offsets, **rest)


def index_put(input, indices, values, accumulate):
    return torch.ops.aten.index_put(input, indices, values, accumulate)


def clamp(input, min, max):
    bounds = [None if value == default else number(value) for value, default in ((min, -math.inf), (max, math.inf))]
    if bounds == [None, None]:
        raise NoCounterpart
    return torch.clamp(input, *bounds)


def squeeze(input, dim):
    return torch.squeeze(input) if dim is None else torch.squeeze(input, tuple(dim))


def split(input, split_size, dim):
    return list(torch.split(input, split_size, dim))


def instance_norm(input, weight, bias, eps):
    return F.instance_norm(input, weight=weight, bias=bias, eps=eps)


def losses(function):
    """Cairn's losses take operands of one shape; where PyTorch broadcasts with a warning there is nothing to compare."""
    def call(input, target, **rest):
        if input.shape != target.shape:
            raise NoCounterpart
        return function(input, target, **rest)
    return call


def einsum(equation, operands):
    return torch.einsum(equation, *operands)


def repeat_interleave(input, repeats, dim):
    return torch.repeat_interleave(input, repeats, dim)


def to_complex(x):
    return torch.view_as_complex(x.contiguous())


def fourier(function, from_complex=True, to_real=False):
    """Cairn's complex tensors have a last axis of 2. A length of 0 is the default."""
    def call(input, norm, n=0, **rest):
        lengths = {"n": n or None} if "dim" in rest and not isinstance(rest["dim"], (list, type(None))) else {}
        y = function(to_complex(input) if from_complex else input, norm=norm, **lengths, **rest)
        return y if to_real else torch.view_as_real(y)
    return call


def stft(input, window, hop_length, win_length, **rest):
    return torch.view_as_real(torch.stft(input, window=window, hop_length=hop_length or None, win_length=win_length or None,
                                         return_complex=True, **rest))


def istft(input, window, hop_length, win_length, length, **rest):
    return torch.istft(to_complex(input), window=window, hop_length=hop_length or None, win_length=win_length or None,
                       length=length or None, **rest)


def aminmax(input, dim, keepdim):
    if dim is not None and len(dim) != 1:
        raise NoCounterpart
    return torch.aminmax(input, dim=None if dim is None else dim[0], keepdim=keepdim)


def interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    plain = mode in ("nearest", "nearest_exact", "area")
    if plain and align_corners:
        raise ValueError("align_corners")
    return F.interpolate(input, size, scale_factor, mode.replace("_", "-"), None if plain else align_corners,
                         recompute_scale_factor or None, antialias)


# ---- linear algebra ----

def settled(A, gaps=False, finite=True):
    """A, unless rounding decides much of the result: ill-conditioned, or, with gaps, values that hardly differ."""
    if not A.is_floating_point() or A.dim() < 2 or A.numel() == 0 or (not finite and not A.isfinite().all()):
        return A
    if not A.isfinite().all():
        raise NoCounterpart
    s = torch.linalg.svdvals(A.detach().double())
    least = torch.minimum(s.min(), (s[..., :-1] - s[..., 1:]).min()) if gaps and s.shape[-1] > 1 else s.min()
    if least < 1e-2 * s.max():
        raise NoCounterpart
    return A


def sign(vectors):
    """The factors that make the largest component of each column, or the first within 1/16 of it, positive."""
    magnitude = vectors.detach().abs()
    first = (magnitude >= 0.9375 * magnitude.amax(-2, True)).to(torch.int8).argmax(-2, True) if vectors.numel() else None
    return torch.ones_like(vectors) if first is None else vectors.detach().gather(-2, first).sign()


def eigh(A, UPLO):
    symmetric = A if A.dim() < 2 else A.tril() + A.tril(-1).mT if UPLO == "L" else A.triu() + A.triu(1).mT
    settled(symmetric, True, False)
    if A.is_floating_point() and symmetric.numel() and symmetric.isfinite().all() and symmetric.shape[-1] > 1:
        values = torch.linalg.eigvalsh(symmetric.detach().double())
        if (values[..., 1:] - values[..., :-1]).min() < 1e-2 * values.abs().max():
            raise NoCounterpart
    values, vectors = torch.linalg.eigh(A, UPLO)
    return values, vectors * sign(vectors)


def svd(A, full_matrices):
    settled(A, True, False)
    if full_matrices and A.dim() > 1 and A.shape[-2] != A.shape[-1]:
        raise NoCounterpart  # a basis of the null space is arbitrary
    U, S, Vh = torch.linalg.svd(A, full_matrices)
    return U * sign(U), S, Vh * sign(U).mT


def qr(A, mode):
    settled(A)
    if mode == "complete" and A.dim() > 1 and A.shape[-2] > A.shape[-1]:
        return [r.detach() for r in torch.linalg.qr(A, mode)]  # no gradient
    return torch.linalg.qr(A, mode)


def lstsq(A, B):
    settled(A)
    return torch.linalg.lstsq(A, B).solution


def by_tolerance(function):
    def call(A, atol, rtol, hermitian):
        if atol < 0 or rtol < 0 or not math.isfinite(atol + rtol):
            raise NoCounterpart  # of negative tolerances PyTorch makes something
        given = {} if atol == 0 and rtol == 0 else {"atol": atol, "rtol": rtol}
        return function(A, hermitian=hermitian, **given)
    return call


def order(text):
    return text if text in (None, "fro", "nuc") else float(text)


LINALG = {
    "cholesky": lambda A, upper: torch.linalg.cholesky(A, upper=upper),
    "solve_triangular": lambda A, B, **rest: torch.linalg.solve_triangular(A, B, **rest),
    "solve": lambda A, B, left: torch.linalg.solve(settled(A), B, left=left),
    "inv": lambda A: torch.linalg.inv(settled(A)),
    "det": lambda A: torch.linalg.det(settled(A)),
    "slogdet": lambda A: tuple(torch.linalg.slogdet(settled(A))),
    "qr": qr, "eigh": eigh, "svd": svd, "lstsq": lstsq,
    "eigvalsh": lambda A, UPLO: torch.linalg.eigvalsh(A, UPLO),
    "svdvals": lambda A: torch.linalg.svdvals(settled(A, False, False)),
    "pinv": by_tolerance(torch.linalg.pinv), "matrix_rank": by_tolerance(torch.linalg.matrix_rank),
    "cond": lambda A, p: torch.linalg.cond(settled(A), order(p)),
    "matrix_exp": lambda A: torch.linalg.matrix_exp(settled(A)),
    "matrix_power": lambda A, n: torch.linalg.matrix_power(settled(A) if n < 0 else A, n),
    "vector_norm": lambda x, ord, dim, keepdim: torch.linalg.vector_norm(x, ord, dim, keepdim),
    "matrix_norm": lambda A, ord, dim, keepdim: torch.linalg.matrix_norm(A, order(ord), (-2, -1) if dim is None else dim,
                                                                         keepdim),
    "norm": lambda A, ord, dim, keepdim: torch.linalg.norm(A, order(ord), dim, keepdim),
}

ADAPTERS = {
    "fft": fourier(torch.fft.fft), "ifft": fourier(torch.fft.ifft), "rfft": fourier(torch.fft.rfft, False),
    "irfft": fourier(torch.fft.irfft, True, True), "fftn": fourier(torch.fft.fftn), "ifftn": fourier(torch.fft.ifftn),
    "rfftn": fourier(torch.fft.rfftn, False), "stft": stft, "istft": istft,
    "fftfreq": lambda n, d, dtype: torch.fft.fftfreq(n, d, dtype=DTYPES[dtype]),
    "rfftfreq": lambda n, d, dtype: torch.fft.rfftfreq(n, d, dtype=DTYPES[dtype]),
    "fftshift": lambda input, dim: torch.fft.fftshift(input, dim),
    "ifftshift": lambda input, dim: torch.fft.ifftshift(input, dim),
    # another name
    "floor_div": lambda input, other: torch.floor_divide(input, number(other)),
    "shift_left": lambda input, other: torch.bitwise_left_shift(input, number(other)),
    "shift_right": lambda input, other: torch.bitwise_right_shift(input, number(other)),
    "log_sigmoid": lambda input: F.logsigmoid(input),
    "gelu_tanh": lambda input: F.gelu(input, approximate="tanh"),
    "gelu": lambda input: F.gelu(input),
    "clamp_t": lambda input, min, max: torch.clamp(input, min, max),
    "max": extreme(torch.amax), "min": extreme(torch.amin),
    "max_dim": lambda input, dim, keepdim: tuple(torch.max(input, dim, keepdim)),
    "min_dim": lambda input, dim, keepdim: tuple(torch.min(input, dim, keepdim)),
    "rsub_s": lambda input, other: torch.rsub(input, number(other)),
    "rdiv_s": lambda input, other: number(other) / input,
    "slice": slice_of, "index": lambda input, indices: torch.ops.aten.index(input, indices),
    "median_dim": ranked(torch.median), "nanmedian_dim": ranked(torch.nanmedian), "kthvalue": ranked(torch.kthvalue),
    "mode": ranked(torch.mode), "unique": unique(torch.unique), "unique_consecutive": unique(torch.unique_consecutive),
    "quantile": quantile(torch.quantile), "nanquantile": quantile(torch.nanquantile), "index_reduce": index_reduce,
    "take_along_dim": take_along_dim,
    "rpow_s": lambda input, self: torch.pow(number(self), input),
    "cross": lambda input, other, dim: torch.linalg.cross(input, other, dim=dim),
    "slice_assign": lambda input, dim, start, end, step, value: torch.slice_scatter(input, value, dim, start, end, step),
    "bce_loss": losses(F.binary_cross_entropy),
    "bce_with_logits_loss": losses(F.binary_cross_entropy_with_logits),
    "interpolate_nearest": lambda input, size: F.interpolate(input, size=size, mode="nearest"),
    "interpolate_bilinear": lambda input, size, align_corners: F.interpolate(input, size=size, mode="bilinear",
                                                                             align_corners=align_corners),
    "max_unpool1d": lambda **values: F.max_unpool1d(**values), "interpolate": interpolate, "im2col": lambda input, **rest: F.unfold(input, **rest),
    "col2im": lambda input, **rest: F.fold(input, **rest),
    # other arguments
    "cast": lambda input, dtype: input.to(DTYPES[dtype]),
    "clamp": clamp, "prod": prod, "argmax": argument(torch.argmax), "argmin": argument(torch.argmin), "topk": topk,
    "layer_norm": layer_norm, "rms_norm": rms_norm, "batch_norm": batch_norm, "instance_norm": instance_norm,
    "scaled_dot_product_attention": attention, "embedding": embedding, "embedding_bag": embedding_bag, "index_put": index_put, "squeeze": squeeze,
    "polygamma": lambda n, input: torch.polygamma(n, input), "aminmax": aminmax,
    "tensor_split": lambda input, sections, dim: torch.tensor_split(input, sections, dim),
    "meshgrid": lambda tensors, indexing: torch.meshgrid(*tensors, indexing=indexing),
    "cartesian_prod": lambda tensors: torch.cartesian_prod(*tensors),
    "block_diag": lambda tensors: torch.block_diag(*tensors),
    "vander": lambda x, N, increasing: torch.vander(x, None if N == -1 else N, increasing),
    "tensordot": lambda a, b, dims_self, dims_other: torch.tensordot(a, b, (dims_self, dims_other)),
    "broadcast_to": lambda input, size: torch.broadcast_to(input, size),
    "split": split, "einsum": einsum, "repeat_interleave": repeat_interleave,
    "expand": lambda input, size: input.expand(size), "view": lambda input, size: input.view(size),
    "repeat": lambda input, repeats: input.repeat(repeats), "permute": lambda input, dims: input.permute(dims),
    "chunk": lambda input, chunks, dim: list(torch.chunk(input, chunks, dim)),
    "roll": lambda input, shifts, dims: torch.roll(input, shifts, dims),
    "randint": lambda low, high, size, dtype: torch.randint(low, high, size, dtype=DTYPES[dtype]),
    "bernoulli": lambda input: torch.bernoulli(input), "dropout": lambda input, p, training: F.dropout(input, p, training),
    "nonzero": lambda input: torch.nonzero(input), "unfold": lambda input, dimension, size, step: input.unfold(
        dimension, size, step),
}
ADAPTERS |= {"linalg_" + name: function for name, function in LINALG.items()}
for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "hinge_embedding_loss",
              "soft_margin_loss", "multilabel_soft_margin_loss"):
    ADAPTERS[_name] = losses(getattr(F, _name))

# Which of equal elements they take is not said.
PICKING = {"topk", "median_dim", "nanmedian_dim", "kthvalue", "mode"}

# Their values are drawn; shapes, dtypes and errors are compared.
RANDOM = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "dropout", "bernoulli", "multinomial"}


def counterpart(name):
    """The function of PyTorch for an operator, or None."""
    if name in ADAPTERS:
        return ADAPTERS[name]
    for place in (F, torch, torch.Tensor):
        found = getattr(place, name, None)
        if callable(found):
            return found
    return None


def call(name, form, signature, values):
    """The results of a call, a list. In-place forms return their operand."""
    function = counterpart(name)
    if form.endswith("_"):
        if name == "index_put":  # the method refuses None, and writes to elements that share memory
            values = values | {"input": values["input"].clone()}
            return [torch.ops.aten.index_put_(*values.values())]
        first, *rest = values.values()
        in_place = getattr(first, {"floor_div": "floor_divide", "shift_left": "bitwise_left_shift",
                                   "shift_right": "bitwise_right_shift"}.get(name, name) + "_", None)
        if in_place is None:
            raise NoCounterpart
        return [in_place(*map(number, rest)) if not any(isinstance(v, torch.Tensor) for v in rest) else in_place(*rest)]
    if name in ADAPTERS:
        result = function(**values)
    else:
        result = by_signature(function, signature, values)
    if isinstance(result, torch.Tensor):
        return [result]
    return list(result)


def by_signature(function, signature, values):
    """Tensors that come first are passed by position, the rest by name."""
    positional, named = [], {}
    for p in signature["parameters"]:
        value = values[p["name"]]
        if p["kind"] == "dtype":
            value = DTYPES[value]
        elif p["kind"] == "float" or (p["kind"] == "Tensor" and isinstance(value, float)):
            value = number(value)
        elif p.get("count") and isinstance(value, list):
            value = one(value)
        if not named and p["kind"] in ("Tensor", "Tensor[]", "str"):
            positional.append(value)
        elif not (value is None and p["default"] == "None" and p["kind"] == "int[]"):
            named[p["name"]] = value
    return function(*positional, **named)
