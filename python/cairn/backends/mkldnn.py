"""This library of PyTorch is not used."""

enabled = False


def is_available():
    return False


def is_built():
    return False
