"""Transforms of images on their way into a batch, as torchvision.transforms.

Random numbers are those of the thread that runs the transform: the same seed and the same number of workers give the
same images.
"""

import math

import cairn

from . import functional
from . import functional as F
from .functional import InterpolationMode

__all__ = ["CenterCrop", "ColorJitter", "Compose", "ConvertImageDtype", "FiveCrop", "GaussianBlur", "Grayscale",
           "Identity", "InterpolationMode", "Lambda", "Normalize", "PILToTensor", "Pad", "RandomApply", "RandomChoice",
           "RandomCrop", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomInvert", "RandomOrder",
           "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip", "Resize", "ToDtype", "ToImage", "ToPILImage",
           "ToTensor", "functional"]


def _uniform(low=0.0, high=1.0):
    return low + (high - low) * cairn.rand(1).item()


def _below(n):
    return int(cairn.randint(0, n, (1,)).item()) if n > 1 else 0


def batched(transform, images):
    """A Compose of many images at once; None: one of its steps treats each image in its own way."""
    steps = transform.transforms
    if not all(hasattr(type(t), "batch") for t in steps):
        return None
    for t in steps:
        images = t.batch(images)
    return images


class Transform:
    """Base class: derived classes give forward(image)."""

    def __call__(self, image):
        return self.forward(image)

    def forward(self, image):
        raise NotImplementedError

    def __repr__(self):
        inside = ", ".join(f"{k}={v}" for k, v in self.__dict__.items() if not k.startswith("_"))
        return f"{type(self).__name__}({inside})"


class _Same(Transform):
    """A transform that does the same to every image, and so to many at once."""

    def batch(self, images):
        return self.forward(images)


class Compose:
    """One transform after the other."""

    def __init__(self, transforms):
        self.transforms = list(transforms)

    def __call__(self, image):
        for t in self.transforms:
            image = t(image)
        return image

    def __repr__(self):
        return "Compose(\n" + "".join(f"    {t}\n" for t in self.transforms) + ")"


class Lambda(Transform):
    def __init__(self, lambd):
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__}")
        self.lambd = lambd

    def forward(self, image):
        return self.lambd(image)


class Identity(_Same):
    def forward(self, image):
        return image


# ---- kinds and values ----


class ToTensor(_Same):
    """float32 from 0 to 1 of an image of bytes."""

    def forward(self, image):
        return F.to_tensor(image)


class PILToTensor(_Same):
    """uint8 (channels, height, width)."""

    def forward(self, image):
        return F.pil_to_tensor(image)


class ToImage(PILToTensor):
    """v2's name for it."""


class ToPILImage(Transform):
    def __init__(self, mode=None):
        self.mode = mode

    def forward(self, image):
        return F.to_pil_image(image, self.mode)


class ConvertImageDtype(_Same):
    def __init__(self, dtype):
        self.dtype = dtype

    def forward(self, image):
        return F.convert_image_dtype(image, self.dtype)


class ToDtype(_Same):
    """v2: another dtype, with scale=True to the range of that dtype."""

    def __init__(self, dtype, scale=False):
        self.dtype, self.scale = dtype, scale

    def forward(self, image):
        return F.convert_image_dtype(image, self.dtype) if self.scale else image.to(self.dtype)


class Normalize(_Same):
    """(x - mean) / std, by channel."""

    def __init__(self, mean, std, inplace=False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, image):
        return F.normalize(image, self.mean, self.std, self.inplace)


class Grayscale(_Same):
    def __init__(self, num_output_channels=1):
        self.num_output_channels = num_output_channels

    def forward(self, image):
        return F.rgb_to_grayscale(image, self.num_output_channels)


# ---- places ----


class Resize(_Same):
    def __init__(self, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True):
        self.size, self.interpolation, self.max_size, self.antialias = size, interpolation, max_size, antialias

    def forward(self, image):
        return F.resize(image, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(_Same):
    def __init__(self, size):
        self.size = F.pair(size)

    def forward(self, image):
        return F.center_crop(image, self.size)


class Pad(_Same):
    def __init__(self, padding, fill=0, padding_mode="constant"):
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, image):
        return F.pad(image, self.padding, self.fill, self.padding_mode)


class FiveCrop(Transform):
    """The four corners and the centre."""

    def __init__(self, size):
        self.size = F.pair(size)

    def forward(self, image):
        (_, h, w), (height, width) = F.get_dimensions(image), self.size
        if height > h or width > w:
            raise ValueError(f"Requested crop size {self.size} is bigger than input size {(h, w)}")
        corners = [(0, 0), (0, w - width), (h - height, 0), (h - height, w - width)]
        return (*(F.crop(image, top, left, height, width) for top, left in corners), F.center_crop(image, self.size))


class RandomCrop(Transform):
    def __init__(self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant"):
        self.size, self.padding, self.pad_if_needed = F.pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    def _padded(self, image):
        x = F.as_image(image)
        if self.padding is not None:
            x = F.pad(x, self.padding, self.fill, self.padding_mode)
        height, width = self.size
        if self.pad_if_needed:
            over, up = max(width - x.shape[-1], 0), max(height - x.shape[-2], 0)
            if over or up:
                x = F.pad(x, [over, up], self.fill, self.padding_mode)
        h, w = x.shape[-2:]
        if h < height or w < width:
            raise ValueError(f"Required crop size {(height, width)} is larger than input image size {(h, w)}")
        return x, h - height + 1, w - width + 1

    def forward(self, image):
        x, tops, lefts = self._padded(image)
        return F.crop(x, _below(tops), _below(lefts), *self.size)

    def batch(self, images):
        """A rectangle of its own from each image."""
        x, tops, lefts = self._padded(images)
        n, channels = x.shape[:2]
        rows = cairn.randint(0, tops, (n, 1, 1, 1)) + cairn.arange(self.size[0]).reshape(1, 1, -1, 1)
        columns = cairn.randint(0, lefts, (n, 1, 1, 1)) + cairn.arange(self.size[1]).reshape(1, 1, 1, -1)
        return x[cairn.arange(n).reshape(-1, 1, 1, 1), cairn.arange(channels).reshape(1, -1, 1, 1), rows, columns]


class _Flip(Transform):
    def __init__(self, p=0.5):
        self.p = p

    def forward(self, image):
        return self._flip(image) if _uniform() < self.p else image

    def batch(self, images):
        turned = cairn.rand(images.shape[0], 1, 1, 1) < self.p
        return cairn.where(turned, self._flip(images), images)


class RandomHorizontalFlip(_Flip):
    _flip = staticmethod(F.hflip)


class RandomVerticalFlip(_Flip):
    _flip = staticmethod(F.vflip)


class RandomResizedCrop(Transform):
    """A crop with a share of the area and a ratio of the sides from these ranges, resized."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=InterpolationMode.BILINEAR,
                 antialias=True):
        self.size, self.scale, self.ratio = F.pair(size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    @staticmethod
    def get_params(image, scale, ratio):
        _, h, w = F.get_dimensions(image)
        for _ in range(10):
            area = h * w * _uniform(*scale)
            aspect = math.exp(_uniform(math.log(ratio[0]), math.log(ratio[1])))
            width, height = int(round(math.sqrt(area * aspect))), int(round(math.sqrt(area / aspect)))
            if 0 < width <= w and 0 < height <= h:
                return _below(h - height + 1), _below(w - width + 1), height, width
        low, high = min(ratio), max(ratio)  # the largest in the middle
        width = int(round(h * high)) if w / h > high else w
        height = int(round(w / low)) if w / h < low else h
        return (h - height) // 2, (w - width) // 2, height, width

    def forward(self, image):
        place = self.get_params(image, self.scale, self.ratio)
        return F.resized_crop(image, *place, self.size, self.interpolation, self.antialias)


class RandomRotation(Transform):
    def __init__(self, degrees, interpolation=InterpolationMode.NEAREST, expand=False, center=None, fill=0):
        if isinstance(degrees, (int, float)):
            if degrees < 0:
                raise ValueError("If degrees is a single number, it must be positive.")
            degrees = (-degrees, degrees)
        self.degrees = [float(d) for d in degrees]
        self.interpolation, self.expand, self.center, self.fill = interpolation, expand, center, fill

    def forward(self, image):
        return F.rotate(image, _uniform(*self.degrees), self.interpolation, self.expand, self.center, self.fill)


# ---- colours and noise ----


class ColorJitter(Transform):
    """Factors from [max(0, 1 - x), 1 + x], and a shift of the hue from [-hue, hue], in a random order."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        self.brightness = self._range("brightness", brightness)
        self.contrast = self._range("contrast", contrast)
        self.saturation = self._range("saturation", saturation)
        self.hue = self._range("hue", hue, 0.0, (-0.5, 0.5), False)

    @staticmethod
    def _range(name, value, centre=1.0, bound=(0.0, float("inf")), from_zero=True):
        if isinstance(value, (int, float)):
            if value < 0:
                raise ValueError(f"If {name} is a single number, it must be non negative.")
            value = [centre - value, centre + value]
            if from_zero:
                value[0] = max(value[0], 0.0)
        if not bound[0] <= value[0] <= value[1] <= bound[1]:
            raise ValueError(f"{name} values should be between {bound}, but got {value}.")
        return None if value[0] == value[1] == centre else tuple(value)

    def forward(self, image):
        steps = [(F.adjust_brightness, self.brightness), (F.adjust_contrast, self.contrast),
                 (F.adjust_saturation, self.saturation), (F.adjust_hue, self.hue)]
        for i in cairn.randperm(4).tolist():
            function, limits = steps[i]
            if limits is not None:
                image = function(image, _uniform(*limits))
        return image


class RandomGrayscale(Transform):
    def __init__(self, p=0.1):
        self.p = p

    def forward(self, image):
        return F.rgb_to_grayscale(image, F.get_dimensions(image)[0]) if _uniform() < self.p else image


class RandomInvert(Transform):
    def __init__(self, p=0.5):
        self.p = p

    def forward(self, image):
        return F.invert(image) if _uniform() < self.p else image


class GaussianBlur(Transform):
    def __init__(self, kernel_size, sigma=(0.1, 2.0)):
        self.kernel_size = F.pair(kernel_size)
        if any(k <= 0 or k % 2 == 0 for k in self.kernel_size):
            raise ValueError("Kernel size value should be an odd and positive number.")
        self.sigma = (sigma, sigma) if isinstance(sigma, (int, float)) else tuple(sigma)

    def forward(self, image):
        return F.gaussian_blur(image, self.kernel_size, _uniform(*self.sigma))


class RandomErasing(Transform):
    """With probability p, sets a rectangle to a value, or to noise for value="random"."""

    def __init__(self, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False):
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    def forward(self, image):
        if _uniform() >= self.p:
            return image
        channels, h, w = F.get_dimensions(image)
        for _ in range(10):
            area = h * w * _uniform(*self.scale)
            aspect = math.exp(_uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            height, width = int(round(math.sqrt(area * aspect))), int(round(math.sqrt(area / aspect)))
            if not (height < h and width < w):
                continue
            if self.value == "random":
                value = cairn.randn(channels, height, width)
            elif isinstance(self.value, (list, tuple)):
                value = cairn.tensor([float(v) for v in self.value]).reshape(-1, 1, 1)
            else:
                value = self.value
            return F.erase(image, _below(h - height + 1), _below(w - width + 1), height, width, value, self.inplace)
        return image


# ---- choices ----


class RandomApply(Transform):
    def __init__(self, transforms, p=0.5):
        self.transforms, self.p = transforms, p

    def forward(self, image):
        if _uniform() < self.p:
            for t in self.transforms:
                image = t(image)
        return image


class RandomOrder(Transform):
    def __init__(self, transforms):
        self.transforms = transforms

    def forward(self, image):
        for i in cairn.randperm(len(self.transforms)).tolist():
            image = self.transforms[i](image)
        return image


class RandomChoice(Transform):
    def __init__(self, transforms, p=None):
        self.transforms, self.p = transforms, p

    def forward(self, image):
        if self.p is None:
            which = _below(len(self.transforms))
        else:
            which = int(cairn.multinomial(cairn.tensor([float(v) for v in self.p]), 1).item())
        return self.transforms[which](image)


def __getattr__(name):
    if name == "v2":  # the same transforms; they take images alone
        import importlib

        return importlib.import_module(".v2", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; a function of yours can be a transform "
                         "(Lambda)")
