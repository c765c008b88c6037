"""Functions of images (..., channels, height, width), as torchvision.transforms.functional has them for tensors."""

import math

import cairn
from ... import _C
from ..._C import Tensor

__all__ = ["adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "center_crop",
           "convert_image_dtype", "crop", "erase", "gaussian_blur", "get_dimensions", "get_image_size", "hflip",
           "invert", "normalize", "pad", "pil_to_tensor", "resize", "resized_crop", "rgb_to_grayscale", "rotate",
           "to_pil_image", "to_tensor", "vflip"]


class InterpolationMode:
    NEAREST, NEAREST_EXACT, BILINEAR, BICUBIC = "nearest", "nearest-exact", "bilinear", "bicubic"
    BOX, HAMMING, LANCZOS = "box", "hamming", "lanczos"  # of images of bytes


_FILTERS = {"bilinear": 0, "nearest": 1, "nearest-exact": 1, "box": 2, "hamming": 3, "bicubic": 4, "lanczos": 5}


# ---- kinds of images ----


def _is_pil(image):
    return type(image).__module__.partition(".")[0] == "PIL"


def as_image(image):
    """A tensor (..., channels, height, width) of what is given: a tensor, an image of Pillow, an array (h, w, c)."""
    return image if isinstance(image, Tensor) else pil_to_tensor(image)


def pil_to_tensor(pic):
    """An image of Pillow, or an array (height, width, channels), as uint8 (channels, height, width)."""
    if isinstance(pic, Tensor):
        return pic
    if _is_pil(pic):
        if pic.mode in ("1", "P"):
            pic = pic.convert("L" if pic.mode == "1" else "RGB")
        if pic.mode not in ("L", "RGB", "RGBA", "LA", "YCbCr", "HSV"):
            raise TypeError(f"pil_to_tensor: an image of mode {pic.mode} has no bytes; convert it to 'RGB' or 'L'")
        x = cairn.frombuffer(bytearray(pic.tobytes()), dtype=cairn.uint8)
        return x.reshape(pic.height, pic.width, len(pic.getbands())).permute(2, 0, 1).contiguous()
    if type(pic).__module__ == "numpy":
        x = cairn.tensor(pic)
        return x.unsqueeze(0) if x.ndim == 2 else x.permute(2, 0, 1).contiguous()
    raise TypeError(f"pic should be a tensor, a PIL Image or an ndarray, got {type(pic)}")


def to_tensor(pic):
    """float32 from 0 to 1 of an image of bytes; another dtype stays as it is."""
    x = as_image(pic)
    return x.to(cairn.get_default_dtype()) / 255 if x.dtype == cairn.uint8 else x


def to_pil_image(pic, mode=None):
    """An image of Pillow, which must be installed."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("to_pil_image: Pillow is not installed; cairn.vision.utils.save_image writes files") from None
    x = as_image(pic)
    if x.ndim == 2:
        x = x.unsqueeze(0)
    if x.is_floating_point():
        x = (x * 255).to(cairn.uint8)
    kind = mode or {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[x.shape[0]]
    data = bytes(x.permute(1, 2, 0).contiguous().flatten().tolist())
    return Image.frombytes(kind, (x.shape[2], x.shape[1]), data)


def get_dimensions(img):
    """[channels, height, width]"""
    x = as_image(img)
    return [x.shape[-3] if x.ndim > 2 else 1, x.shape[-2], x.shape[-1]]


def get_image_size(img):
    """[width, height]"""
    return get_dimensions(img)[:0:-1]


def convert_image_dtype(image, dtype=None):
    """Another dtype, with values to scale: bytes from 0 to 255, floats from 0 to 1."""
    dtype = cairn.float32 if dtype is None else dtype
    if image.dtype == dtype:
        return image
    if image.is_floating_point() == dtype.is_floating_point:
        if dtype.is_floating_point:
            return image.to(dtype)
        raise NotImplementedError("convert_image_dtype: between dtypes of whole numbers")
    if dtype.is_floating_point:
        return image.to(dtype) / cairn.iinfo(image.dtype).max
    most = cairn.iinfo(dtype).max
    return (image * (most + 1 - 1e-3)).to(dtype)


def normalize(tensor, mean, std, inplace=False):
    """(x - mean) / std, by channel."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError("Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = "
                         f"{tuple(tensor.shape)}")

    def column(values):
        values = values if isinstance(values, Tensor) else cairn.tensor(
            [float(v) for v in values] if isinstance(values, (list, tuple)) else [float(values)])
        return values.to(tensor.dtype).reshape(-1, 1, 1)

    if any(float(v) == 0 for v in (std if isinstance(std, (list, tuple)) else [std])):
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    out = (tensor - column(mean)) / column(std)
    return tensor.copy_(out) if inplace else out


# ---- places ----


def crop(img, top, left, height, width):
    """A rectangle; 0 outside of the image."""
    x = as_image(img)
    h, w = x.shape[-2:]
    inside = x[..., max(top, 0) : max(min(top + height, h), 0), max(left, 0) : max(min(left + width, w), 0)]
    sides = [max(min(-left, width), 0), max(left + width - max(w, left), 0), max(min(-top, height), 0),
             max(top + height - max(h, top), 0)]
    return pad_sides(inside, sides) if any(sides) else inside


def pad_sides(x, sides, fill=0, mode="constant"):
    """left, right, top, bottom."""
    if mode == "constant":
        return cairn.nn.functional.pad(x, sides, value=fill)
    whole = not x.is_floating_point()
    y = cairn.nn.functional.pad((x.float() if whole else x)[None], sides, mode=mode)[0]
    return y.to(x.dtype) if whole else y


def pad(img, padding, fill=0, padding_mode="constant"):
    """padding: one number, [left and right, top and bottom], or [left, top, right, bottom]."""
    p = [padding] if isinstance(padding, int) else list(padding)
    if len(p) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(p)} element tuple")
    left, top, right, bottom = p * 4 if len(p) == 1 else p * 2 if len(p) == 2 else p
    mode = {"constant": "constant", "edge": "replicate", "reflect": "reflect"}.get(padding_mode)
    if mode is None:
        raise ValueError("Padding mode should be either constant, edge or reflect")
    return pad_sides(as_image(img), [left, right, top, bottom], fill, mode)


def pair(size):
    """Two numbers from one, or from a list of one or two."""
    sizes = [int(size)] if isinstance(size, (int, float)) else list(size)
    return (sizes[0], sizes[-1])


def center_crop(img, output_size):
    x = as_image(img)
    height, width = pair(output_size)
    h, w = x.shape[-2:]
    if height > h or width > w:
        up, over = max(height - h, 0), max(width - w, 0)
        x = pad_sides(x, [over // 2, (over + 1) // 2, up // 2, (up + 1) // 2])
        h, w = x.shape[-2:]
    return crop(x, int(round((h - height) / 2.0)), int(round((w - width) / 2.0)), height, width)


def hflip(img):
    return as_image(img).flip(-1)


def vflip(img):
    return as_image(img).flip(-2)


def _as_batch(x):
    """(n, channels, height, width) of floats, and how to go back."""
    y = x.reshape(-1, *x.shape[-3:])
    whole = not y.is_floating_point()

    def back(z):
        if whole:
            z = z.round().clamp(0, 255 if x.dtype == cairn.uint8 else cairn.iinfo(x.dtype).max).to(x.dtype)
        return z.reshape(*x.shape[:-3], *z.shape[-3:])

    return (y.float() if whole else y), back


def resize(img, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True):
    """size: (height, width), or one number for the shorter side.

    uint8 becomes what Pillow makes of it, bit for bit; without antialias, and of other dtypes, it is interpolate().
    """
    x = as_image(img)
    h, w = x.shape[-2:]
    sizes = [size] if isinstance(size, int) else list(size)
    if len(sizes) == 1:
        short, long = min(h, w), max(h, w)
        new_short, new_long = sizes[0], int(sizes[0] * long / short)
        if max_size is not None and new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
        sizes = [new_short, new_long] if h <= w else [new_long, new_short]
    if sizes == [h, w]:
        return x
    mode = getattr(interpolation, "value", interpolation)
    if x.dtype == cairn.uint8 and (antialias or mode in ("nearest", "nearest-exact")):
        if mode not in _FILTERS:
            raise ValueError(f"resize: interpolation must be one of {', '.join(_FILTERS)}, got {mode!r}")
        return _C.resize_image(x, *sizes, _FILTERS[mode])
    if mode not in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        raise ValueError(f"resize: interpolation {mode!r} is for uint8 with antialias; got {x.dtype}")
    y, back = _as_batch(x)
    if mode in ("nearest", "nearest-exact"):
        return back(cairn.nn.functional.interpolate(y, size=sizes, mode=mode))
    return back(cairn.nn.functional.interpolate(y, size=sizes, mode=mode, align_corners=False,
                                                antialias=bool(antialias)))


def resized_crop(img, top, left, height, width, size, interpolation=InterpolationMode.BILINEAR, antialias=True):
    return resize(crop(img, top, left, height, width), list(pair(size)), interpolation, antialias=antialias)


def rotate(img, angle, interpolation=InterpolationMode.NEAREST, expand=False, center=None, fill=None):
    """About the centre, counter-clockwise, by an angle in degrees."""
    x = as_image(img)
    h, w = x.shape[-2:]
    a = math.radians(angle)
    cos, sin = math.cos(a), math.sin(a)
    height, width = h, w
    if expand:
        width = int(math.ceil(abs(w * cos) + abs(h * sin) - 1e-6))
        height = int(math.ceil(abs(w * sin) + abs(h * cos) - 1e-6))
    cx, cy = (0.0, 0.0) if center is None else (center[0] - w * 0.5, center[1] - h * 0.5)
    # where each pixel of the result comes from, in pixels from the middle
    ys = (cairn.arange(height, dtype=cairn.float32) + (0.5 - height / 2) - cy).reshape(-1, 1)
    xs = (cairn.arange(width, dtype=cairn.float32) + (0.5 - width / 2) - cx).reshape(1, -1)
    from_x = (xs * cos - ys * sin + cx) * (2.0 / w)
    from_y = (xs * sin + ys * cos + cy) * (2.0 / h)
    y, back = _as_batch(x)
    grid = cairn.stack([from_x, from_y], -1).unsqueeze(0).expand(y.shape[0], height, width, 2)
    mode = getattr(interpolation, "value", interpolation)
    out = cairn.nn.functional.grid_sample(y, grid, mode=mode, padding_mode="zeros", align_corners=False)
    if fill:
        inside = cairn.nn.functional.grid_sample(cairn.ones_like(y[:, :1]), grid, mode=mode, padding_mode="zeros",
                                                 align_corners=False)
        fills = fill if isinstance(fill, (list, tuple)) else [fill]
        colour = cairn.tensor([float(f) for f in fills]).reshape(-1, 1, 1)
        out = out * inside + colour * (1 - inside)
    return back(out)


# ---- colours ----


def _limit(x):
    return 1.0 if x.is_floating_point() else 255.0


def _blend(x, other, factor):
    """factor x + (1 - factor) other, within the range of the dtype."""
    mixed = (x if x.is_floating_point() else x.float()) * factor + other * (1 - factor)
    return mixed.clamp(0, _limit(x)).to(x.dtype)


def rgb_to_grayscale(img, num_output_channels=1):
    """0.2989 r + 0.587 g + 0.114 b, in 1 or 3 channels."""
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    x = as_image(img)
    if x.shape[-3] == 3:
        r, g, b = x.unbind(-3)
        x = (0.2989 * r + 0.587 * g + 0.114 * b).to(x.dtype).unsqueeze(-3)
    elif x.shape[-3] != 1:
        raise TypeError(f"Input image tensor permitted channel values are 1 or 3, but found {x.shape[-3]}")
    return x if num_output_channels == 1 else cairn.cat([x] * 3, -3)


def adjust_brightness(img, brightness_factor):
    _not_negative("brightness_factor", brightness_factor)
    return _blend(as_image(img), 0.0, brightness_factor)


def adjust_contrast(img, contrast_factor):
    _not_negative("contrast_factor", contrast_factor)
    x = as_image(img)
    gray = rgb_to_grayscale(x) if x.shape[-3] == 3 else x
    return _blend(x, gray.float().mean((-3, -2, -1), keepdim=True), contrast_factor)


def adjust_saturation(img, saturation_factor):
    _not_negative("saturation_factor", saturation_factor)
    x = as_image(img)
    return x if x.shape[-3] == 1 else _blend(x, rgb_to_grayscale(x).float(), saturation_factor)


def adjust_hue(img, hue_factor):
    """Turns the hue by a share of the circle, from -0.5 to 0.5."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    x = as_image(img)
    if x.shape[-3] == 1:
        return x
    y = x.float() / 255 if not x.is_floating_point() else x
    high, low = y.amax(-3, keepdim=True), y.amin(-3, keepdim=True)
    spread = high - low
    red, green, blue = (c.unsqueeze(-3) for c in y.unbind(-3))
    divisor = cairn.where(spread == 0, cairn.ones_like(spread), spread)
    r, g, b = ((high - c) / divisor for c in (red, green, blue))
    is_red, is_green = red == high, green == high
    hue = cairn.where(is_red, b - g, cairn.where(is_green, 2.0 + r - b, 4.0 + g - r)) / 6.0
    hue = cairn.where(spread == 0, cairn.zeros_like(hue), hue) + hue_factor
    saturation = spread / cairn.where(high == 0, cairn.ones_like(high), high)
    # a channel is `high`, less what the distance of the hue from the channel's own takes away
    parts = []
    for offset in (5.0, 3.0, 1.0):
        k = (offset + (hue - hue.floor()) * 6.0) % 6.0
        parts.append(high - high * saturation * cairn.minimum(k, 4.0 - k).clamp(0, 1))
    out = cairn.cat(parts, -3)
    return (out * 255.999).clamp(0, 255).to(x.dtype) if not x.is_floating_point() else out


def invert(img):
    x = as_image(img)
    return 1.0 - x if x.is_floating_point() else 255 - x


def _not_negative(name, value):
    if value < 0:
        raise ValueError(f"{name} ({value}) is not non-negative.")


def gaussian_blur(img, kernel_size, sigma=None):
    """kernel_size and sigma: one number, or those of the width and of the height. The border is reflected."""
    x = as_image(img)
    across, down = pair(kernel_size)
    sigmas = pair(sigma) if isinstance(sigma, (list, tuple)) else (sigma, sigma)

    def kernel(size, deviation):
        deviation = deviation if deviation is not None else size * 0.15 + 0.35
        values = [math.exp(-0.5 * ((i - (size - 1) / 2) / deviation) ** 2) for i in range(size)]
        return cairn.tensor([v / sum(values) for v in values])

    y, back = _as_batch(x)
    n, channels, h, w = y.shape
    y = cairn.nn.functional.pad(y, (across // 2, across // 2, down // 2, down // 2), mode="reflect")
    y = y.reshape(n * channels, 1, *y.shape[-2:])
    y = cairn.nn.functional.conv2d(y, kernel(down, sigmas[-1]).reshape(1, 1, -1, 1))
    y = cairn.nn.functional.conv2d(y, kernel(across, sigmas[0]).reshape(1, 1, 1, -1))
    return back(y.reshape(n, channels, h, w))


def erase(img, i, j, h, w, v, inplace=False):
    """Sets a rectangle to v."""
    out = img if inplace else img.clone()
    out[..., i : i + h, j : j + w] = v
    return out
