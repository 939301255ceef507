"""``autograd.numpy``: NumPy itself, under autograd's name."""

from typing import Any

import numpy  # noqa: ICN001  (`np` is what this module is called)
from numpy import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """NumPy's other names, such as those of its submodules."""
    return getattr(numpy, name)
