"""Loaders. With workers, threads make batches ahead; batch i is made by worker i modulo their number and comes i-th."""

import queue
import threading
import traceback

import cairn

from ... import _C
from ..._C import Tensor
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "Dataset", "Sampler", "default_collate", "default_convert", "get_worker_info"]

_this_thread = threading.local()


class WorkerInfo:
    """What get_worker_info() returns in a worker: id, num_workers, seed, dataset."""

    def __init__(self, id, num_workers, seed, dataset):
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


def get_worker_info():
    """The WorkerInfo of this thread; None if it is not a worker."""
    return getattr(_this_thread, "info", None)


# ---- making a batch ----


class _Fetcher:
    """Items of a dataset by number, as a batch or, without batches, as they are."""

    def __init__(self, dataset, collate, batched):
        self.dataset, self.collate, self.batched = dataset, collate, batched

    def __call__(self, indices):
        if not self.batched:
            return self.collate(self.dataset[indices])
        whole = getattr(self.dataset, "_whole_batch", None)
        if whole is not None and self.collate is default_collate and indices:
            batch = whole(indices)  # what default_collate would make of the items
            if batch is not None:
                return batch
        many = getattr(self.dataset, "__getitems__", None)
        items = many(indices) if callable(many) else [self.dataset[i] for i in indices]
        return self.collate(items)


class _StreamFetcher:
    """The next items of an iterable dataset; `indices` only tells how many."""

    def __init__(self, dataset, collate, batched, drop_last):
        self.items, self.collate, self.batched, self.drop_last = iter(dataset), collate, batched, drop_last

    def __call__(self, indices):
        if not self.batched:
            return self.collate(next(self.items))
        items = []
        for _ in indices:
            try:
                items.append(next(self.items))
            except StopIteration:
                break
        if not items or (self.drop_last and len(items) < len(indices)):
            raise StopIteration
        return self.collate(items)


# ---- workers ----


class _Failure:
    """An exception of a worker, to be raised in the main thread."""

    def __init__(self, error, worker):
        self.error, self.worker, self.text = error, worker, traceback.format_exc()

    def raise_here(self):
        message = f"Caught {type(self.error).__name__} in DataLoader worker {self.worker}.\nOriginal {self.text}"
        try:
            error = type(self.error)(message)
        except Exception:  # a type that cannot be made of one text
            raise RuntimeError(message) from self.error
        raise error from self.error


_END = object()  # a worker's part of an iterable dataset has ended


def _copy_of(dataset):
    """A copy with attributes of its own, as a worker process would have; what they refer to is shared."""
    import copy

    try:
        return copy.copy(dataset)
    except Exception:
        return dataset


def _work(info, make_fetcher, init, tasks, results):
    """A worker: takes indices from tasks until None comes, and puts batches into results."""
    try:
        _this_thread.info = info
        _C.seed_here(info.seed)
        if init is not None:
            init(info.id)
        fetch = make_fetcher(info.dataset)
    except Exception as error:
        failure = _Failure(error, info.id)
        while tasks.get() is not None:
            results.put(failure)
        return
    while True:
        indices = tasks.get()
        if indices is None:
            return
        try:
            batch = fetch(indices)
            _C._eval_all()  # here, and not where the main thread first reads the batch
        except StopIteration:
            batch = _END
        except Exception as error:
            batch = _Failure(error, info.id)
        results.put(batch)
        del batch


def _here(x):
    """The tensors of a batch in the context of this thread, at any depth."""
    if isinstance(x, Tensor):
        return _C.here(x)
    if isinstance(x, dict):
        return type(x)((k, _here(v)) for k, v in x.items()) if type(x) is dict else _changed(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_here(v) for v in x))
    if type(x) in (list, tuple):
        return type(x)(_here(v) for v in x)
    return x


def _changed(mapping):
    for key, value in mapping.items():
        mapping[key] = _here(value)
    return mapping


class _Workers:
    """The batches of an epoch, made by threads. It ends its threads when it is done or forgotten."""

    def __init__(self, loader, plan, make_fetcher, seed):
        self.loader, self.plan = loader, plan
        n = loader.num_workers
        self.tasks = [queue.SimpleQueue() for _ in range(n)]
        self.results = [queue.SimpleQueue() for _ in range(n)]
        self.active = [True] * n
        self.expected = []  # workers, in the order in which their batches come
        self.next_worker = 0
        for i in range(n):
            info = WorkerInfo(i, n, seed + i, _copy_of(loader.dataset))
            thread = threading.Thread(target=_work, daemon=True, name=f"cairn DataLoader worker {i}", args=(
                info, make_fetcher, loader.worker_init_fn, self.tasks[i], self.results[i]))
            thread.start()
        for _ in range(n * loader.prefetch_factor):
            self._ask()

    def _ask(self):
        """Gives the next batch to the next worker that still has items."""
        if not any(self.active):
            return
        indices = next(self.plan, None)
        if indices is None:
            return
        while not self.active[self.next_worker]:
            self.next_worker = (self.next_worker + 1) % len(self.active)
        self.tasks[self.next_worker].put(indices)
        self.expected.append(self.next_worker)
        self.next_worker = (self.next_worker + 1) % len(self.active)

    def __iter__(self):
        return self

    def __next__(self):
        while self.expected:
            worker = self.expected.pop(0)
            try:
                batch = self.results[worker].get(timeout=self.loader.timeout or None)
            except queue.Empty:
                self.close()
                raise RuntimeError(f"DataLoader timed out after {self.loader.timeout} seconds") from None
            if batch is _END:
                self.active[worker] = False
                self._ask()
                continue
            self._ask()
            if isinstance(batch, _Failure):
                batch.raise_here()
            return _here(batch)
        self.close()
        raise StopIteration

    def __len__(self):
        return len(self.loader)

    def close(self):
        for tasks in self.tasks:
            tasks.put(None)
        self.tasks = []
        self.expected = []

    __del__ = close


class _Same:
    """The batches of an epoch, made in the calling thread."""

    def __init__(self, loader, plan, fetch):
        self.loader, self.plan, self.fetch = loader, plan, fetch

    def __iter__(self):
        return self

    def __next__(self):
        return self.fetch(next(self.plan))

    def __len__(self):
        return len(self.loader)


# ---- the loader ----


class _Forever(Sampler):
    """The sampler of an iterable dataset, whose items have no numbers."""

    def __iter__(self):
        while True:
            yield None


class DataLoader:
    """Batches of a dataset. torch.utils.data.DataLoader's arguments.

    Workers are threads, which share memory with the program: nothing is pickled or copied, and functions need no guard
    by __name__. pin_memory, persistent_workers and multiprocessing_context are accepted and have no effect.
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
                 pin_memory_device="", in_order=True):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable workers.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified with workers: let num_workers > 0.")
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self._stream = isinstance(dataset, IterableDataset)
        if self._stream:
            for name, value in (("shuffle", shuffle), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value:
                    raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                                     f"{name}={value}")
            sampler = _Forever()
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or (sampler is not None) or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                                 "drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.num_workers = num_workers
        self.prefetch_factor = 2 if prefetch_factor is None else max(1, prefetch_factor)
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.collate_fn = collate_fn or (default_collate if batch_sampler is not None else default_convert)

    def _fetcher(self, dataset):
        batched = self.batch_sampler is not None
        if self._stream:
            return _StreamFetcher(dataset, self.collate_fn, batched, self.drop_last)
        return _Fetcher(dataset, self.collate_fn, batched)

    def __iter__(self):
        plan = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        with_generator = {} if self.generator is None else {"generator": self.generator}
        seed = cairn.randint(0, 2**31 - 1, (1,), **with_generator)  # also without workers: the order stays the same
        if self.num_workers == 0:
            return _Same(self, plan, self._fetcher(self.dataset))
        seed = int(seed.item())
        return _Workers(self, _numbered(plan), self._fetcher, seed)

    def __len__(self):
        if not self._stream:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _numbered(plan):
    """The plan of an iterable dataset without batches has None for every item; None also ends a worker."""
    for indices in plan:
        yield () if indices is None else indices
