"""Linear algebra: torch.linalg."""

from . import _C

for _name in [n for n in dir(_C) if n.startswith("linalg_")]:
    globals()[_name[7:]] = getattr(_C, _name)
cross = _C.cross
diagonal = _C.diagonal
matmul = _C.matmul
vander = _C.vander


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """A vector norm, or a matrix norm where ord or dim says so."""
    A = A if dtype is None else _C.cast(A, dtype)
    return _C.linalg_norm(A, None if ord is None else str(ord), dim, keepdim)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The norm of all elements, or along axes."""
    return _C.linalg_vector_norm(x if dtype is None else _C.cast(x, dtype), ord, dim, keepdim)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices."""
    return _C.linalg_matrix_norm(A if dtype is None else _C.cast(A, dtype), str(ord), dim, keepdim)


def multi_dot(tensors):
    """The product of several matrices."""
    product = tensors[0]
    for x in tensors[1:]:
        product = product @ x
    return product
