"""Devices, generators of random numbers, and whether gradients are recorded."""

import functools
import itertools

from . import _C


class device:
    """Where values are: device("cpu"), device("gpu"), device("gpu:1"), device("gpu", 1)."""

    __slots__ = ("type", "index")

    def __init__(self, type="cpu", index=None):
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int):
            type, index = "gpu", type
        name, _, number = str(type).partition(":")
        if number:
            if not number.isdigit():
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        if name not in ("cpu", "gpu"):
            raise RuntimeError(f"cairn has the devices 'cpu' and 'gpu', not '{name}'; a GPU of any maker is 'gpu'")
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute '{name}' of a device cannot be changed")

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __eq__(self, other):
        if isinstance(other, str):
            other = device(other)
        return isinstance(other, device) and (self.type, self.index or 0) == (other.type, other.index or 0)

    def __hash__(self):
        return hash((self.type, self.index or 0))

    def __reduce__(self):
        return device, (str(self),)

    def __enter__(self):
        _before.append(_C._get_default_device())
        _C._set_default_device(context_name(self))
        return self

    def __exit__(self, *error):
        _C._set_default_device(_before.pop())


_before = []


def context_name(d):
    """The name of a device in C."""
    d = d if isinstance(d, device) else device(d)
    return "cpu" if d.type == "cpu" else str(d)


_known = {}


def _made(name):
    if name not in _known:
        _known[name] = device(name)
    return _known[name]


_C._set_part("device", _made)


def set_default_device(d):
    """New tensors are made on this device."""
    _C._set_default_device(context_name("cpu" if d is None else d))


def get_default_device():
    return device(_C._get_default_device())


class Generator:
    """Random numbers of its own, apart from those of manual_seed."""

    _numbers = itertools.count()

    def __init__(self, device="cpu"):
        self.device = _made(str(device))
        self._name = f"{context_name(self.device)}#{next(Generator._numbers)}"
        self._seed = 67280421310721
        _C._seed(self._name, self._seed)

    def manual_seed(self, seed):
        self._seed = int(seed) % (1 << 64)
        _C._seed(self._name, self._seed)
        return self

    def initial_seed(self):
        return self._seed

    def seed(self):
        import random
        return self.manual_seed(random.SystemRandom().getrandbits(63)).initial_seed()


class _GradMode:
    """A context manager and decorator that switches the recording of gradients."""

    on = False

    def __init__(self, function=None):
        self._before = []
        if callable(function):
            raise TypeError(f"write @cairn.{type(self).__name__}()")

    def __new__(cls, function=None):
        if function is not None and callable(function):
            return cls()(function)
        return super().__new__(cls)

    def __enter__(self):
        self._before.append(_C._set_grad_enabled(self.on))

    def __exit__(self, *error):
        _C._set_grad_enabled(self._before.pop())

    def __call__(self, function):
        import inspect
        if inspect.isclass(function):
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            @functools.wraps(function)
            def generator(*args, **kwargs):
                steps = function(*args, **kwargs)
                while True:
                    with type(self)():
                        try:
                            value = next(steps)
                        except StopIteration:
                            return
                    yield value
            return generator

        @functools.wraps(function)
        def call(*args, **kwargs):
            before = _C._set_grad_enabled(self.on)
            try:
                return function(*args, **kwargs)
            finally:
                _C._set_grad_enabled(before)
        return call


class no_grad(_GradMode):
    """with no_grad(): operations are not recorded for gradients."""


class enable_grad(_GradMode):
    """with enable_grad(): operations are recorded for gradients, even inside no_grad."""

    on = True


class inference_mode(_GradMode):
    """The same as no_grad: a lazy graph has nothing else to save."""

    def __new__(cls, mode=True):
        if callable(mode):
            return super().__new__(cls, mode)
        return object.__new__(cls)

    def __init__(self, mode=True):
        self._before = []
        self.on = not mode and _C.is_grad_enabled()


class set_grad_enabled(_GradMode):
    """Switches the recording of gradients, at once or as a context manager."""

    def __new__(cls, mode):
        return object.__new__(cls)

    def __init__(self, mode):
        self.on = bool(mode)
        self._before = [_C._set_grad_enabled(self.on)]

    def __enter__(self):
        pass

    def __exit__(self, *error):
        if self._before:
            _C._set_grad_enabled(self._before.pop())

    def __call__(self, function):
        _C._set_grad_enabled(self._before.pop())
        self._before = []
        return super().__call__(function)


def is_inference_mode_enabled():
    return not _C.is_grad_enabled()
