"""Functions under ``jit`` with their arguments bound: calls that look at nothing again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.drivers.executable import entry_without_arguments
from fwdad.frontend.fast_path import bound_call
from fwdad.frontend.parts_of_calls import Parts
from fwdad.rules.core.registry import when_changed
from fwdad.tangents.composite import flatten
from fwdad.transforms.passes import SMALL

_RULES = [0]  # how often rules were registered


@when_changed
def _count() -> None:
    _RULES[0] += 1


def _for_these_lengths(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function, or one of its own for small arrays, which live in registers then."""
    arrays = [x for x in flatten((args, kwargs))[0] if isinstance(x, np.ndarray)]
    if not arrays or any(x.size > SMALL for x in arrays):
        return jitted
    return jitted.with_static_shapes()


def bound(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any]:
    """What :meth:`Jitted.bind` returns; the function is called once."""
    jitted(*args, **kwargs)

    def again() -> Any:
        return jitted(*args, **kwargs)

    made, leaves, _ = _for_these_lengths(jitted, args, kwargs).find(args, kwargs)
    if made.tape.follows or made.tape.aliased(leaves):
        return again
    parts = Parts()
    given, named = parts.call(args, kwargs)
    parts.take([*given, *named.values()])
    entry = entry_without_arguments(made.tape.program, jitted.backend, leaves)
    if entry is None or not parts.possible:
        return again
    return bound_call(made.tape, entry, parts, jitted.counted, again, _RULES) or again
