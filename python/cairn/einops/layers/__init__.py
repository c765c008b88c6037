"""Modules of einops."""
