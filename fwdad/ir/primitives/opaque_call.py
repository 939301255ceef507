"""Rules that are run whole when a tape runs: those whose bodies cannot be written down.

A body that decides on values, loops over lengths or calls compiled code that takes plain arrays
only becomes one operation. It runs the rule on arrays and chunks, as the evaluator without a tape
does, so its results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.core.fallbacks import blame, is_refusal, report
from fwdad.errors import ChunkMismatchError, Location, Running, UntraceableError, message_of
from fwdad.ir.leaves import leaves_in
from fwdad.ir.ops import Apply, Program
from fwdad.ir.types import Type, number_type
from fwdad.rules.core.contract import checked
from fwdad.rules.core.registry import function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO, Undefined, Zero

_BUILDER: list[Callable[..., Any]] = []


def install(call: Callable[..., Any], build_frule: Callable[..., Any]) -> None:
    """Let rules under an enclosing derivative go through the builder.

    Parameters
    ----------
    call : callable
        ``call(f, *args, **kwargs)`` through the dispatcher.
    build_frule : callable
        Makes a rule for any function.
    """
    _BUILDER[:] = [call, build_frule]


class Whole:
    """A function that is run whole, and so differentiated whole.

    Attributes
    ----------
    function : callable
        What is run.
    location : Location or None
        Where the user calls it.
    makes_its_own : bool
        Whether what it returns is never a view of an argument, whatever the function returns.
    reason : str
        Why its rule could not be written down.
    mistaken : bool
        Whether that is no refusal, but a mistake.
    blame : str
        Whose it is.
    """

    function: Callable[..., Any]
    location: Location | None = None
    makes_its_own = False
    reason = ""
    mistaken = False
    blame = ""
    _mistake: Exception | None = None

    def because(self, reason: Exception | str, location: Location | None) -> None:
        """Say why it is run whole, and where.

        Parameters
        ----------
        reason : Exception or str
            What its rule has raised is reported, if it is no refusal and the function runs.
        location : Location or None
            Where the user calls it.
        """
        self.reason, self.location = str(reason), location
        if isinstance(reason, Exception):
            self.reason = f"{type(reason).__name__}: {message_of(reason)}"
        if isinstance(reason, Exception) and not is_refusal(reason):
            self.mistaken, self._mistake, self.blame = True, reason, blame(reason)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run it; an error names the user's place."""
        with Running(self.location) as place, place:
            answer = self.run(*args, **kwargs)
        if self._mistake is not None:  # what raises here, too, is no mistake of the library's
            what = f"the rule of {function_name(self.function)} on a tape"
            report(what, self._mistake, "It is run whole", self.location)
            self._mistake = None
        return answer

    def run(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        raise NotImplementedError

    def pushed(self, _args: Any, _kwargs: Any, _dots: Any) -> tuple[Any, Any] | None:
        """Values and tangents, if it is linear in what carries some and knows how; else None."""
        return None


class PushWhole(Whole):
    """One function with n tangents, as a function of arrays.

    Parameters
    ----------
    function : callable
        The primal: with a rule, or itself a :class:`PushWhole`.
    rule : Rule or None
        Its rule.
    n : int
        The number of lanes.
    active : tuple
        In the structure of ``(args, kwargs)``: True for what carries a tangent.
    types : list of Type
        Those of the values that the function returns.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        rule: Any,
        n: int,
        active: Any,
        types: list[Type],
    ) -> None:
        self.function = function
        self.rule = rule
        self.n = n
        self.active = active
        self.types = types
        self.wanted: set[int] = set()  # the values whose tangents somebody uses
        name = getattr(function, "__name__", "") or function_name(function).split(".")[-1]
        self.__name__ = f"push_{name}"

    def run(self, args: tuple[Any, ...], lanes: tuple[Any, ...], /, **kwargs: Any) -> Any:
        """Values of the function, and then the lanes of each value that can have some."""
        dots = _tangents(self.active, iter(lanes))
        nested = any(hasattr(x, "__fwdad_tag__") for x in (*leaves_in((args, kwargs)), *lanes))
        linearly = None if nested else self._linearly(args, kwargs, dots)
        if linearly is not None:
            y, y_dot = linearly
        elif nested or self.rule is None:
            y, y_dot = self._built(args, kwargs, dots)
        else:
            y, y_dot = self._by_rule(args, kwargs, dots)
        return self._parts(y, y_dot, lanes)

    def _linearly(self, args: Any, kwargs: Any, dots: Any) -> tuple[Any, Any] | None:
        """By the function itself, where it knows that it is linear in what carries tangents."""
        if not isinstance(self.function, Whole):
            return None
        return self.function.pushed(args, kwargs, dots)

    def _by_rule(self, args: Any, kwargs: Any, dots: Any) -> tuple[Any, Any]:
        bound, options = self.rule.binder.bind(args, kwargs)
        tangents, _ = self.rule.binder.bind(*dots)
        known = (Chunk, Zero, list, tuple, dict)
        given = tuple([t if isinstance(t, known) else ZERO for t in tangents])
        answer = self.rule.body(bound, given, **options)
        return checked(self.rule, answer, bound, self.n, options)

    def _built(self, args: Any, kwargs: Any, dots: Any) -> tuple[Any, Any]:
        """Through the builder: arguments are duals, or there is no rule to call."""
        names = tuple(kwargs)
        function = self.function
        call, build_frule = _BUILDER

        def dispatched(*values: Any) -> Any:
            named = dict(zip(names, values[len(args) :], strict=True))
            if isinstance(function, Whole):
                return function(*values[: len(args)], **named)
            return call(function, *values[: len(args)], **named)

        primals = (*args, *kwargs.values())
        tangents = (*dots[0], *dots[1].values())
        return build_frule(dispatched)(primals, tangents)

    def _parts(self, y: Any, y_dot: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(leaves_in(y))
        if len(values) != len(self.types):
            message = (
                f"{self.__name__} returns {len(values)} values where {len(self.types)} are due"
            )
            raise ChunkMismatchError(message)
        found = []
        for k, (value, t, own) in enumerate(
            zip(values, _mirrored(y, y_dot), self.types, strict=True)
        ):
            kind = getattr(value, "dtype", own.dtype).kind
            if kind == "f" and own.dtype.kind == "c":
                values[k] = value = value.astype(own.dtype)
            elif kind != own.dtype.kind:
                message = (
                    f"{function_name(self.function)} returns dtype {value.dtype} here, and the "
                    f"program was traced for {own.dtype}: the dtype depends on values"
                )
                raise UntraceableError(message)
            if own.dtype.kind in "fc":
                found.append(self._lanes(k, value, t, own, given))
        return (*values, *found)

    def _lanes(self, k: int, value: Any, t: Any, own: Type, given: tuple[Any, ...]) -> Any:
        shape = (self.n, *np.shape(value))
        if isinstance(t, Undefined) and k in self.wanted:
            t.use()
        if not isinstance(t, Chunk):
            return np.zeros(shape, own.dtype)
        lanes = t.lanes
        if lanes.dtype.kind == "c" and own.dtype.kind != "c":
            lanes = lanes.real
        if tuple(lanes.shape) != shape:
            message = f"{self.__name__} returns lanes of shape {lanes.shape} where {shape} is due"
            raise ChunkMismatchError(message)
        if hasattr(lanes, "__fwdad_tag__"):
            return lanes
        if lanes.dtype != own.dtype:
            return lanes.astype(own.dtype)
        if lanes.base is not None or any(lanes is x for x in given):
            return lanes.copy()  # the memory of an argument, or of several lanes at once
        return lanes


def mistakes(program: Program) -> str:
    """The rules that a mistake of the library keeps from being written down, a line for each.

    Parameters
    ----------
    program : Program
        A traced program.
    """
    found = {
        f"\n  {function_name(op.function.function)} is run whole, because of what its rule has "
        f"raised: {op.function.reason}. {op.function.blame}"
        for op in program.walk()
        if isinstance(op, Apply) and isinstance(op.function, Whole) and op.function.mistaken
    }
    return "".join(sorted(found))


def _mirrored(y: Any, y_dot: Any) -> Iterator[Any]:
    """The tangent of each of the leaves of y."""
    if isinstance(y, (tuple, list)):
        for k, item in enumerate(y):
            yield from _mirrored(item, y_dot[k] if isinstance(y_dot, (tuple, list)) else y_dot)
    elif hasattr(y, "__fwdad_tag__") or isinstance(y, np.ndarray) or number_type(y) is not None:
        yield y_dot


def _tangents(active: Any, lanes: Iterator[Any]) -> Any:
    """Chunks in the structure of the arguments; ``ZERO`` for what carries no tangent."""
    if isinstance(active, dict):
        return {key: _tangents(item, lanes) for key, item in active.items()}
    if isinstance(active, (tuple, list)):
        return type(active)(_tangents(item, lanes) for item in active)
    return Chunk(next(lanes)) if active else ZERO
