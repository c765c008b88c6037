"""What holds for all tests of the package."""

import os

import pytest


def pytest_collection_modifyitems(items):
    """The address sanitizer keeps memory that was freed, to see who uses it: tests that look at its size are skipped."""
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        return
    for item in items:
        if "resident" in item.function.__code__.co_names:
            item.add_marker(pytest.mark.skip(reason="with the address sanitizer freed memory stays"))
