"""The transforms under their newer name. They take images alone, not boxes or masks with them."""

from . import *  # noqa: F401,F403
from . import Transform, functional  # noqa: F401
