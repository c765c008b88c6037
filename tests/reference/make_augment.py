"""Writes what test_images.c compares augmentations with: augment.txt, torchvision's functions of tensors.

    python tests/reference/make_augment.py          with torch and torchvision

A row has a name, the shape, eight parameters, and the values of the result. The input is (37 k + 11) mod 256, over 255.
"""
from pathlib import Path

import torch
import torchvision.transforms.functional as F
from torchvision.transforms import InterpolationMode, autoaugment

NAMES = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
         "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize"]
MAGNITUDE = 17
rows = []


def row(name, parameters, result):
    parameters = [*parameters, *[0] * (8 - len(parameters))]
    if result.dtype == torch.uint8:
        result = result.float() / 255
    numbers = [f"{v:.6g}" for v in [*parameters, *result.flatten().tolist()]]
    rows.append(" ".join([name, *map(str, result.shape), *numbers]))


def image(c, h, w):
    return torch.tensor([(37 * k + 11) % 256 for k in range(c * h * w)], dtype=torch.uint8).reshape(c, h, w)


def warps(x):
    for name, mode in ("affine", InterpolationMode.BILINEAR), ("affine_nearest", InterpolationMode.NEAREST):
        for p in ((30, 0, 0, 1, 0, 0), (0, 2, -1, 1, 0, 0), (0, 0, 0, 1.3, 0, 0), (0, 0, 0, 1, 20, 0),
                  (-15, 1, 2, 0.8, 10, -5)):
            row(name, p, F.affine(x, p[0], list(p[1:3]), p[3], list(p[4:]), mode))
    corners = [[0, 0], [6, 0], [6, 5], [0, 5]]
    for p in (1, 0, 5, 1, 6, 4, 0, 5), (2, 2, 4, 0, 5, 3, 1, 5):
        ends = [list(p[i:i + 2]) for i in (0, 2, 4, 6)]
        row("perspective", p, F.perspective(x, corners, ends, InterpolationMode.BILINEAR))


def colours(x, whole):
    for height, width, sigma in (3, 5, 0.7), (5, 3, 2.0):
        row("blur", (height, width, sigma), F.gaussian_blur(x, [width, height], [sigma, sigma]))
    for factor in 0, 0.5, 1.8:
        row("sharpness", (factor,), F.adjust_sharpness(x, factor))
    row("autocontrast", (), F.autocontrast(x))
    row("solarize", (0.4,), F.solarize(x, 0.4))
    row("invert", (), F.invert(x))
    row("grey", (), F.rgb_to_grayscale(x, 3))
    for bits in 1, 3, 8:
        row("posterize", (bits,), F.posterize(whole, bits))
    row("equalize", (), F.equalize(image(1, 20, 20)))


def rand_augment(x, whole):
    space = autoaugment.RandAugment(1, MAGNITUDE)._augmentation_space(31, (6, 7))
    for number, name in enumerate(NAMES):
        strengths, signed = space[name]
        strength = float(strengths[MAGNITUDE]) if strengths.ndim else 0.0
        if name == "Solarize":
            strength /= 255 if strength > 1 else 1
        for sign in (1, -1) if signed else (1,):
            given = whole if name in ("Posterize", "Equalize") else x
            row("augment", (number, sign), autoaugment._apply_op(given, name, sign * strength,
                                                                 InterpolationMode.NEAREST, None))


whole = image(3, 6, 7)
warps(whole.float() / 255)
colours(whole.float() / 255, whole)
rand_augment(whole.float() / 255, whole)
(Path(__file__).resolve().parent / "augment.txt").write_text("\n".join(rows) + "\n")
