"""functional_call: a module called with other parameters than its own."""

from contextlib import contextmanager


@contextmanager
def _swapped(module, values):
    saved = []
    try:
        for name, value in values.items():
            path, _, leaf = name.rpartition(".")
            owner = module.get_submodule(path)
            table = owner._parameters if leaf in owner._parameters else owner._buffers
            if leaf not in table:
                raise KeyError(f"{name} is neither a parameter nor a buffer of the module")
            saved.append((table, leaf, table[leaf]))
            table[leaf] = value
        yield
    finally:
        for table, leaf, value in reversed(saved):
            table[leaf] = value


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """module(*args, **kwargs) with the given tensors in place of those of the same names."""
    values = {}
    several = isinstance(parameters_and_buffers, (tuple, list))
    for part in parameters_and_buffers if several else [parameters_and_buffers]:
        values.update(part)
    if tie_weights:  # names of one tensor get one value
        names = {}
        for name, t in (*module.named_parameters(remove_duplicate=False),
                        *module.named_buffers(remove_duplicate=False)):
            names.setdefault(id(t), []).append(name)
        for tied in names.values():
            given = [name for name in tied if name in values]
            for name in tied if given else ():
                values.setdefault(name, values[given[0]])
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _swapped(module, values):
        return module(*args, **(kwargs or {}))
