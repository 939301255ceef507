"""What can be differentiated: ``supported(np.foo)``."""

from __future__ import annotations

import itertools
import types
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fwdad.api.sample_calls import SampleCall, call_with, is_draw, may_be_called, sample_calls
from fwdad.codegen.numba_support import have_numba
from fwdad.core.tracebacks import public
from fwdad.display.html import fields_framed
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.pullback import vjp
from fwdad.eager.build import unseen
from fwdad.eager.calls.dispatch import HANDLERS, python_inside
from fwdad.eager.calls.refusals import REFUSED
from fwdad.eager.calls.transparent import TRANSPARENT
from fwdad.eager.lifting.lift import lift
from fwdad.eager.lifting.why_missing import why_missing
from fwdad.errors import NotHolomorphicError, UnsupportedTypeError, message_of, type_in_words
from fwdad.evaluation.evaluators import jvp
from fwdad.rules.core.registry import RULES, find_rule, function_name, import_pending
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tangents.seeds import leaf_dtype, leaf_shape
from fwdad.tangents.zero import NoTangent


@dataclass(frozen=True)
class Answer:
    """Whether something can be done with a function, and why.

    Attributes
    ----------
    yes : bool
        Whether it can; this is also what the answer is in a condition.
    reason : str
        How, or why not.
    """

    yes: bool
    reason: str

    def __bool__(self) -> bool:
        return self.yes

    def __str__(self) -> str:
        return f"{'yes' if self.yes else 'no'}: {self.reason}"


@dataclass(frozen=True)
class Support:
    """Whether a function can be differentiated, and how; made by :func:`supported`.

    Attributes
    ----------
    forward, reverse, compiled : Answer
        Whether it has a derivative in forward mode, whether in reverse mode, and whether the
        function and its forward derivative are compiled by Numba as a whole under :func:`jit`.
        Each is true or false in a condition, and has a ``reason``.
    argnums : tuple of str
        The arguments that may be active; ``("...",)`` when the source decides.
    tried : str
        The arguments of the calls that were made to find out; empty where none was made.
    """

    forward: Answer
    reverse: Answer
    compiled: Answer
    argnums: tuple[str, ...]
    tried: str = ""

    def __bool__(self) -> bool:
        return self.forward.yes

    @property
    def reason(self) -> str:
        """Where the forward derivative comes from, or why there is none."""
        return self.forward.reason

    def __str__(self) -> str:
        lines = [f"forward   {self.forward}", f"reverse   {self.reverse}",
                 f"compiled  {self.compiled}"]  # fmt: skip
        return "\n".join([*lines, f"tried with ({self.tried})"] if self.tried else lines)

    def _repr_html_(self) -> str:
        return fields_framed("can it be differentiated?", self)


@public
def supported(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Support:
    """Tell whether fwdad can differentiate a function: forward, in reverse, and compiled.

    Parameters
    ----------
    f : callable
        A function of NumPy, SciPy or your own.
    *args, **kwargs
        Example arguments, which stay as they are. The results then hold for these arguments;
        derivatives are taken with respect to the positional ones that hold floats.

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
    What it says, it has tried: it takes the derivatives, and traces f. A function of NumPy or SciPy
    that has a rule is called with sample arguments, of which some fit most functions; options such
    as ``axis`` keep their defaults. Your own functions are called only if you give arguments.
    Without, the result is about ``f`` itself. If it is differentiated through its Python source,
    True says only that the source was found: what it calls is not looked at, because whether a call
    needs a rule depends on whether an argument of it carries a derivative. A missing one raises
    :class:`~fwdad.errors.MissingRuleError` when ``f`` runs, at the line of the call.

    What is not compiled runs under NumPy, called by the compiled program around it. Without Numba
    nothing is compiled.

    Examples
    --------
    >>> import numpy as np
    >>> answer = supported(np.sort)
    >>> bool(answer.forward), bool(answer.reverse), answer.argnums
    (True, True, ('a',))
    >>> answer.reason
    'frule'
    """
    if not callable(f):
        raise UnsupportedTypeError(f"supported takes a function; got {type_in_words(f)}")
    known = _by_rule(f)
    if args or kwargs:
        return _tried(known, [call_with(f, args, kwargs)])
    rule = find_rule(f)
    if rule is None or rule.of_user or not may_be_called(f):
        return known
    calls = sample_calls(f, constant=rule.kind == "constant")
    return _tried(known, itertools.islice(calls, _SAMPLES))


_SAMPLES = 24


def functions_with_rules() -> dict[str, Callable[..., Any]]:
    """Every function of NumPy and SciPy that has a rule, by its name, the modules in order."""
    import_pending()
    found = {
        name: f
        for f, rule in RULES.items()
        for name in [function_name(f)]
        if not rule.of_user and not name.startswith("fwdad.")
    }
    return dict(sorted(found.items()))


def _tried(known: Support, calls: Iterable[SampleCall]) -> Support:
    """What is found by calls: of the first that works in forward mode, else of the first."""
    first = None
    with unseen() as run, run, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            first = first or call
            if call.active and _in_some(_forward, call)[0] is None:
                return _answers(known, call)
        return known if first is None else _answers(known, first)


def _answers(known: Support, call: SampleCall) -> Support:
    if not call.active:
        no = Answer(False, "no positional argument holds floats")
        return replace(known, forward=no, reverse=no, tried=str(call))
    forward, active = _in_some(_forward, call)
    reverse, _ = _in_some(_reverse, call)
    return Support(
        Answer(forward is None, forward or known.forward.reason),
        Answer(reverse is None, reverse or "its value is run backwards"),
        _compiled(call, active),
        known.argnums,
        str(call),
    )


def _in_some(take: Any, call: SampleCall) -> tuple[str | None, tuple[int, ...]]:
    """Why no derivative can be taken, None if one can, and the arguments of the one that can.

    It is taken with respect to all that hold floats at once, or else to one of them.
    """
    first = None
    for active in dict.fromkeys((call.active, *((k,) for k in call.active))):
        try:
            take(call, active)
        except Exception as error:  # noqa: BLE001  (it is the answer)
            first = first or f"{type(error).__name__}: {message_of(error)}"
        else:
            return None, active
    return first, ()


def _forward(call: SampleCall, active: tuple[int, ...]) -> None:
    (x, *args), kwargs = call.copied()
    v = tuple(_direction(call.args[k]) for k in active)
    try:
        jvp(call.function, x, v, args=tuple(args), kwargs=kwargs, argnums=active, holomorphic=True)
    except NotHolomorphicError:
        return  # which a derivative along real and imaginary parts has told


def _direction(x: Any) -> Any:
    """A direction of ones."""
    leaves, structure = flatten(x)
    ones = [np.ones(v.shape, v.dtype) if isinstance(v, np.ndarray) else type(v)(1.0)
            for v in leaves]  # fmt: skip
    return unflatten(structure, ones, lambda _: NoTangent)


def _reverse(call: SampleCall, active: tuple[int, ...]) -> None:
    (x, *args), kwargs = call.copied()
    y, pullback = vjp(call.function, x, args=tuple(args), kwargs=kwargs, argnums=active)
    leaves, _ = flatten(y)
    pullback.of_leaves([np.ones(leaf_shape(v), leaf_dtype(v)) for v in leaves])


def _compiled(call: SampleCall, active: tuple[int, ...]) -> Answer:
    """Whether Numba compiles the function, and its derivative along one direction."""
    if not have_numba():
        return Answer(False, "Numba is not installed")
    moved = tuple(call.active.index(k) for k in active)
    v = tuple(_direction(call.args[k]) for k in active)

    def pushed(*numbers: Any) -> Any:
        x, *args = numbers
        return jvp(call.of_active, x, v, args=tuple(args), argnums=moved)

    is_real = all(leaf_dtype(leaf).kind != "c" for leaf in flatten(v)[0])
    for program in (call.of_active, pushed) if active and is_real else (call.of_active,):
        numbers = tuple(call.copied()[0][k] for k in call.active)
        try:
            run = Jitted(program, "numba").find(numbers, {})[0].run
            reasons = run.compiled.reasons()
        except Exception as error:  # noqa: BLE001  (it is the answer)
            return Answer(False, f"{type(error).__name__}: {message_of(error)}")
        if reasons:
            return Answer(False, f"runs under NumPy: {reasons[0].what}")
    return Answer(True, "by Numba")


def _by_rule(f: Callable[..., Any]) -> Support:
    """What the rules say of a function."""
    rule = find_rule(f)
    if rule is None:
        return _without_rule(f)
    if is_draw(f):
        reason = "a draw has no derivative with respect to the parameters of its distribution"
        return _alike(False, f"{reason}; with constant ones it is a constant", ())
    if rule.kind == "constant":
        return _alike(True, "locally constant: its value carries no tangent", ())
    if rule.stands_in:
        source = _python(f)
        forward = source is not None and lift(source) is not None
        reason = "rrule; forward mode " + (
            "through its Python source" if forward else "needs an frule"
        )
        untried = Answer(forward, reason if not forward else _UNTRIED)
        return Support(
            Answer(forward, reason), Answer(True, "rrule"), untried, tuple(rule.binder.primals)
        )
    names = rule.binder.primals or (("*" + str(rule.binder.variadic),))
    kind = rule.kind if rule.kind == "frule" else f"{rule.kind} rule"
    return _alike(True, kind, tuple(names))


_UNTRIED = "not tried: give example arguments, supported(f, x)"


def _alike(yes: bool, reason: str, argnums: tuple[str, ...]) -> Support:
    """One answer for all modes, where nothing was tried."""
    other = Answer(yes, f"{reason}; {_UNTRIED}" if yes else reason)
    return Support(Answer(yes, reason), other, other, argnums)


def _without_rule(f: Callable[..., Any]) -> Support:
    hashable = getattr(f, "__hash__", None) is not None
    if hashable and f in REFUSED:
        return _alike(False, f"a derivative would be lost: it returns {REFUSED[f]}", ())
    if hashable and (f in HANDLERS or f in TRANSPARENT):
        return _alike(True, "handled by the rule builder", ("...",))
    source = _python(f)
    if source is not None and lift(source) is not None:
        return _alike(True, "built from its Python source", ("...",))
    reason = f"{function_name(f)} has no rule, and no Python source to build one from"
    if source is not None:
        reason += f": {why_missing(source)}"
    return _alike(False, reason, ())


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
