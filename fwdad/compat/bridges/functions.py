"""What the bridges have in common: derivatives as functions, and where arrays stand in a call."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.drivers.pullback import vjp
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.evaluators import jvp
from fwdad.tangents.composite import Structure, flatten, leaf_order, unflatten
from fwdad.tangents.matching import match
from fwdad.tangents.zero import ZERO, NoTangent


def peer(name: str, package: str) -> Any:
    """A module of another library; if it is missing, the error says what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"this bridge needs {package}, which could not be imported: pip install {package}"
        ) from error


def check_function(f: Any, bridge: str) -> None:
    """Raise if f is no function."""
    if not callable(f):
        raise UnsupportedTypeError(f"{bridge} takes a function; got {type_in_words(f)}")


def check_real(dtype: Any) -> bool:
    """Whether numbers of a dtype are differentiated; raises for those that have no bridge."""
    name = str(dtype).removeprefix("torch.")
    if name in ("float32", "float64"):
        return True
    if name.startswith(("int", "uint", "bool")):
        return False
    raise UnsupportedTypeError(
        f"got an array of dtype {name}: a bridge takes float32 and float64, ints and bools. "
        "Convert it, and pass the real and imaginary parts of complex numbers"
    )


def is_number(x: Any) -> bool:
    """Whether a part of a NumPy function's value is an array or a number."""
    return isinstance(x, (np.ndarray, np.generic, float)) or type(x) in (int, bool)


def pushed(f: Callable[..., Any], argnums: tuple[int, ...]) -> Callable[..., Any]:
    """The function of ``(tangents, *args)`` that returns the tangent of f's value."""

    def push(tangents: Any, *args: Any) -> Any:
        return jvp(f, args[0], tangents, args=args[1:], argnums=argnums)[1]

    return push


def pulled(f: Callable[..., Any], argnums: tuple[int, ...]) -> Callable[..., Any]:
    """The function of ``(y_bar, *args)`` that returns the cotangents of f's arguments."""

    def pull(y_bar: Any, *args: Any) -> Any:
        _, pullback = vjp(f, args[0], args=args[1:], argnums=argnums)
        return pullback(y_bar)

    return pull


def dtype_of(x: Any) -> Any:
    """The dtype of an array or number."""
    return x.dtype if hasattr(x, "dtype") else np.result_type(x)


def _place_by_place(
    node: Structure, numbers: Iterator[int], above: tuple[Structure, ...]
) -> Structure:
    """A structure in which an array at two places is two: the peers know no such thing."""
    if any(node is a for a in above):
        raise UnsupportedTypeError("a bridge takes no structure that holds itself")
    apart = Structure(node.kind, node.value)
    apart.keys, apart.data = node.keys, node.data
    if node.kind == "leaf":
        apart.index = next(numbers)
    apart.children = [_place_by_place(c, numbers, (*above, node)) for c in node.children]
    return apart


class Layout:
    """Where the arrays of a value stand; ``is_array`` says what is one."""

    def __init__(
        self, value: Any, is_array: Callable[[Any], bool], dtype: Callable[[Any], Any] = dtype_of
    ) -> None:
        leaves, shared = flatten(value, leaf=is_array)
        self.arrays = [leaves[k] for k in leaf_order(shared)]
        self.structure = _place_by_place(shared, itertools.count(), ())
        self.real = [check_real(dtype(a)) for a in self.arrays]

    def __call__(self, arrays: Any) -> Any:
        """The value with other arrays."""
        return unflatten(self.structure, list(arrays))

    def tangent(self, arrays: Any) -> Any:
        """A tangent of the value, with an array for each one that is real, in order."""
        given = iter(arrays)
        parts = [next(given) if real else NoTangent for real in self.real]
        return unflatten(self.structure, parts, lambda _: NoTangent)

    def parts(self, tangent: Any) -> list[Any]:
        """The part of a tangent for each array that is real."""
        found = match(self.structure, tangent)
        return [part for part, real in zip(found, self.real, strict=True) if real]

    def only_real(self, arrays: Any) -> list[Any]:
        """Those of some arrays that are real."""
        return [a for a, real in zip(arrays, self.real, strict=True) if real]


class Arguments(Layout):
    """Where the arrays of a call's arguments stand; ``argnums`` are those that have real ones."""

    def __init__(
        self,
        args: tuple[Any, ...],
        is_array: Callable[[Any], bool],
        dtype: Callable[[Any], Any] = dtype_of,
    ) -> None:
        super().__init__(args, is_array, dtype)
        places = [leaf_order(child) for child in self.structure.children]
        real = [any(self.real[k] for k in order) for order in places]
        self.argnums = tuple([k for k, has_real in enumerate(real) if has_real])

    def tangents(self, arrays: Any) -> Any:
        """The tangents of the arguments with real arrays."""
        trees = self.tangent(arrays)
        return tuple([trees[k] for k in self.argnums])

    def cotangents(self, trees: Any) -> list[Any]:
        """The part of the cotangents of these arguments for each real array."""
        everywhere = [ZERO] * len(self.structure.children)
        for k, tree in zip(self.argnums, trees, strict=True):
            everywhere[k] = tree
        return self.parts(tuple(everywhere))
