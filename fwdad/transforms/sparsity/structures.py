"""The structure of each operation: which elements of its result depend on which of its arguments.

It follows from what operations declare. Elementwise ones unite; what only moves elements is called
with nodes in place of numbers; reductions and functions with an axis depend on a whole line along
it; products of arrays are products and sums of elements. What is none of these depends on all.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.register_into import enter_into
from fwdad.ir.leaves import Leaves
from fwdad.ir.ops import Apply, Operand, Value, map_values, values_in
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.ir.primitives.identity import identity
from fwdad.ops import Memory, record_of
from fwdad.ops.record import Algebra
from fwdad.rules.core.registry import find_rule
from fwdad.transforms.forward.rule_table import ruled_function
from fwdad.transforms.sparsity.cells import UNKNOWN, Cell, is_float
from fwdad.transforms.sparsity.graph import Graph

LINEAR = (Algebra.SUM, Algebra.DIFFERENCE, Algebra.NEGATION, Algebra.IDENTITY)
MOST_PRODUCTS = 1 << 22

STRUCTURES: dict[Any, Callable[[Call], Any]] = {}
"""Functions whose structure is known beyond what they declare: nodes of the result of a call."""


def structure(*functions: Any) -> Callable[[Any], Any]:
    """Define the structure of some functions."""
    return enter_into(STRUCTURES, functions)


def _is_linear(ufunc: Any) -> bool:
    """Whether what a ufunc makes of several elements is linear in each."""
    return ufunc is np.add or (ufunc is not None and record_of(ufunc).piecewise_linear)


class NotOfThisKind(Exception):  # noqa: N818  (it is no error)
    """Another kind of structure has to be tried."""


class Call:
    """A call whose structure is asked for.

    ``shape`` is that of its result; ``values`` returns operands as they are, or raises where one
    is not known.
    """

    def __init__(self, graph: Graph, op: Apply, cells: Callable[[Value], Cell], shape: Any) -> None:
        self.graph = graph
        self.op = op
        self.function = ruled_function(op)
        self.args = op.args
        self.kwargs = op.kwargs
        self.shape = shape
        self._cells = cells

    def nodes(self, operand: Operand) -> Any:
        """The nodes of an operand; of nested lists an array of them."""
        if type(operand) is Value:
            return self._cells(operand).nodes
        if isinstance(operand, (tuple, list)):
            return np.array([self.nodes(item) for item in operand], np.int64)
        return np.zeros(np.shape(operand), np.int64)

    def value(self, operand: Operand) -> Any:
        """What an operand is."""
        return map_values(self._known, operand)

    def _known(self, v: Value) -> Any:
        value = self._cells(v).value
        if value is UNKNOWN:
            raise NotOfThisKind
        return value

    def is_active(self, operand: Operand) -> bool:
        """Whether an operand depends on an input."""
        return any(self._cells(v).active for v in values_in(operand))

    def bound(self, *names: str) -> list[Any]:
        """The operands by the names of parameters; None for those that are not given."""
        try:
            given = inspect.signature(self.function).bind(*self.args, **self.kwargs)
        except (TypeError, ValueError):
            raise NotOfThisKind from None
        given.apply_defaults()
        return [given.arguments.get(name) for name in names]

    def moved(self, exchange: Callable[[Operand], Any]) -> Any:
        """What the function returns of nodes in place of floats."""

        def replaced(operand: Operand) -> Any:
            kind = type(operand)
            if kind is Value:
                return exchange(operand) if is_float(operand) else self._known(operand)
            if kind in (list, tuple):
                return kind([replaced(item) for item in operand])
            return 0 if isinstance(operand, (float, complex, np.inexact)) else self.value(operand)

        function = self.op.function
        try:
            made = function(
                *[replaced(a) for a in self.args],
                **{k: replaced(a) for k, a in self.kwargs.items() if k != "dtype"},
            )
        except (TypeError, ValueError, AttributeError, RuntimeError):  # whatever refuses objects
            raise NotOfThisKind from None
        return made

    # -- what several kinds are made of

    def elementwise(self, operands: list[Operand], *, linear: bool, cross: bool = False) -> Any:
        """A union of operands; with ``cross`` it is linear in each of them."""
        parts = [np.asarray(self.nodes(a), np.int64) for a in operands]
        active = [p for p in parts if np.any(p)]
        shape = np.broadcast_shapes(self.shape, *[p.shape for p in active])
        if not self.graph.pairs or linear or (cross and len(active) < 2):
            return self.graph.union(parts, shape)
        made = self.graph.union(parts, shape, new=True)
        for j, a in enumerate(active):
            for b in active[j + cross :]:
                self.graph.join(made, a, b)
        return made

    def lines(self, nodes: Any, axes: Any, *, linear: bool) -> Any:
        """All elements along some axes, in each of what the result has there."""
        nodes = np.asarray(nodes, np.int64)
        if axes is None:
            axes = range(nodes.ndim)
        elif isinstance(axes, (int, np.integer)):
            axes = (axes,)
        elif not all(isinstance(k, (int, np.integer)) for k in axes):
            raise NotOfThisKind
        axes = tuple(sorted({operator.index(k) % max(nodes.ndim, 1) for k in axes}))
        made = self.graph.over(nodes, axes, new=self.graph.pairs and not linear)
        if not linear:
            self.graph.join(made, made, made)
        like = nodes
        if len(self.shape) != nodes.ndim:
            made, like = np.squeeze(made, axes), np.maximum.reduce(nodes, axis=axes, initial=0)
        fits = len(self.shape) == made.ndim and all(
            n in (1, wanted) for n, wanted in zip(made.shape, self.shape, strict=True)
        )
        if not fits:
            raise NotOfThisKind
        # in memory as NumPy's result is: the axes in the order of the argument's
        like = np.asarray(like)
        laid = np.empty_like(like) if like.shape == self.shape else np.empty(self.shape, np.int64)
        laid[...] = made
        return laid

    def everything(self) -> Any:
        """One node for all elements of the result, which depends on all that the call is given."""
        given = [np.ravel(self.nodes(v)) for o in self.op.operands_read() for v in values_in(o)]
        flat = np.concatenate(given) if given else np.zeros(0, np.int64)
        made = self.graph.over(flat, (0,), new=self.graph.pairs)
        self.graph.join(made, made, made)
        return np.full(self.shape, made[0])


def nodes_of_call(call: Call, k: int = 0) -> tuple[Any, bool]:
    """The nodes of a call's result number k, and whether they were told by its structure."""
    if len(call.op.outputs) > 1:
        try:
            return _views(call, k), True
        except NotOfThisKind:
            return call.everything(), math.prod(call.shape) == 1
    rule = find_rule(call.function)
    declared = rule is None or not rule.of_user or rule.kind == "elementwise"
    for kind in _KINDS if declared else ():  # of the user's own nothing else is known
        try:
            return kind(call), True
        except NotOfThisKind:
            continue
    return call.everything(), math.prod(call.shape) == 1


def _declared(call: Call) -> Any:
    """What is in the table."""
    known = STRUCTURES.get(call.function)
    if known is None:
        raise NotOfThisKind
    return known(call)


def _elementwise(call: Call) -> Any:
    """Functions of numbers, and those that work element by element."""
    f, rule = call.function, find_rule(call.function)
    by_elements = isinstance(f, np.ufunc) and f.signature is None and f.nout == 1
    if not by_elements and (rule is None or rule.kind != "elementwise"):
        raise NotOfThisKind
    operands = list(call.args[: f.nin] if isinstance(f, np.ufunc) else call.args)
    algebra = record_of(f).algebra
    if algebra is Algebra.QUOTIENT and len(operands) == 2:
        divides = call.is_active(operands[1])
        return call.elementwise(operands, linear=not divides)
    linear = algebra in LINEAR or _is_piecewise_linear(call, operands)
    return call.elementwise(operands, linear=linear, cross=algebra is Algebra.PRODUCT)


def _is_piecewise_linear(call: Call, operands: list[Any]) -> bool:
    """Whether a function is; the absolute value of a complex number is not."""
    if not record_of(call.function).piecewise_linear:
        return False
    given = [v.type.dtype.kind for v in values_in(operands)]
    return "c" not in given or all(v.type.dtype.kind == "c" for v in call.op.outputs)


def _gathered(call: Call) -> Any:
    """Arrays of numbers and arrays, one by one or side by side."""
    record = record_of(call.op.function)
    if not (record.joins or record.gathers or record.passes):
        raise NotOfThisKind
    first, *rest = call.args
    if record.joins:
        parts = call.nodes(first) if type(first) is Value else list(map(call.nodes, first))
        kept = {k: call.value(a) for k, a in call.kwargs.items() if k not in ("dtype", "casting")}
        return call.op.function(parts, *[call.value(a) for a in rest], **kept)
    nodes = call.nodes(first)
    if type(nodes) is int:
        return np.array(nodes) if call.shape == () else nodes
    (made,) = call.op.outputs
    if type(first) is not Value or first.type.dtype != made.type.dtype:
        return np.array(nodes, ndmin=len(call.shape))
    options = {k: call.value(a) for k, a in call.kwargs.items() if k != "dtype"}
    if call.function is np.ndarray.astype:
        return np.array(nodes) if options.get("copy", True) else nodes
    if len(rest) > 1:
        raise NotOfThisKind
    return call.op.function(nodes, **options)


def _moved(call: Call) -> Any:
    """Functions whose result has elements of the argument, and no others."""
    record = record_of(call.op.function)
    if not (record.moves or record.memory is Memory.VIEW):
        raise NotOfThisKind
    return call.moved(call.nodes)


def _views(call: Call, k: int) -> Any:
    """One of several arrays that are views."""
    if record_of(call.function).memory is not Memory.VIEW:
        raise NotOfThisKind
    return call.moved(call.nodes)[k]


def _selected(call: Call) -> Any:
    """Linear functions that turn out to move elements: each is found in the result, or none."""
    rule = find_rule(call.function)
    if rule is None or rule.kind != "linear" or isinstance(call.op.function, Leaves):
        raise NotOfThisKind
    labels: list[Any] = []
    nodes: list[Any] = []
    rng = np.random.default_rng(0)

    def labelled(v: Value) -> Any:
        held = np.asarray(call.nodes(v))
        made = rng.integers(1 << 40, 1 << 61, held.shape)
        labels.append(made.ravel())
        nodes.append(held.ravel())
        return made

    made = np.asarray(call.moved(labelled))
    if made.dtype != np.int64 or made.shape != call.shape:
        raise NotOfThisKind
    every, held = np.concatenate(labels), np.concatenate(nodes)
    if not every.size:
        return np.zeros(call.shape, np.int64)
    order = np.argsort(every)
    at = np.minimum(np.searchsorted(every, made, sorter=order), every.size - 1)
    found = every[order[at]] == made
    if not np.all(found | (made == 0)):
        raise NotOfThisKind
    return np.where(found, held[order[at]], 0)


def _along_lines(call: Call) -> Any:
    """Functions with an axis, of one array: sums, extremes, sorting, transforms, norms."""
    f, record = call.function, record_of(call.function)
    rule = find_rule(f)
    if isinstance(f, np.ufunc):
        raise NotOfThisKind
    active = [a for a in call.args if call.is_active(a)]
    if len(active) != 1 or type(active[0]) is not Value or active[0] is not call.args[0]:
        raise NotOfThisKind
    (a,) = active
    owner, name = getattr(f, "__self__", None), getattr(f, "__name__", "")
    if isinstance(owner, np.ufunc):
        axis = call.value(call.kwargs.get("axis", call.args[1] if len(call.args) > 1 else 0))
        if name == "accumulate":
            return _prefixes(call, call.nodes(a), axis, linear=owner in (np.add, np.subtract))
        if name != "reduce":
            raise NotOfThisKind
        return call.lines(call.nodes(a), axis, linear=_is_linear(owner))
    axis, axes, axis1 = call.bound("axis", "axes", "axis1")
    has = inspect.signature(f).parameters
    if not ({"axis", "axes"} & has.keys()) or axis1 is not None:
        raise NotOfThisKind
    where = call.value(axis if "axis" in has else axes)
    ufunc = record.reduction or record.accumulation
    linear = (rule is not None and rule.kind == "linear") or _is_linear(ufunc)
    if record.accumulation is not None:
        nodes = np.asarray(call.nodes(a))
        nodes = nodes.ravel() if where is None else nodes
        return _prefixes(call, nodes, where or 0, linear=linear)
    return call.lines(call.nodes(a), where, linear=linear)


def _prefixes(call: Call, nodes: Any, axis: int, *, linear: bool) -> Any:
    """All elements before each one, found by doubling: in log2(n) steps."""
    nodes = np.moveaxis(np.array(nodes), axis, -1)
    step = 1
    while step < nodes.shape[-1]:
        later, earlier = nodes[..., step:], nodes[..., :-step]
        nodes[..., step:] = call.graph.union([later, earlier], later.shape)
        step *= 2
    if call.graph.pairs and not linear:
        made = call.graph.union([nodes], nodes.shape, new=True)
        call.graph.join(made, made, made)
        nodes = made
    return np.moveaxis(nodes, -1, axis)


class _Element:
    """A node that is added and multiplied as a number is."""

    __slots__ = ("call", "node")

    def __init__(self, call: Call, node: int) -> None:
        self.call = call
        self.node = node

    def _with(self, other: Any) -> _Element:
        node = other.node if type(other) is _Element else 0
        return _Element(self.call, self.call.graph.either(self.node, node))

    __add__ = __radd__ = __sub__ = __rsub__ = _with

    def __mul__(self, other: Any) -> _Element:
        graph = self.call.graph
        if type(other) is not _Element or not (graph.pairs and self.node and other.node):
            return self._with(other)
        node = graph.both(self.node, other.node)
        graph.join(node, self.node, other.node)
        return _Element(self.call, node)

    __rmul__ = __mul__

    def __neg__(self) -> _Element:
        return self

    conjugate = __neg__


def _by_products(call: Call) -> Any:
    """Products of small arrays: NumPy's own function multiplies and adds elements."""
    rule = find_rule(call.function)
    if rule is None or rule.kind not in ("multilinear", "linear"):
        raise NotOfThisKind
    size = math.prod(max(np.size(call.nodes(v)), 1) for o in call.args for v in values_in(o))
    if size > MOST_PRODUCTS // 16:
        raise NotOfThisKind

    def elements(v: Value) -> Any:
        made = np.empty(np.shape(call.nodes(v)), object)
        made.ravel()[:] = [_Element(call, int(k)) for k in np.ravel(call.nodes(v))]
        return made

    made = np.asarray(call.moved(elements), object)
    if made.shape != call.shape or not all(type(x) is _Element or x == 0 for x in made.flat):
        raise NotOfThisKind
    nodes = [x.node if type(x) is _Element else 0 for x in made.flat]
    return np.array(nodes, np.int64).reshape(call.shape)


_KINDS = (_declared, _elementwise, _gathered, _moved, _selected, _along_lines, _by_products)


@structure(identity, float, complex, np.float64, np.float32, np.complex128, np.complex64)
def _number(call: Call) -> Any:
    nodes = call.nodes(call.args[0])
    return nodes if call.function is identity else np.array(nodes)


@structure(np.where)
def _where(call: Call) -> Any:
    condition, *ways = call.args
    if len(ways) != 2:
        raise NotOfThisKind
    a, b = (np.asarray(call.nodes(x)) for x in ways)
    try:
        return np.where(call.value(condition), a, b)
    except NotOfThisKind:
        return call.graph.union([a, b], call.shape)


@structure(np.clip, np.nan_to_num, np.angle, np.real_if_close)
def _by_elements(call: Call) -> Any:
    linear = call.function is not np.angle
    return call.elementwise([a for a in call.args if a is not None], linear=linear)


@structure(np.real, np.imag)
def _part(call: Call) -> Any:
    return call.nodes(call.args[0])  # a view, as it is of complex numbers


@structure(np.full_like, np.full)
def _filled(call: Call) -> Any:
    (fill,) = call.bound("fill_value")
    return np.array(np.broadcast_to(call.nodes(fill), call.shape), order="C")


@structure(np.zeros_like, np.ones_like, np.empty_like)
def _new(call: Call) -> Any:
    return np.zeros(call.shape, np.int64)


@structure(sum_to)
def _sum_to(call: Call) -> Any:
    nodes = np.asarray(call.nodes(call.args[0]))
    extra = nodes.ndim - len(call.shape)
    lead = tuple(range(extra))
    wide = tuple(
        k + extra for k, n in enumerate(call.shape) if n == 1 and nodes.shape[k + extra] != 1
    )
    return call.graph.over(nodes, (*lead, *wide)).reshape(call.shape)


@structure(np.sort)
def _sorted(call: Call) -> Any:
    """Of a known array without ties, the elements that stand there."""
    (a, axis) = call.bound("a", "axis")
    x, axis = call.value(a), call.value(axis)
    x, axis = (np.ravel(x), 0) if axis is None else (x, axis)
    order = np.argsort(x, axis=axis)
    if not np.all(np.diff(np.take_along_axis(x, order, axis), axis=axis)):
        raise NotOfThisKind
    return np.take_along_axis(np.reshape(call.nodes(a), x.shape), order, axis)
