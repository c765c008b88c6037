"""Fourier transforms. There are no complex tensors: a last axis of 2 holds real and imaginary parts."""

from ._C import fft, fftfreq, fftn, fftshift, ifft, ifftn, ifftshift, irfft, rfft, rfftfreq, rfftn  # noqa: F401
