"""Functions with an rrule in a recorded run: one operation, transposed by the rule's pullback."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit, with_explicit
from fwdad.eager.duals.tags import isinstance_dual, top_tag
from fwdad.eager.hooks.subscripts import getitem
from fwdad.eager.lifting.rule_bodies import lifted
from fwdad.eager.memory.shadow import owner_of
from fwdad.eager.run import STATE
from fwdad.eager_reverse.operations import own_copy
from fwdad.eager_reverse.tangent import Recorded
from fwdad.errors import (
    ChunkMismatchError,
    MissingRuleError,
    RuleError,
    UnsupportedTypeError,
    type_in_words,
)
from fwdad.rules.core.adjoints import transpose
from fwdad.rules.core.containers import Path, rebuild, walk
from fwdad.rules.core.recording import Operation
from fwdad.rules.core.registry import function_name
from fwdad.rules.core.reverse_rules import ReverseRule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype
from fwdad.tangents.zero import ZERO, NoTangentType, Zero


class Pullback:
    """A reverse rule's pullback ``pull``, and the leaves that it goes between.

    ``leaves`` and ``arguments`` are ``(path, shape, dtype)`` of each float or complex leaf of y,
    and of each active argument.
    """

    def __init__(
        self, rule: ReverseRule, pull: Any, y: Any, leaves: list[Any], arguments: list[Any]
    ) -> None:
        self.rule = rule
        self.pull = pull
        self.structure = rebuild(y, lambda _path, _v: None)
        self.leaves = leaves
        self.arguments = arguments

    def pulled(self, y_bar: Chunk) -> tuple[Any, ...]:
        """The cotangents of each active argument, ``ZERO`` where the rule returns none."""
        lanes = y_bar.lanes
        nested = STATE.run is not None
        x_bars = [self._one(getitem(lanes, k) if nested else lanes[k]) for k in range(y_bar.n)]
        return tuple([self._stacked(k, [one[k] for one in x_bars]) for k in range(len(x_bars[0]))])

    def _stacked(self, k: int, lanes: list[Any]) -> Any:
        _, shape, dtype = self.arguments[k]
        if all(x is None for x in lanes):
            return ZERO
        written = [np.zeros(shape, dtype) if x is None else x for x in lanes]
        return Chunk(call(np.stack, written) if top_tag(written) is not None else np.stack(written))

    def _one(self, bar: Any) -> list[Any]:
        """The cotangents of the active arguments for one cotangent of the value."""
        parts = {
            path: part for (path, _, _), part in zip(self.leaves, self._parts(bar), strict=True)
        }
        y_bar = rebuild(self.structure, lambda path, _: parts.get(path))
        x_bars = self.pull(y_bar) if STATE.run is None else call(self.pull, y_bar)
        if type(x_bars) is not tuple:
            message = (
                f"the pullback of {self.rule.place} returns {type_in_words(x_bars)}; it must "
                "return a tuple with a cotangent for each argument, None where there is none"
            )
            raise ChunkMismatchError(message)
        names = self.rule.binder
        count = len(names.primals)
        if names.variadic_active:
            count = max(count, *[path[0] + 1 for path, _, _ in self.arguments], len(x_bars))
        if len(x_bars) != count:
            message = (
                f"the pullback of {self.rule.place} returns {len(x_bars)} cotangents for {count} "
                f"arguments ({', '.join(names.primals)})"
            )
            raise ChunkMismatchError(message)
        return [self._checked(x_bars, argument) for argument in self.arguments]

    def _parts(self, bar: Any) -> Iterator[Any]:
        """The cotangent of each leaf of y, in memory of its own."""
        if len(self.leaves) == 1:
            ((_, _, dtype),) = self.leaves
            yield _own(bar, dtype)
            return
        start = 0
        for _, shape, dtype in self.leaves:
            size = math.prod(shape)
            if isinstance_dual(bar):
                part = call(np.reshape, getitem(bar, slice(start, start + size)), shape)
                part = part if shape else getitem(part, ())
            else:
                part = bar[start : start + size].reshape(shape)[()]
            start += size
            yield _own(part, dtype)

    def _checked(self, x_bars: tuple[Any, ...], argument: tuple[Any, ...]) -> Any:
        """The cotangent of one argument, checked; None if there is none."""
        path, shape, dtype = argument
        x_bar: Any = x_bars
        for key in path:
            if x_bar is None or isinstance(x_bar, (Zero, NoTangentType)):
                return None
            try:
                x_bar = x_bar[key]
            except (TypeError, IndexError, KeyError):
                self._refuse(path, type_in_words(x_bar), "the structure of the argument")
        if x_bar is None or isinstance(x_bar, (Zero, NoTangentType)):
            return None
        x_bar = explicit(x_bar)
        raw = plain(x_bar)
        if isinstance(raw, (list, tuple, dict, Chunk)) or np.asarray(raw).dtype.kind not in "biufc":
            self._refuse(path, type_in_words(raw), "an array or a number")
        array = np.asarray(raw)
        if array.shape != shape:
            self._refuse(path, f"shape {array.shape}", f"shape {shape}")
        if array.dtype.kind == "c" and dtype.kind != "c":
            self._refuse(path, "a complex cotangent", "the real part, as the argument is real")
        return _own(x_bar, dtype)

    def _refuse(self, path: Path, came: str, wanted: str) -> None:
        name = self.rule.binder.primal_name(path[0]) + "".join(f"[{key!r}]" for key in path[1:])
        message = (
            f"the pullback of {self.rule.place} returns {came} as the cotangent of `{name}`; "
            f"expected {wanted}"
        )
        raise ChunkMismatchError(message)


def _own(bar: Any, dtype: np.dtype[Any]) -> Any:
    """A cotangent of a dtype, in memory of its own; numbers become NumPy's."""
    if dtype.kind != "c" and np.asarray(plain(bar)).dtype.kind == "c":
        bar = call(np.real, bar)
    if isinstance_dual(bar):
        return bar
    return np.array(bar, dtype)[()]


def _pulled(parts: Any, pullback: Pullback) -> Any:
    """The key of the transpose below, by which only tangents are mapped, never values."""
    raise NotImplementedError


@transpose(_pulled)
def _pulled_transpose(y_bar: Any, _parts: Any, pullback: Pullback) -> Any:
    return pullback.pulled(y_bar)


def record_pullback(
    record: Any, tangents: list[Recorded], pullback: Any, shape: tuple[int, ...], dtype: Any
) -> Recorded:
    """Record the tangent of a value of some shape, as one operation on tangents.

    In the reverse pass ``pullback.pulled(y_bar)`` returns a cotangent for each of them.
    """
    value = Chunk(np.empty((0, *shape), dtype))
    return record.operation(value, Operation(_pulled, (tuple(tangents), pullback), {}))


def run_reverse_rule(
    record: Any,
    rule: ReverseRule,
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    options: dict[str, Any],
) -> tuple[Any, Any]:
    """Run a reverse rule and record its pullback; returns ``(y, y_dot)`` that own their memory.

    Primals may be duals of enclosing derivatives. ``MissingRuleError`` if derivatives reach the
    function other than by its arguments; ``RuleError`` if the rule writes into an argument or
    returns its memory; ``UnsupportedTypeError`` if it returns anything but numbers and arrays;
    ``ChunkMismatchError`` if that is no pair of a value and a pullback.
    """
    _only_by_arguments(record, rule, primals)
    tangents = rebuild(tangents, lambda _, t: record.adopt(t))
    inputs = [(path, t) for path, t in walk(tangents) if type(t) is Recorded]
    copies = rebuild(primals, lambda _, v: own_copy(v) if _is_array(v) else v)
    nested = top_tag((primals, *options.values())) is not None
    result = (lifted(rule.body) if nested else rule.body)(copies, **options)
    if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
        message = f"{rule.place} returns {type_in_words(result)}; it must return (y, pullback)"
        raise ChunkMismatchError(message)
    y, pull = result
    _wrote_nothing(rule, primals, copies)
    (y,) = with_explicit((y,))
    leaves = list(_leaves(rule, y))
    _is_no_view(rule, y, copies)
    y = rebuild(y, lambda _, v: own_copy(v) if _is_array(v) else v)
    if not leaves or not inputs:
        return y, ZERO
    leaf_at = dict(walk(primals))
    arguments = [(p, np.shape(plain(leaf_at[p])), leaf_dtype(plain(leaf_at[p]))) for p, _ in inputs]
    pullback = Pullback(rule, pull, y, leaves, arguments)
    shape, dtype = leaves[0][1:]
    if len(leaves) > 1:
        shape = (sum(math.prod(shape) for _, shape, _ in leaves),)
        dtype = np.result_type(*[dtype for _, _, dtype in leaves])
    packed = record_pullback(record, [t for _, t in inputs], pullback, shape, dtype)
    dots = dict(_unpacked(packed, leaves))
    return y, rebuild(y, lambda path, _: dots.get(path, ZERO))


def _unpacked(packed: Recorded, leaves: list[Any]) -> Iterator[tuple[Path, Any]]:
    """The path and tangent of each leaf, from the tangent of all leaves in one vector."""
    if len(leaves) == 1:
        yield leaves[0][0], packed
        return
    start = 0
    for path, shape, dtype in leaves:
        size = math.prod(shape)
        part = packed[start : start + size].reshape(shape) if shape else packed[start]
        start += size
        if dtype.kind != "c" and packed.dtype.kind == "c":
            part = part.real
        yield path, part if part.dtype == dtype else part.astype(dtype)


def _is_array(v: Any) -> bool:
    return type(v) is Array or isinstance(v, np.ndarray)


def _leaves(rule: ReverseRule, y: Any) -> Iterator[tuple[Path, tuple[int, ...], Any]]:
    """Path, shape and dtype of the parts of a value that can carry a tangent."""
    for path, v in walk(y):
        raw = plain(v)
        if raw is None or isinstance(raw, (str, bool, int)):
            continue
        if not isinstance(raw, (float, complex, np.generic, np.ndarray)) or (
            np.asarray(raw).dtype.kind == "O"
        ):
            message = (
                f"{rule.place} returns {type_in_words(raw)}: a function with an rrule must "
                "return numbers and arrays, or tuples, lists and dicts of them"
            )
            raise UnsupportedTypeError(message)
        dtype = np.asarray(raw).dtype
        if dtype.kind in "fc":
            yield path, np.shape(raw), dtype


def _wrote_nothing(rule: ReverseRule, primals: Any, copies: Any) -> None:
    """Raise ``RuleError`` if a rule has written into the copies that it was given."""
    for (path, before), (_, after) in zip(walk(primals), walk(copies), strict=True):
        if _is_array(before):
            a, b = plain(before), plain(after)
            if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
                message = (
                    f"{rule.place} writes into its argument "
                    f"`{rule.binder.primal_name(path[0])}`: a rule must not write. If the "
                    "function does, use rrule(…, mutates=(…)), and return the new contents"
                )
                raise RuleError(message)


def _is_no_view(rule: ReverseRule, y: Any, copies: Any) -> None:
    """Raise ``RuleError`` if a rule returns memory of an argument, since a copy would differ.

    Whoever writes into the function's result would write into the argument as well.
    """
    owners = {id(owner_of(plain(v))) for _, v in walk(copies) if _is_array(v)}
    for _, v in walk(y):
        if _is_array(v) and id(owner_of(plain(v))) in owners:
            message = (
                f"{rule.place} returns memory of its argument: a function with an rrule must "
                "return new arrays, so make function and rule return a copy"
            )
            raise RuleError(message)


def _only_by_arguments(record: Any, rule: ReverseRule, primals: Any) -> None:
    """Raise if duals of the run are where the rule returns no cotangent for them."""
    for f in (rule.function, rule.body):
        for name, cell in zip(
            getattr(getattr(f, "__code__", None), "co_freevars", ()),
            getattr(f, "__closure__", None) or (),
            strict=False,
        ):
            content = _held(cell)
            if top_tag((content,)) is not None:
                message = (
                    f"{function_name(f)} reads `{name}` from the enclosing function, which "
                    f"carries a derivative that {rule.place} cannot return: make it an argument"
                )
                raise MissingRuleError(message)
    for k, x in enumerate(primals):
        if top_tag((x,)) is record.tag:
            message = (
                f"`{rule.binder.primal_name(k)}` of {function_name(rule.function)} holds values "
                "that carry derivatives in a dict: a function with an rrule must get them as "
                "arguments, or in a list or tuple"
            )
            raise MissingRuleError(message)


def _held(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
