"""Values flattened into the numbers and arrays of a tape, and rebuilt from them."""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError
from fwdad.frontend.arguments import is_record, traced_object
from fwdad.frontend.slots import attributes_of
from fwdad.frontend.syntax.growing_lists.growing import Items
from fwdad.frontend.syntax.iterators import Iterator
from fwdad.frontend.syntax.symbols import Maybe, Optional, Poison
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, Type, number_type

_Build = Callable[[list[Any], bool], Any]


class Tree:
    """The structure of a flattened value, which rebuilds it by ``build(leaves, tangent)``."""

    def __init__(self, build: _Build) -> None:
        self._build = build

    def __call__(self, leaves: list[Any]) -> Any:
        """The value with other leaves."""
        return self._build(leaves, False)

    def tangent(self, leaves: list[Any]) -> Any:
        """A tangent from its leaves; that of a number in a special format is a float."""
        return self._build(leaves, True)


def flatten(
    x: Any, *, records: bool = False, place: Location | None = None
) -> tuple[list[Any], Tree]:
    """The numbers and arrays of a value, and the tree that rebuilds it from others.

    With ``records``, the user's objects are flattened, too. ``UntraceableError``, at ``place``, if
    a part may be None or missing.
    """
    leaves: list[Any] = []

    def take(node: Any) -> _Build:
        if is_leaf(node):
            k = len(leaves)
            leaves.append(node)
            return lambda values, t: values[k]
        if isinstance(node, (tuple, list)):
            parts = [take(item) for item in node]
            if hasattr(node, "_fields"):
                return lambda values, t: type(node)(*(p(values, t) for p in parts))
            return lambda values, t: type(node)(p(values, t) for p in parts)
        if isinstance(node, dict):
            items = {key: take(item) for key, item in node.items()}
            cls = type(node) if isinstance(node, collections.OrderedDict) else dict
            return lambda values, t: cls((key, p(values, t)) for key, p in items.items())
        if isinstance(node, Items):
            node.refused("taking or returning, in a differentiated function,")
        if isinstance(node, Iterator):
            raise UntraceableError(
                "an iterator is passed to, or returned by, a recursive or differentiated "
                "function, which cannot be traced: make a list of it"
            )
        if isinstance(node, (Maybe, Optional, Poison)):
            message = (
                "a value that may be None or unbound is used as a whole: return a number or an "
                "array on every path"
            )
            raise UntraceableError(message, place)
        if records and is_record(node):
            fields = {name: take(part) for name, part in attributes_of(node).items()}

            def build(values: list[Any], t: bool) -> Any:
                record = getattr(type(node), "__fwdad_record__", None)
                if t and record is not None:
                    return fields[record](values, t)
                traced = traced_object(type(node))
                for name, part in fields.items():
                    object.__setattr__(traced, name, part(values, t))
                return traced

            return build
        return lambda _, __: node

    return leaves, Tree(take(x))


def made_in(recorder: Any, x: Any) -> Any:
    """Mark the lists, dicts and objects of a value as made by the traced program."""
    if is_leaf(x):
        return x
    if isinstance(x, (tuple, list)):
        parts = list(x)
    elif isinstance(x, dict):
        parts = list(x.values())
    elif is_record(x):
        parts = list(attributes_of(x).values())
    else:
        return x
    for part in parts:
        made_in(recorder, part)
    if not isinstance(x, tuple):
        recorder.journal.own(vars(x) if is_record(x) and not isinstance(x, (list, dict)) else x)
    return x


def is_leaf(x: Any) -> bool:
    """Whether a value is one number or array."""
    return type(x) is Symbol or isinstance(x, np.ndarray) or number_type(x) is not None


def signature(x: Any) -> Hashable:
    """The static part of a value: structure, ranks, dtypes and everything that is no leaf."""
    if is_leaf(x):
        return kind(_type(x))
    if isinstance(x, (tuple, list)):
        return (type(x), *(signature(item) for item in x))
    if isinstance(x, dict):
        return (dict, *((key, signature(item)) for key, item in x.items()))
    try:
        hash(x)
    except TypeError:
        return id(x)
    return x


def _type(x: Any) -> Type:
    if type(x) is Symbol:
        return x.type
    if isinstance(x, np.ndarray):
        return ArrayType(x.dtype, x.shape)
    number = number_type(x)
    assert number is not None
    return number


def kind(t: Type) -> Hashable:
    """A type without its lengths."""
    return (t.dtype, t.python) if isinstance(t, Number) else (t.dtype, t.ndim, "array")
