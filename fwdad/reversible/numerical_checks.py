"""Numerical checks of a reversible function: of its inverse, and of its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import InvertibilityError, UnsupportedTypeError, type_in_words
from fwdad.reversible.arguments.kinds import Exact, kind_of
from fwdad.reversible.arguments.records import flat_kinds, flat_values, rebuilt
from fwdad.reversible.function import Bound, Reversible
from fwdad.reversible.numbers.logarithmic import log_of, value_of


def check_inverse(
    f: Reversible | Bound, *args: Any, rtol: float = 1e-9, atol: float = 0.0
) -> float:
    """Undo a reversible function, and compare with the arguments.

    Parameters
    ----------
    f : Reversible or method
        The function.
    *args : object
        Its arguments.
    rtol, atol : float
        How far a float may be from what it was: ``atol + rtol * |value|``; where it was zero, of
        the value that the function returns there. Everything else must be the same.

    Returns
    -------
    float
        The largest error, over the same sizes: rounding, which accumulates.

    Raises
    ------
    InvertibilityError
        If a value is further off, or if a check fails on the way.
    """
    f, args = _unbound(f, args)
    results = f(*args)
    between = results if len(args) > 1 else (results,)
    back = (~f)(*between)
    kinds = tuple(kind_of(a) for a in args)
    before = flat_values(args, kinds)
    after = flat_values(back if len(args) > 1 else (back,), kinds)
    worst = 0.0
    middle = flat_values(between, kinds)
    together = zip(before, middle, after, flat_kinds(kinds), strict=True)
    for k, (a, y, b, kind) in enumerate(together):
        a, b = np.asarray(a), np.asarray(b)
        if kind.active and not isinstance(kind, Exact):
            gap, size = np.abs(b - a), np.where(a == 0, np.abs(y), np.abs(a))
            wrong = ~(gap <= atol + rtol * size)
            error = gap / np.where(size == 0, 1.0, size)
            worst = max(worst, float(np.max(error, initial=0.0)))
        else:
            wrong = a != b
        if np.any(wrong):
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            where = f"value {k} of the arguments" + (f" at {at}" if at else "")
            raise InvertibilityError(
                f"after undoing {f.__name__}, {where}",
                f.definition.forward.params[min(k, len(args) - 1)],
                f.definition.forward.filename,
                f.definition.f.__code__.co_firstlineno,
                a[at],
                b[at],
            )
    return worst


def check_gradient(
    f: Reversible | Bound, *args: Any, rtol: float = 1e-6, rng: np.random.Generator | None = None
) -> float:
    """Compare the cotangents of a reversible function with finite differences.

    Parameters
    ----------
    f : Reversible or method
        The function.
    *args : object
        Its arguments; it must be smooth around them.
    rtol : float, default 1e-6
        How far the derivative along one random direction, of a random weighting of everything
        that the function returns, may be off: over the sum of its parts' sizes.
    rng : numpy.random.Generator, optional
        Draws direction and weights. The differences are central, with steps of 2e-3 and 1e-3 of
        the direction, extrapolated (Richardson): their own error is of the fourth order.

    Returns
    -------
    float
        How far it is off.

    Raises
    ------
    AssertionError
        If it is further off.
    """
    f, args = _unbound(f, args)
    rng = np.random.default_rng(0) if rng is None else rng
    kinds = tuple(kind_of(a) for a in args)
    flat = flat_kinds(kinds)
    values = flat_values(args, kinds)
    active = [k for k, kind in enumerate(flat) if kind.active]
    if not active:
        message = f"{f.__name__} has no floats among its arguments"
        raise UnsupportedTypeError(message)
    direction, weights = ({k: _draw(rng, values[k]) for k in active} for _ in range(2))

    def new_values(moved: list[Any]) -> list[Any]:
        results = f(*rebuilt(args, kinds, iter(moved)))
        return flat_values(results if len(args) > 1 else (results,), kinds)

    def along(t: float) -> Any:
        moved = [
            _moved(flat[k], v, t * direction[k]) if k in direction else v
            for k, v in enumerate(values)
        ]
        total = 0.0
        for k, y in enumerate(new_values(moved)):
            if k in weights:
                total = total + np.sum(np.real(np.conj(weights[k]) * _value(flat[k], y)))
        return total

    adjoint = f.definition.pure(kinds, f.inverse, adjoint=True).function
    updated = f.definition.updated(kinds)
    bars = [np.copy(weights[k])[()] for k in active if k in updated]
    gradient = dict(zip(active, adjoint(*new_values(values), *bars), strict=True))
    for k in active:
        if k not in updated:  # it is returned as it is
            gradient[k] = gradient[k] + weights[k]
    parts = [np.real(np.conj(gradient[k]) * direction[k]) for k in active]
    slope = float(sum(np.sum(p) for p in parts))
    wide, narrow = (float(along(h) - along(-h)) / (2 * h) for h in (2e-3, 1e-3))
    expected = narrow + (narrow - wide) / 3
    size = float(sum(np.sum(np.abs(p)) for p in parts)) or 1.0
    off = abs(slope - expected) / size
    if not off <= rtol:
        message = (
            f"the cotangents of {f.__name__} give the directional derivative {slope!r}, finite "
            f"differences {expected!r}"
        )
        raise AssertionError(message)
    return off


def _unbound(f: Any, args: tuple[Any, ...]) -> tuple[Reversible, tuple[Any, ...]]:
    """A method as a function, with its object as the first argument."""
    if not isinstance(f, (Reversible, Bound)):
        message = f"expected a function under @reversible; got {type_in_words(f)}"
        raise UnsupportedTypeError(message)
    return (f.function, (f.owner, *args)) if isinstance(f, Bound) else (f, args)


def _value(kind: Any, stored: Any) -> Any:
    return value_of(stored) if isinstance(kind, Exact) and kind.is_log else stored


def _moved(kind: Any, stored: Any, by: Any) -> Any:
    if isinstance(kind, Exact) and kind.is_log:
        return log_of(value_of(stored) + by, kind.format.scale)
    return stored + by


def _draw(rng: np.random.Generator, x: Any) -> Any:
    x = np.asarray(x)
    drawn = rng.uniform(0.5, 1.5, x.shape) * rng.choice([-1.0, 1.0], x.shape)
    if x.dtype.kind == "c":
        drawn = drawn + 1j * rng.uniform(-1.0, 1.0, x.shape)
    drawn = drawn.astype(x.dtype)
    return drawn if x.ndim else drawn[()]
