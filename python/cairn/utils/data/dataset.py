"""Datasets: items by number, or one after the other."""

from bisect import bisect_right
from itertools import accumulate

import cairn


class Dataset:
    """Items by number: derived classes give __getitem__(index), and __len__ for most uses."""

    def __class_getitem__(cls, item):
        return cls  # Dataset[Tensor], for type checkers

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Items one after the other: derived classes give __iter__. Each worker has an iterator of its own."""

    def __iter__(self):
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Item i is element i of each tensor."""

    def __init__(self, *tensors):
        if any(len(t) != len(tensors[0]) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def _whole_batch(self, indices):
        """A batch, gathered at once: see DataLoader. None: a derived class has items of its own."""
        if type(self).__getitem__ is not TensorDataset.__getitem__:
            return None
        at = cairn.tensor(indices, dtype=cairn.int64)
        return [t[at] for t in self.tensors]

    def __len__(self):
        return len(self.tensors[0])


class StackDataset(Dataset):
    """Item i is a tuple, or a dict, of items i of several datasets."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset takes datasets either by position or by name, and at least one")
        self.datasets = args or kwargs
        every = args or list(kwargs.values())
        self._length = len(every[0])
        if any(len(d) != self._length for d in every):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """The items of several datasets, one dataset after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))

    @staticmethod
    def cumsum(sequence):
        return list(accumulate(len(d) for d in sequence))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class ChainDataset(IterableDataset):
    """The items of several iterable datasets, one dataset after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from d

    def __len__(self):
        return sum(len(d) for d in self.datasets)


class Subset(Dataset):
    """The items of a dataset that have these indices."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        own = [self.indices[i] for i in indices]
        many = getattr(self.dataset, "__getitems__", None)
        return many(own) if callable(many) else [self.dataset[i] for i in own]

    def _whole_batch(self, indices):
        whole = getattr(self.dataset, "_whole_batch", None)
        if whole is None or type(self) is not Subset:
            return None
        return whole([self.indices[i] for i in indices])

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Random parts without common items. lengths: counts, or fractions that sum to 1."""
    import math

    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        fractions, lengths = lengths, []
        for i, f in enumerate(fractions):
            if f < 0 or f > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
            lengths.append(math.floor(total * f))
        for i in range(total - sum(lengths)):  # what is left goes to the parts in turn
            lengths[i % len(lengths)] += 1
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = cairn.randperm(total, **({} if generator is None else {"generator": generator})).tolist()
    ends = list(accumulate(lengths))
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, lengths)]
