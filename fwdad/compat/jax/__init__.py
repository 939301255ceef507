"""The names of JAX, for scripts that were written for it.

``import fwdad.compat.jax.numpy as jnp`` is NumPy, ``import fwdad.compat.jax as jax`` has JAX's
transformations, which take its arguments and return its structures. Nothing is computed here: each
name is a way to call one of fwdad's.

============================  ========================  ==========================================
JAX                           fwdad                     what differs
============================  ========================  ==========================================
``jax.numpy``                 ``numpy``                 double precision, unless arrays are
                                                        single; an index out of bounds raises
``x.at[i].set(v)``            ``x[i] = v``              ``jax.at(x)[i].set(v)`` copies
``grad``, ``value_and_grad``  the same                  complex: the conjugate
``jacfwd``, ``jacrev``        the same                  ``jacobian`` takes the cheaper
``hessian``                   ``jacfwd(jacrev(f))``     ``hessian``: scalar f only
``jvp(f, (x,), (v,))``        ``jvp(f, x, v)``          several directions, stacked
``vjp(f, x, y)``              ``vjp(f, x, args=(y,))``  ``argnums`` says which; complex: the
                                                        adjoint
``linearize(f, x)``           ``linearize(f, x)``       a SciPy ``LinearOperator``
``jit(f, static_argnums=)``   ``jit(f)``                needs no static arguments
``checkpoint``, ``remat``     ``checkpoint``            keeps some states of loops
``custom_jvp``                ``frule``                 N tangents at a time
``custom_vjp``                ``rrule``                 forward mode takes the source
``lax.scan`` and the like     loops and branches        both modes, compiled as loops
``lax.stop_gradient``         ``stop_gradient``
``tree_util.tree_map``        ``tree_map``              ints are leaves
``flatten_util``              ``ravel``                 keys are sorted
``test_util.check_grads``     ``check_grads``
``vmap(f, in_axes=)``          ``vmap``                  a loop; named axes are refused
``pmap``                      ``jit(parallel=True)``    refused here
``random``                    ``numpy.random``          refused here
============================  ========================  ==========================================
"""

from typing import Any, NoReturn

from numpy import ndarray as Array  # noqa: N812  (the name is JAX's)

from fwdad.compat.conventions import refused
from fwdad.compat.jax import config, lax, nn, numpy, random, scipy, tree, tree_util
from fwdad.compat.jax.custom import custom_jvp, custom_vjp
from fwdad.compat.jax.transforms import (
    checkpoint,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linearize,
    remat,
    value_and_grad,
    vjp,
    vmap,
)
from fwdad.compat.jax.updates import at

__all__ = [
    "Array",
    "at",
    "block_until_ready",
    "checkpoint",
    "config",
    "custom_jvp",
    "custom_vjp",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linearize",
    "nn",
    "numpy",
    "pmap",
    "random",
    "remat",
    "scipy",
    "tree",
    "tree_util",
    "value_and_grad",
    "vjp",
    "vmap",
]

pmap = refused("jax.pmap", "Write fwdad.jit(f, parallel=True), or processes of your own")


def block_until_ready(x: Any) -> Any:
    """What was computed, which is there when the call returns.

    Parameters
    ----------
    x : object
        Anything.

    Returns
    -------
    like x
    """
    return x


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"jax.{name} has no counterpart in fwdad")
