"""``jax.numpy``: NumPy itself, under JAX's name.

NumPy's conventions hold: floats are double precision, an index out of bounds raises, arrays are
written in place, which is differentiated, too. ``x.at[i].set(v)`` is ``jax.at(x)[i].set(v)``, or
plainly ``x[i] = v``.
"""

from typing import Any

import numpy  # noqa: ICN001  (`np` is what this module is called)
from numpy import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """NumPy's other names, such as those of its submodules."""
    try:
        return getattr(numpy, name)
    except AttributeError:
        raise AttributeError(
            f"jax.numpy.{name} has no counterpart in fwdad: NumPy {numpy.__version__} has no such "
            "name"
        ) from None
