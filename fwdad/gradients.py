"""Gradients by reverse mode, and the tapes that they run.

A function is traced, its tape is run backwards, and both are run as one program; the tape is kept
for the next call. What cannot be traced is written down as it runs, and that is run backwards.
"""

from __future__ import annotations

import threading
import types
from typing import Any, NamedTuple

import numpy as np

from fwdad.arguments import Argnums, Function, arguments_of, positions_of
from fwdad.builder.activity import is_active
from fwdad.builder.build import run_on_duals
from fwdad.builder.dispatch import call
from fwdad.builder.forward import Arguments
from fwdad.builder.memory import SHADOWED
from fwdad.compilation import Jitted
from fwdad.defects import Untraced, is_refusal
from fwdad.errors import (
    NOTE,
    DeadDualError,
    MissingTransposeError,
    NonScalarOutputError,
    NoOutputError,
    SeedError,
    UnsupportedTypeError,
)
from fwdad.evaluators import value_and_jacobian
from fwdad.recorded import run_recorded
from fwdad.reverse import whole
from fwdad.tangents.chunk import plain
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tangents.zero import NoTangent, Zero
from fwdad.tape.ops import leaves_in
from fwdad.tape.whole import Whole
from fwdad.tracing.builtin_calls import builtin
from fwdad.tracing.loops import without_warnings
from fwdad.tracing.pulled import (
    check_scalar,
    install,
    pulled_gradient,
    traced_gradient,
    value_alone,
)
from fwdad.tracing.shortcuts import AGAIN

_KEPT = 256
_SINGLE_KEPT = 16  # tapes of closures, methods and objects
_MOST_CLOSURES = 4  # of one piece of code that are traced, with other cells or defaults


class _Reversed:
    """A function whose value and gradient, or pullback, are traced as one.

    Parameters
    ----------
    evaluate : callable
        :func:`pulled_gradient` or :func:`pulled_value`.
    f : callable
        What is differentiated.
    argnums : int or tuple of int
        With respect to which arguments.
    options : dict
        ``has_aux`` and ``outputs``.
    """

    def __init__(self, evaluate: Any, f: Function, argnums: Argnums, options: Any) -> None:
        self.evaluate = evaluate
        self.f = f
        self.argnums = argnums
        self.options = options
        self.__name__ = getattr(f, "__name__", "f")
        self.__qualname__ = getattr(f, "__qualname__", "f")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.evaluate(self.f, self.argnums, args, kwargs, self.options)


class _Tapes:
    """The traced gradients of functions, found again by what a function is made of."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Any, Jitted | None]] = {}
        self._single: dict[Any, Any] = {}  # of one object each, the latest at the end
        self._closures: dict[Any, int] = {}
        self._lock = threading.Lock()

    def find(self, evaluate: Any, f: Function, argnums: Argnums, options: Any) -> Jitted | None:
        """The function that is traced; None where it is not worth while, or impossible."""
        key = _joint_key(evaluate, f, argnums, options)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                if key in self._single:
                    self._single[key] = self._single.pop(key)
                return known[1]
            if len(self._known) >= _KEPT:
                self._known.clear()
                self._single.clear()
                self._closures.clear()
            backend = f.backend if isinstance(f, Jitted) else getattr(f, "tape_backend", "numpy")
            reverse = _Reversed(evaluate, f, argnums, options)
            made: Jitted | None = Jitted(reverse, backend, apart=apart)
            code = getattr(f, "__code__", None)
            made_anew = getattr(f, "__closure__", None) or getattr(f, "__defaults__", None)
            if code is not None and made_anew:  # `lambda x, k=k: …` is another one for each k
                self._closures[code] = self._closures.get(code, 0) + 1
                if self._closures[code] > _MOST_CLOSURES:
                    made = None  # a new function at each call: tracing never pays
            if made is not None:
                self._keep(key, f, made)
        return made

    def _keep(self, key: Any, f: Function, made: Jitted | None) -> None:
        """Keep a tape; what holds an object alive, and all that it captures, is soon dropped."""
        self._known[key] = (f, made)
        own = key[-1]
        if isinstance(own, tuple) and isinstance(own[0], types.CodeType):
            return
        self._single[key] = getattr(f, "__code__", None)
        if len(self._single) > _SINGLE_KEPT:
            oldest = next(iter(self._single))
            code = self._single.pop(oldest)
            self._known.pop(oldest, None)
            if self._closures.get(code):
                self._closures[code] -= 1

    def refuse(self, evaluate: Any, f: Function, argnums: Argnums, options: Any) -> None:
        """Note that a function cannot be traced."""
        key = _joint_key(evaluate, f, argnums, options)
        with self._lock:
            self._keep(key, f, None)


_TAPES = _Tapes()


def _key(f: Any) -> Any:
    """What makes two functions the same: code and namespace, or the object itself."""
    if isinstance(f, types.FunctionType) and f.__closure__ is None:
        defaults = f.__defaults__ or ()
        if not (defaults or f.__kwdefaults__):
            return (f.__code__, id(f.__globals__))
        if not f.__kwdefaults__ and all(
            isinstance(d, (int, float, str, type(None))) for d in defaults
        ):
            told = tuple((type(d), repr(d)) for d in defaults)  # 1 == 1.0 == True, 0.0 == -0.0
            return (f.__code__, id(f.__globals__), told)
    if isinstance(f, types.MethodType):
        return (id(f.__func__), id(f.__self__))
    return id(f)


def _joint_key(evaluate: Any, f: Function, argnums: Argnums, options: Any) -> Any:
    numbers = argnums if isinstance(argnums, int) else tuple(argnums)
    return (evaluate, numbers, *options.items(), _key(f))


def value_and_gradient(
    f: Function, argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any], options: Any
) -> Any:
    """Value and gradient of a function with one real number as its value.

    Parameters
    ----------
    f : callable
        The function.
    argnums : int or tuple of int
        With respect to which of ``args``.
    args, kwargs
        All arguments.
    options : dict
        ``has_aux``: whether f answers ``(y, aux)``. ``value``: whether the value is wanted; a tape
        does without what it alone needs, and answers None.
    """
    if not (kwargs or SHADOWED):
        held, failed = tape_for(pulled_gradient, f, argnums, options), None
        try:
            answer = AGAIN if held is None else held.quickly(args)
        except Exception as error:  # noqa: BLE001  (told, unless it is the program's)
            answer, failed = AGAIN, Untraced(f, error)
        if answer is not AGAIN:
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
    """Without a tape of its own: as it runs, or forwards."""
    if is_active((*args, *kwargs.values())):
        noted, NOTE.sink = NOTE.sink, None  # what is refused here is done in another way
        try:
            return _at_once(f, argnums, args, kwargs, options)
        except MissingTransposeError:  # a second derivative needs no way back
            pass
        finally:
            NOTE.sink = noted
        return _forward(f, argnums, args, kwargs, options)
    return _at_once(f, argnums, args, kwargs, options)


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
            value = Jitted(_Reversed(value_alone, f, argnums, options), "numpy")
            made, leaves, containers = found(value, args, kwargs)
            y = made.tape.rebuild(apart(made.run(*leaves), leaves), containers)
            args = (*args, ones_like(y))
        held = Jitted(_Reversed(evaluate, f, argnums, options), "numpy")
        made, leaves, _ = found(held, args, kwargs)
    except (UnsupportedTypeError, SeedError, NoOutputError, NonScalarOutputError):
        raise
    except Exception as error:  # noqa: BLE001  (it is the answer)
        return Path(None, [], _said(error), error)
    finally:
        NOTE.sink = noted
    reason = hindrance(made.tape, leaves)
    return Path(None, [], reason) if reason else Path(made, leaves, "")


def ones_like(y: Any) -> tuple[Any, ...]:
    """A cotangent of ones, leaf by leaf, as the tape of a way back takes it.

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


def tape_for(evaluate: Any, f: Function, argnums: Argnums, options: Any) -> Jitted | None:
    """The function whose tape reverse mode runs; None where it does not pay, or cannot be."""
    return _TAPES.find(evaluate, f, argnums, options)


def share_memory(leaves: list[Any]) -> bool:
    """Whether two arguments share memory: a tape takes them to be apart."""
    arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray)]
    return any(np.may_share_memory(a, b) for k, a in enumerate(arrays) for b in arrays[k + 1 :])


def traced(
    evaluate: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    """What the tape of a function answers; an :class:`Untraced` where there can be none."""
    if is_active((*args, *kwargs.values())):
        held = tape_for(evaluate, f, argnums, options)
        if held is None:
            return Untraced(f)
        return _tried(lambda: run_on_duals(held, args, kwargs), evaluate, f, argnums, options)
    at = tape_at(evaluate, f, argnums, args, kwargs, options)
    if isinstance(at, Untraced):
        return at
    made, leaves, containers = at
    try:
        values = made.run(*leaves)
    except Exception as error:  # noqa: BLE001  (told, unless it is the program's)
        return Untraced(f, error)
    return made.tape.rebuild(apart(values, leaves), containers)


def tape_at(
    evaluate: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    """The specialisation for some arguments, its inputs and their containers.

    An :class:`Untraced` where there can be none, or where f does more than its tape.
    """
    held = tape_for(evaluate, f, argnums, options)
    if held is None:
        return Untraced(f)
    at = _tried(lambda: found(held, args, kwargs), evaluate, f, argnums, options)
    if isinstance(at, Untraced):
        return at
    return Untraced(f) if hindrance(at[0].tape, at[1]) else at


def _tried(trace: Any, evaluate: Any, f: Function, argnums: Argnums, options: Any) -> Any:
    """What tracing a function answers; an :class:`Untraced` where it cannot be traced."""
    noted, NOTE.sink = NOTE.sink, None  # what is refused here is done in another way
    try:
        return trace()
    except NonScalarOutputError:  # told with the lengths that the value has
        return Untraced(f)
    except (UnsupportedTypeError, SeedError, NoOutputError):
        raise
    except Exception as error:  # noqa: BLE001  (told, unless it is the program's)

        def refuse() -> None:
            _TAPES.refuse(evaluate, f, argnums, options)

        if is_refusal(error):
            refuse()
        return Untraced(f, error, refuse)
    finally:
        NOTE.sink = noted


def hindrance(tape: Any, leaves: list[Any]) -> str:
    """What a function does that its tape does not; empty if nothing.

    Parameters
    ----------
    tape : Tape
        Its tape.
    leaves : list
        The tape's inputs.
    """
    if any(tape.program.written) or tape.rebuild.needs_containers:
        return "it changes what it is given, or what it reads from outside"
    if tape.prints:
        return "it prints"
    if tape.lies_otherwise(leaves):
        return "it writes into an argument that does not lie row by row"
    try:
        active = is_active(leaves)
    except DeadDualError:  # captured where a rule that takes derivatives was tried on symbols
        active = True
    if active:
        return "what it reads carries tangents"
    return "two arrays that it reads share memory" if share_memory(leaves) else ""


def apart(values: Any, leaves: Any) -> list[Any]:
    """What a program answers, in memory that is not its inputs'."""
    return [v.copy() if type(v) is np.ndarray and _held(v, leaves) else v for v in values]


def _held(v: np.ndarray, leaves: Any) -> bool:
    if v.base is not None:
        return True
    for x in leaves:  # noqa: SIM110  (a generator would take as long as a small program)
        if x is v:
            return True
    return False


def _at_once(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """By writing down what a run does, without a tape of its source."""
    has_aux = options["has_aux"]
    arguments, single = arguments_of(f, args[0], args[1:], kwargs, argnums)
    outcome = run_recorded(f, arguments, has_aux=has_aux)
    if outcome.structure.kind != "leaf":
        check_scalar(outcome.y, f)
    if not outcome.leaves:  # an integer, or a truth value: a constant
        check_scalar(outcome.y, f)
        zeros = in_trees([_zeros(x) for x in arguments.leaves], arguments, single=single)
        return ((outcome.y, outcome.aux), zeros) if has_aux else (outcome.y, zeros)
    check_scalar(plain(outcome.leaves[0]), f)
    x_bars = outcome.pull([np.ones(np.shape(plain(outcome.leaves[0])))[()]])
    gradient = in_trees(written_out(x_bars, arguments.leaves), arguments, single=single)
    return ((outcome.y, outcome.aux), gradient) if has_aux else (outcome.y, gradient)


def _forward(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """By forward mode."""
    has_aux = options["has_aux"]
    scalar = _ScalarValued(f, has_aux=has_aux)
    result = value_and_jacobian(
        scalar, args[0], args=args[1:], kwargs=kwargs, argnums=argnums, has_aux=has_aux
    )
    y, gradient = result[:2]
    return ((y, result[2]), gradient) if has_aux else (y, gradient)


class _ScalarValued:
    """f, checked to return one real number."""

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
    """Cotangents of leaves, zeros where there are none."""
    return [
        _zeros(leaf) if isinstance(x_bar, Zero) else x_bar
        for x_bar, leaf in zip(x_bars, leaves, strict=True)
    ]


def _zeros(leaf: Any) -> Any:
    leaf = plain(leaf)
    return np.zeros_like(leaf) if isinstance(leaf, np.ndarray) else type(leaf)(0)


def in_trees(parts: list[Any], arguments: Any, *, single: bool) -> Any:
    """One thing for each leaf of the arguments in their structures."""
    trees, start = [], 0
    for structure, count in zip(arguments.structures, arguments.counts, strict=True):
        trees.append(unflatten(structure, parts[start : start + count], lambda _: NoTangent))
        start += count
    return trees[0] if single else tuple(trees)


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
    """Values with others in the place of the active ones."""
    if isinstance(active, dict):
        return {key: _with(item, values[key], leaves) for key, item in active.items()}
    if isinstance(active, (tuple, list)):
        return type(active)(
            _with(item, value, leaves) for item, value in zip(active, values, strict=True)
        )
    return next(leaves) if active else values


install(_at_once)
whole.install(_pull_whole)
builtin(value_and_gradient)(traced_gradient)


def found(held: Jitted, args: Any, kwargs: Any) -> Any:
    """The specialisation for some arguments, its inputs, and their containers."""
    with without_warnings():
        return held.find(args, kwargs)


def is_real(x: Any) -> bool:
    """Whether an argument to differentiate consists of real floats: those that a tape takes."""
    x = plain(x)
    if isinstance(x, (list, tuple)):
        return bool(x) and all(is_real(item) for item in x)
    if isinstance(x, dict):
        return bool(x) and all(is_real(item) for item in x.values())
    if type(x) is np.ndarray or isinstance(x, np.generic):
        return x.dtype.kind == "f"
    return type(x) is float
