"""Gradients in reverse mode.

A function's tape is run forward and backward. A function that cannot be traced is recorded as it
runs, and the record is run backward.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.drivers.tape_cache import is_real, tape_for, traced
from fwdad.eager.activity import is_active
from fwdad.eager.arguments import Arguments, copied
from fwdad.eager.build import run_on_duals
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager_reverse import run_recorded
from fwdad.errors import NOTE, MissingTransposeError
from fwdad.evaluation.arguments import Argnums, Function, arguments_of, positions_of
from fwdad.evaluation.evaluators import value_and_jacobian
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.pulled import (
    check_scalar,
    install,
    pulled_gradient,
    traced_gradient,
)
from fwdad.frontend.fast_path import MISS
from fwdad.ir.leaves import leaves_in
from fwdad.ir.primitives.opaque_call import Whole
from fwdad.tangents.composite import unflatten
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype
from fwdad.tangents.zero import NoTangent, Zero
from fwdad.transforms.reverse import opaque_call


def value_and_gradient(
    f: Function, argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any], options: Any
) -> Any:
    """Value and gradient of a function whose value is one real number.

    The ``options`` are ``has_aux``, whether f returns ``(y, aux)``, and ``value``, whether the
    value is wanted: if not, a tape skips what only the value needs, and None is returned in its
    place.
    """
    if not (kwargs or SHADOWED):
        held, failed = tape_for(pulled_gradient, f, argnums, options), None
        try:
            answer = MISS if held is None else held.quickly(args)
        except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
            answer, failed = MISS, Untraced(f, error)
        if answer is not MISS:
            return answer
        if failed is not None:
            with failed.instead():
                return _without_shortcut(f, argnums, args, kwargs, options)
    return _without_shortcut(f, argnums, args, kwargs, options)


def _without_shortcut(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    if not all(is_real(args[k]) for k in positions_of(argnums, len(args))):
        return _untraced(f, argnums, args, kwargs, options)
    answer = traced(pulled_gradient, f, argnums, args, kwargs, options)
    if not isinstance(answer, Untraced):
        return answer
    with answer.instead():
        return _untraced(f, argnums, args, kwargs, options)


def _untraced(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """Value and gradient without a tape: from a recorded run, or in forward mode."""
    if is_active((*args, *kwargs.values())):
        noted, NOTE.sink = NOTE.sink, None  # what is refused here is run in another way
        try:
            return _at_once(f, argnums, args, kwargs, options)
        except MissingTransposeError:  # a second derivative needs no reverse pass
            pass
        finally:
            NOTE.sink = noted
        return _forward(f, argnums, args, kwargs, options)
    return _at_once(f, argnums, args, kwargs, options)


def _at_once(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """Value and gradient from a recorded run of f."""
    has_aux = options["has_aux"]
    arguments, single = arguments_of(f, args[0], args[1:], kwargs, argnums)
    outcome = run_recorded(f, arguments, has_aux=has_aux)
    if outcome.structure.kind != "leaf":
        check_scalar(outcome.y, f)
    if not outcome.leaves:  # an integer, or a truth value: a constant
        check_scalar(outcome.y, f)
        zeros = in_trees([_zeros(x) for x in arguments.leaves], arguments, single=single)
        return ((outcome.y, copied(outcome.aux)), zeros) if has_aux else (outcome.y, zeros)
    check_scalar(plain(outcome.leaves[0]), f)
    x_bars = outcome.pull([np.ones(np.shape(plain(outcome.leaves[0])))[()]])
    gradient = in_trees(written_out(x_bars, arguments.leaves), arguments, single=single)
    return ((outcome.y, copied(outcome.aux)), gradient) if has_aux else (outcome.y, gradient)


def _forward(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """Value and gradient in forward mode."""
    has_aux = options["has_aux"]
    scalar = _ScalarValued(f, has_aux=has_aux)
    result = value_and_jacobian(
        scalar, args[0], args=args[1:], kwargs=kwargs, argnums=argnums, has_aux=has_aux
    )
    y, gradient = result[:2]
    return ((y, result[2]), gradient) if has_aux else (y, gradient)


class _ScalarValued:
    """f, with a check that it returns one real number."""

    def __init__(self, f: Function, *, has_aux: bool) -> None:
        self.f = f
        self.has_aux = has_aux
        self.__name__ = getattr(f, "__name__", "f")
        self.__qualname__ = getattr(f, "__qualname__", "f")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = run_on_duals(self.f, args, kwargs)
        y = result[0] if self.has_aux and isinstance(result, tuple) and result else result
        if y is not None:
            check_scalar(plain(y), self)
        return result


def written_out(x_bars: list[Any], leaves: list[Any]) -> list[Any]:
    """Cotangents of leaves, with zeros written out where there are none."""
    return [
        _zeros(leaf) if isinstance(x_bar, Zero) else x_bar
        for x_bar, leaf in zip(x_bars, leaves, strict=True)
    ]


def _zeros(leaf: Any) -> Any:
    leaf = plain(leaf)
    return np.zeros_like(leaf) if isinstance(leaf, np.ndarray) else type(leaf)(0)


def in_trees(parts: list[Any], arguments: Any, *, single: bool) -> Any:
    """One item for each leaf of the arguments, in the structures of the arguments."""
    parts = [_as_wide(part, x) for part, x in zip(parts, arguments.leaves, strict=True)]
    trees, start = [], 0
    for structure, count in zip(arguments.structures, arguments.counts, strict=True):
        trees.append(unflatten(structure, parts[start : start + count], lambda _: NoTangent))
        start += count
    return trees[0] if single else tuple(trees)


def _as_wide(part: Any, x: Any) -> Any:
    """A cotangent under a derivative, made complex for a complex x even if it came as real."""
    if not isinstance_dual(part) or leaf_dtype(x).kind != "c" or part.dtype.kind == "c":
        return part
    return call(operator.add, part, 0j)


def _pull_whole(
    function: Any, args: Any, kwargs: Any, active: Any, given: list[bool], bars: Any
) -> list[Any]:
    """The cotangents of one call's active arguments; the call is recorded."""
    values: list[Any] = []
    _collect(active, (args, kwargs), values)

    def called(*leaves: Any) -> Any:
        remaining = iter(leaves)
        own_args, own_kwargs = _with(active, (args, kwargs), remaining)
        if isinstance(function, Whole):
            y = function(*own_args, **own_kwargs)
        else:
            y = call(function, *own_args, **own_kwargs)
        parts = list(leaves_in(y))
        return tuple(part for part, has in zip(parts, given, strict=True) if has)

    arguments = Arguments(tuple(values), {}, tuple(range(len(values))))
    outcome = run_recorded(called, arguments)
    return written_out(outcome.pull(list(bars)), values)


def _collect(active: Any, values: Any, found: list[Any]) -> None:
    if isinstance(active, dict):
        for key, item in active.items():
            _collect(item, values[key], found)
    elif isinstance(active, (tuple, list)):
        for item, value in zip(active, values, strict=True):
            _collect(item, value, found)
    elif active:
        found.append(values)


def _with(active: Any, values: Any, leaves: Any) -> Any:
    """Values with ``leaves`` in place of the active ones."""
    if isinstance(active, dict):
        return {key: _with(item, values[key], leaves) for key, item in active.items()}
    if isinstance(active, (tuple, list)):
        return type(active)(
            _with(item, value, leaves) for item, value in zip(active, values, strict=True)
        )
    return next(leaves) if active else values


install(_at_once)
opaque_call.install(_pull_whole)
builtin(value_and_gradient)(traced_gradient)
