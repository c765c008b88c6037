"""How tensors are shown: as PyTorch shows them, and as a table in a notebook."""

import math

from . import _C


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


_options = _Options()
_NAMES = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Sets how tensors are shown.

    precision: digits behind the point. threshold: a tensor with more elements is shown in part. edgeitems: how many
    elements of each end of an axis are shown then. linewidth: characters of a line. profile: "default", "short" or
    "full". sci_mode: True or False for all tensors; None: each tensor decides.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be one of {', '.join(_PROFILES)}, got {profile!r}")
        for name, value in _PROFILES[profile].items():
            setattr(_options, name, value)
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is not None:
            setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions():
    """The options as a dict, which set_printoptions(**options) accepts."""
    return {name: getattr(_options, name) for name in _NAMES}


class printoptions:
    """with printoptions(precision=2): other options for a while."""

    def __init__(self, **options):
        self.options = options

    def __enter__(self):
        self.before = get_printoptions()
        set_printoptions(**self.options)

    def __exit__(self, *error):
        set_printoptions(**self.before)


class _Style:
    """How the elements of one tensor are written: all in one way, and in one width."""

    def __init__(self, values, is_float):
        self.is_float, self.whole, self.scientific, self.width = is_float, True, False, 1
        if not is_float:
            self.width = max([1, *(len(str(v)) for v in values)])
            return
        values = [v for v in values if v != 0 and math.isfinite(v)]
        if not values:
            return
        smallest, largest = min(map(abs, values)), max(map(abs, values))
        self.whole = all(v == math.ceil(v) for v in values)
        self.scientific = _options.sci_mode
        if self.scientific is None:
            self.scientific = largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4
        self.width = max([1, *(len(self.text(v)) for v in values)])

    def text(self, v):
        if not self.is_float:
            return str(v)
        if self.scientific:
            return f"{v:.{_options.precision}e}"
        if self.whole:
            return f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}"
        return f"{v:.{_options.precision}f}"

    def padded(self, v):
        return self.text(v).rjust(self.width)


def _shown(x, in_part):
    """The elements to show, as nested lists."""
    edge = _options.edgeitems
    if in_part:
        for axis, size in enumerate(x.shape):
            if size > 2 * edge:
                ends = [*range(edge), *range(size - edge, size)]
                x = x[(slice(None),) * axis + (ends,)]
    return x.tolist()


def _flat(values, ndim):
    for _ in range(ndim - 1):
        values = [v for row in values for v in row]
    return values if ndim else [values]


def _row(values, style, cut, indent):
    """The innermost axis, broken into lines."""
    texts = [style.padded(v) for v in values]
    if cut:
        half = len(texts) // 2
        texts = [*texts[:half], " ...", *texts[half:]] if texts else ["..."]
    per_line = max(1, (_options.linewidth - indent) // (style.width + 2))
    lines = [", ".join(texts[k:k + per_line]) for k in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _block(values, shape, style, in_part, indent):
    if not shape:
        return style.padded(values)
    cut = in_part and shape[0] > 2 * _options.edgeitems
    if len(shape) == 1:
        return _row(values, style, cut, indent)
    parts = [_block(v, shape[1:], style, in_part, indent + 1) for v in values]
    if cut:
        half = len(parts) // 2
        parts[half:half] = ["..."]
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


def _contents(x, indent):
    in_part = x.numel() > _options.threshold
    values = _shown(x, in_part)
    style = _Style(_flat(values, x.ndim), x.dtype.is_floating_point)
    return _block(values, tuple(x.shape), style, in_part, indent)


def _suffixes(self):
    """size=, dtype= ..: what the elements do not tell."""
    device, default = str(self.device), _C.get_default_dtype()
    if device.split(":")[0] != _C._get_default_device().split(":")[0]:
        yield f"device='{device}'"
    if self.numel() == 0:
        if self.ndim != 1:
            yield f"size={tuple(self.shape)}"
        if self.dtype != default:
            yield f"dtype={self.dtype}"
    else:
        if not _options.edgeitems:
            yield f"size={tuple(self.shape)}"
        if self.dtype not in (default, _C.int64, _C.bool):
            yield f"dtype={self.dtype}"
    function = self.grad_fn
    if function is not None:
        yield f"grad_fn={function if isinstance(function, str) else f'<{type(function).__name__}>'}"
    elif self.requires_grad:
        yield "requires_grad=True"


def tensor_text(self):
    """The text of repr(self)."""
    plain = type(self) is _C.Tensor or type(self).__name__ == "Parameter"
    prefix = "tensor(" if plain else f"{type(self).__name__}("
    indent = len(prefix)
    text = prefix + ("[]" if self.numel() == 0 else _contents(self.detach(), indent))
    used = len(text) - text.rfind("\n") + 1  # of the last line
    for suffix in _suffixes(self):
        if used + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


_MOST_ROWS, _MOST_COLUMNS = 32, 16


def tensor_html(self):
    """A table for notebooks, if the tensor is a small vector or matrix; None: the text is shown."""
    rows, columns = ((1,) + tuple(self.shape))[-2:] if self.ndim in (1, 2) else (0, 0)
    if not (0 < rows <= _MOST_ROWS and 0 < columns <= _MOST_COLUMNS):
        return None
    values = self.detach().tolist()
    if self.ndim == 1:
        values = [values]
    style = _Style(_flat(values, 2), self.dtype.is_floating_point)
    cells = "\n".join("<tr>" + "".join(f"<td>{style.text(v)}</td>" for v in row) + "</tr>" for row in values)
    caption = ", ".join([f"tensor {list(self.shape)}", str(self.dtype)])
    if self.grad_fn is not None or self.requires_grad:
        caption += ", requires grad"
    return f'<table style="text-align: right">\n<caption>{caption}</caption>\n{cells}\n</table>'
