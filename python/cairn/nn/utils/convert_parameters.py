"""Parameters as one vector, and back."""

import cairn


def parameters_to_vector(parameters):
    return cairn.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Gives each parameter its part of the vector."""
    if not isinstance(vec, cairn.Tensor):
        raise TypeError(f"expected cairn.Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[at:at + n].reshape(tuple(p.shape)).detach()
        at += n
