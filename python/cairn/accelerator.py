"""The GPU of this machine, if the program works on one: torch.accelerator.

A GPU is opened by set_default_device("gpu") or device="gpu", never by a question.
"""

import cairn

from . import _C

__all__ = ["current_accelerator", "current_device_index", "device_count", "is_available", "set_device_index",
           "synchronize"]


def _device():
    d = cairn.get_default_device()
    return d if d.type == "gpu" else None


def is_available():
    """Whether the default device is a GPU: then scripts that ask move their tensors there."""
    return _device() is not None


def device_count():
    return 1 if is_available() else 0


def current_accelerator(check_available=False):
    """The device of the GPU; None: there is none."""
    return _device()


def current_device_index():
    d = _device()
    if d is None:
        raise RuntimeError("cairn.accelerator: the default device is the CPU; cairn.set_default_device('gpu') opens a "
                           "GPU")
    return d.index or 0


current_device_idx = current_device_index


def set_device_index(device):
    cairn.set_default_device(cairn.device("gpu", device) if isinstance(device, int) else device)


set_device_idx = set_device_index


def synchronize(device=None):
    """Computes everything pending."""
    _C._eval_all()


def memory_allocated(device=None):
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def empty_cache():
    """There is nothing to empty."""


def reset_peak_memory_stats(device=None):
    """There are no such statistics."""
