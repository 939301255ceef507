"""The error for a function without a rule."""

from __future__ import annotations

import inspect
from typing import Any

from fwdad.builder.activity import is_active
from fwdad.errors import MissingRuleError
from fwdad.rules.registry import function_name


def missing_rule(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> MissingRuleError:
    """The error for a function that has neither a rule nor a source."""
    name = function_name(f)
    short = name.rpartition(".")[2]
    where = _first_active(f, args, kwargs)
    message = (
        f"no frule for {name} ({where} carries a derivative), and its source is not Python. "
        f"Write one:\n    @fwdad.frule({_public(name)})\n"
        f"    def {short}_frule(primals, tangents):\n"
        "        ...\n        return y, y_dot\n"
        "or say fwdad.stop_gradient(...) where no derivative is wanted"
    )
    return MissingRuleError(message)


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
