"""Devices of values: the CPU, where a Value is a plain number, and GPUs, where values are batches."""


class Device:
    """Device.cpu() or Device.gpu(): where a value is computed."""

    def __init__(self, name):
        kind, _, index = str(name).partition(":")
        if kind not in ("cpu", "gpu") or (index and (kind == "cpu" or not index.isdigit())):
            raise ValueError(f"a device is 'cpu', 'gpu' or 'gpu:N', got {name!r}")
        self.name = "gpu" if (kind, index) == ("gpu", "0") else str(name)

    @staticmethod
    def cpu():
        return _CPU

    @staticmethod
    def gpu(index=0):
        """The GPU of this number. An error says what is missing if there is none."""
        import cairn

        device = Device(f"gpu:{index}")
        cairn.zeros(1, device=device.name)  # raises a DeviceError that says what is missing
        return device

    @staticmethod
    def is_gpu_available():
        import cairn

        try:
            Device.gpu()
        except cairn.DeviceError:
            return False
        return True

    @staticmethod
    def of(device):
        """A Device, or its name."""
        return device if isinstance(device, Device) else Device(str(device))

    @property
    def is_gpu(self):
        return self.name != "cpu"

    def __eq__(self, other):
        return isinstance(other, Device) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"Device({self.name!r})"


_CPU = Device("cpu")
