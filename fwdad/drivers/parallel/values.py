"""Values of functions as JSON and arrays, without a pickle: what a checkpoint keeps of f(x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import CheckpointError, type_in_words

_PLAIN = (bool, int, str, type(None))
_NUMBERS = {"float": float, "complex": complex}


def encoded(x: Any, arrays: list[Any]) -> Any:
    """A tree of JSON, whose arrays and floats are put behind the others in ``arrays``."""
    if type(x) in _PLAIN:
        return {"is": x}
    if type(x) in (tuple, list):
        return {type(x).__name__: [encoded(item, arrays) for item in x]}
    if type(x) is dict:
        keys = [encoded(key, arrays) for key in x]
        return {"dict": [keys, [encoded(item, arrays) for item in x.values()]]}
    if type(x) in (float, complex):
        kind = type(x).__name__
    elif isinstance(x, np.generic) and not x.dtype.hasobject:
        kind = "scalar"
    elif type(x) is np.ndarray and not x.dtype.hasobject:
        kind = "array"
    else:
        raise CheckpointError(
            f"checkpoint_to=: f's value holds {type_in_words(x)}, and a checkpoint keeps numbers, "
            "arrays, tuples, lists and dicts: let f return these"
        )
    arrays.append(np.asarray(x))
    return {kind: len(arrays) - 1}


def decoded(tree: Any, arrays: list[Any]) -> Any:
    """The value again."""
    ((kind, content),) = tree.items()
    if kind == "is":
        return content
    if kind in ("tuple", "list"):
        items = [decoded(item, arrays) for item in content]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        keys, items = ([decoded(item, arrays) for item in part] for part in content)
        return dict(zip(keys, items, strict=True))
    a = arrays[content]
    if kind == "array":
        return a
    return a[()] if kind == "scalar" else _NUMBERS[kind](a[()])
