"""CUDA is not used: a GPU of any maker is the device "gpu" (cairn.accelerator).

Questions have their honest answers. What scripts call whether or not there is a GPU does nothing.
"""

from . import amp

__all__ = ["amp", "is_available", "device_count", "manual_seed", "manual_seed_all", "empty_cache", "synchronize"]


def is_available():
    return False


_initialized = False  # some programs ask this, and not the function


def is_initialized():
    return False


def is_bf16_supported(including_emulation=True):
    return False


def device_count():
    return 0


def _none(what):
    raise RuntimeError(f"cairn.cuda.{what}: there are no CUDA devices here; a GPU of any maker is the device 'gpu'")


def init():
    _none("init()")


def current_device():
    _none("current_device()")


def set_device(device):
    _none("set_device()")


def get_device_name(device=None):
    _none("get_device_name()")


def get_device_properties(device=None):
    _none("get_device_properties()")


def get_device_capability(device=None):
    _none("get_device_capability()")


def mem_get_info(device=None):
    _none("mem_get_info()")


def manual_seed(seed):
    """cairn.manual_seed seeds all devices."""


def manual_seed_all(seed):
    """cairn.manual_seed seeds all devices."""


def seed():
    """cairn.manual_seed seeds all devices."""


def seed_all():
    """cairn.manual_seed seeds all devices."""


def empty_cache():
    """There is nothing to empty."""


def ipc_collect():
    """There is nothing to collect."""


def synchronize(device=None):
    """There is nothing to wait for."""


def memory_allocated(device=None):
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = memory_allocated


def reset_peak_memory_stats(device=None):
    """There is no memory of CUDA."""


reset_max_memory_allocated = reset_peak_memory_stats


def memory_summary(device=None, abbreviated=False):
    return ""


class _Unavailable:
    def __init__(self, *args, **kwargs):
        _none(type(self).__name__)


class Event(_Unavailable):
    pass


class Stream(_Unavailable):
    pass


class CUDAGraph(_Unavailable):
    pass


class device:
    """with cairn.cuda.device(i): has no effect."""

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False
