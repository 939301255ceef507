"""How a function is differentiated by reverse mode: by which tape, or why by none."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.tape_cache import Reversed, apart, found, hindrance, on_copies
from fwdad.errors import NOTE, NonScalarOutputError, NoOutputError, SeedError, UnsupportedTypeError
from fwdad.evaluation.arguments import Argnums, Function
from fwdad.frontend.derivatives.pulled import value_alone
from fwdad.tangents.composite import flatten


class Path(NamedTuple):
    """How a function is differentiated by reverse mode.

    Attributes
    ----------
    made : object
        The specialisation whose tape is run; None if there is none.
    leaves : list
        The tape's inputs.
    reason : str
        Why there is none.
    error : Exception or None
        What making it has raised, or running it.
    """

    made: Any
    leaves: list[Any]
    reason: str
    error: Exception | None = None


def differentiated(f: Any) -> tuple[Any, Argnums]:
    """What ``grad(f)``, or ``jit`` of it, differentiates, and with respect to which arguments.

    Parameters
    ----------
    f : callable
        Any; another function is itself, with respect to its first argument.
    """
    argnums: Any = 0
    while hasattr(f, "_argnums") or isinstance(f, Jitted):
        argnums = getattr(f, "_argnums", argnums)
        f = f.__wrapped__
    return f, argnums


def written_path(
    evaluate: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any,
    *, with_value: bool = False,
) -> Path:  # fmt: skip
    """The tape that reverse mode runs for some arguments, or why there is none.

    Parameters
    ----------
    evaluate : callable
        :func:`pulled_gradient`, :func:`value_and_pullback` or :func:`measured_value`.
    f, argnums, args, kwargs, options
        As :func:`value_and_gradient` takes them.
    with_value : bool
        Whether a cotangent of f's value, ones, is one more argument.
    """
    noted, NOTE.sink = NOTE.sink, None
    try:
        if with_value:
            value = Jitted(Reversed(value_alone, f, argnums, options), "numpy")
            made, leaves, containers = found(value, args, kwargs)
            values = made.run(*on_copies(made.tape, leaves))
            y = made.tape.rebuild(apart(values, leaves), containers)
            args = (*args, ones_like(y))
        held = Jitted(Reversed(evaluate, f, argnums, options), "numpy")
        made, leaves, _ = found(held, args, kwargs)
    except (UnsupportedTypeError, SeedError, NoOutputError, NonScalarOutputError):
        raise
    except Exception as error:  # noqa: BLE001  (it is the result)
        return Path(None, [], _said(error), error)
    finally:
        NOTE.sink = noted
    reason = hindrance(made.tape, leaves)
    return Path(None, [], reason) if reason else Path(made, leaves, "")


def ones_like(y: Any) -> tuple[Any, ...]:
    """A cotangent of ones, leaf by leaf, as the tape of a reverse pass takes it.

    Parameters
    ----------
    y : object
        The value.
    """
    leaves, _ = flatten(y)
    return tuple(np.ones_like(v) if isinstance(v, np.ndarray) else type(v)(1) for v in leaves)


def _said(error: Exception) -> str:
    """What an error says, with the user's line."""
    place = getattr(error, "filename", None)
    line = getattr(error, "lineno", None)
    text = (getattr(error, "text", None) or "").strip()
    what = getattr(error, "msg", None) or f"{type(error).__name__}: {error}"
    head = f"{place}:{line}: " if place and line else ""
    return f"{head}{what}" + (f"\n    {text}" if text else "")
