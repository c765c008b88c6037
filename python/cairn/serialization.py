"""save and load: objects of tensors, numbers and texts in safetensors files; files of torch.save are loaded, too.

An object with anything else in it, such as a module, is saved as a pickle of Python's, which load reads only if it is
told weights_only=False. A dict of tensors is saved as a plain safetensors file, which every program reads. Of any other object the tensors are
saved under their paths ("model.0.weight"), and the metadata has its structure under "cairn.structure", as JSON:

    {"tensor": "model.0.weight"}    {"float": "0.001"}      {"dict": [[key, value], ..]}
    {"list": [..]}                  {"tuple": [..]}         {"set": [..]}
    {"dtype": "float32"}            {"device": "cpu"}       {"size": [2, 3]}    {"bytes": "base64"}
    {"array": "data.x"}             {"scalar": "data.y"}    of NumPy

and texts, whole numbers, true, false and null of JSON as themselves. No program in such a file is ever run.
"""

import os

import cairn

from . import _C
from ._C import Tensor
from ._device import context_name

__all__ = ["load", "save"]

_STRUCTURE = "cairn.structure"
_DEEPEST = 128


# ---- structure ----


class _NotData(Exception):
    """The object is not made of tensors, numbers, texts and containers of them alone."""


class _Packing:
    """Takes an object apart: its tensors under names, the rest as JSON."""

    def __init__(self):
        self.tensors = {}
        self.open = set()  # the containers that are being visited

    def name_of(self, path):
        name = ".".join(path) or "value"
        unique, n = name, 1
        while unique in self.tensors:
            unique, n = f"{name}#{n}", n + 1
        return unique

    def pack(self, value, path=()):
        if value is None or value is True or value is False or type(value) in (int, str):
            return value
        if isinstance(value, Tensor):
            name = self.name_of(path)
            self.tensors[name] = value.detach()
            return {"tensor": name}
        if isinstance(value, (bool, int, str)):  # a derived class, such as an enum
            return self.pack(value.value if hasattr(value, "value") else type(value).__mro__[-2](value), path)
        if isinstance(value, float):
            return {"float": repr(float(value))}
        if isinstance(value, (bytes, bytearray)):
            import base64

            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, _C.dtype):
            return {"dtype": str(value).rpartition(".")[2]}
        if isinstance(value, cairn.device):
            return {"device": str(value)}
        if isinstance(value, _C.Size):
            return {"size": list(value)}
        if id(value) in self.open or len(path) > _DEEPEST:
            raise _NotData
        self.open.add(id(value))
        try:
            return self.pack_container(value, path)
        finally:
            self.open.discard(id(value))

    def pack_container(self, value, path):
        if isinstance(value, dict):
            return {"dict": [[self.pack_key(k), self.pack(v, (*path, str(k)))] for k, v in value.items()]}
        for kind, name in ((list, "list"), (tuple, "tuple"), ((set, frozenset), "set")):
            if isinstance(value, kind):
                return {name: [self.pack(v, (*path, str(i))) for i, v in enumerate(value)]}
        if type(value).__module__ == "numpy":
            return self.pack_numpy(value, path)
        if type(value).__name__ == "deque":
            return self.pack(list(value), path)
        raise _NotData

    def pack_numpy(self, value, path):
        kind = "array" if type(value).__name__ == "ndarray" else "scalar"
        dtype = getattr(value, "dtype", None)
        if dtype is None or dtype.name not in _DTYPES or not dtype.isnative:
            raise _NotData
        name = self.name_of(path)
        self.tensors[name] = cairn.tensor(value)
        return {kind: name}

    def pack_key(self, key):
        packed = self.pack(key)
        if isinstance(packed, dict) and not packed.keys().isdisjoint(("tensor", "array", "scalar")):
            raise _NotData
        return packed


def _hashable(key):
    return tuple(_hashable(k) for k in key) if isinstance(key, (list, tuple)) else key


def _unpack(packed, tensors):
    if isinstance(packed, list) or (isinstance(packed, dict) and len(packed) != 1):
        raise ValueError("load: the structure of the file is damaged")
    if not isinstance(packed, dict):
        return packed
    ((kind, value),) = packed.items()
    if kind == "tensor":
        return tensors[value]
    if kind in ("array", "scalar"):
        array = tensors[value].numpy()
        return array.copy() if kind == "array" else array[()]
    if kind == "float":
        return float(value)
    if kind == "dict":
        return {_hashable(_unpack(k, tensors)): _unpack(v, tensors) for k, v in value}
    if kind in ("list", "tuple", "set"):
        return {"list": list, "tuple": tuple, "set": set}[kind](_unpack(v, tensors) for v in value)
    if kind == "dtype":
        return getattr(cairn, value) if value in _DTYPES else _damaged(kind)
    if kind == "device":
        return cairn.device(value)
    if kind == "size":
        return _C.Size(value)
    if kind == "bytes":
        import base64

        return base64.b64decode(value)
    return _damaged(kind)


_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def _damaged(kind):
    raise ValueError(f"load: the structure of the file has an unknown part, {kind!r}")


def _is_plain(obj):
    """A dict of tensors under names: safetensors as it is."""
    return (isinstance(obj, dict) and len(obj) > 0
            and all(type(k) is str and isinstance(v, Tensor) for k, v in obj.items()))


# ---- saving ----


def save(obj, f, pickle_module=None, pickle_protocol=None, _use_new_zipfile_serialization=True):
    """Saves an object to a file, or to an object with write().

    Tensors, numbers, texts, NumPy's arrays, and dicts, lists and tuples of them become a safetensors file whatever its
    name, which any program can read without danger. Anything else, such as a module, becomes a pickle of Python's: the
    classes are found by their names when it is loaded. An old file is replaced when the new one is complete. Tensors
    are saved as they are, each for itself: tensors that share memory do not share it in the file.
    """
    import json

    try:
        if _is_plain(obj):
            tensors, texts = {k: v.detach() for k, v in obj.items()}, {"format": "pt"}
        else:
            packing = _Packing()
            structure = packing.pack(obj)
            tensors, texts = packing.tensors, {_STRUCTURE: json.dumps(structure, separators=(",", ":"))}
    except _NotData:
        def write(path):
            _save_pickle(obj, path, pickle_module, pickle_protocol)
    else:
        def write(path):
            _C.save_file(path, tensors, texts)
    if hasattr(f, "write"):
        _through_file(write, f)
        return
    path = os.fspath(f)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    # The end of a path is the format for the library: the file gets its own name when it is complete.
    beside = f"{path}.{os.getpid()}.safetensors"
    try:
        write(beside)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)


def _save_pickle(obj, path, pickle_module, protocol):
    import pickle

    with open(path, "wb") as file:
        (pickle_module or pickle).dump(obj, file, protocol=pickle.DEFAULT_PROTOCOL if protocol is None else protocol)


def _through_file(write, f):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "saved.safetensors")
        write(path)
        with open(path, "rb") as saved:
            while True:
                part = saved.read(1 << 22)
                if not part:
                    return
                f.write(part)


# ---- loading ----


def _device_of(map_location):
    """Where tensors are loaded to: the name of a device. Files do not say where their tensors were."""
    if callable(map_location) and not isinstance(map_location, (str, cairn.device)):
        return "cpu"
    if isinstance(map_location, dict):
        map_location = map_location.get("cpu", "cpu")
    if map_location is None:
        map_location = cairn.get_default_device()
    return context_name(map_location)


def _refusal(name):
    import pickle

    return pickle.UnpicklingError(f"Weights only load failed: '{name}' is a pickle of objects such as modules, and to "
                                  "load it can run any program. If you trust whoever wrote it, "
                                  "load(f, weights_only=False); a file of model.state_dict() needs no trust")


_OLD_TORCH = 0x1950A86A20F9469CFC6C  # what torch.save wrote first before PyTorch 1.6


def _load_pickle(name, data, map_location, pickle_module, arguments):
    import io
    import pickle

    from . import _convert

    class Unpickler(getattr(pickle_module or pickle, "Unpickler", pickle.Unpickler)):
        """Puts tensors where map_location says."""

        def find_class(self, module, kind):
            if map_location is not None and (module, kind) == (_convert.__name__, _convert._rebuild.__name__):
                return rebuild
            return super().find_class(module, kind)

    def rebuild(kind, values, dtype, shape, requires_grad, device=None):
        if callable(map_location) and not isinstance(map_location, (str, cairn.device)):
            return map_location(_convert._rebuild(kind, values, dtype, shape, requires_grad, device), device or "cpu")
        device = map_location.get(device or "cpu", device) if isinstance(map_location, dict) else map_location
        return _convert._rebuild(kind, values, dtype, shape, requires_grad, device and context_name(device))

    with io.BytesIO(data) if data is not None else open(name, "rb") as file:
        made = Unpickler(file, **arguments).load()
    if type(made) is int and made == _OLD_TORCH:
        raise OSError(f"load: '{name}' was written before PyTorch 1.6; load it there and save it again")
    return made


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, **pickle_load_args):
    """Loads what save or torch.save wrote, and safetensors, npz and npy files, as they were nested.

    A pickle, what save makes of a module, is refused unless weights_only=False is said, because it can run any program.
    No program in another file is run, whatever weights_only says: anything but tensors, dicts, lists, tuples, numbers
    and texts in a file of torch.save is an error that names it. Files are mapped: a tensor is read when it is used.
    """
    device = _device_of(map_location)
    if hasattr(f, "read"):
        name, data = str(getattr(f, "name", "from memory")), f.read()
        head = data[:2]
    else:
        name, data = os.fspath(f), None
        name = os.fsdecode(name) if isinstance(name, bytes) else name
        if not os.path.exists(name):
            raise FileNotFoundError(2, "No such file or directory", name)
        with open(name, "rb") as file:
            head = file.read(2)
    if len(head) == 2 and head[0] == 0x80 and 2 <= head[1] <= 5:  # a pickle, by its protocol
        if weights_only:
            raise _refusal(name)
        return _load_pickle(name, data, map_location, pickle_module, pickle_load_args)
    tensors, texts = _C.load_file(name, data, device)
    if callable(map_location) and not isinstance(map_location, (str, cairn.device)):
        tensors = {name: map_location(t, "cpu") for name, t in tensors.items()}
    if _STRUCTURE not in texts:
        return tensors
    import json

    return _unpack(json.loads(texts[_STRUCTURE]), tensors)
