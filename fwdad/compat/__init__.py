"""Other libraries of this kind: their names for scripts that are moved over, and bridges to them.

``fwdad.compat.autograd`` and ``fwdad.compat.jax`` have the calling conventions of autograd and JAX,
each a translation to functions of fwdad's. ``to_jax``, ``to_torch`` and ``to_autograd`` hand a
function of fwdad's to a program that another library differentiates; that library is imported when
a bridge is made, and by nothing else.
"""

import importlib
import typing

from fwdad.compat.bridges.to_autograd import to_autograd
from fwdad.compat.bridges.to_jax import to_jax
from fwdad.compat.bridges.to_torch import to_torch

if typing.TYPE_CHECKING:
    from fwdad.compat import autograd as autograd
    from fwdad.compat import jax as jax

__all__ = ["autograd", "jax", "to_autograd", "to_jax", "to_torch"]

_WHEN_ASKED_FOR = ("autograd", "jax")

if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _WHEN_ASKED_FOR:
            return importlib.import_module(f"fwdad.compat.{name}")
        message = f"module 'fwdad.compat' has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=importlib.import_module("fwdad.compat"))


def __dir__() -> list[str]:
    return sorted([*__all__, "__all__", "__doc__", "__file__", "__name__"])
