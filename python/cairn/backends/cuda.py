"""Switches of CUDA, which is not used."""

from contextlib import contextmanager


class _Matmul:
    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = False
    allow_bf16_reduced_precision_reduction = False


matmul = _Matmul()


def is_built():
    return False


def flash_sdp_enabled():
    return False


mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled


def math_sdp_enabled():
    return True


def enable_flash_sdp(enabled):
    """Attention has one kernel for each device, which chooses itself."""


enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp


@contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    yield
