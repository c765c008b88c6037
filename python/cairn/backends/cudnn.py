"""Switches of cuDNN, which is not used."""

from contextlib import contextmanager

enabled = False
deterministic = True
benchmark = False
benchmark_limit = 10
allow_tf32 = False


def is_available():
    return False


def version():
    return None


@contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True):
    yield
