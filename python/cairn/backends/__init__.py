"""Libraries that PyTorch uses. None of them is used here; their switches are accepted and have no effect."""

from . import cuda, cudnn, mkl, mkldnn, mps, openmp, quantized

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "quantized"]
