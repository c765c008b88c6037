"""Intel's GPUs are devices "gpu" like all others."""


def is_available():
    return False


def device_count():
    return 0


def manual_seed(seed):
    """cairn.manual_seed seeds all devices."""


def empty_cache():
    """There is nothing to empty."""


def synchronize():
    """There is nothing to wait for."""


def current_allocated_memory():
    return 0
