"""The names of autograd, for scripts that were written for it.

``import fwdad.compat.autograd.numpy as np`` is NumPy, ``from fwdad.compat.autograd import grad``
takes autograd's arguments, and returns its conventions. Nothing is computed here: each name is a
way to call one of fwdad's.

============================  ============================  ======================================
autograd                      fwdad                         what differs
============================  ============================  ======================================
``autograd.numpy``            ``numpy``                     arrays may be written in place
``autograd.scipy``            ``scipy``
``autograd.builtins``         ``builtins``                  no boxes: ``isinstance`` is Python's
``grad(f, argnum)``           ``grad(f, argnums)``          a value with one element; complex:
                                                            conjugate
``value_and_grad``            ``value_and_grad``            the same
``grad_and_aux``              ``grad(f, has_aux=True)``     aux may be anything
``elementwise_grad``          ``vjp``, of ones              ``derivative``, for one number
``jacobian``                  ``jacfwd``, ``jacrev``        the cheaper of the two
``hessian``                   ``jacfwd(jacrev(f))``         ``hessian``: scalar f only
``hessian_vector_product``    ``hvp(f, x, v)``
``vector_jacobian_product``   ``y, pullback = vjp(f, x)``
``make_vjp``                  ``vjp``                       ``(pullback, y)``; complex: transpose,
                                                            not adjoint
``make_jvp``                  ``jvp(f, x, v)``              complex: f must be holomorphic
``make_hvp``, ``make_ggnvp``  ``jvp(grad(f), x, v)``
``deriv``                     ``jvp``, along ones
``holomorphic_grad``          ``jacfwd(holomorphic=True)``  checked
``multigrad_dict``            ``grad(f, argnums=(0, 1))``   parameters by position only
``checkpoint``                ``checkpoint``                keeps some states of loops
``extend.primitive``          not needed                    a copy of f, to have rules
``extend.defvjp``             ``rrule``
``misc.flatten``              ``ravel``                     keys are sorted
``test_util.check_grads``     ``check_grads``               takes the arguments, too
``extend.defjvp``             ``frule``
============================  ============================  ======================================
"""

from typing import NoReturn

from fwdad.api.checkpoint import checkpoint
from fwdad.compat.autograd import builtins, extend, numpy, scipy
from fwdad.compat.autograd.by_name import grad_named, multigrad_dict
from fwdad.compat.autograd.extend import primitive
from fwdad.compat.autograd.transforms import (
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)

__all__ = [
    "builtins",
    "checkpoint",
    "deriv",
    "elementwise_grad",
    "extend",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "jacobian",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_vjp",
    "multigrad_dict",
    "numpy",
    "primitive",
    "scipy",
    "tensor_jacobian_product",
    "value_and_grad",
    "vector_jacobian_product",
]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"autograd.{name} has no counterpart in fwdad")
