"""Sequences of different lengths: filled up to one length, or packed one step after the other."""

from collections import namedtuple

import cairn

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence",
           "unpad_sequence", "pack_sequence", "unpack_sequence"]

_Packed = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Packed):
    """All first steps, then all second steps, and so on, the longest sequence first.

    batch_sizes[t] sequences have a step t. sorted_indices: which sequence comes first, second, ...; None: they were in
    order.
    """

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # the former (data, batch_sizes) as one tuple
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        order = [None if i is None else i.to(data.device) for i in self[2:]]
        return type(self)(data, self.batch_sizes, *order)

    def _with(self, data):
        return type(self)(data, *self[1:])

    def cpu(self):
        return self.to("cpu")

    def cuda(self, *args, **kwargs):
        return self._with(self.data.cuda(*args, **kwargs))

    def double(self):
        return self._with(self.data.double())

    def float(self):
        return self._with(self.data.float())

    def half(self):
        return self._with(self.data.half())

    def long(self):
        return self._with(self.data.long())

    def int(self):
        return self._with(self.data.int())

    def short(self):
        return self._with(self.data.short())

    def char(self):
        return self._with(self.data.to(cairn.int8))

    def byte(self):
        return self._with(self.data.to(cairn.uint8))

    @property
    def is_cuda(self):
        return False

    def is_pinned(self):
        return False

    def pin_memory(self):
        return self


def invert_permutation(permutation):
    return None if permutation is None else permutation.argsort()


# ---- where elements lie; sizes are the batch sizes as a list ----


def _lengths_of(sizes):
    """The lengths of the sequences, the longest first."""
    return [sum(1 for n in sizes if n > b) for b in range(sizes[0])]


def _pad_index(sizes, device):
    """For each place of (T, B) the row of the packed data; behind the ends, row 0."""
    index, start = [], 0
    for n in sizes:
        index += list(range(start, start + n)) + [0] * (sizes[0] - n)
        start += n
    return cairn.tensor(index, dtype=cairn.int64, device=device)


def _pack_index(sizes, device):
    """For each row of the packed data its place in the flat (T·B)."""
    return cairn.tensor([t * sizes[0] + b for t, n in enumerate(sizes) for b in range(n)], dtype=cairn.int64,
                        device=device)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs (T, B, ...), or (B, T, ...) with batch_first. enforce_sorted: lengths must be descending."""
    lengths = lengths.tolist() if isinstance(lengths, cairn.Tensor) else [int(n) for n in lengths]
    order = None
    if not enforce_sorted:
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        lengths = [lengths[i] for i in order]
        order = cairn.tensor(order, dtype=cairn.int64, device=input.device)
        input = input.index_select(0 if batch_first else 1, order)
    x = input.transpose(0, 1) if batch_first else input
    steps, batch = x.shape[:2]
    if len(lengths) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size="
                           f"{batch})")
    if not lengths or min(lengths) <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is "
                           "<= 0")
    if any(a < b for a, b in zip(lengths, lengths[1:])):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
                           "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
                           "requirement if you do not need ONNX exportability.")
    if lengths[0] > steps:
        raise RuntimeError(f"Expected lengths of at most {steps}, the steps of the input, but got {lengths[0]}")
    sizes = [sum(1 for n in lengths if n > t) for t in range(lengths[0])]
    rest = tuple(x.shape[2:])
    data = x.reshape(steps * batch, *rest).index_select(0, _pack_index(sizes, input.device))
    return PackedSequence(data, cairn.tensor(sizes, dtype=cairn.int64), order)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(the sequences filled up to the longest, or to total_length; their lengths)."""
    data, batch_sizes, _, back = sequence
    sizes = batch_sizes.tolist()
    steps, batch, lengths = len(sizes), sizes[0], _lengths_of(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but "
                             f"got total_length={total_length} and max sequence length being {steps}")
        steps = total_length
        sizes = sizes + [0] * (total_length - len(sizes))
    rest = tuple(data.shape[1:])
    x = data.index_select(0, _pad_index(sizes, data.device)).reshape(steps, batch, *rest)
    behind = cairn.tensor([[t >= n for n in lengths] for t in range(steps)], device=data.device)
    x = x.masked_fill(behind.reshape(steps, batch, *[1] * len(rest)), padding_value)
    lengths = cairn.tensor(lengths, dtype=cairn.int64)
    if back is not None:
        x, lengths = x.index_select(1, back), lengths.index_select(0, back.to(lengths.device))
    return (x.transpose(0, 1) if batch_first else x), lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences (T_k, ...) filled up to the longest: (T, n, ...), with batch_first (n, T, ...)."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"padding_side should be either 'right' or 'left', but got {padding_side}")
    if isinstance(sequences, cairn.Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError("pad_sequence: Expected iterable for input sequences, but got arg of type: "
                           f"{type(sequences)}")
    sequences = list(sequences)
    longest = max(s.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        missing = longest - s.shape[0]
        pair = [missing, 0] if padding_side == "left" else [0, missing]
        padded.append(cairn._C.pad(s, [0, 0] * (s.dim() - 1) + pair, "constant", padding_value) if missing else s)
    return cairn.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences, without what filled them up."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    lengths = lengths.tolist() if isinstance(lengths, cairn.Tensor) else lengths
    return [x[i][:n] for i, n in enumerate(lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
