"""A cache of the tapes of gradients and pullbacks, keyed by what a function consists of.

A function is traced, the reverse pass is derived from its tape, and both are run as one program;
the tape is kept for the next call.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced, is_refusal
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.jitted_on_duals import push_on_duals
from fwdad.drivers.specialisation import Specialisation
from fwdad.drivers.strategy import WATCHES, Candidate, first_that_can, note_tape
from fwdad.eager.activity import is_active
from fwdad.eager.build import Run
from fwdad.eager.duals.explicit import with_explicit
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.memory.undo import UndoLog
from fwdad.eager.run import STATE
from fwdad.errors import (
    NOTE,
    DeadDualError,
    FwdadError,
    NonScalarOutputError,
    NoOutputError,
    OutError,
    SeedError,
    UnsupportedTypeError,
    UntraceableError,
    message_of,
)
from fwdad.evaluation.arguments import positions_of
from fwdad.evaluation.by_tape import (
    MISS,
    AsGiven,
    Ask,
    ByTape,
    Shortcuts,
    differentiated_by,
    never,
)
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.evaluation.transformed import Transformed
from fwdad.frontend.parts_of_calls import Parts, key_of
from fwdad.frontend.syntax.loops import WithoutWarnings
from fwdad.rules.core.registry import RULES, when_changed
from fwdad.tangents.alike import alike
from fwdad.tangents.composite import flatten
from fwdad.tangents.fields import is_composite
from fwdad.tangents.plain import plain

_KEPT = 256
_SINGLE_KEPT = 16  # tapes of closures, methods and objects
_MOST_OF_ONE_KIND = 16  # tapes of a function for arguments of one kind
_MOST_CLOSURES = 4  # of one piece of code that are traced, with other cells or defaults


class Evaluated:
    """A derivative of a function, to be traced; ``evaluate`` is ``pulled_gradient`` or the like."""

    def __init__(self, evaluate: Any, f: Function, argnums: Argnums, options: Any) -> None:
        self.evaluate = evaluate
        self.f = f
        self.argnums = argnums
        self.options = options
        self.__name__ = getattr(f, "__name__", "f")
        self.__qualname__ = getattr(f, "__qualname__", "f")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate it, directly or in a trace."""
        return self.evaluate(self.f, self.argnums, args, kwargs, self.options)


class Tapes:
    """The traced gradients of functions, keyed by what a function consists of.

    An entry is a function under ``jit``, or the reason for which the function cannot be traced.
    Functions under ``jit`` keep those of their derivatives themselves.
    """

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Any, Jitted[..., Any] | str]] = {}
        self._single: dict[Any, Any] = {}  # of one object each, the latest at the end
        self._closures: dict[Any, int] = {}
        self._lock = threading.Lock()

    def find(
        self, evaluate: Any, f: Function, argnums: Argnums, options: Any
    ) -> Jitted[..., Any] | Untraced:
        """The function to be traced; no result where tracing does not pay or is impossible."""
        key = _joint_key(evaluate, f, argnums, options)
        jitted = jitted_of(f)
        if jitted is not None:
            entry = jitted.derivatives.get(key)
            if entry is None:
                with self._lock:
                    own = jitted.derivative_of(Evaluated(evaluate, f, argnums, options))
                    entry = jitted.derivatives.setdefault(key, own)
            return Untraced(f, reason=entry) if isinstance(entry, str) else entry
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                if key in self._single:
                    self._single[key] = self._single.pop(key)
                entry = known[1]
                return Untraced(f, reason=entry) if isinstance(entry, str) else entry
            if len(self._known) >= _KEPT:
                self._known.clear()
                self._single.clear()
                self._closures.clear()
            backend = getattr(f, "tape_backend", "numpy")
            tape = Jitted(Evaluated(evaluate, f, argnums, options), backend, apart=True)
            code = getattr(f, "__code__", None)
            made_anew = getattr(f, "__closure__", None) or getattr(f, "__defaults__", None)
            if code is not None and made_anew:  # `lambda x, k=k: …` is another one for each k
                self._closures[code] = self._closures.get(code, 0) + 1
                if self._closures[code] > _MOST_CLOSURES:
                    return Untraced(
                        f,
                        reason=(
                            "it is a new function at each call, so tracing it does not pay off"
                        ),
                    )
            self._keep(key, f, tape)
        return tape

    def _keep(self, key: Any, f: Function, made: Jitted[..., Any] | str) -> None:
        """Keep a tape; one that keeps an object and all that it captures alive is dropped soon."""
        self._known[key] = (f, made)
        identity = key[-1]
        if isinstance(identity, tuple) and isinstance(identity[0], types.CodeType):
            return
        self._single[key] = getattr(f, "__code__", None)
        if len(self._single) > _SINGLE_KEPT:
            oldest = next(iter(self._single))
            code = self._single.pop(oldest)
            self._known.pop(oldest, None)
            if self._closures.get(code):
                self._closures[code] -= 1

    def refuse(self, held: Evaluated, reason: str) -> None:
        """Note why a function cannot be traced."""
        key = _joint_key(held.evaluate, held.f, held.argnums, held.options)
        jitted = jitted_of(held.f)
        with self._lock:
            if jitted is not None:
                jitted.derivatives[key] = reason
            else:
                self._keep(key, held.f, reason)

    def forget(self) -> None:
        """Drop all entries: a rule was registered that may change them."""
        with self._lock:
            self._known.clear()
            self._single.clear()
            self._closures.clear()


TAPES = Tapes()
when_changed(TAPES.forget)


def _key(f: Any) -> Any:
    """The identity of a function: its code and namespace, or the object itself."""
    if isinstance(f, types.FunctionType) and f.__closure__ is None and f not in RULES:
        defaults = f.__defaults__ or ()
        if not (defaults or f.__kwdefaults__):
            return (f.__code__, id(f.__globals__))
        if not f.__kwdefaults__ and all(
            isinstance(d, (int, float, str, type(None))) for d in defaults
        ):
            typed = tuple((type(d), repr(d)) for d in defaults)  # 1 == 1.0 == True, 0.0 == -0.0
            return (f.__code__, id(f.__globals__), typed)
    if isinstance(f, types.MethodType):
        return (id(f.__func__), id(f.__self__))
    if type(f) is Transformed:
        return f.key_with(_key(f.__wrapped__))
    return id(f)


def jitted_of(f: Any) -> Jitted[..., Any] | None:
    """The function under ``jit`` that a function is, or is a derivative of: it keeps the tapes."""
    while type(f) is Transformed:
        f = f.__wrapped__
    return f if type(f) is Jitted else None


def _joint_key(evaluate: Any, f: Function, argnums: Argnums, options: Any) -> Any:
    numbers = argnums if isinstance(argnums, int) else tuple(argnums)
    return (evaluate, numbers, *options.values(), None if type(f) is Jitted else _key(f))


def tape_for(
    evaluate: Any, f: Function, argnums: Argnums, options: Any
) -> Jitted[..., Any] | Untraced:
    """The function whose tape reverse mode runs, if that pays and is possible."""
    return TAPES.find(evaluate, f, argnums, options)


def quickly(
    evaluate: Any,
    f: Function,
    argnums: Argnums,
    args: Any,
    options: Any,
    in_full: Callable[[], Any],
) -> Any:
    """The result of a function's tape for arguments like those of an earlier call, else in full."""
    if SHADOWED or WATCHES:
        return in_full()
    tape: Jitted[..., Any] | Untraced | None = None
    try:
        tape = tape_for(evaluate, f, argnums, options)
        found = MISS if isinstance(tape, Untraced) else tape.quickly(args)
    except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
        catches = isinstance(tape, Jitted) and tape.may_catch()
        with Untraced(f, error, catches=catches).instead():
            return in_full()
    return in_full() if found is MISS else found


def known(shortcuts: Shortcuts, f: Any, ask: Ask, args: Any, kwargs: Any) -> Any:
    """What a tape returns that an earlier call has made; the next such call takes a shortcut."""
    if SHADOWED or WATCHES or STATE.run is not None:
        return MISS
    key = (ask, key_of(args[1:] if args and args[0] is f else args, kwargs))
    shortcut = shortcuts.others.get(key)
    y = MISS if shortcut is None else shortcut(args, kwargs)
    if shortcut is not None and y is not MISS:
        shortcuts.latest[ask] = shortcut
        return y
    asked = ask(f, args, kwargs, AsGiven)
    tape = None if asked is None else tape_for(*asked[:3], asked.options)
    if asked is None or not isinstance(tape, Jitted):
        return MISS
    at = tape.known(asked.args, asked.kwargs)
    acts = at is not None and any(at[0].tape.program.written)  # the way in full can undo that
    if at is None or acts or why_not_reusable(at[0].tape, at[1]):
        return MISS
    made, leaves, containers = at
    due = shortcuts.is_due(key)
    if asked.opens is None:
        instead, y = None, made.tape.rebuild(apart(made.run(*leaves), leaves), containers)
    elif due:
        instead, y = asked.opens(made, leaves)
    else:
        return MISS
    if due:
        parts, shortcut = Parts(), None
        places = ask(f, *parts.call(args, kwargs), parts)
        may = asked.opens is None or instead is not None
        if may and places is not None and places.is_of(asked):
            parts.take([*places.args, *places.kwargs.values()])
            options = {"unless": (SHADOWED, WATCHES), "picked": asked.picked, "instead": instead}
            shortcut = tape.shortcut_to(made, parts, **options)
        shortcuts.enter(ask, key, shortcut or never)
    return y if asked.picked is None else y[asked.picked]


def tape_or_else(
    evaluate: Any,
    f: Function,
    argnums: Argnums,
    args: Any,
    kwargs: Any,
    options: Any,
    instead: Callable[[], Any],
) -> Any:
    """The result of a function's tape, and of ``instead``, which runs f on duals, elsewhere."""
    tape = Candidate("tape", lambda: traced(evaluate, f, argnums, args, kwargs, options))
    return first_that_can("derivative", f, tape, Candidate("duals", instead))


def written(f: Transformed, args: Any, kwargs: Any) -> Any:
    """What a derivative returns that a tape writes into ``out``; ``MISS`` if there is none."""
    jitted = jitted_of(f)
    if jitted is None or SHADOWED or WATCHES or STATE.run is not None:
        return MISS
    key = ("out", _key(f))
    held = jitted.derivatives.get(key)
    if held is None:
        own = jitted.derivative_of(f.without_tapes(), apart=False)
        held = jitted.derivatives.setdefault(key, own)
    try:
        return MISS if isinstance(held, str) else held(*args, **kwargs)
    except FwdadError as error:  # the other way can, or says what is wrong
        if is_refusal(error):
            jitted.derivatives[key] = message_of(error)
        return MISS


differentiated_by(Jitted, ByTape(tape_or_else, known, written))


def traced(
    evaluate: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    """The result of a function's tape, or an :class:`Untraced` where there is none."""
    if is_active((*args, *kwargs.values())):
        return _pushed(evaluate, f, argnums, args, kwargs, options)
    at = tape_at(evaluate, f, argnums, args, kwargs, options)
    if isinstance(at, Untraced):
        return at
    made, leaves, containers = at
    try:
        with undone_if_raised(made, leaves):
            values = run_tape(made, leaves)
    except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
        return Untraced(f, error, catches=made.tape.catches)
    return made.tape.rebuild(apart(values, leaves), containers)


@contextmanager
def undone_if_raised(made: Specialisation, leaves: list[Any]) -> Iterator[None]:
    """Undo what a tape writes outside if it raises: f is run instead, and writes it again."""
    log = UndoLog()
    for leaf, held in zip(leaves, made.tape.program.written, strict=True):
        if held:
            log.array(leaf)
    try:
        yield
    except Exception:
        log.restore()
        raise


def run_tape(made: Specialisation, leaves: list[Any]) -> Any:
    """What a tape returns; a run around it can restore what the tape writes outside."""
    if STATE.run is not None:
        for leaf, held in zip(leaves, made.tape.program.written, strict=True):
            if held:
                STATE.run.writes(leaf)
    return made.run(*leaves)


def _pushed(
    evaluate: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    """The result of a function's tape that is pushed forward, for arguments that are duals."""
    tape = tape_for(evaluate, f, argnums, options)
    if isinstance(tape, Untraced):
        return tape

    def attempt() -> Any:
        with Run(1, tentative=True) as run, run:
            return push_on_duals(tape, with_explicit(args), kwargs)

    return _why_not_real(tape, args) or _traced_or_why_not(attempt, tape)


def tape_at(
    evaluate: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    """The specialisation for some arguments, its inputs and their containers.

    An :class:`Untraced` where there is none, or where f does more than its tape.
    """
    tape = tape_for(evaluate, f, argnums, options)
    return tape if isinstance(tape, Untraced) else tape_of(tape, args, kwargs)


def tape_of(held: Jitted[..., Any], args: Any, kwargs: Any) -> Any:
    """The result of :func:`tape_at` for a :class:`Evaluated` function under ``jit``."""
    at = _why_not_real(held, args) or _traced_or_why_not(lambda: found(held, args, kwargs), held)
    if isinstance(at, Untraced):
        return at
    reason = why_not_reusable(at[0].tape, at[1])
    if reason:
        return Untraced(held.__wrapped__.f, reason=reason)
    note_tape(at[0])
    return at


def _why_not_real(held: Jitted[..., Any], args: Any) -> Untraced | None:
    """Why there is no tape for these arguments, if some are not real."""
    reverse = held.__wrapped__
    if all(is_real(args[k]) for k in positions_of(reverse.argnums, len(args))):
        return None
    return Untraced(reverse.f, reason="the argument does not consist of real floats only")


def _traced_or_why_not(trace: Any, held: Jitted[..., Any]) -> Any:
    """The result of tracing a function, or an :class:`Untraced` where it cannot be traced."""
    f = held.__wrapped__.f
    noted, NOTE.sink = NOTE.sink, None  # what is refused here is run in another way
    try:
        return trace()
    except NonScalarOutputError as error:  # the run without a tape raises it, with actual lengths
        return Untraced(f, reason=message_of(error))
    except (UnsupportedTypeError, SeedError, NoOutputError, OutError):
        raise
    except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
        untraced = Untraced(f, error)

        def refuse() -> None:
            TAPES.refuse(held.__wrapped__, untraced.reason)

        if is_refusal(error):
            refuse()
        untraced.refuse = refuse
        return untraced
    finally:
        NOTE.sink = noted


def found(held: Jitted[..., Any], args: Any, kwargs: Any) -> Any:
    """The specialisation for some arguments, its inputs and their containers."""
    with WithoutWarnings() as silent, silent:
        at = held.find(args, kwargs)
    if held.tapes_beside(at[0]) > _MOST_OF_ONE_KIND:
        message = "what it reads from outside differs at each call, so tracing it does not pay off"
        raise UntraceableError(message)
    return at


def why_not_reusable(tape: Any, leaves: list[Any]) -> str:
    """What a function does that its tape cannot reproduce; empty if nothing."""
    if any(given_written(tape, leaves)) or tape.rebuild.needs_containers:
        return "it changes its arguments"
    run = STATE.run
    if run is not None and not run.effects.silent and any(tape.program.written):
        return "it writes into arrays from outside, inside another derivative call"
    if tape.prints:
        return "it prints"
    if tape.lies_otherwise(leaves):
        return "it writes into an argument that is not C-contiguous"
    if tape.aliased(leaves):
        return "two arrays share memory, and it writes into one"
    try:
        active = is_active(leaves)
    except DeadDualError:  # captured where a rule that takes derivatives was tried on symbols
        active = True
    return "what it reads carries tangents" if active else ""


def given_written(tape: Any, leaves: list[Any]) -> list[bool]:
    """For each leaf of the arguments, whether a tape writes into it."""
    return tape.program.written[: len(leaves) - len(tape.captures)]


def on_copies(tape: Any, leaves: list[Any]) -> list[Any]:
    """A tape's inputs, with copies of those that it writes into: running it leaves no trace."""
    written = tape.program.written
    return [alike(x) if w else x for x, w in zip(leaves, written, strict=True)]


def share_memory(leaves: list[Any]) -> bool:
    """Whether two arrays share memory, which a tape assumes they do not."""
    arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray)]
    return any(np.may_share_memory(a, b) for k, a in enumerate(arrays) for b in arrays[k + 1 :])


def is_real(x: Any) -> bool:
    """Whether an argument to differentiate consists of real floats, which a tape requires."""
    x = plain(x)
    if isinstance(x, (list, tuple)):
        return bool(x) and all(is_real(item) for item in x)
    if isinstance(x, dict):
        return bool(x) and all(is_real(item) for item in x.values())
    if type(x) is np.ndarray or isinstance(x, np.generic):
        return x.dtype.kind == "f"
    if type(x) is float or not is_composite(type(x)):
        return type(x) is float
    leaves = flatten(x)[0]  # what has no tangent space may be among the fields of an object
    return bool(leaves) and all(is_real(leaf) for leaf in leaves)


def apart(values: Any, leaves: Any) -> list[Any]:
    """The results of a program, in memory that is not its inputs'."""
    return [v.copy() if type(v) is np.ndarray and _is_shared(v, leaves) else v for v in values]


def _is_shared(v: np.ndarray, leaves: Any) -> bool:
    if v.base is not None:
        return True
    for x in leaves:  # noqa: SIM110  (a generator would take as long as a small program)
        if x is v:
            return True
    return False
