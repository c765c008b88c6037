"""The state of the random numbers: torch.random."""

from contextlib import contextmanager

import cairn

from . import _C
from ._C import initial_seed, manual_seed

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def seed():
    """Seeds the random numbers from the system's, and returns the seed."""
    import random

    value = random.SystemRandom().getrandbits(63)
    manual_seed(value)
    return value


def get_rng_state():
    """The state of this thread's random numbers as 16 bytes, uint8: seed and place."""
    state = _C.random_state()
    data = b"".join(int(state[name]).to_bytes(8, "little") for name in ("seed", "stream"))
    return cairn.tensor(list(data), dtype=cairn.uint8)


def set_rng_state(new_state):
    """Continues from a state of get_rng_state."""
    data = bytes(new_state.tolist())
    if len(data) != 16:
        raise RuntimeError(f"set_rng_state: a state has 16 bytes, got {len(data)}")
    seed, stream = (int.from_bytes(part, "little") for part in (data[:8], data[8:]))
    _C.set_random_state({"seed": str(seed), "stream": str(stream)})


@contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cpu"):
    """The random numbers after the block are those that would have followed without it."""
    if not enabled:
        yield
        return
    before = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(before)


class _Default:
    """The random numbers that functions use without a generator."""

    device = cairn.device("cpu")
    manual_seed = staticmethod(manual_seed)
    initial_seed = staticmethod(initial_seed)
    seed = staticmethod(seed)
    get_state = staticmethod(get_rng_state)
    set_state = staticmethod(set_rng_state)


default_generator = _Default()
