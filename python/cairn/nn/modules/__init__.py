"""The layers. Files have PyTorch's names: cairn.nn.modules.conv, .batchnorm, ..."""

from .module import (Module, register_module_backward_hook, register_module_forward_hook,
                     register_module_forward_pre_hook, register_module_full_backward_hook,
                     register_module_full_backward_pre_hook)
from .linear import *
from .conv import *
from .activation import *
from .container import *
from .pooling import *
from .batchnorm import *
from .instancenorm import *
from .normalization import *
from .dropout import *
from .padding import *
from .sparse import *
from .loss import *
from .rnn import *
from .pixelshuffle import *
from .upsampling import *
from .distance import *
from .fold import *
from .flatten import *
from .channelshuffle import *
from .adaptive import *
from .transformer import *
from .utils import consume_prefix_in_state_dict_if_present

__all__ = [name for name in dir() if name[0].isupper()]
