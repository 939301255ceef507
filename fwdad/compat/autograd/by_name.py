"""The functions of autograd that name the parameters to differentiate with respect to."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from typing import Any

from fwdad.compat.autograd.transforms import grad
from fwdad.errors import UnsupportedTypeError
from fwdad.evaluation.signatures import Function
from fwdad.rules.core.registry import function_name


def grad_named(fun: Function, argname: str) -> Function:
    """Turn a function into one that returns its gradient with respect to a named parameter.

    Parameters
    ----------
    fun : callable
        See :func:`grad`.
    argname : str
        A parameter that is passed by position.

    Returns
    -------
    callable
        With fun's signature.

    Raises
    ------
    ValueError
        If fun has no such parameter.
    """
    names = list(inspect.signature(fun).parameters)
    if argname not in names:
        raise ValueError(
            f"{function_name(fun)} has no parameter {argname!r}: its parameters are {names}"
        )
    return grad(fun, names.index(argname))


def multigrad_dict(fun: Function) -> Function:
    """Turn a function into one that returns the gradients for all its parameters, by name.

    Parameters
    ----------
    fun : callable
        Its parameters can be passed by position.

    Returns
    -------
    callable
        Returns an ``OrderedDict`` of gradients; ``*args`` have a tuple of them.

    Raises
    ------
    UnsupportedTypeError
        When it is called, if a parameter can be passed by keyword only.
    """
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise UnsupportedTypeError(
                "multigrad_dict differentiates what is passed by position, but "
                f"{list(bound.kwargs)} can be passed by keyword only: change the signature, or "
                "bind them by functools.partial"
            )
        found = list(grad(fun, tuple(range(len(bound.args))))(*bound.args))
        by_name = OrderedDict()
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                by_name[name] = tuple(found)
            elif parameter.kind is not parameter.VAR_KEYWORD:
                by_name[name] = found.pop(0)
        return by_name

    return gradients
