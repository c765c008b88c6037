"""An old name for what cairn.hub has: torch.utils.model_zoo."""

from ..hub import load_state_dict_from_url as load_url  # noqa: F401
