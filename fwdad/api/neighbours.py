"""Names that users of other packages look for in ``fwdad``, and what to write instead."""

from __future__ import annotations

from types import ModuleType

_ELEMENT = "derivative(f), for a function that works element by element (else it raises)"
_BY_HAND = "frule or rrule, which take the rule of a function that stays what it is"

SPELLINGS = {
    # JAX
    "custom_jvp": "frule(f), whose rule is given to f from outside",
    "custom_vjp": "rrule(f), whose rule is given to f from outside",
    "custom_gradient": "rrule(f), whose rule is given to f from outside",
    "remat": "checkpoint(f)",
    "numpy": "numpy itself: fwdad differentiates NumPy's own functions",
    "lax": "Python's own for, while and if, which fwdad differentiates and compiles",
    # PyTorch
    "grad_and_value": "value_and_grad(f), which returns the value first",
    "vhp": "hvp(f, x, v): a Hessian is symmetric",
    # autograd
    "elementwise_grad": _ELEMENT,
    "egrad": _ELEMENT,
    "multigrad": "grad(f, argnums=(0, 1))",
    "multigrad_dict": "grad of a function of one dict: grad(lambda p: f(**p))(p)",
    "grad_named": "grad(f, argnums), or grad of a function of one dict",
    "grad_and_aux": "grad(f, has_aux=True)",
    "make_jvp": "jvp(f, x, v), or linearize(f, x)",
    "make_vjp": "vjp(f, x), which returns the value first and the pullback behind it",
    "make_hvp": "hvp(f), a function of (x, v)",
    "make_ggnvp": "linearize(f, x), whose J.rmatvec(J.matvec(v)) is the Gauss-Newton product",
    "hessian_vector_product": "hvp(f), a function of (x, v)",
    "hessian_tensor_product": "hvp(f), a function of (x, v)",
    "vector_jacobian_product": "vjp(f, x)[1](v)",
    "tensor_jacobian_product": "vjp(f, x)[1](v)",
    "primitive": _BY_HAND,
    "defvjp": _BY_HAND,
    "defjvp": _BY_HAND,
}


def spelling(name: str, homes: tuple[ModuleType, ...]) -> str | None:
    """What to write for a name that ``fwdad`` does not have, as the end of a message.

    ``homes`` are modules of the package, one of which may have the name.
    """
    for home in homes:
        if name in home.__all__:
            return f"it is {home.__name__}.{name}"
    return f"write {SPELLINGS[name]}" if name in SPELLINGS else None
