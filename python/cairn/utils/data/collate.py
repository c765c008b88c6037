"""Batches from items. NumPy's objects are known by their type's module: NumPy is never imported here."""

from collections.abc import Mapping, Sequence

import cairn
from ..._C import Tensor


def _is_numpy(x, *names):
    t = type(x)
    if t.__module__ != "numpy":
        return False
    return t.__name__ in names if names else True


def default_convert(data):
    """NumPy arrays as tensors, at any depth; everything else as it is."""
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        if _is_numpy(data, "ndarray") and data.dtype.kind in "SaUO":
            return data
        return cairn.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuilt(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [default_convert(d) for d in data])
    return data


def _rebuilt(like, value):
    """value as the type of `like`, if that type can be made of it."""
    try:
        return type(like)(value)
    except TypeError:
        return value


def _collate_numpy(batch):
    first = batch[0]
    if not _is_numpy(first, "ndarray"):
        return cairn.as_tensor([b.item() for b in batch], dtype=cairn.as_tensor(first).dtype)
    if first.dtype.kind in "SaUO":
        raise TypeError(_refusal(first.dtype))
    return cairn.stack([cairn.as_tensor(b) for b in batch], 0)


def _refusal(what):
    return f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {what}"


def default_collate(batch):
    """A batch: tensors are stacked, numbers become tensors, dicts, lists and tuples are collated member by member."""
    first = batch[0]
    if isinstance(first, Tensor):
        return cairn.stack(list(batch), 0)
    if _is_numpy(first):
        return _collate_numpy(batch)
    if isinstance(first, float):
        return cairn.tensor(list(batch), dtype=cairn.float64)
    if isinstance(first, int):
        return cairn.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _rebuilt(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(column)) for column in zip(*batch)))
    if isinstance(first, Sequence):
        batch = list(batch)
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(list(column)) for column in zip(*batch)]
        return columns if isinstance(first, tuple) else _rebuilt(first, columns)
    raise TypeError(_refusal(type(first)))
