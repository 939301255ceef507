"""Functions made from functions: what ``grad(f)``, or ``jacobian(f)`` without a point, returns."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fwdad.core.fallbacks import Untraced
from fwdad.core.tracebacks import leave
from fwdad.display.html import facts, framed, mono
from fwdad.display.words import function_in_words, signature_in_words
from fwdad.eager.lifting.reached import Carrier
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.arguments import argument_numbers, check_chunk
from fwdad.evaluation.by_tape import (
    MISS,
    Captured,
    Question,
    Shortcuts,
    answer,
    by_tape,
    never,
    question_of,
)
from fwdad.evaluation.out_arrays import arrays_in, check_c_contiguous, check_memory
from fwdad.evaluation.signatures import Argnums, Function, T
from fwdad.tangents.composite import flatten

_USUAL = ("auto", False, "returned")  # options that need no mention


class NotGiven(enum.Enum):
    """The class of :data:`NOT_GIVEN`."""

    NOT_GIVEN = enum.auto()

    def __repr__(self) -> str:
        return "<not given>"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN
"""The point of an evaluator that is called with a function alone."""


class _Writer(NamedTuple):
    """What a transformed function writes into ``out``, and whether at once, not by chunks."""

    of: str
    whole: bool


_WRITERS: dict[Any, _Writer] = {}


def writes_into_out(of: str, *, whole: bool = False) -> Callable[[T], T]:
    """Register what a transformed function does, and that it writes its derivative into ``out``.

    One that is computed as a ``whole``, and not by chunks, is written by one tape.
    """

    def register(evaluate: T) -> T:
        _WRITERS[evaluate] = _Writer(of, whole)
        return evaluate

    return register


def at_once(f: Any, args: Any, kwargs: Any) -> Any:
    """Call an evaluator outside of a trace."""
    return f(*args, **kwargs)


class Transformed(Carrier):
    """A transformed function: it has f's signature, and pickles when f does, with its source."""

    def __init__(self, evaluate: Any, f: Function, argnums: Argnums, **options: Any) -> None:
        if not callable(f):
            raise UnsupportedTypeError(f"expected a function; got {type_in_words(f)}")
        self._evaluate = evaluate
        self._options = options
        self.argnums = argument_numbers(argnums)
        check_chunk(options["chunk"])
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f
        self.shortcuts = None if by_tape(f) is None else Shortcuts()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative at some arguments of f."""
        try:
            if self.shortcuts is not None:
                try:
                    y = self.shortcuts.latest.get(_ask, never)(args, kwargs)
                    if y is MISS and "out" in kwargs and self.writes:
                        y = self._written(args, kwargs)
                    elif y is MISS:
                        y = answer(self.shortcuts, self, _ask, args, kwargs)
                except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
                    with Untraced(self, error).instead():
                        return self.evaluate(at_once, args, kwargs)
                if y is not MISS:
                    return y
            return self.evaluate(at_once, args, kwargs)
        except BaseException as error:
            leave(error)
            raise

    def _written(self, args: Any, kwargs: Any) -> Any:
        """What a tape that writes into ``out`` returns; ``MISS`` if there is none."""
        how = by_tape(self)
        if how is None or not _WRITERS[self._evaluate].whole:
            return MISS
        return how.written(self, args, kwargs)

    def without_tapes(self) -> Transformed:
        """The same derivative, taken by its evaluator each time."""
        made = Transformed(self._evaluate, self.__wrapped__, self.argnums, **self._options)
        made.shortcuts = None
        return made

    def __repr__(self) -> str:
        return f"<fwdad.{self._name} of {function_in_words(self.__wrapped__)}>"

    def _repr_html_(self) -> str:
        f = function_in_words(self.__wrapped__)
        numbers = (self.argnums,) if isinstance(self.argnums, int) else self.argnums
        with_respect = ", ".join(map(self._parameter, numbers))
        given = [(k, mono(repr(v))) for k, v in self._options.items() if v not in _USUAL]
        rows = [("with respect to", mono(with_respect)), *given]
        title = mono(f"{self._name}({f}){signature_in_words(self)}")
        return framed(title, facts(rows), note="a derivative, taken when it is called")

    def _parameter(self, k: int) -> str:
        """The name of a parameter, if it has one."""
        try:
            return list(inspect.signature(self.__wrapped__).parameters)[k]
        except (IndexError, TypeError, ValueError):  # of `*args`, or of C code
            return f"argument {k}"

    @property
    def _name(self) -> str:
        """The name of what has made it."""
        name: str = self._evaluate.__name__
        return name.removeprefix("_").removeprefix("call_")

    def evaluate(self, call: Any, args: Any, kwargs: Any) -> Any:
        """Call the evaluator by ``call``."""
        if not args:
            raise UnsupportedTypeError(
                "the argument to differentiate with respect to must be positional: write "
                f"{self._name}(f)(x), not {self._name}(f)(x=x)"
            )
        options = self._options
        if "out" in kwargs and self.writes:
            kwargs = dict(kwargs)
            options = {**options, "out": kwargs.pop("out")}
        return self._evaluate(call, self.__wrapped__, self.argnums, args, kwargs, options)

    @functools.cached_property
    def writes(self) -> bool:
        """Whether ``out`` of a call is where the derivative is written; else it is f's own."""
        if self._evaluate not in _WRITERS:
            return False
        try:
            parameters = inspect.signature(self.__wrapped__).parameters
        except (TypeError, ValueError):  # of C code
            return True
        kinds = [p.kind for p in parameters.values()]
        return "out" not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds

    def check_out(self, args: Any, kwargs: Any) -> None:
        """Raise if the ``out`` of a call cannot be written, before anything else is done."""
        kwargs = dict(kwargs)
        out, inputs = kwargs.pop("out"), arrays_in(args, kwargs)
        of = _WRITERS[self._evaluate].of
        for target in flatten(out)[0] or [out]:
            check_memory(target, inputs, of=of)
            check_c_contiguous(target, of=f"{of} under jit")

    def key_with(self, key: Any) -> Any:
        """A key of this derivative of a function that has that key."""
        return (self._evaluate, self.argnums, *self._options.items(), key)

    def _made_by(self) -> Any:
        return (_restore, (self._evaluate, self.__wrapped__, self.argnums, self._options))


def _ask(f: Transformed, args: Any, kwargs: Any, look: Any) -> Question | None:
    """The question that a call asks a tape, if it returns what that does."""
    if not args:
        return None
    try:
        found = f.evaluate(Captured, args, kwargs)
    except Exception:  # noqa: BLE001  (it looks into its result, which there is not yet)
        return None
    return question_of(found, look)


def without_point(
    evaluate: Any, f: Function, args: Any, kwargs: Any, argnums: Argnums = 0, **options: Any
) -> Transformed:
    """What an evaluator returns that is given no point: the function that is given one."""
    made = Transformed(evaluate, f, argnums, **options)
    if args or kwargs:
        name = made._name  # noqa: SLF001  (in its own file)
        raise UnsupportedTypeError(
            f"args and kwargs are of f at a point, and there is none: write {name}(f, x, args=…), "
            f"or give them to the function that {name}(f) returns"
        )
    return made


def _restore(evaluate: Any, f: Function, argnums: Argnums, options: dict[str, Any]) -> Transformed:
    return Transformed(evaluate, f, argnums, **options)
