"""Opaque calls in reverse mode: functions whose rules cannot be recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.arguments import Arguments
from fwdad.eager.calls.dispatch import call
from fwdad.eager_reverse import run_recorded, written_out
from fwdad.errors import MissingTransposeError
from fwdad.ir.leaves import leaves_in
from fwdad.ir.primitives.opaque_call import Whole, check_kind, check_rank
from fwdad.ir.types import ArrayType, Type
from fwdad.rules.core.adjoints import TRANSPOSES, Space
from fwdad.rules.core.containers import walk
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.rules.core.reverse_rules import RRULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO


class PullWhole(Whole):
    """The pullback of one function, as a function of its arguments and cotangents.

    ``active`` has the structure of ``(args, kwargs)``, True for what carries derivatives; ``given``
    says which values of the function have cotangents; ``types`` are those of the active arguments.
    """

    makes_its_own = True

    def __init__(
        self,
        function: Callable[..., Any],
        active: Any,
        given: list[bool],
        types: list[Type],
    ) -> None:
        self.function = function
        self.active = active
        self.given = given
        self.types = types
        name = getattr(function, "__name__", "") or function_name(function).split(".")[-1]
        self.__name__ = f"pull_{name}"

    def run(self, args: tuple[Any, ...], bars: tuple[Any, ...], /, **kwargs: Any) -> Any:
        """The cotangents of the active arguments."""
        x_bars = self._by_transpose(args, kwargs, bars)
        if x_bars is None:
            x_bars = _pull(self.function, args, kwargs, self.active, self.given, bars)
        converted = [_as_type(x, own) for x, own in zip(x_bars, self.types, strict=True)]
        return converted[0] if len(converted) == 1 else tuple(converted)

    def _by_transpose(self, args: Any, kwargs: Any, bars: Any) -> list[Any] | None:
        """The cotangent of the only active argument, by a transpose; None if it takes more."""
        rule, transposes = find_rule(self.function), TRANSPOSES.get(self.function)
        if rule is None or transposes is None or self.function in RRULES:
            return None
        if len(self.types) != 1 or len(bars) != 1:
            return None
        if any(hasattr(v, "__fwdad_tag__") for _, v in walk([args, bars, *kwargs.values()])):
            return None
        bound, options = rule.binder.bind(args, kwargs)
        marks, _ = rule.binder.bind(*self.active)
        active = [k for k, mark in enumerate(marks) if mark is True]
        if len(active) != 1 or active[0] not in transposes:
            return None
        k = active[0]
        x = np.asarray(bound[k])
        space = Space(x.shape, x.dtype)
        y_bar = Chunk(np.asarray(bars[0])[np.newaxis])
        try:
            x_bar = transposes[k](y_bar, *bound[:k], space, *bound[k + 1 :], **options)
        except MissingTransposeError:  # it would have to see the array itself
            return None
        return [x_bar.lanes[0] if isinstance(x_bar, Chunk) else np.zeros(x.shape, x.dtype)]

    def pushed(self, args: Any, kwargs: Any, dots: Any) -> tuple[Any, Any] | None:
        """Cotangents and their tangents by one recorded run, if only cotangents have tangents.

        None otherwise. An rrule thus gets one cotangent at a time.
        """
        own, bars = args
        own_dots, bar_dots = dots[0]
        if self.function not in RRULES or _carries((own_dots, dots[1])):
            return None
        n = next(t.n for t in bar_dots if isinstance(t, Chunk))
        wide = []
        for bar, t in zip(bars, bar_dots, strict=True):
            first = np.asarray(bar)[np.newaxis]
            more = t.lanes if isinstance(t, Chunk) else np.zeros((n, *first.shape[1:]), first.dtype)
            wide.append(Chunk(np.concatenate([first, more])))
        x_bars = _pull(self.function, own, kwargs, self.active, self.given, tuple(wide))
        primals, tangents = [], []
        for x, t in zip(x_bars, self.types, strict=True):
            first = x.lanes[0] if isinstance(x, Chunk) else x
            primals.append(_as_type(first, t))
            tangents.append(Chunk(x.lanes[1:]) if isinstance(x, Chunk) else ZERO)
        return (primals[0], tangents[0]) if len(primals) == 1 else (tuple(primals), tuple(tangents))


def _carries(dots: Any) -> bool:
    """Whether there is a tangent among nested ones."""
    return any(isinstance(t, Chunk) for _, t in walk(dots))


def _as_type(x_bar: Any, own: Type) -> Any:
    """A cotangent in its argument's type, in memory of its own."""
    if hasattr(x_bar, "__fwdad_tag__"):
        return x_bar
    if own.dtype.kind != "c" and np.iscomplexobj(x_bar):
        x_bar = np.real(x_bar)
    if isinstance(own, ArrayType):
        return np.array(x_bar, own.dtype)
    return own.dtype.type(np.asarray(x_bar)[()])


def _pull(
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
        parts = [part for part, has in zip(leaves_in(y), given, strict=True) if has]
        for part, bar in zip(parts, bars, strict=True):
            check_rank(function, part, len(bar.shape if isinstance(bar, Chunk) else np.shape(bar)))
            if np.iscomplexobj(plain(part)) and np.size(plain(part)):
                cotangent = bar if isinstance(bar, Chunk) else np.asarray(plain(bar))
                check_kind(function, np.asarray(plain(part)).dtype, cotangent.dtype.kind)
        return tuple(parts)

    arguments = Arguments(tuple(values), {}, tuple(range(len(values))))
    outcome = run_recorded(called, arguments)
    return written_out(outcome.pull(list(bars)), values)


def _collect(active: Any, values: Any, leaves: list[Any]) -> None:
    if isinstance(active, dict):
        for key, item in active.items():
            _collect(item, values[key], leaves)
    elif isinstance(active, (tuple, list)):
        for item, value in zip(active, values, strict=True):
            _collect(item, value, leaves)
    elif active:
        leaves.append(values)


def _with(active: Any, values: Any, leaves: Any) -> Any:
    """Values with ``leaves`` in place of the active ones."""
    if isinstance(active, dict):
        return {key: _with(item, values[key], leaves) for key, item in active.items()}
    if isinstance(active, (tuple, list)):
        return type(active)(
            _with(item, value, leaves) for item, value in zip(active, values, strict=True)
        )
    return next(leaves) if active else values
