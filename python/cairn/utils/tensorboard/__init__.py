"""There is no event writer for Python yet."""


class SummaryWriter:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "cairn.utils.tensorboard.SummaryWriter is not there yet. Write numbers to a CSV file (csv.writer): `cairn "
            "runs` reads tables such as runs.csv, and the command `cairn train` writes events for TensorBoard"
        )
