"""Operands in the Numba source: numbers as terms, arrays as names, and the ints of an index."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from fwdad.codegen.loops.draft import Draft
from fwdad.codegen.loops.new_arrays import NewArrays
from fwdad.codegen.loops.notation import name_of, subscript
from fwdad.codegen.loops.registers import Registers
from fwdad.codegen.loops.terms.number_terms import (
    Term,
    cast,
    constant,
    literal,
    numpy_number,
    stored_cast,
)
from fwdad.codegen.loops.terms.numpy_terms import as_ufunc, loop_types, numpy_term
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.codegen.passes.registers import width
from fwdad.errors import type_in_words
from fwdad.ir.notation import ATOM, LOWEST
from fwdad.ir.ops import Apply, Missing, Operand, Value, is_array, type_of_operand
from fwdad.ir.types import Number, Type, least_shape, number_type


class Deferred(Protocol):
    """The writer of operations on arrays that wait until their result is used."""

    lazy: dict[Value, Apply]

    def materialize(self, value: Value) -> str:
        """Write a deferred operation into an array; returns the array's name."""

    def item(self, value: Value) -> Term:
        """The only element of a deferred operation."""


class Operands:
    """Writes what operations read.

    ``bits`` are upper bounds of ints, and ``standins`` copies of arrays that are being written.
    """

    def __init__(
        self, draft: Draft, registers: Registers, arrays: NewArrays, deferred: Deferred
    ) -> None:
        self.code, self.names, self.helpers = draft.code, draft.names, draft.helpers
        self.inlined, self.literals = draft.inlined, draft.literals
        self.registers = registers
        self.arrays = arrays
        self.deferred = deferred
        self.bits: dict[Value, int] = {}
        self.standins: dict[Value, str] = {}

    def term(self, operand: Operand) -> Term:
        """A number (or the item of a 0-d array) as a term."""
        if not isinstance(operand, Value):
            if isinstance(operand, Missing):
                raise self.cannot("a value that may be missing")
            return constant(operand)
        if is_array(operand):
            if operand.type.ndim:
                raise self.cannot("an array where a number is expected")
            if operand in self.deferred.lazy:
                return self.deferred.item(operand)
            return Term(f"{self.array(operand)}[()]", ATOM, numpy_number(operand.type.dtype))
        assert isinstance(operand.type, Number)
        if operand in self.inlined.held:
            text, level = self.inlined.take(operand)
        else:
            text, level = self.names.name(operand), ATOM
        return Term(text, level, operand.type, bits=self.bits.get(operand, 64))

    def text(self, operand: Operand, level: int = LOWEST) -> str:
        """An operand as source; deferred elementwise operations are written out."""
        if isinstance(operand, Value):
            if operand in self.registers.lanes:
                return self.array(operand)
            if operand in self.deferred.lazy:
                return self.deferred.materialize(operand)
            if operand in self.inlined.held:
                return self.inlined.text(operand, level)
            return self.names.name(operand)
        if isinstance(operand, Missing):
            return self.missing(operand)
        if number_type(operand) is not None:
            return constant(operand).at(level)
        return self.literals.text(operand, level, self.text)

    def atom(self, term: Term, wanted: str = "t") -> Term:
        """A term as a name or a constant, so that it may be written twice."""
        if term.text.isidentifier() or term.constant is not None:
            return term
        name = self.names.temporary(wanted, term.type)
        self.code.line(f"{name} = {term.text}")
        return term._replace(text=name, level=ATOM)

    def missing(self, operand: Missing) -> str:
        """A value of the right type that is never used, but that may be copied."""
        t = operand.type
        if isinstance(t, Number):
            return literal(0, t)
        lengths = [str(n) for n in least_shape(t)]
        return self.helpers.use("loose") + f"({self.arrays.empty(lengths, t.dtype)})"

    def _spilled(self, value: Value) -> str:
        """The name of a new array with the lanes of a value in registers."""
        n, text = width(value), self.registers.text(value)
        name = self.names.temporary("a", value.type)
        self.arrays.new(value, [str(n)], name=name)
        self.code.line(f"{self.registers.function('store', n)}({name}, {text})")
        return name

    def array(self, operand: Value) -> str:
        """The name of an array."""
        if operand in self.standins:
            return self.standins[operand]
        if operand in self.registers.lanes:
            return self._spilled(operand)
        text = self.text(operand, ATOM)
        if text.isidentifier():
            return text
        self.inlined.held.pop(operand, None)
        name = self.names.name(operand)
        self.code.line(f"{name} = {text}")
        return name

    def real(self, operand: Operand) -> Term:
        """A real number as a float64."""
        return cast(self.term(operand), np.dtype(float))

    def number(self, operand: Operand) -> Term:
        """A number, or the only element of an array."""
        if is_array(operand) and operand.type.ndim:
            if any(d != 1 for d in operand.type.shape):
                raise self.cannot("an array that is stored into an element")
            name = self.array(operand)
            index = subscript(["0"] * operand.type.ndim)
            return Term(f"{name}[{index}]", ATOM, numpy_number(operand.type.dtype))
        return self.term(operand)

    def updated(self, place: str, function: Any, value: Term, dtype: np.dtype[Any]) -> str:
        """What is stored at a place of a dtype: a value, or a function of the old one and it.

        An update is refused where NumPy refuses its cast.
        """
        if function is None:
            return self.stored(value, dtype)
        old = Term(place, ATOM, numpy_number(dtype))
        ufunc = as_ufunc(function)
        if ufunc is None:
            raise self.cannot(f"an update by {name_of(function)}")
        computed = loop_types(ufunc, [old.type, value.type])[-1]
        if not np.can_cast(computed, dtype, "same_kind"):
            raise self.cannot(f"an update that casts {computed} to {dtype}")
        return self.stored(numpy_term(ufunc, [old, value]), dtype)

    def stored(self, term: Term, dtype: np.dtype[Any]) -> str:
        """A term cast to an array's dtype, as source."""
        self.helpers.note(term.text)
        return cast(term, dtype).text

    def converted(self, term: Term, dtype: np.dtype[Any], *, item: bool) -> Term:
        """A number as it is stored into an array: what does not fit raises."""
        casted = stored_cast(term, dtype, item=item)
        self.helpers.note(casted.text)
        return casted

    def type_of(self, operand: Operand) -> Type:
        """The type of an operand."""
        t: Type | None = type_of_operand(operand)
        if t is None:
            raise self.cannot(f"{type_in_words(operand)} as a value")
        return t

    def cannot(self, what: str) -> CannotCompileError:
        """The error that says that an operation has no compiled form."""
        return CannotCompileError(what, self.code.op.location if self.code.op else None)

    # -- ints of an index

    def scalar_index(self, index: tuple[Operand, ...], array: Value) -> str:
        """An index of one element."""
        if len([i for i in index if i is not Ellipsis]) != array.type.ndim:
            raise self.cannot("an element at fewer indices than axes")
        return subscript([self.index_text(i) for i in index if i is not Ellipsis])

    def index_text(self, i: Operand) -> str:
        """One int of an index."""
        t = self.type_of(i)
        if not isinstance(t, Number) or t.dtype.kind not in "iu":
            raise self.cannot("an index that is no int")
        return self.term(i).text
