"""torch.sparse. Cairn has no sparse tensors: every name here says what to use in their place."""


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(f"module 'cairn.sparse' has no attribute '{name}'")

    def absent(*args, **kwargs):
        raise NotImplementedError(f"sparse.{name}: there are no sparse tensors; a product by an index is gather or "
                                  "index_select, and index_add for its sums; nn.Embedding updates the rows it looked up")
    absent.__name__ = name
    return absent
