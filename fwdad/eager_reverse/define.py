"""The decorator that registers a reverse rule: ``rrule``."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from fwdad.core.lifted_code import LIFTED
from fwdad.eager.build import push_through_source
from fwdad.errors import (
    PACKAGE,
    DuplicateRuleError,
    UnsupportedTypeError,
    UntraceableError,
    type_in_words,
)
from fwdad.rules.core.binding import Binder, binder_for
from fwdad.rules.core.containers import walk
from fwdad.rules.core.recording import OpaqueTangentError, RecordingTangent
from fwdad.rules.core.registry import (
    RULES,
    Rule,
    changed,
    enter,
    function_name,
    is_looked_into,
    positions_written,
    registering_place,
)
from fwdad.rules.core.reverse_rules import RRULES, B, ReverseRule, give_to_contents
from fwdad.tangents.symbolic import recorder_of
from fwdad.tangents.zero import ZERO, Zero

REGISTERS_FOR_OTHERS = True  # its callers are who registers a rule


def rrule(
    function: Any,
    *,
    argnums: int | str | Sequence[int | str] | None = None,
    signature: str | None = None,
    mutates: Sequence[int] = (),
    override: bool = False,
) -> Callable[[B], B]:
    """Register the decorated function as the reverse rule of ``function``.

    Parameters
    ----------
    function : callable
        The primal: a function of your own, in Python or compiled, that returns arrays of its own.
    argnums : int, str or sequence of these, optional
        The parameters that can be active, by position or name. Default: those without a default.
        They arrive in ``primals``; every other parameter arrives as a keyword option.
    signature : str, optional
        The primal's signature, where Python cannot tell it: ``"(a, b, /, *, axis=-1)"``.
    mutates : sequence of int, optional
        Positions of the primals that the function writes into, which must be arrays. The rule
        itself writes nothing: it returns ``(y, *new), pullback`` with the new contents of these
        primals, and the pullback takes cotangents ``(y_bar, *new_bar)``. What it returns for such a
        primal is the cotangent of its old contents.
    override : bool, default False
        Replace a reverse rule that exists.

    Returns
    -------
    callable
        A decorator. The decorated ``rule(primals, **options)`` returns ``(y, pullback)``.
        ``pullback(y_bar)`` takes one cotangent of the structure of ``y``, and returns a tuple with
        a cotangent for each of ``primals``, of its shape; None or ``ZERO`` where there is none.

    Raises
    ------
    UnsupportedTypeError
        If ``function`` is no function of Python or C, one of NumPy's, SciPy's or Python's own, or
        one made by code that is being differentiated.
    ValueError
        If ``argnums`` or ``mutates`` name no parameter, or ``signature`` is none.
    DuplicateRuleError
        If ``function`` has a reverse rule and ``override`` is False, is registered as elementwise,
        linear or constant, which are run backwards by what they say, or has an frule with another
        ``mutates``.

    Notes
    -----
    All of reverse mode uses the rule where an argument of ``function`` is active. The pullback is
    the adjoint under Re<., .>. It is called once for each cotangent, any number of times, and must
    return the same each time. The rule gets copies of its arrays, and its result is copied, so
    that the pullback may keep both whatever is written later.

    Forward mode uses the :func:`frule` of ``function``, else its Python source. Second derivatives
    go through the source of the rule and of the pullback; if these call compiled code with a value
    that is differentiated, that code needs a rule of its own. Test a rule by
    :func:`fwdad.testing.check_rrule`.

    Examples
    --------
    >>> import numpy as np
    >>> import fwdad
    >>> def logistic(x):
    ...     return 1 / (1 + np.exp(-x))
    >>> @fwdad.rrule(logistic)
    ... def logistic_rrule(primals):
    ...     y = logistic(*primals)
    ...
    ...     def pullback(y_bar):
    ...         return (y * (1 - y) * y_bar,)
    ...
    ...     return y, pullback
    >>> fwdad.grad(lambda x: np.sum(logistic(x)))(np.zeros(2))
    array([0.25, 0.25])
    """
    if _is_called_otherwise(function):
        message = (
            "rrule takes a function of your own, in Python or compiled; got "
            f"{type_in_words(function)} ({function_name(function)}). Call it in a function of "
            "your own, and write the rrule for that"
        )
        raise UnsupportedTypeError(message)
    if id(getattr(function, "__code__", None)) in LIFTED:
        message = (
            f"{function_name(function)} is defined inside code that is being differentiated, "
            "where it cannot have an rrule: define it and its rrule outside, with everything "
            "that it reads as arguments"
        )
        raise UnsupportedTypeError(message)
    binder = binder_for(function, function_name(function), signature, argnums)
    written = positions_written(mutates, binder)
    origin = registering_place()

    def register(body: B) -> B:
        if not callable(body):
            message = f"rrule(f) decorates the rule, a function; got {type_in_words(body)}"
            raise UnsupportedTypeError(message)
        existing = RRULES.get(function)
        if existing is not None and not override:
            message = (
                f"{function_name(function)} already has a reverse rule, registered at "
                f"{existing.origin}; pass override=True to replace it"
            )
            raise DuplicateRuleError(message)
        forward = RULES.get(function)
        if forward is not None and forward.kind != "frule":
            message = (
                f"{function_name(function)} is registered as {forward.kind} at {forward.origin}, "
                "which already defines its reverse mode. Only an frule can have an rrule beside "
                "it"
            )
            raise DuplicateRuleError(message)
        if forward is not None and not forward.stands_in and forward.mutates != written:
            message = (
                f"the frule of {function_name(function)} at {forward.origin} says "
                f"mutates={forward.mutates!r}, but the rrule says mutates={written!r}"
            )
            raise DuplicateRuleError(message)
        RRULES[function] = ReverseRule(function, body, binder, origin, written)
        if forward is None or forward.stands_in:
            RULES.pop(function, None)
            enter(function, lambda _: _standing_in(function, binder, written), override=False)
        else:
            give_to_contents(forward)
        changed()
        return body

    return register


def _standing_in(function: Any, binder: Binder, mutates: tuple[int, ...]) -> Rule:
    """The substitute for the missing frule of a function with an rrule."""

    def body(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
        if all(isinstance(t, Zero) for t in tangents):
            args, kwargs = binder.unbind(primals, options)
            return (rule.pure or function)(*args, **kwargs), ZERO
        if any(isinstance(t, RecordingTangent) for _, t in walk(tangents)):
            message = (
                f"{function_name(function)} has an rrule but no frule, so it cannot be recorded"
            )
            raise OpaqueTangentError(message)
        if recorder_of(*primals, *options.values()) is not None:
            message = f"{function_name(function)} has an rrule but no frule: it runs as a whole"
            raise UntraceableError(message)
        return push_through_source(rule, primals, tangents, options)

    rule = Rule(function, "frule", body, binder, mutates=mutates, stands_in=True, returns="new")
    return rule


_LIBRARIES = {
    "numpy", "scipy", "builtins", "math", "cmath", "operator", "_operator", "itertools",
    "functools", "random", "copy",
}  # fmt: skip


def _is_called_otherwise(function: Any) -> bool:
    """Whether an object is not a function, or some calls of it would bypass its rule."""
    if not callable(function) or hasattr(function, "nin") or is_looked_into(function):
        return True
    if (getattr(function, "__module__", None) or "builtins").split(".")[0] in _LIBRARIES:
        return True
    return isinstance(function, types.FunctionType) and function.__code__.co_filename.startswith(
        PACKAGE
    )
