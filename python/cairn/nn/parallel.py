"""One model on several devices. A module of Cairn lives on one."""

from .modules.module import Module


class DataParallel(Module):
    """Calls its module, on one device. The module's names get the prefix "module.", as in PyTorch."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise NotImplementedError("DataParallel over several devices; open each device in a process of its own, "
                                      "and average gradients through files or sockets")
        self.module = module
        self.dim = dim
        self.device_ids = list(device_ids) if device_ids is not None else []

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("DistributedDataParallel; nn.DataParallel runs a module on one device under the same "
                                  "names, so that checkpoints fit")


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Calls the module, on one device."""
    if device_ids is not None and len(device_ids) > 1:
        raise NotImplementedError("data_parallel over several devices; call the module itself")
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
