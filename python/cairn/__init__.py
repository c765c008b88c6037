from ._C import *
from . import _C
