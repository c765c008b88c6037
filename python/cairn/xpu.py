"""Intel's GPUs are devices "gpu" like all others, and so are Apple's."""

from .mps import (current_allocated_memory, device_count, empty_cache, is_available, manual_seed,  # noqa: F401
                  synchronize)
