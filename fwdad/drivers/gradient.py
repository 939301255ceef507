"""Gradients in reverse mode.

A function's tape is run forward and backward. A function that cannot be traced is recorded as it
runs, and the record is run backward.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.drivers.tape_cache import quickly, traced
from fwdad.eager.activity import is_active
from fwdad.eager.arguments import copied
from fwdad.eager.build import run_on_duals
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager_reverse import run_recorded, written_out, zeros_of
from fwdad.errors import NOTE, MissingTransposeError
from fwdad.evaluation.arguments import arguments_of
from fwdad.evaluation.by_tape import Question, asked_by
from fwdad.evaluation.evaluators import value_and_columns
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.pulled import (
    check_scalar,
    pulled_gradient,
    traced_gradient,
)
from fwdad.tangents.composite import unflatten
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype
from fwdad.tangents.zero import NoTangent


def value_and_gradient(
    f: Function, argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any], options: Any
) -> Any:
    """Value and gradient of a function whose value is one real number.

    The ``options`` are ``has_aux``, whether f returns ``(y, aux)``, and ``value``, whether the
    value is asked for: if not, a tape skips what only the value needs, and None is returned in its
    place.
    """

    def in_full() -> Any:
        return first_that_can("gradient", f, *_candidates(f, argnums, args, kwargs, options))

    return in_full() if kwargs else quickly(pulled_gradient, f, argnums, args, options, in_full)


def _candidates(
    f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> list[Candidate]:
    """A tape, a recorded run, and for a second derivative, which needs no reverse pass, duals."""
    arguments = f, argnums, args, kwargs, options
    tape = Candidate("tape", lambda: traced(pulled_gradient, *arguments))
    if not is_active((*args, *kwargs.values())):
        return [tape, Candidate("recorded run", lambda: _recorded(*arguments))]

    def recorded() -> Any:
        noted, NOTE.sink = NOTE.sink, None  # what is refused here is run in another way
        try:
            return _recorded(*arguments)
        except MissingTransposeError as error:
            return Untraced(f, error)
        finally:
            NOTE.sink = noted

    return [
        tape,
        Candidate("recorded run", recorded),
        Candidate("duals", lambda: _by_columns(*arguments)),
    ]


def _recorded(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """Value and gradient from a recorded run of f."""
    has_aux = options["has_aux"]
    arguments, single = arguments_of(f, args[0], args[1:], kwargs, argnums)
    outcome = run_recorded(f, arguments, has_aux=has_aux)
    if outcome.structure.kind != "leaf":
        check_scalar(outcome.y, f)
    if not outcome.leaves:  # an integer, or a truth value: a constant
        check_scalar(outcome.y, f)
        zeros = in_trees([zeros_of(x) for x in arguments.leaves], arguments, single=single)
        return ((outcome.y, copied(outcome.aux)), zeros) if has_aux else (outcome.y, zeros)
    check_scalar(plain(outcome.leaves[0]), f)
    x_bars = outcome.pull([np.ones(np.shape(plain(outcome.leaves[0])))[()]])
    gradient = in_trees(written_out(x_bars, arguments.leaves), arguments, single=single)
    return ((outcome.y, copied(outcome.aux)), gradient) if has_aux else (outcome.y, gradient)


def _by_columns(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """Value and gradient in forward mode."""
    has_aux = options["has_aux"]
    scalar = _ScalarValued(f, has_aux=has_aux)
    arguments, single = arguments_of(scalar, args[0], args[1:], kwargs, argnums)
    result = value_and_columns(scalar, arguments, single=single, chunk="auto", has_aux=has_aux)
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


def _asked(_f: Any, args: Any, _kwargs: Any, _look: Any) -> Question:
    f, argnums, given, named, options = args
    return Question(pulled_gradient, f, argnums, given, named, options)


asked_by(value_and_gradient, _asked)
builtin(value_and_gradient)(traced_gradient)
