"""Many images as one, and images as files."""

import math

import cairn

from .. import _C

__all__ = ["make_grid", "save_image"]


def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0):
    """One image (3, height, width) of many (n, channels, height, width), or of a list of images."""
    if isinstance(tensor, (list, tuple)):
        tensor = cairn.stack(list(tensor), 0)
    if tensor.ndim == 2:
        tensor = tensor.unsqueeze(0)
    if tensor.ndim == 3:
        tensor = tensor.unsqueeze(0) if tensor.shape[0] in (1, 3) else tensor.unsqueeze(1)
    if tensor.ndim != 4:
        raise TypeError(f"make_grid: images must have 2, 3 or 4 axes, got shape {tuple(tensor.shape)}")
    if tensor.shape[1] == 1:
        tensor = cairn.cat([tensor] * 3, 1)
    if normalize:
        tensor = tensor.float()
        if scale_each:
            tensor = cairn.stack([_scaled(image, value_range) for image in tensor], 0)
        else:
            tensor = _scaled(tensor, value_range)
    n, channels, height, width = tensor.shape
    if n == 1:
        return tensor[0]
    columns = min(nrow, n)
    rows = math.ceil(n / columns)
    missing = rows * columns - n
    if missing:
        fill = cairn.full((missing, channels, height, width), pad_value, dtype=tensor.dtype, device=tensor.device)
        tensor = cairn.cat([tensor, fill], 0)
    # a border above and to the left of every image, then one around the whole
    tensor = cairn.nn.functional.pad(tensor, (padding, 0, padding, 0), value=pad_value)
    grid = tensor.reshape(rows, columns, channels, height + padding, width + padding)
    grid = grid.permute(2, 0, 3, 1, 4).reshape(channels, rows * (height + padding), columns * (width + padding))
    return cairn.nn.functional.pad(grid, (0, padding, 0, padding), value=pad_value)


def _scaled(x, value_range):
    low, high = value_range if value_range is not None else (float(x.min()), float(x.max()))
    return (x.clamp(low, high) - low) / max(high - low, 1e-5)


def save_image(tensor, fp, format=None, **kwargs):
    """Writes an image, or a grid of many, from 0 to 1, to .png, .ppm or .jpg."""
    grid = make_grid(tensor, **kwargs).detach().float().cpu()
    _C.write_image((grid * 255 + 0.5).clamp(0, 255).to(cairn.uint8).contiguous(), str(fp), 0)
