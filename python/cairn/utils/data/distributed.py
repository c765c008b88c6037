"""The name that PyTorch has for this module."""

from .sampler import DistributedSampler

__all__ = ["DistributedSampler"]
