"""Other libraries of this kind: their names for scripts that are moved over, and bridges to them.

``fwdad.compat.autograd`` and ``fwdad.compat.jax`` have the calling conventions of autograd and JAX,
each a translation to functions of fwdad's. ``to_jax``, ``to_torch`` and ``to_autograd`` hand a
function of fwdad's to a program that another library differentiates; that library is imported when
a bridge is made, and by nothing else.
"""

from fwdad.compat.bridges.to_autograd import to_autograd
from fwdad.compat.bridges.to_jax import to_jax
from fwdad.compat.bridges.to_torch import to_torch

__all__ = ["to_autograd", "to_jax", "to_torch"]
