"""What the conventions of autograd and JAX have in common, and fwdad's have not."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.trees import tree_map


def conjugate(x: Any) -> Any:
    """The complex conjugate of each number and array of a gradient or cotangent.

    The peers pair a cotangent with a tangent by ``Re(x_bar * x_dot)``, fwdad by
    ``Re(conj(x_bar) * x_dot)``.
    """
    return x if _is_real(x) else tree_map(_conjugate, x)


def _is_real(x: Any) -> bool:
    """Whether a value is, or plainly consists of, real numbers and arrays: the commonest."""
    t = type(x)
    if t is np.ndarray:
        return bool(x.dtype.kind == "f")
    if t is tuple or t is list:
        return all(map(_is_real, x))
    if t is dict:
        return all(map(_is_real, x.values()))
    return t is float or t is np.float64


def _conjugate(x: Any) -> Any:
    return np.conj(x) if np.iscomplexobj(x) else x


def in_order(tree: Any) -> Any:
    """A structure with its dicts in the order of their keys, in which the peers flatten them."""
    if type(tree) is dict:
        return {key: in_order(tree[key]) for key in sorted(tree)}
    if type(tree) is tuple:
        return tuple([in_order(part) for part in tree])
    if type(tree) is list:
        return [in_order(part) for part in tree]
    return tree


def ones_like(y: Any) -> Any:
    """The cotangent whose pullback sums the rows of the Jacobian."""
    return np.ones(np.shape(y))


def copy_of(f: Callable[..., Any]) -> Any:
    """A function of the same code, which can have rules that ``f`` has not.

    The peers wrap ``f``; rules are looked up by the function, and a copy keeps its source.
    """
    if not isinstance(f, types.FunctionType):
        raise UnsupportedTypeError(
            f"a rule needs a Python function (def or lambda); got {type_in_words(f)}. Call it in a "
            "function of your own"
        )
    twin = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    twin.__kwdefaults__ = f.__kwdefaults__
    return functools.update_wrapper(twin, f)


def refused(name: str, instead: str) -> Callable[..., Any]:
    """A function that stands for one without a counterpart, and says what to write."""

    def stand_in(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name} has no counterpart in fwdad. {instead}")

    stand_in.__name__ = stand_in.__qualname__ = name.rpartition(".")[2]
    stand_in.__doc__ = f"Raise ``NotImplementedError``. {instead}"
    return stand_in
