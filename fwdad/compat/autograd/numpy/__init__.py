"""``autograd.numpy``: NumPy itself, under autograd's name."""

from typing import Any

import numpy
from numpy import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """NumPy's other names, such as those of its submodules."""
    return getattr(numpy, name)
