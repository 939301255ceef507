"""Operations on arrays of known lengths as loops over their elements.

Afterwards a program reads and writes elements, and takes views. Its arrays are parameters, views of
these, and memory that it allocates itself (``local_array``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.codegen.numba_support import CannotCompileError
from fwdad.ir.analysis.alias import Roots, memory, memory_of
from fwdad.ir.builder.index_parts import spelled_out
from fwdad.ir.ops import (
    Apply,
    Block,
    Load,
    Loop,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    map_values,
    values_in,
)
from fwdad.ir.primitives.local_arrays import local_array
from fwdad.ir.rewrite import Mapping, give_name
from fwdad.ir.types import INT, ArrayType, Dimension, Number, Type
from fwdad.ops import Layout, record_of
from fwdad.transforms.passes.small.elements import (
    Elements,
    element_function,
    elements_of,
    expansion,
    lengths,
)

Element = Callable[[tuple[Operand, ...]], Operand]
"""Returns the element of an array at some indices."""


def loop_over_elements(program: Program) -> None:
    """Write operations on arrays as loops over elements, in place."""
    _ElementLoops(program).rewrite(program)


class _ElementLoops:
    """Walks a program in execution order, and writes it anew."""

    def __init__(self, program: Program) -> None:
        self.roots: Roots = memory_of(program)
        self.mapping: Mapping = {}
        self.out: list[Op] = []
        self.op: Op | None = None

    def rewrite(self, program: Program) -> None:
        """Rewrite a program."""
        self._block(program.block)
        give_name(self.mapping)

    def _block(self, block: Block) -> None:
        outer, self.out = self.out, []
        for op in block.ops:
            op.replace(self._now)
            self.op = op
            if isinstance(op, Loop) and any(map(is_array, op.carried)):
                raise _refused("a loop that makes a new array in each turn")
            for inner in op.blocks():
                self._block(inner)
            if isinstance(op, Load):
                self._load(op)
            elif isinstance(op, (Store, Update)):
                self._write(op)
            elif isinstance(op, Apply):
                self._apply(op)
            else:
                self.out.append(op)
        block.ops, self.out = self.out, outer
        block.results = [map_values(self._now, r) for r in block.results]

    def _now(self, v: Value) -> Operand:
        return self.mapping.get(v, v)

    # -- operations

    def _load(self, op: Load) -> None:
        (out,) = op.outputs
        if not op.array.type.ndim:  # an array without axes is a number
            self.mapping[out] = op.array
        elif all(map(_is_basic, op.index)) and (out.type.ndim or not is_array(out)):
            self.out.append(op)
        else:
            raise _refused("this index")

    def _write(self, op: Store | Update) -> None:
        shape = lengths(op.array)
        parts = spelled_out(op.index, len(shape))
        if not all(map(_is_basic, parts)):
            raise _refused("this index")
        if not any(isinstance(i, slice) for i in parts):
            self.out.append(op)
            return
        if any(values_in(i) for i in parts if isinstance(i, slice)):
            raise _refused("a slice between indices that are not known beforehand")
        ranges = [
            range(*i.indices(n)) if isinstance(i, slice) else None
            for i, n in zip(parts, shape, strict=True)
        ]
        value = op.value
        if self._overlaps(op.array, value):  # NumPy reads all of it first
            value = self._new_array(value.type, lambda at: self.load(value, at))

        def write(at: tuple[Operand, ...]) -> None:
            counters = iter(at)
            index = tuple(
                i if r is None else self._at(r, next(counters))
                for i, r in zip(parts, ranges, strict=True)
            )
            new = self._element(value, at)
            if isinstance(op, Update):
                self.out.append(Update(op.array, index, op.function, new, location=op.location))
            else:
                self.out.append(Store(op.array, index, new, location=op.location))

        self._nest(tuple(len(r) for r in ranges if r is not None), write)

    def _apply(self, op: Apply) -> None:
        of_arrays = [v for v in (*op.outputs, *values_in(op.operands())) if v.type.ndim]
        if any(not isinstance(n, int) for v in of_arrays for n in v.type.shape):
            message = "the length of an array in a kernel is a number, or the length of an argument"
            raise CannotCompileError(f"'{_name(op)}': {message}")
        if not of_arrays:
            self._of_numbers(op)
            return
        (out,), t = op.outputs, op.outputs[0].type
        element = self._elements_of_result(op)
        if isinstance(t, ArrayType) and element is not None:
            self.mapping[out] = self._new_array(t, element)
        elif op.function is np.sum and len(op.args) == 1 and not op.kwargs:
            self.mapping[out] = self._total(op.args[0], t.dtype)
        elif (expand := expansion(op)) is not None:
            elements = np.asarray(expand(self), object)
            self.mapping[out] = self._unrolled(t, elements) if t.ndim else elements[()]
        elif record_of(op.function).rearranges:
            self.out.append(op)
        else:
            raise _refused(f"'{_name(op)}' of arrays")

    def _of_numbers(self, op: Apply) -> None:
        """Arrays without axes are numbers."""
        (out, *_), record = op.outputs, record_of(op.function)
        if op.function is np.full:
            self.mapping[out] = op.args[1]
        elif record.moves or record.reduction is not None or op.function is np.broadcast_to:
            self.mapping[out] = op.args[0]
        else:
            self.out.append(op)

    def _elements_of_result(self, op: Apply) -> Element | None:
        """How to compute an element of what a call returns; None if it depends on several."""
        args, record = op.args, record_of(op.function)
        t = Number(op.outputs[0].type.dtype, python=False)
        if record.fill is not None:
            return lambda _: t.dtype.type(record.fill)
        if op.function in (np.full, np.full_like):
            return lambda _: args[1]
        if record.copies or op.function in (np.broadcast_to, np.ndarray.astype):
            return lambda at: self._element(args[0], at)
        alone = record.layout is Layout.ELEMENTWISE
        known = (op.function, len(args)) if alone else element_function(op.function, args)
        if known is None or op.kwargs or not _is_broadcast(args, op.outputs[0]):
            return None
        function, count = known

        def element(at: tuple[Operand, ...]) -> Operand:
            return self.apply(function, tuple(self._element(a, at) for a in args[:count]), t)

        return element

    # -- writing

    def apply(self, function: Callable[..., Any], args: tuple[Operand, ...], t: Type) -> Value:
        """Write a call."""
        made = Value(t)
        self.out.append(Apply(function, args, outputs=(made,), location=self._location()))
        return made

    def load(self, array: Value, index: tuple[Operand, ...]) -> Value:
        """Write the load of an element."""
        made = Value(Number(array.type.dtype, python=False))
        self.out.append(Load(array, index, view=False, outputs=(made,), location=self._location()))
        return made

    def elements(self, operand: Operand) -> Elements:
        """The elements of an operand; a number is its own element."""
        if isinstance(operand, (list, tuple)):
            return np.stack([self.elements(item) for item in operand])
        if not is_array(operand) or not operand.type.ndim:
            return elements_of([operand], ())
        shape = lengths(operand)
        return elements_of([self.load(operand, k) for k in np.ndindex(shape)], shape)

    def _element(self, operand: Operand, at: tuple[Operand, ...]) -> Operand:
        """The element of an operand that is broadcast."""
        if not is_array(operand):
            if isinstance(operand, (list, tuple)):
                raise _refused("a list as an array")
            return operand
        shape = lengths(operand)
        last = at[len(at) - len(shape) :]
        index = tuple(0 if n == 1 else i for i, n in zip(last, shape, strict=True))
        return self.load(operand, index) if shape else operand

    def _at(self, r: range, k: Operand) -> Operand:
        """An element of a range."""
        if r.step != 1:
            k = self.apply(operator.mul, (r.step, k), INT)
        return self.apply(operator.add, (r.start, k), INT) if r.start else k

    def _nest(
        self,
        shape: Sequence[int],
        body: Callable[[tuple[Operand, ...]], None],
        at: tuple[Operand, ...] = (),
    ) -> None:
        """Loops over all indices of a shape."""
        if not shape:
            body(at)
            return
        counter = Value(INT, "ijkl"[len(at)] if len(at) < 4 else None)
        outer, self.out = self.out, []
        self._nest(shape[1:], body, (*at, counter))
        loop = Loop((0, shape[0], 1), [], Block([counter], self.out), location=self._location())
        self.out = outer
        self.out.append(loop)

    def _allocate(self, dtype: np.dtype[Any], shape: tuple[Dimension, ...]) -> Value:
        return self.apply(local_array, (shape, dtype.type), ArrayType(dtype, shape))

    def _new_array(self, t: ArrayType, element: Element) -> Value:
        """A new array, whose elements loops compute."""
        array = self._allocate(t.dtype, t.shape)
        self._nest(lengths(array), lambda at: self.out.append(Store(array, at, element(at))))
        return array

    def _unrolled(self, t: Type, elements: Elements) -> Value:
        """A new array of these elements."""
        array = self._allocate(t.dtype, t.shape)
        self.out += [Store(array, at, x) for at, x in np.ndenumerate(elements)]
        return array

    def _total(self, array: Value, dtype: np.dtype[Any]) -> Value:
        """The sum of all elements."""
        total = self._allocate(dtype, (1,))
        self.out.append(Store(total, (0,), dtype.type(0)))
        self._nest(
            lengths(array),
            lambda at: self.out.append(Update(total, (0,), operator.add, self.load(array, at))),
        )
        return self.load(total, (0,))

    def _overlaps(self, array: Value, value: Operand) -> bool:
        """Whether a value that is stored may share memory with the array."""
        return is_array(value) and bool(memory(array, self.roots) & memory(value, self.roots))

    def _location(self) -> Any:
        return self.op.location if self.op is not None else None


def _refused(what: str) -> CannotCompileError:
    return CannotCompileError(f"{what} has no form for a GPU")


def _is_broadcast(args: Sequence[Operand], out: Value) -> bool:
    """Whether a result has the shape of its arguments."""
    return np.broadcast_shapes(*(lengths(a) for a in args if is_array(a))) == out.type.shape


def _name(op: Apply) -> str:
    return getattr(op.function, "__name__", "a function")


def _is_basic(i: Operand) -> bool:
    """Whether a part of an index is a number, a slice or an ellipsis."""
    if isinstance(i, Value):
        return isinstance(i.type, Number) and i.type.dtype.kind in "iu"
    return i is Ellipsis or (isinstance(i, (int, np.integer, slice)) and not isinstance(i, bool))
