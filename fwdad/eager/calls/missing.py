"""The error for a function without a rule."""

from __future__ import annotations

import inspect
import sys
from types import FrameType
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.errors import MissingRuleError, is_library_file
from fwdad.rules.core.registry import function_name


def missing_rule(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> MissingRuleError:
    """The error for a function that has neither a rule nor a source."""
    name = function_name(f)
    where = _first_active(f, args, kwargs)
    asked = _called_by_the_user()
    within = f", within {asked}" if asked is not None else ""
    message = (
        f"no frule for {name} ({where} carries a derivative){within}, and its source is not "
        f"Python. {rule_to_write(f, asked)}"
    )
    return MissingRuleError(message)


def rule_to_write(f: Any, asked: str | None = None) -> str:
    """How to write a rule for a function, or for the one by the name ``asked`` that calls it."""
    name = _public(_importable(f, function_name(f)) if asked is None else asked)
    short = name.rpartition(".")[2].partition("[")[0]
    if asked is None and isinstance(f, np.ufunc) and f.nout == 1 and f.signature is None:
        rule = f"fwdad.elementwise({name}, {_partials(f.nin)} of {short}"
    else:
        rule = (
            f"@fwdad.frule({name})\n    def {short}_frule(primals, tangents):\n"
            "        ...\n        return y, y_dot"
        )
    otherwise = "or use fwdad.stop_gradient(...) where no derivative is needed"
    return f"Write one:\n    {rule}\n{otherwise}"


def _partials(count: int) -> str:
    """What ``elementwise`` takes for a ufunc of so many arguments, and the words for it."""
    if count == 1:
        return "lambda x, y: ...)   # the derivative"
    given = ", ".join(f"x{k}" for k in range(count))
    partials = ", ".join([f"lambda {given}, y: ..."] * count)
    return f"{partials})   # the partial derivatives"


def _called_by_the_user() -> str | None:
    """The running library function that the user's code has called, if any.

    This is the function for which users can write a rule; those that it calls may not concern them.
    """
    frame: FrameType | None = sys._getframe(2)
    caller = None
    while frame is not None:
        filename = frame.f_code.co_filename
        if not is_library_file(filename):
            break
        home = frame.f_globals.get("__name__", "")
        public = ".".join(part for part in home.split(".") if not part.startswith("_"))
        name = frame.f_code.co_name
        if home.split(".")[0] != "fwdad" and inspect.isfunction(
            getattr(sys.modules.get(public), name, None)
        ):
            caller = f"{public}.{name}"
        frame = frame.f_back
    return caller


def _importable(f: Any, name: str) -> str:
    """A name by which a function can be imported; a short one may skip private modules."""
    home, _, last = name.rpartition(".")
    if not home or getattr(sys.modules.get(home), last, None) is f:
        return name
    module = getattr(f, "__module__", None) or home
    return f"{module}.{last}" if getattr(sys.modules.get(module), last, None) is f else name


def _public(name: str) -> str:
    return name.replace("numpy.", "np.", 1) if name.startswith("numpy.") else name


def _first_active(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    for k, v in enumerate(args):
        if is_active((v,)):
            try:
                names = list(inspect.signature(f).parameters)
                return f"argument `{names[k]}`"
            except (ValueError, TypeError, IndexError):
                return f"argument {k}"
    return next(f"argument `{k}`" for k, v in kwargs.items() if is_active((v,)))
