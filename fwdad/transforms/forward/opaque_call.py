"""Opaque calls in forward mode: a function with its tangents, run as one operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.eager.build import build_frule
from fwdad.eager.calls.dispatch import call
from fwdad.errors import ChunkMismatchError
from fwdad.ir.leaves import leaves_in
from fwdad.ir.primitives.opaque_call import Whole, check_kind, check_rank
from fwdad.ir.types import Type, number_type
from fwdad.rules.core.contract import checked
from fwdad.rules.core.registry import function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO, Undefined, Zero


class PushWhole(Whole):
    """One function with n tangents, as a function of arrays.

    ``function`` has the rule ``rule``, or is itself a :class:`PushWhole`. ``active`` has the
    structure of ``(args, kwargs)``, True for what carries a tangent; ``types`` are those of the
    function's values.
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
        """The function's values, then the lanes of each value that can have a tangent."""
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
        """Push through the function itself, if it is linear in the active arguments; else None."""
        if not isinstance(self.function, Whole):
            return None
        return self.function.pushed(args, kwargs, dots)

    def _by_rule(self, args: Any, kwargs: Any, dots: Any) -> tuple[Any, Any]:
        bound, options = self.rule.binder.bind(args, kwargs)
        tangents, _ = self.rule.binder.bind(*dots)
        known = (Chunk, Zero, list, tuple, dict)
        tangents_or_zero = tuple([t if isinstance(t, known) else ZERO for t in tangents])
        result = self.rule.body(bound, tangents_or_zero, **options)
        return checked(self.rule, result, bound, self.n, options)

    def _built(self, args: Any, kwargs: Any, dots: Any) -> tuple[Any, Any]:
        """Push through the builder, where arguments are duals or there is no rule."""
        names = tuple(kwargs)
        function = self.function

        def dispatched(*values: Any) -> Any:
            named = dict(zip(names, values[len(args) :], strict=True))
            if isinstance(function, Whole):
                return function(*values[: len(args)], **named)
            return call(function, *values[: len(args)], **named)

        primals = [*args, *kwargs.values()]
        tangents = (*dots[0], *dots[1].values())
        if not isinstance(function, Whole):  # a view of the program's memory would be taken for a
            # value that the call has left outside
            active = [type(x) is np.ndarray and isinstance(t, Chunk)
                      for x, t in zip(primals, tangents, strict=True)]  # fmt: skip
            primals = [x.copy() if on else x for x, on in zip(primals, active, strict=True)]
        return build_frule(dispatched)(tuple(primals), tangents)

    def _parts(self, y: Any, y_dot: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(leaves_in(y))
        if len(values) != len(self.types):
            raise ChunkMismatchError(
                f"{self.__name__} returns {len(values)} values where {len(self.types)} are expected"
            )
        parts = []
        for k, (value, t, own) in enumerate(
            zip(values, _mirrored(y, y_dot), self.types, strict=True)
        ):
            if k in self.wanted:
                check_rank(self.function, value, len(own.shape))
            kind = getattr(value, "dtype", own.dtype).kind
            if kind == "f" and own.dtype.kind == "c":
                values[k] = value = value.astype(own.dtype)
            else:
                check_kind(self.function, getattr(value, "dtype", own.dtype), own.dtype.kind)
            if own.dtype.kind in "fc":
                parts.append(self._lanes(k, value, t, own, given))
        return (*values, *parts)

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
            raise ChunkMismatchError(
                f"{self.__name__} returns lanes of shape {lanes.shape} where {shape} is expected"
            )
        if hasattr(lanes, "__fwdad_tag__"):
            return lanes
        if lanes.dtype != own.dtype:
            return lanes.astype(own.dtype)
        if lanes.base is not None or any(lanes is x for x in given):
            return lanes.copy()  # the memory of an argument, or of several lanes at once
        return lanes


def _mirrored(y: Any, y_dot: Any) -> Iterator[Any]:
    """The tangent of each leaf of y."""
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
