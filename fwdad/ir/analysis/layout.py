"""Layout analysis: the memory order of arrays, and which operations depend on it.

NumPy's ``reshape`` and ``ravel`` return a view or a copy, depending on the layout of their
argument, and new arrays keep the layout of what they are made of: ``a.T * 2`` is in column order.
Compiled code makes C-contiguous arrays. What could observe the difference runs under NumPy,
together with everything that made what it looks at.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.ir.analysis.alias import Roots, aliased_arguments, memory_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Load,
    Loop,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.opaque_call import Whole
from fwdad.ir.primitives.stacks import pop, push, top
from fwdad.ir.primitives.view_mirrors import view_or_copy, view_or_zeros
from fwdad.ops import Layout, Memory, Record, record_of

_FEW_ROWS = 8


def multiplies_few_rows(op: Op) -> bool:
    """Whether an operation is a matrix of a few rows times a vector: lanes of an inner product.

    Compiled code forms these as inner products, in loops that read the rows where they are; BLAS
    would need them without gaps.
    """
    if not isinstance(op, Apply) or op.function not in (operator.matmul, np.matmul, np.dot):
        return False
    if len(op.args) != 2 or op.kwargs or not all(map(is_array, op.args)):
        return False
    a, b = (x.type for x in op.args)
    rows = a.shape[0] if (a.ndim, b.ndim) == (2, 1) else None
    return isinstance(rows, int) and 0 < rows <= _FEW_ROWS


class Order(enum.IntEnum):
    """The memory layout of an array.

    ``ROWS``: C-contiguous. ``FALLING``: strides do not increase from one axis to the next.
    ``REPEATED``: the same, but some strides are zero. ``ANY``: unknown.
    """

    ROWS = 0
    FALLING = 1
    REPEATED = 2
    ANY = 3


class Like(enum.IntEnum):
    """Whether an array has the same layout in compiled code as under NumPy.

    ``SAME``: it has. ``WRITTEN``: it has if its memory is written; else it may be a C-contiguous
    copy. ``OTHER``: it may differ.
    """

    SAME = 0
    WRITTEN = 1
    OTHER = 2


Counts = Callable[[Value, Like], bool]
"""Whether an array is of interest, if a likeness would be enough."""


class Orders:
    """The layouts of a program's arrays, and the operations that depend on them.

    The program is not changed. ``copied=False`` analyses it as if ``copy`` did not copy, for passes
    that remove copies. ``called``: another program calls it, so that compiled code may have made
    its arguments.
    """

    def __init__(self, program: Program, *, copied: bool = True, called: bool = False) -> None:
        self._copied = copied
        self._program = program
        self._orders: dict[Value, Order] = {}
        self._like: dict[Value, Like] = {}
        self._made: dict[Value, Operand] = {}  # by which operation, or of which values
        self._pushed: dict[Operand, Order] = {}  # the worst layout on each stack
        self._called = called
        self._is_known = False

    def of(self, v: Value) -> Order:
        """The layout of an array."""
        self._know()
        return self._orders.get(v, Order.ANY)

    def _know(self) -> None:
        """Analyse the program on first use."""
        if self._is_known:
            return
        self._is_known = True
        for p in self._program.block.params:
            if is_array(p):
                order = Order.ROWS if self._program.rows else Order.ANY
                self._give(p, None, order, Like.OTHER if self._called else Like.SAME)
        self._block(self._program.block)

    def unlike(self) -> set[Op]:
        """The operations that must run under NumPy: those that depend on a layout that may differ.

        Includes the operations that make the arrays in question.
        """
        return self._depending(self._may_be_unlike)

    def on_other_orders(self) -> set[Op]:
        """The operations that depend on arrays not known to be C-contiguous.

        Includes the operations that make these arrays.
        """
        return self._depending(lambda v, _: self.of(v) is not Order.ROWS)

    def _may_be_unlike(self, v: Value, most: Like = Like.SAME) -> bool:
        self._know()
        return self._like.get(v, Like.OTHER) > most

    def _depending(self, counts: Counts) -> set[Op]:
        ops: set[Op] = set()
        for op in self.sensitive(counts):
            self._leave(op, ops, counts)
        for op in walk(self._program.block):
            if isinstance(op, Call) and _any_is_sensitive(op.program, set()):
                self._leave(op, ops, counts)
        return ops

    def sensitive(self, counts: Counts | None = None) -> list[Op]:
        """The operations for which the layout of some arrays makes a difference."""
        counts = counts or self._may_be_unlike
        sensitive = [
            op for op in walk(self._program.block)
            if isinstance(op, Apply)
            and _is_concerned(record_of(_called_with(op)[0]))
            and any(counts(v, _enough_for(op)) for v in _arrays(op))
        ]  # fmt: skip
        if not sensitive:
            return []
        roots = memory_of(self._program)
        observable = self._observable(roots)
        return [op for op in sensitive if _is_sensitive(op, observable, roots)]

    def _observable(self, roots: Roots) -> set[Value]:
        """Memory that is written, or returned under several names."""
        ops = list(walk(self._program.block))
        observable = {r for op in ops for v in op.writes() for r in roots.get(v, {v})}
        returned: set[Value] = set()
        for v in dict.fromkeys(values_in(self._program.block.results)):
            owners = roots.get(v, {v})
            observable |= returned & owners
            returned |= owners
        return observable

    def _leave(self, op: Op, found: set[Op], counts: Counts) -> None:
        """Add an operation, and those that make the arrays that it depends on, to ``found``."""
        waiting: list[Any] = [op]
        values: set[Value] = set()
        while waiting:
            x = waiting.pop()
            if isinstance(x, Op):
                if x not in found:
                    found.add(x)
                    waiting.extend(values_in(x.operands()))
            else:
                for v in values_in(x):
                    if is_array(v) and counts(v, Like.SAME) and v not in values:
                        values.add(v)
                        waiting.append(self._made.get(v))

    # -- the layouts of arrays

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, Apply) and op.function is push and is_array(op.args[1]):
                worst = self._pushed.get(op.args[0], Order.ROWS)
                self._pushed[op.args[0]] = max(worst, self.of(op.args[1]))
            elif isinstance(op, (Apply, Load)):
                for v in filter(is_array, op.outputs):
                    at = _called(self, op, v) if isinstance(op, Apply) else _loaded(self, op, v)
                    self._give(v, op, *at)
            elif isinstance(op, Branch):
                self._block(op.then)
                self._block(op.other)
                for v, *either in zip(op.outputs, op.then.results, op.other.results, strict=True):
                    self._merge(v, either)
            elif isinstance(op, Loop):
                self._loop(op)
            else:
                for v in op.outputs:
                    self._give(v, op, Order.ANY, Like.OTHER)

    def _give(self, v: Value, made: Operand, order: Order, like: Like) -> None:
        self._orders[v], self._made[v], self._like[v] = order, made, like

    def _merge(self, v: Value, sources: list[Operand]) -> None:
        arrays = [s for s in sources if is_array(s)]
        if is_array(v) and arrays:
            order = max(self.of(s) for s in arrays)
            self._give(v, arrays, order, max(map(self.like, arrays)))

    def like(self, v: Value) -> Like:
        """Whether an array has the same layout in compiled code as under NumPy."""
        return self._like.get(v, Like.OTHER)

    def _loop(self, op: Loop) -> None:
        for p, a in zip(op.carried, op.initial, strict=True):
            self._merge(p, [a])
        while True:
            before = [(self.of(p), self.like(p)) for p in op.carried]
            if op.test is not None:
                self._block(op.test)
            self._block(op.body)
            for p, a, r in zip(op.carried, op.initial, op.body.results, strict=False):
                self._merge(p, [a, r])
            if before == [(self.of(p), self.like(p)) for p in op.carried]:
                break
        for v, p in zip(op.outputs, op.carried, strict=True):
            self._merge(v, [p])

    def pushed(self, stack: Operand) -> Order:
        """The worst layout of the arrays that are pushed onto a stack, as far as they are known."""
        return self._pushed.get(stack, Order.ANY)

    @property
    def copied(self) -> bool:
        """Whether ``copy`` is taken to copy."""
        return self._copied


def _any_is_sensitive(program: Program, seen: set[int]) -> bool:
    """Whether a called program, or one that it calls, depends on layouts."""
    if program.interpreted or id(program) in seen:
        return False
    seen.add(id(program))
    inner = (op.program for op in walk(program.block) if isinstance(op, Call))
    return bool(Orders(program, called=True).sensitive()) or any(
        _any_is_sensitive(each, seen) for each in inner
    )


# -- what operations depend on


def _is_concerned(record: Record) -> bool:
    """Whether a function may depend on the layout of its arguments."""
    return record.by_layout or record.reads_in_order or record.sees_strides


def _enough_for(op: Apply) -> Like:
    """The likeness that suffices for an operation that depends on a layout."""
    views_only = record_of(_called_with(op)[0]).by_layout and order_of(op) not in ("K", "A")
    return Like.WRITTEN if views_only else Like.SAME


def _is_sensitive(op: Apply, observable: set[Value], roots: Roots) -> bool:
    """Whether the layout of its argument makes a difference to an operation."""
    record = record_of(_called_with(op)[0])
    if record.sees_strides or (record.reads_in_order and order_of(op) in ("K", "A")):
        return True
    if not aliased_arguments(op):
        return False
    plain = op.function is np.reshape and all(a.type.ndim < 2 for a in _arrays(op))
    return not plain and any(roots.get(v, {v}) & observable for v in op.outputs)


# -- the layouts of what operations return, and whether those of compiled code differ


def _loaded(orders: Orders, op: Load, v: Value) -> tuple[Order, Like]:
    order = orders.of(op.array)
    index = [i for i in op.index if i is not None]
    if not op.view:
        parts = [k for k, i in enumerate(index) if not isinstance(i, slice) and i is not ...]
        first = parts == list(range(len(parts)))
        worst = max([order, *(orders.of(i) for i in _arrays_in(op.index))])
        return _new(v, Order.ROWS if first and worst <= Order.FALLING else Order.ANY)
    if order is not Order.ROWS:
        order = Order.FALLING if order is Order.ANY and v.type.ndim < 2 else order
        return order, orders.like(op.array)
    at = next((k for k, i in enumerate(index) if isinstance(i, slice) or i is ...), len(index))
    near = all(not isinstance(i, slice) or i.step in (None, 1) for i in index[at : at + 1])
    rows = near and all(map(_is_whole, index[at + 1 :]))
    return (Order.ROWS if rows else Order.FALLING), orders.like(op.array)


def _called(orders: Orders, op: Apply, v: Value) -> tuple[Order, Like]:
    f, arrays = op.function, list(_arrays(op))
    if f in (pop, top) and orders.pushed(op.args[0]) is Order.ROWS:
        return Order.ROWS, Like.SAME
    record = record_of(f)
    worst = max((orders.of(a) for a in arrays), default=Order.ROWS)
    like = max(map(orders.like, arrays), default=Like.SAME)
    if f is np.ascontiguousarray:
        return Order.ROWS, Like.SAME
    if not aliased_arguments(op):
        if f is np.ndarray.copy and not orders.copied:
            return worst, Like.OTHER
        return _new(v, _order_of_new(op, worst))
    if record.layout is Layout.SAME or (record.own and record.memory is Memory.MAYBE):
        return worst, like
    if record.layout in _STEPS:
        return max(worst, _STEPS[record.layout]), like
    if record.layout is Layout.TURNED:
        return (Order.ANY if v.type.ndim > 1 else Order.REPEATED), like
    if f in (view_or_zeros, view_or_copy) and orders.of(op.args[3]) is Order.ROWS:
        return orders.of(op.args[0]), orders.like(op.args[0])
    by_layout = record.by_layout and f is not np.asfortranarray
    if worst is Order.ROWS and by_layout and order_of(op) == "C":
        return worst, like
    order = Order.ANY if v.type.ndim > 1 else Order.REPEATED
    if record.memory is Memory.IF_CONTIGUOUS:
        return order, max(like, Like.WRITTEN)
    return order, Like.OTHER


_STEPS = {Layout.FALLING: Order.FALLING, Layout.REPEATED: Order.REPEATED}
_WORST = {Layout.KEPT: Order.FALLING, Layout.ELEMENTWISE: Order.REPEATED}
"""The worst layout of arguments of which a function makes a C-contiguous array."""


def _order_of_new(op: Apply, worst: Order) -> Order:
    """The layout that NumPy gives to a new array made of others."""
    order, layout = order_of(op, ""), record_of(op.function).layout
    if order == "C" or (layout is Layout.C and not order):
        return Order.ROWS
    if order == "K" and layout is Layout.C:  # which is where no order is given
        layout = Layout.KEPT
    if layout is Layout.UNKNOWN and _is_elementwise(op.function):
        layout = Layout.ELEMENTWISE
    kept = layout in _WORST and worst <= _WORST[layout]
    if order == "A":  # "F" where all arguments are, and not "C" as well
        kept = worst is Order.ROWS
    return Order.ROWS if order in ("", "K", "A") and kept else Order.ANY


def _new(v: Value, order: Order) -> tuple[Order, Like]:
    """The layout of a new array; compiled code makes it C-contiguous."""
    if v.type.ndim < 2:
        order = Order.ROWS
    return order, Like.SAME if order is Order.ROWS else Like.OTHER


def _is_elementwise(f: Any) -> bool:
    if isinstance(f, np.ufunc):
        return f.signature is None
    return getattr(operator, getattr(f, "__name__", ""), None) is f


def _is_whole(i: Operand) -> bool:
    if isinstance(i, slice):
        return i.start is None and i.stop is None and i.step in (None, 1)
    return i is ...


def _arrays(op: Op) -> Iterator[Value]:
    return _arrays_in(op.operands())


def _arrays_in(operand: Operand) -> Iterator[Value]:
    return (v for v in values_in(operand) if is_array(v))


def order_of(op: Apply, default: str = "C") -> Any:
    """The ``order`` in which a call reads or makes an array."""
    f, args = _called_with(op)
    place = record_of(f).order_at
    return args[place] if place and len(args) > place else op.kwargs.get("order", default)


def _called_with(op: Apply) -> tuple[Any, tuple[Any, ...]]:
    """The function and the arguments of a call; of an opaque rule, those of its primal."""
    f, args = op.function, op.args
    while (
        isinstance(f, Whole) and f.differentiates
    ):  # behind the primal's arguments are lanes or cotangents
        f, args = f.function, args[0]
    return f, args
