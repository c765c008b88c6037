"""Handles that remove hooks: torch.utils.hooks."""

from ..nn.modules._hooks import RemovableHandle  # noqa: F401
