"""The choice of a tape by which reverse mode differentiates a function, or the reason for none."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.tape_cache import Reversed, apart, found, on_copies, why_not_reusable
from fwdad.errors import NOTE, NonScalarOutputError, NoOutputError, SeedError, UnsupportedTypeError
from fwdad.evaluation.arguments import Argnums, Function
from fwdad.frontend.derivatives.pulled import value_alone
from fwdad.tangents.composite import flatten


class Path(NamedTuple):
    """How a function is differentiated in reverse mode.

    ``made`` is the specialisation whose tape is run and ``leaves`` are its inputs. Without a tape
    it is None: ``reason`` says why, and ``error`` is what tracing or running it has raised.
    """

    made: Any
    leaves: list[Any]
    reason: str
    error: Exception | None = None


def differentiated(f: Any) -> tuple[Any, Argnums]:
    """The function that ``grad(f)``, or ``jit`` of it, differentiates, and its argnums.

    Any other function is returned as it is, with 0.
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

    With ``with_value``, a cotangent of ones for f's value becomes an additional last argument.
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
    reason = why_not_reusable(made.tape, leaves)
    return Path(None, [], reason) if reason else Path(made, leaves, "")


def ones_like(y: Any) -> tuple[Any, ...]:
    """A cotangent of ones for each leaf of y, as the tape of a reverse pass takes them."""
    leaves, _ = flatten(y)
    return tuple(np.ones_like(v) if isinstance(v, np.ndarray) else type(v)(1) for v in leaves)


def _said(error: Exception) -> str:
    """An error's message, with the user's line."""
    place = getattr(error, "filename", None)
    line = getattr(error, "lineno", None)
    text = (getattr(error, "text", None) or "").strip()
    what = getattr(error, "msg", None) or f"{type(error).__name__}: {error}"
    head = f"{place}:{line}: " if place and line else ""
    return f"{head}{what}" + (f"\n    {text}" if text else "")
