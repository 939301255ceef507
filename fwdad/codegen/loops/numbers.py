"""Numbers in the Numba source: operands as expressions, scalar functions, ints of an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import ELEMENTWISE
from fwdad.codegen.loops.base import BaseWriter, Ready, name_of
from fwdad.codegen.loops.nan_guards import without_tests
from fwdad.codegen.loops.number_terms import Term, cast, constant, literal, numpy_number
from fwdad.codegen.loops.numpy_terms import as_ufunc, loop_types, numpy_term
from fwdad.codegen.loops.python_terms import (
    conversion_term,
    extreme_term,
    math_term,
    part_term,
    python_term,
    round_term,
)
from fwdad.codegen.loops.vector_terms import library_name
from fwdad.ir.notation import ATOM, words
from fwdad.ir.ops import Apply, Missing, Op, Operand, Value, is_array, values_in
from fwdad.ir.primitives import checkpoint_schedule
from fwdad.ir.types import FLOAT, Number, least_shape, number_type
from fwdad.tangents.scaling import scale_lanes
from fwdad.tangents.straight import with_derivative_of

_OF_OURS = {"length_of", "length_if_any", "range_length", "element_place", "_identity"}


class NumberWriter(BaseWriter):
    """Writes numbers."""

    def term(self, operand: Operand) -> Term:
        """A number (or the item of a 0-d array) as a term."""
        if not isinstance(operand, Value):
            if isinstance(operand, Missing):
                raise self.cannot("a value that is not there")
            return constant(operand)
        if is_array(operand):
            if operand.type.ndim:
                raise self.cannot("an array where a number is wanted")
            if operand in self._lazy:
                op = self._lazy[operand]
                self.prepare(op)
                made = self._element_of(op, [])
                self.done(operand)
                return made
            return Term(f"{self.array(operand)}[()]", ATOM, numpy_number(operand.type.dtype))
        assert isinstance(operand.type, Number)
        if operand in self._inlined:
            text, level = self._take(operand)
        else:
            text, level = self.name(operand), ATOM
        return Term(text, level, operand.type, bits=self._bits.get(operand, 64))

    def _take(self, value: Value) -> tuple[str, int]:
        if value in self._pending:
            self._pending.remove(value)
        return self._inlined[value]

    def atom(self, term: Term, wanted: str = "t") -> Term:
        """A term as a name or a constant, so that it may be written twice."""
        if term.text.isidentifier() or term.constant is not None:
            return term
        made = self.temporary(wanted, term.type)
        self.line(f"{made} = {term.text}")
        return term._replace(text=made, level=ATOM)

    def text(self, operand: Operand, level: int = -2) -> str:
        """An operand as source; deferred elementwise operations are written out."""
        if isinstance(operand, Ready):
            return operand.source
        if isinstance(operand, Value):
            if operand in self.lanes:
                return self.array(operand)
            if operand in self._lazy:
                return self.materialize(operand)
            return super().text(operand, level)
        if number_type(operand) is not None:
            return constant(operand).at(level)
        return super().text(operand, level)

    def missing(self, operand: Missing) -> str:
        """A value of the right type that nobody will use, but that may be copied."""
        t = operand.type
        if isinstance(t, Number):
            return literal(0, t)
        lengths = [str(n) for n in least_shape(t)]
        return self.help("loose") + f"({self.empty(lengths, t.dtype)})"

    def array(self, operand: Value) -> str:
        """The name of an array."""
        if operand in self._standin:
            return self._standin[operand]
        if operand in self.lanes:
            return self._array_of_lanes(operand)
        text = self.text(operand, ATOM)
        if text.isidentifier():
            return text
        self._inlined.pop(operand, None)
        made = self.name(operand)
        self.line(f"{made} = {text}")
        return made

    def real(self, operand: Operand) -> Term:
        """A real number as a float64."""
        return cast(self.term(operand), np.dtype(float))

    def number(self, operand: Operand) -> Term:
        """A number, or the only element of an array."""
        if is_array(operand) and operand.type.ndim:
            if any(d != 1 for d in operand.type.shape):
                raise self.cannot("an array that is stored into an element")
            name = self.array(operand)
            index = self.at(["0"] * operand.type.ndim)
            return Term(f"{name}[{index}]", ATOM, numpy_number(operand.type.dtype))
        return self.term(operand)

    def combined(self, function: Any, old: Term, value: Term, dtype: np.dtype[Any]) -> str:
        """What an update stores; refused where NumPy refuses the cast."""
        ufunc = as_ufunc(function)
        if ufunc is None:
            raise self.cannot(f"an update by {name_of(function)}")
        made = loop_types(ufunc, [old.type, value.type])[-1]
        if not np.can_cast(made, dtype, "same_kind"):
            raise self.cannot(f"an update that casts {made} to {dtype}")
        return self.stored(numpy_term(ufunc, [old, value]), dtype)

    def assign(self, target: str, text: str, op: Op | None = None) -> None:
        """Write an assignment; a sum of tested products gets one shared test."""
        plain = without_tests(text)
        if plain is not None:
            own = target.isidentifier() and target not in words(text)
            made = target if own else self.temporary("t", FLOAT)
            self._write_tested([(made, plain, text)], made, op)
            text = made
        if text != target:
            self.line(f"{target} = {text}", op)

    def is_product(self, op: Op) -> bool:
        """Whether an operation is a product of two numbers that is written with a test."""
        if not isinstance(op, Apply) or op.function is not scale_lanes or len(op.args) != 2:
            return False
        types = [op.outputs[0].type, *(self.type_of(a) for a in op.args)]
        known = all(isinstance(t, Number) and t.dtype == np.float64 for t in types)
        return known and not self.lanes.intersection([*op.outputs, *values_in(op.args)])

    def _scaled(self, op: Apply, terms: Sequence[Term], result: Number) -> Term:
        """A product that is zero where a cotangent or a tangent is."""
        if op in self.groups and not self.in_vectors:
            self._write_group(self.groups[op])
            return self.term(op.outputs[0])
        d, y_bar = terms
        if d.kind == "f" and y_bar.kind == "f" and result.dtype == np.dtype(float):
            parts = ", ".join(cast(t, result.dtype).text for t in terms)
            name = "scaled_in_vectors" if self.in_vectors else "scaled"
            return Term(f"{name}({parts})", ATOM, result)
        made: Term = ELEMENTWISE[op.function](result.dtype, d, self.atom(y_bar))
        return made

    def _write_group(self, members: Sequence[Apply]) -> None:
        """Write products of one partial; their operations then use the names."""
        d = self.atom(self.term(members[0].args[0])).text
        lines = []
        for op in members:
            y_bar = self.atom(self.term(op.args[1])).text
            made = self.temporary(op.outputs[0].name or "t", FLOAT)
            self._inlined[op.outputs[0]] = made, ATOM
            lines.append((made, f"{d} * {y_bar}", f"{self.help('scaled')}({d}, {y_bar})"))
        self._write_tested(lines, f"{d} - {d}")

    def _write_tested(
        self, lines: Sequence[tuple[str, str, str]], asked: str, op: Op | None = None
    ) -> None:
        """Write names with their values, and with the exact ones where ``asked`` is NaN."""
        for name, plain, _ in lines:
            self.line(f"{name} = {plain}", op)
        self.line(f"if {self.help('is_odd')}({asked}):")
        for name, _, exact in lines:
            self.line(f"    {name} = {exact}", op)

    # -- ints of an index

    def scalar_index(self, index: tuple[Operand, ...], array: Value) -> str:
        """An index of one element."""
        if len([i for i in index if i is not Ellipsis]) != array.type.ndim:
            raise self.cannot("this index")
        return self.at([self.index_text(i) for i in index if i is not Ellipsis])

    def index_text(self, i: Operand) -> str:
        """One int of an index."""
        t = self.type_of(i)
        if not isinstance(t, Number) or t.dtype.kind not in "iu":
            raise self.cannot("this index")
        return self.term(i).text

    # -- functions of numbers

    def _is_scalar(self, op: Apply) -> bool:
        return all(
            not isinstance(a, (list, tuple)) and not is_array(a) and number_type_of(a)
            for a in op.args
        ) and isinstance(op.outputs[0].type, Number)

    def _of_ours(self, name: str, op: Apply, result: Number) -> Term:
        """A function that our own passes introduce."""
        if name in ("length_of", "length_if_any"):
            array, axis = op.args
            return Term(f"{self.array(array)}.shape[{axis}]", ATOM, result, bits=48)
        if name == "range_length":
            args = ", ".join(self.text(a) for a in op.args)
            return Term(f"len(range({args}))", ATOM, result, bits=62)
        if name == "element_place":
            args = ", ".join(self.index_text(a) for a in op.args[:2])
            return Term(f"{self.help('place')}({args})", ATOM, result, bits=48)
        return cast(self.term(op.args[0]), result.dtype, python=result.python)

    def _scalar(self, op: Apply) -> Term:
        """A scalar function as a term."""
        f, result = op.function, op.outputs[0].type
        assert isinstance(result, Number)
        special = getattr(f, "__qualname__", "")
        if special in _OF_OURS:
            return self._of_ours(special, op, result)
        if getattr(f, "__name__", "") == "normalize_axis_index" and not list(
            values_in(op.operands())
        ):
            return constant(f(*op.args, **op.kwargs))
        if getattr(f, "__module__", "") == checkpoint_schedule.__name__:
            args = ", ".join(self.text(a) for a in op.args)
            return Term(f"{self.help(special)}({args})", ATOM, result)
        if op.kwargs:
            raise self.cannot(f"keywords of {name_of(f)}")
        ufunc = as_ufunc(f)
        terms = [self.term(a) for a in op.args]
        if op in self.ahead:
            terms = [self.atom(t) for t in terms]
        made: Term | None = None
        if ufunc is not None:
            if result.python and all(t.type.python for t in terms):
                made = python_term(ufunc, terms, result)
            else:
                made = numpy_term(ufunc, terms)
            if op.any_order and self.in_vectors and made.kind == "f":
                parts = ", ".join(cast(t, made.type.dtype).text for t in terms)
                made = made._replace(text=f"summed({parts})", level=ATOM)
        elif isinstance(f, type) and (
            f in (int, float, complex, bool) or issubclass(f, np.generic)
        ):
            made = conversion_term(f, terms, result)
        elif f in (np.real, np.imag):
            made = part_term(f is np.real, terms[0], result)
        elif f is with_derivative_of:
            made = cast(terms[0], result.dtype, python=result.python)
        elif f is scale_lanes:
            made = self._scaled(op, terms, result)
        elif f is round:
            made = round_term(terms, result)
        elif f in (min, max) and all(t.kind == "i" for t in terms):
            made = extreme_term(f, terms, result)
        elif getattr(f, "__module__", "") == "math":
            made = math_term(f.__name__, [self.atom(t) for t in terms], result)
        if made is None:
            raise self.cannot(f"the function {name_of(f)}")
        if op in self.ahead:
            call = f"math.{library_name(f)}({terms[0].text})"
            made = made._replace(text=made.text.replace(call, self.ahead[op]))
        self.note_helpers(made.text)
        return cast(made, result.dtype)._replace(type=result, bits=made.bits)


def number_type_of(a: Operand) -> bool:
    """Whether an operand is a value or a constant number."""
    return isinstance(a, Value) or number_type(a) is not None
