"""The elements of results of calls on small arrays, in terms of the elements of the arguments.

Elements are object arrays of operands, each a NumPy number of the array's dtype. Shapes, indices
and rearrangements are NumPy's own, applied to such arrays; arithmetic is recorded element by
element, with functions that give a number the bits that they give an element of an array.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from fwdad.ir.builder.index_parts import spelled_out
from fwdad.ir.ops import Apply, Load, Operand, Value, is_array, type_of_operand, values_in
from fwdad.ir.types import ArrayType, Number, Type, number_type
from fwdad.ops import Algebra, Memory, record_of

SMALL = 16
"""Arrays of at most so many elements become numbers."""

Elements = Any
"""An object array of operands."""


class Writing(Protocol):
    """What records operations on numbers."""

    def apply(self, function: Callable[..., Any], args: tuple[Operand, ...], t: Type) -> Value:
        """Record a call, and return its value."""

    def load(self, array: Value, index: tuple[Operand, ...]) -> Value:
        """Record the load of an element."""

    def elements(self, operand: Operand) -> Elements:
        """The elements of an operand; a number is its own element."""


def is_small(t: Any) -> bool:
    """Whether a type is that of an array with few elements and known lengths."""
    if not isinstance(t, ArrayType) or not t.ndim or t.dtype.kind not in "bifc":
        return False
    known = [d for d in t.shape if isinstance(d, int)]
    return len(known) == t.ndim and 1 <= math.prod(known) <= SMALL


def number_of(v: Value) -> Number:
    """The type of an array's elements."""
    return Number(v.type.dtype, python=False)


def lengths(v: Value) -> tuple[int, ...]:
    """The shape of a small array."""
    return tuple(d for d in v.type.shape if isinstance(d, int))


def size(v: Value) -> int:
    """How many elements a small array has."""
    return math.prod(lengths(v))


def elements_of(items: Sequence[Operand], shape: tuple[int, ...]) -> Elements:
    """Operands in the shape of an array."""
    array = np.empty(shape, object)
    for k, index in enumerate(np.ndindex(shape)):
        array[index] = items[k]
    return array


def places(v: Value) -> Any:
    """The flat index of each element, in the array's shape."""
    return np.arange(size(v)).reshape(lengths(v))


def places_at(array: Value, index: tuple[Operand, ...]) -> Any:
    """The flat indices of the elements that an index selects; None if unknown or out of bounds."""
    if values_in(index):
        return None
    try:
        return places(array)[index]
    except IndexError:
        return None


def loaded_places(op: Load) -> Any:
    """The flat indices of the elements that a load reads, or None."""
    read_places = places_at(op.array, op.index)
    t = op.outputs[0].type
    return read_places if read_places is not None and np.shape(read_places) == t.shape else None


def taken(op: Load) -> Any:
    """An array with the index of each element that a load takes; None if it is unknown.

    The load has a basic index: numbers, perhaps symbolic, and known slices.
    """
    if is_small(op.array.type):
        at = loaded_places(op)
        if at is not None:
            every = list(np.ndindex(lengths(op.array)))
            return elements_of([every[k] for k in np.ravel(at)], np.shape(at))
    if not op.view or any(i is None for i in op.index):
        return None
    rest = list(op.array.type.shape)
    index = spelled_out(op.index, len(rest))
    places: list[list[Operand]] = []
    shape = []
    for i, n in zip(index, rest, strict=True):
        if not isinstance(i, slice):
            places.append([i])
        elif isinstance(n, int) and not values_in(i):
            places.append(list(range(*i.indices(n))))
            shape.append(len(places[-1]))
        else:
            return None
    if tuple(shape) != op.outputs[0].type.shape:
        return None
    return elements_of(list(itertools.product(*places)), tuple(shape))


def nested_shape(operand: Operand) -> tuple[int, ...] | None:
    """The shape of nested lists of numbers and small arrays; None for anything else."""
    if isinstance(operand, (list, tuple)):
        shapes = {nested_shape(item) for item in operand}
        if len(shapes) != 1 or None in shapes:
            return None
        (shape,) = shapes
        return (len(operand), *shape)  # type: ignore[misc]
    if is_array(operand):
        return operand.type.shape if is_small(operand.type) else None
    t = type_of_operand(operand)
    return () if isinstance(t, Number) else None


def stores(array: Value, index: tuple[Operand, ...], value: Operand) -> bool:
    """Whether it is known which elements a store writes, and what it writes there."""
    at = places_at(array, index)
    shape = nested_shape(value)
    if at is None or shape is None or np.unique(at).size != np.size(at):
        return False
    try:
        np.broadcast_to(np.empty(_without_ones(shape, np.ndim(at))), np.shape(at))
    except ValueError:
        return False
    return True


def stored_elements(found: Elements, shape: tuple[int, ...]) -> Elements:
    """The elements that a store writes to positions of a shape."""
    return np.broadcast_to(found.reshape(_without_ones(found.shape, len(shape))), shape)


def _without_ones(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return shape


def cast(writing: Writing, x: Operand, dtype: np.dtype[Any]) -> Operand:
    """An operand as a NumPy number of a dtype."""
    t = Number(dtype, python=False)
    if isinstance(x, Value):
        return x if x.type == t else writing.apply(dtype.type, (x,), t)
    return x if number_type(x) == t else dtype.type(x)


# -- arithmetic

_AS_THEY_ARE = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pos,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.and_,
    operator.or_, operator.xor, operator.invert,
}  # fmt: skip
POWERS = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal, 1: np.positive}
"""What NumPy computes for an array to the power of a Python number."""


def element_function(function: Any, args: tuple[Operand, ...]) -> tuple[Any, int] | None:
    """The scalar function that an elementwise function applies, and its number of arguments."""
    if function in _AS_THEY_ARE:
        return function, len(args)
    if function is operator.pow and not isinstance(args[1], Value):
        known = POWERS.get(args[1]) if type(args[1]) in (int, float) else None
        return (known, 1) if known is not None else (np.power, 2)
    stands_for = _ufunc_of(function)
    if stands_for is not None:
        return stands_for, len(args)
    plain = isinstance(function, np.ufunc) and function.signature is None and function.nout == 1
    return (function, function.nin) if plain and len(args) == function.nin else None


def _ufunc_of(function: Any) -> Any:
    """The elementwise ufunc that an operator stands for; None for any other function."""
    ufunc = record_of(function).stands_for
    return ufunc if isinstance(ufunc, np.ufunc) and ufunc.signature is None else None


def _elementwise(op: Apply) -> Any:
    scalar_function = element_function(op.function, op.args)
    t = op.outputs[0].type
    if scalar_function is None or op.kwargs or t.dtype.kind not in "bfc" or not _plain(op.args):
        return None
    function, taken = scalar_function

    def expand(writing: Writing) -> Elements:
        parts = np.broadcast_arrays(*[writing.elements(a) for a in op.args])
        return each(writing, function, parts[:taken], t.dtype)

    return expand


def _plain(args: Sequence[Operand]) -> bool:
    """Whether all arguments are numbers and arrays."""
    return all(isinstance(a, Value) or number_type(a) is not None for a in args)


def each(writing: Writing, function: Any, parts: Sequence[Elements], dtype: Any) -> Elements:
    """A scalar function applied element by element."""
    t = Number(np.dtype(dtype), python=False)
    array = np.empty(parts[0].shape, object)
    for k in np.ndindex(array.shape):
        array[k] = writing.apply(function, tuple(p[k] for p in parts), t)
    return array


def _selected(op: Apply) -> Any:
    dtype = op.outputs[0].type.dtype

    def expand(writing: Writing) -> Elements:
        parts = np.broadcast_arrays(*[writing.elements(a) for a in op.args])
        array = np.empty(parts[0].shape, object)
        for k in np.ndindex(array.shape):
            one = writing.apply(np.where, tuple(p[k] for p in parts), ArrayType(dtype, ()))
            array[k] = writing.load(one, ())
        return array

    plain = len(op.args) == 3 and not op.kwargs and _plain(op.args)
    return expand if plain and dtype.kind in "bfc" else None


# -- products and sums


def _total(writing: Writing, items: Sequence[Operand], dtype: Any) -> Operand:
    """A sum in NumPy's order: pairs of eight where there are enough items."""
    t = Number(dtype, python=False)

    def add(a: Operand, b: Operand) -> Operand:
        return writing.apply(operator.add, (a, b), t)

    items = [cast(writing, x, dtype) for x in items]
    if len(items) < 8:
        return _folded(add, items)
    rows = [items[k : k + 8] for k in range(0, len(items) - 7, 8)]
    r = [_folded(add, column) for column in zip(*rows, strict=True)]
    pairs = [add(r[k], r[k + 1]) for k in range(0, 8, 2)]
    head = add(add(pairs[0], pairs[1]), add(pairs[2], pairs[3]))
    return _folded(add, [head, *items[8 * len(rows) :]])


def _folded(add: Callable[[Any, Any], Any], items: Sequence[Operand]) -> Operand:
    total = items[0]
    for x in items[1:]:
        total = add(total, x)
    return total


def _summed(op: Apply) -> Any:
    a, t = op.args[0], op.outputs[0].type
    axis = op.args[1] if len(op.args) == 2 else op.kwargs.get("axis")
    plain = len(op.args) <= 2 and set(op.kwargs) <= {"axis"} and type(axis) in (int, type(None))
    if not plain or not is_array(a) or t.dtype.kind not in "fc" or t.dtype != a.type.dtype:
        return None

    def expand(writing: Writing) -> Elements:
        elements = writing.elements(a)
        rows = elements.reshape(-1, 1) if axis is None else np.moveaxis(elements, axis, 0)
        array = np.empty(rows.shape[1:] if axis is not None else (), object)
        columns = rows.reshape(len(rows), -1)
        totals = [_total(writing, list(columns[:, k]), t.dtype) for k in range(columns.shape[1])]
        if op.function is np.mean:
            n = Number(t.dtype, python=False)
            totals = [writing.apply(operator.truediv, (x, len(rows)), n) for x in totals]
        return elements_of(totals, array.shape)

    return expand


def _multiplied(op: Apply) -> Any:
    t = op.outputs[0].type
    factors = op.args[:2]
    if len(op.args) != 2 or op.kwargs or t.dtype.kind not in "fc":
        return None
    ranks = [a.type.ndim if is_array(a) else 0 for a in factors]
    if not all(rank in (1, 2) for rank in ranks):
        return None
    if op.function is np.inner and ranks != [1, 1]:
        return None
    sizes = [a.type.shape for a in factors]
    if sizes[0][-1] != sizes[1][0]:
        return None  # the product raises

    def expand(writing: Writing) -> Elements:
        a, b = (writing.elements(x) for x in factors)
        rows, columns = a.reshape(-1, a.shape[-1]), b.reshape(b.shape[0], -1)
        sums = [
            _folded(lambda x, y: writing.apply(operator.add, (x, y), number), products)
            for r in rows
            for products in (each(writing, operator.mul, [r, c], t.dtype) for c in columns.T)
        ]
        return elements_of(sums, (*a.shape[:-1], *b.shape[1:]))

    number = Number(t.dtype, python=False)
    return expand


def _crossed(op: Apply) -> Any:
    t = op.outputs[0].type
    factors = op.args[:2]
    if len(op.args) != 2 or op.kwargs or t.dtype.kind not in "fc":
        return None
    if not all(is_array(a) and a.type.shape == (3,) for a in factors):
        return None

    def expand(writing: Writing) -> Elements:
        a, b = (writing.elements(x) for x in factors)
        first, second = [1, 2, 0], [2, 0, 1]
        products = [
            each(writing, operator.mul, [a[i], b[j]], t.dtype)
            for i, j in ((first, second), (second, first))
        ]
        return elements_of(each(writing, operator.sub, products, t.dtype), (3,))

    return expand


# -- arrays that are made


def _constant_array(op: Apply) -> Any:
    t = op.outputs[0].type
    if values_in(op.operands()) or op.kwargs.get("like") is not None:  # of a number: it raises
        return None
    array = np.zeros(lengths(op.outputs[0]), t.dtype) if op.function is np.empty else op.function(
        *op.args, **op.kwargs
    )  # fmt: skip
    return lambda _: elements_of([t.dtype.type(x) for x in array.ravel()], array.shape)


def _made_alike(op: Apply) -> Any:
    (out,) = op.outputs
    item = out.type.dtype.type(record_of(op.function).fill)
    return lambda _: elements_of([item] * size(out), lengths(out))


def _filled(op: Apply) -> Any:
    (out,) = op.outputs
    if len(op.args) != 2 or set(op.kwargs) - {"dtype"} or nested_shape(op.args[1]) != ():
        return None

    def expand(writing: Writing) -> Elements:
        item = cast(writing, op.args[1], out.type.dtype)
        return elements_of([item] * size(out), lengths(out))

    return expand


def _gathered(op: Apply) -> Any:
    t, shape = op.outputs[0].type, nested_shape(op.args[0])
    known = not any(isinstance(x, Value) for x in op.kwargs.values())
    if len(op.args) != 1 or set(op.kwargs) - {"dtype"} or not known or shape != t.shape:
        return None
    if t.dtype.kind not in "fc" and any(v.type.dtype.kind in "fc" for v in values_in(op.args)):
        return None  # a derivative would be lost: whoever looks for that finds one call

    def expand(writing: Writing) -> Elements:
        elements = writing.elements(op.args[0])
        return elements_of([cast(writing, x, t.dtype) for x in elements.ravel()], elements.shape)

    return expand


# -- arrays whose elements are moved


def _moved(op: Apply) -> Any:
    a, *rest = op.args
    if not is_array(a) or values_in([rest, op.kwargs]) or a.type.dtype != op.outputs[0].type.dtype:
        return None  # `ascontiguousarray` casts, too
    try:
        at = op.function(places(a), *rest, **op.kwargs)
    except (ValueError, TypeError, IndexError):
        return None  # it raises when it runs
    if np.shape(at) != op.outputs[0].type.shape or np.asarray(at).dtype.kind != "i":
        return None  # ``dtype=`` made other numbers of the places
    return lambda writing: writing.elements(a).ravel()[at]


def _joined(op: Apply) -> Any:
    parts, *rest = op.args
    t = op.outputs[0].type
    if not isinstance(parts, (list, tuple)) or set(op.kwargs) - {"axis"}:
        return None
    if any(nested_shape(p) is None for p in parts) or values_in(rest):
        return None

    def expand(writing: Writing) -> Elements:
        elements = op.function([writing.elements(p) for p in parts], *rest, **op.kwargs)
        return elements_of([cast(writing, x, t.dtype) for x in elements.ravel()], elements.shape)

    return expand


_EXPANSIONS: dict[Any, Callable[[Apply], Any]] = {
    np.array: _gathered,
    np.asarray: _gathered,
    np.full: _filled,
    np.where: _selected,
    np.sum: _summed,
    np.mean: _summed,
    np.dot: _multiplied,
    np.inner: _multiplied,
    np.cross: _crossed,
    np.linalg.cross: _crossed,
}


def _expansion_of(function: Any) -> Callable[[Apply], Any] | None:
    """What expands calls of a function into their elements."""
    record = record_of(function)
    if record.memory is Memory.UNKNOWN:
        return None
    if record.algebra is Algebra.MATRIX_PRODUCT:
        return _multiplied
    if record.fill is not None and record.shape_only:
        return _made_alike
    if record.has_loop and not record.made_of_values:
        return _constant_array
    if record.moves:
        return _moved
    return _joined if record.joins else _EXPANSIONS.get(function)


def expansion(op: Apply) -> Callable[[Writing], Elements] | None:
    """How to compute the elements of a call's result: a function of the writer; None if unknown."""
    if len(op.outputs) != 1 or op.mutated:
        return None
    t = op.outputs[0].type
    arrays = [v for v in values_in(op.operands()) if is_array(v)]
    if not is_small(t) and (not arrays or t not in [number_of(a) for a in arrays]):
        return None
    if not all(is_small(v.type) or not v.type.ndim for v in arrays):
        return None
    expand = _expansion_of(op.function)
    if expand is not None:
        return expand(op)
    return _elementwise(op) if _is_elementwise(op) else None


def _is_elementwise(op: Apply) -> bool:
    return any(is_array(a) for a in op.args) and (
        isinstance(op.function, np.ufunc)
        or _is_among(op.function, _AS_THEY_ARE)
        or _ufunc_of(op.function) is not None
    )


def _is_among(function: Any, functions: Any) -> bool:
    try:
        return function in functions
    except TypeError:  # a callable object that cannot be hashed
        return False
