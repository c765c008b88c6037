"""Image files: PNG and JPEG where the system has libpng and libjpeg; PBM, PGM and PPM always."""

from .. import _C

__all__ = ["ImageReadMode", "decode_image", "read_image", "write_jpeg", "write_png"]


class ImageReadMode:
    UNCHANGED, GRAY, RGB = 0, 1, 3


def read_image(path, mode=ImageReadMode.RGB):
    """An image as uint8 (channels, height, width): 3 channels, or 1 for GRAY."""
    channels = {"GRAY": 1, "RGB": 3, "UNCHANGED": 3}.get(mode, mode)
    return _C.read_image(str(path), int(channels) or 3)


decode_image = read_image


def write_png(input, filename, compression_level=6):
    """Writes uint8 (channels, height, width), 1 or 3 channels."""
    _C.write_image(input, str(filename), 0)


def write_jpeg(input, filename, quality=75):
    _C.write_image(input, str(filename), quality)
