"""Datasets, samplers and loaders."""

import collections
import threading
import time

import numpy as np
import pytest

import cairn
from cairn.utils.data import (BatchSampler, ChainDataset, ConcatDataset, DataLoader, Dataset, DistributedSampler,
                              IterableDataset, RandomSampler, SequentialSampler, StackDataset, Subset,
                              SubsetRandomSampler, TensorDataset, WeightedRandomSampler, default_collate,
                              default_convert, get_worker_info, random_split)


class Squares(Dataset):
    def __init__(self, n=23, wait=0.0):
        self.n, self.wait = n, wait

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError(i)
        time.sleep(self.wait * ((i * 7) % 3))
        return cairn.tensor([float(i), float(i * i)]), i


class Count(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        step, first = (1, 0) if info is None else (info.num_workers, info.id)
        return iter(range(first, self.n, step))


def flat(batches):
    return [i for x, y in batches for i in y.tolist()]


# ---- datasets ----


def test_datasets():
    x, y = cairn.arange(10.0).reshape(5, 2), cairn.arange(5)
    d = TensorDataset(x, y)
    assert len(d) == 5 and d[2][0].tolist() == [4, 5] and d[2][1].item() == 2
    with pytest.raises(AssertionError):
        TensorDataset(x, cairn.arange(4))
    both = d + Squares(3)
    assert isinstance(both, ConcatDataset) and len(both) == 8 and both[6][1] == 1 and both[-1][1] == 2
    assert both.cumulative_sizes == [5, 8]
    sub = Subset(d, [4, 0])
    assert len(sub) == 2 and sub[0][1].item() == 4
    assert list(ChainDataset([Count(2), Count(3)])) == [0, 1, 0, 1, 2]
    assert isinstance(Count(1) + Count(2), ChainDataset)
    stacked = StackDataset(a=Squares(3), b=Squares(3))
    assert stacked[1]["a"][1] == 1 and len(stacked) == 3


def test_random_split():
    parts = random_split(Squares(10), [7, 3])
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(parts[0].indices + parts[1].indices) == list(range(10))
    assert [len(p) for p in random_split(range(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    assert [len(p) for p in random_split(range(11), [0.5, 0.5])] == [6, 5]
    again = [random_split(range(50), [25, 25], generator=cairn.Generator().manual_seed(3))[0].indices for _ in range(2)]
    assert again[0] == again[1] != list(range(25))
    with pytest.raises(ValueError):
        random_split(range(10), [5, 4])


# ---- samplers ----


def test_samplers():
    assert list(SequentialSampler(range(4))) == [0, 1, 2, 3]
    assert sorted(RandomSampler(range(20))) == list(range(20))
    assert len(list(RandomSampler(range(5), num_samples=12))) == 12
    drawn = list(RandomSampler(range(5), replacement=True, num_samples=50))
    assert len(drawn) == 50 and set(drawn) <= set(range(5)) and len(set(drawn)) > 1
    assert sorted(SubsetRandomSampler([3, 5, 9])) == [3, 5, 9]
    weighted = list(WeightedRandomSampler([0.0, 1.0, 3.0], 4000))
    assert weighted.count(0) == 0 and 2700 < weighted.count(2) < 3300
    assert sorted(WeightedRandomSampler([1, 1, 1], 3, replacement=False)) == [0, 1, 2]
    batches = BatchSampler(range(7), 3, False)
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6]] and len(batches) == 3
    assert len(BatchSampler(range(7), 3, True)) == 2
    with pytest.raises(ValueError):
        BatchSampler(range(7), 0, False)


def test_distributed_sampler():
    torch = pytest.importorskip("torch")
    for n, world, drop in ((10, 3, False), (10, 3, True), (2, 5, False), (12, 4, False)):
        for rank in range(world):
            mine = DistributedSampler(range(n), world, rank, shuffle=False, drop_last=drop)
            theirs = torch.utils.data.DistributedSampler(range(n), world, rank, shuffle=False, drop_last=drop)
            assert list(mine) == list(theirs) and len(mine) == len(theirs)
    parts = [list(DistributedSampler(range(12), 3, r)) for r in range(3)]
    assert sorted(sum(parts, [])) == list(range(12))
    s = DistributedSampler(range(12), 3, 0)
    first = list(s)
    s.set_epoch(1)
    assert list(s) != first


# ---- batches of items ----


def test_collate():
    Pair = collections.namedtuple("Pair", "a b")
    out = default_collate([{"x": 1, "y": [1.5, "a"]}, {"x": 2, "y": [2.5, "b"]}])
    assert out["x"].tolist() == [1, 2] and out["x"].dtype == cairn.int64
    assert out["y"][0].dtype == cairn.float64 and out["y"][1] == ["a", "b"]
    pair = default_collate([Pair(cairn.zeros(2), 1), Pair(cairn.ones(2), 2)])
    assert type(pair) is Pair and pair.a.shape == (2, 2)
    assert isinstance(default_collate([(1, 2), (3, 4)]), list)
    arrays = default_collate([np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)])
    assert arrays.shape == (2, 2, 3) and arrays.dtype == cairn.float32
    assert default_collate([np.float64(1), np.float64(2)]).dtype == cairn.float64
    assert default_collate([np.int32(1), np.int32(2)]).dtype == cairn.int32
    assert default_collate([True, False]).dtype == cairn.bool
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="default_collate"):
        default_collate([object()])
    converted = default_convert({"a": np.arange(3), "b": ("x", 1)})
    assert converted["a"].tolist() == [0, 1, 2] and converted["b"] == ["x", 1]


# ---- loaders ----


def test_batches_in_order():
    loader = DataLoader(Squares(), batch_size=4)
    assert len(loader) == 6
    batches = list(loader)
    assert flat(batches) == list(range(23)) and batches[0][0].shape == (4, 2) and batches[-1][0].shape == (3, 2)
    assert batches[1][0][1].tolist() == [5, 25]
    assert len(list(DataLoader(Squares(), batch_size=4, drop_last=True))) == 5 == len(
        DataLoader(Squares(), batch_size=4, drop_last=True))


def test_a_seed_is_an_order():
    def order(workers=0, **kwargs):
        cairn.manual_seed(5)
        return flat(DataLoader(Squares(), batch_size=4, shuffle=True, num_workers=workers, **kwargs))

    first = order()
    assert sorted(first) == list(range(23)) != first and order() == first
    assert order(workers=2) == first and order(workers=3, prefetch_factor=4) == first
    loader = DataLoader(Squares(), batch_size=4, shuffle=True)
    assert flat(loader) != flat(loader)
    own = [flat(DataLoader(Squares(), 4, True, generator=cairn.Generator().manual_seed(1))) for _ in range(2)]
    assert own[0] == own[1]


def test_tensor_dataset_is_gathered_at_once():
    x, y = cairn.randn(50, 3), cairn.arange(50)
    for data in (TensorDataset(x, y), Subset(TensorDataset(x, y), list(range(49, -1, -1)))):
        cairn.manual_seed(1)
        batches = list(DataLoader(data, batch_size=8, shuffle=True))
        assert isinstance(batches[0], list) and sorted(flat(batches)) == list(range(50))
        for bx, by in batches:
            np.testing.assert_array_equal(bx.numpy(), x.numpy()[by.numpy()])


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_workers_keep_the_order(workers):
    batches = list(DataLoader(Squares(wait=0.002), batch_size=3, num_workers=workers))
    assert flat(batches) == list(range(23))
    assert (batches[2][0].sum() + 0 * batches[1][0].sum()).item() == sum(i + i * i for i in (6, 7, 8))


def test_workers_know_themselves_and_end():
    seen = []
    before = threading.active_count()

    class Known(Squares):
        def __getitem__(self, i):
            info = get_worker_info()
            return info.id, info.num_workers, i

    loader = DataLoader(Known(8), batch_size=2, num_workers=2, worker_init_fn=seen.append)
    ids = [b[0].tolist() for b in loader]
    assert ids == [[0, 0], [1, 1], [0, 0], [1, 1]] and sorted(seen) == [0, 1]
    assert get_worker_info() is None
    for batch in DataLoader(Squares(500), batch_size=1, num_workers=2):
        break
    del batch
    for _ in range(200):
        if threading.active_count() <= before:
            break
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_errors_of_workers():
    class Broken(Squares):
        def __getitem__(self, i):
            if i == 5:
                raise KeyError("item five")
            return super().__getitem__(i)

    loader = iter(DataLoader(Broken(), batch_size=2, num_workers=2))
    next(loader), next(loader)
    with pytest.raises(KeyError, match="(?s)DataLoader worker 0.*Traceback.*item five"):
        next(loader)
    assert next(loader)[1].tolist() == [6, 7]

    def bad_init(worker):
        raise ValueError("no data here")

    with pytest.raises(ValueError, match="no data here"):
        list(DataLoader(Squares(), num_workers=1, worker_init_fn=bad_init))


def test_timeout():
    with pytest.raises(RuntimeError, match="timed out"):
        list(DataLoader(Squares(wait=0.5), batch_size=3, num_workers=1, timeout=0.1))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_streams(workers):
    batches = [b.tolist() for b in DataLoader(Count(20), batch_size=4, num_workers=workers)]
    assert sorted(sum(batches, [])) == list(range(20))
    if workers < 2:
        assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19]]
    assert sorted(DataLoader(Count(7), batch_size=None, num_workers=workers)) == list(range(7))
    dropped = [len(b) for b in DataLoader(Count(22), batch_size=4, drop_last=True, num_workers=workers)]
    assert set(dropped) == {4}


def test_stream_whose_copies_are_changed():
    """What PyTorch's documentation does: worker_init_fn gives each worker's dataset a part."""

    class Range(IterableDataset):
        def __init__(self, start, end):
            self.start, self.end = start, end

        def __iter__(self):
            return iter(range(self.start, self.end))

    def init(worker):
        info = get_worker_info()
        d = info.dataset
        per = (d.end - d.start) // info.num_workers
        d.start = d.start + worker * per
        d.end = d.start + per

    data = Range(0, 12)
    loader = DataLoader(data, 2, num_workers=3, worker_init_fn=init)
    assert sorted(i for batch in loader for i in batch.tolist()) == list(range(12))
    assert (data.start, data.end) == (0, 12)


def test_samplers_and_collate_of_the_program():
    loader = DataLoader(Squares(), sampler=[3, 1, 2], batch_size=2, collate_fn=lambda items: [i for _, i in items])
    assert list(loader) == [[3, 1], [2]]
    loader = DataLoader(Squares(), batch_sampler=[[0, 1], [5]])
    assert flat(loader) == [0, 1, 5] and len(loader) == 2
    assert [y for _, y in DataLoader(Squares(3), batch_size=None)] == [0, 1, 2]


def test_random_numbers_of_workers_repeat():
    class Noise(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return cairn.rand(2)

    def values():
        cairn.manual_seed(3)
        return [b.tolist() for b in DataLoader(Noise(), batch_size=2, num_workers=2)]

    first = values()
    assert first == values()
    assert len({str(b) for b in first}) == 3


def test_training_from_workers():
    x = cairn.randn(64, 4)
    data = TensorDataset(x, (x.sum(1, keepdim=True) > 0).float())
    w = cairn.zeros(4, 1, requires_grad=True)
    opt = cairn.optim.SGD([w], lr=0.5)
    for _ in range(5):
        for bx, by in DataLoader(data, 16, True, num_workers=2):
            opt.zero_grad()
            cairn.nn.functional.binary_cross_entropy_with_logits(bx @ w, by).backward()
            opt.step()
    with cairn.no_grad():
        assert (((x @ w) > 0).float() == data.tensors[1]).float().mean().item() > 0.9


def test_workers_use_tensors_of_the_main_thread_while_it_computes():
    class Shifted(Dataset):
        """The data belongs to the main thread, the mean is made by the worker."""

        def __init__(self):
            self.data = cairn.randn(96, 64)

        def __len__(self):
            return 96

        def __getitem__(self, i):
            mean = cairn.tensor([0.5] * 64)
            return ((self.data[i] - mean) * 2).sum(), self.data[i].tolist()[0]

    data = Shifted()
    want = ((data.data - 0.5) * 2).sum(1).numpy()
    w = cairn.randn(64, 64, requires_grad=True)
    opt = cairn.optim.Adam([w])
    for _ in range(3):
        at = 0
        for sums, first in DataLoader(data, 8, num_workers=3):
            for _ in range(3):
                opt.zero_grad()
                (cairn.tanh(data.data @ w) ** 2).mean().backward()
                opt.step()
            np.testing.assert_allclose(sums.numpy(), want[at : at + 8], rtol=1e-4, atol=1e-4)
            at += 8


@pytest.mark.parametrize("options", [dict(num_workers=-1), dict(prefetch_factor=2), dict(shuffle=True, sampler=[1]),
                                     dict(batch_sampler=[[1]], batch_size=4), dict(batch_size=None, drop_last=True),
                                     dict(timeout=-1), dict(persistent_workers=True)])
def test_options_that_exclude_each_other(options):
    with pytest.raises(ValueError):
        DataLoader(Squares(), **options)


def test_streams_refuse_shuffle():
    with pytest.raises(ValueError, match="shuffle"):
        DataLoader(Count(3), shuffle=True)
