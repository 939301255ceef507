"""What can be differentiated: ``supported(np.foo)``."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.core.tracebacks import public
from fwdad.eager.calls.dispatch import HANDLERS, python_inside
from fwdad.eager.calls.refusals import REFUSED
from fwdad.eager.calls.transparent import TRANSPARENT
from fwdad.eager.lifting.lift import lift
from fwdad.eager.lifting.why_missing import why_missing
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.rules.core.adjoints import TRANSPOSES
from fwdad.rules.core.registry import find_rule, function_name


@dataclass(frozen=True)
class Support:
    """Whether a function can be differentiated, and how.

    Attributes
    ----------
    forward : bool
        Whether there is a forward rule, or a source to build one from.
    transpose : bool
        Whether the function is linear in an argument and has its adjoint for it.
    argnums : tuple of str
        The arguments that may be active; ``("...",)`` when the source decides.
    reason : str
        Where the derivative comes from, or why there is none.
    """

    forward: bool
    transpose: bool
    argnums: tuple[str, ...]
    reason: str

    def __bool__(self) -> bool:
        return self.forward


@public
def supported(f: Callable[..., Any]) -> Support:
    """Tell whether fwdad can differentiate a function.

    Parameters
    ----------
    f : callable
        A function of NumPy, SciPy or your own.

    Returns
    -------
    Support
        True in a condition if forward mode works.

    Raises
    ------
    UnsupportedTypeError
        If f is no function.

    Notes
    -----
    The result is about ``f`` itself. A function without a rule whose source is Python is
    differentiated through that source, and then True says only that the source was found: what it
    calls is not looked at, because whether a call needs a rule depends on whether an argument of
    it carries a derivative. A missing one raises :class:`~fwdad.errors.MissingRuleError` when
    ``f`` runs, at the line of the call.

    Examples
    --------
    >>> import numpy as np
    >>> supported(np.sin)
    Support(forward=True, transpose=False, argnums=('x',), reason='elementwise rule')
    """
    if not callable(f):
        raise UnsupportedTypeError(f"supported takes a function; got {type_in_words(f)}")
    rule = find_rule(f)
    if rule is not None:
        if rule.kind == "constant":
            return Support(True, False, (), "locally constant: its value carries no tangent")
        if rule.stands_in:
            source = _python(f)
            forward = source is not None and lift(source) is not None
            reason = "rrule; forward mode " + (
                "through its Python source" if forward else "needs an frule"
            )
            return Support(forward, False, tuple(rule.binder.primals), reason)
        names = rule.binder.primals or (("*" + str(rule.binder.variadic),))
        return Support(True, f in TRANSPOSES, tuple(names), f"{rule.kind} rule")
    return _without_rule(f)


def _without_rule(f: Callable[..., Any]) -> Support:
    hashable = getattr(f, "__hash__", None) is not None
    if hashable and f in REFUSED:
        return Support(False, False, (), f"a derivative would be lost: it returns {REFUSED[f]}")
    if hashable and (f in HANDLERS or f in TRANSPARENT):
        return Support(True, False, ("...",), "handled by the rule builder")
    source = _python(f)
    if source is not None and lift(source) is not None:
        return Support(True, False, ("...",), "built from its Python source")
    reason = f"{function_name(f)} has no rule, and no Python source to build one from"
    if source is not None:
        reason += f": {why_missing(source)}"
    return Support(False, False, (), reason)


def _python(f: Any) -> types.FunctionType | None:
    if type(f).__module__.startswith("numba."):
        return python_inside(f)
    for candidate in (f, getattr(f, "_implementation", None), getattr(f, "__func__", None)):
        if isinstance(candidate, types.FunctionType):
            return candidate
    call = getattr(type(f), "__call__", None)  # noqa: B004  (the method itself is wanted)
    init = getattr(f, "__init__", None)
    if isinstance(f, type) and isinstance(init, types.FunctionType):
        return init
    return call if isinstance(call, types.FunctionType) and not isinstance(f, np.ufunc) else None
