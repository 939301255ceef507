"""Functions of numbers in the Numba source, and products that share NaN tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from fwdad.codegen.loops.assignments import Assignments
from fwdad.codegen.loops.draft import Draft
from fwdad.codegen.loops.notation import name_of
from fwdad.codegen.loops.operands import Operands
from fwdad.codegen.loops.registers import Registers
from fwdad.codegen.loops.terms.element_terms import ELEMENTWISE
from fwdad.codegen.loops.terms.number_terms import Term, cast, constant
from fwdad.codegen.loops.terms.numpy_terms import as_ufunc, numpy_term
from fwdad.codegen.loops.terms.python_terms import (
    conversion_term,
    extreme_term,
    math_term,
    part_term,
    python_term,
    round_term,
)
from fwdad.codegen.loops.vectors.vector_terms import library_name
from fwdad.ir.builder.shape_env import length_if_any, length_of
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Op, Operand, Value, is_array, values_in
from fwdad.ir.primitives import checkpoint_schedule
from fwdad.ir.primitives.argument_memory import are_disjoint, is_c_contiguous
from fwdad.ir.primitives.computed import computed
from fwdad.ir.primitives.identity import identity
from fwdad.ir.primitives.opaque_call import Whole
from fwdad.ir.primitives.ranges import range_length
from fwdad.ir.types import FLOAT, Number, number_type
from fwdad.tangents.scaling import scale_lanes
from fwdad.tangents.straight import with_derivative_of
from fwdad.transforms.forward.lanes import element_place

_OF_OURS = {length_of, length_if_any, range_length, element_place, identity, computed,
            are_disjoint, is_c_contiguous}  # fmt: skip


class Numbers:
    """Writes functions of numbers as terms.

    ``groups`` are products that share a NaN test, by the first. ``in_vectors`` tells whether LLVM
    may vectorise the current loop, and ``ahead`` where functions that were computed ahead in a
    strip of its iterations are.
    """

    def __init__(
        self, draft: Draft, registers: Registers, operands: Operands, assignments: Assignments
    ) -> None:
        self.names, self.helpers, self.inlined = draft.names, draft.helpers, draft.inlined
        self.registers = registers
        self.operands = operands
        self.assignments = assignments
        self.groups: dict[Op, list[Apply]] = {}
        self.in_vectors = False
        self.ahead: dict[Op, str] = {}

    def is_product(self, op: Op) -> bool:
        """Whether an operation is a product of two numbers that is written with a test."""
        if not isinstance(op, Apply) or op.function is not scale_lanes or len(op.args) != 2:
            return False
        types = [op.outputs[0].type, *(self.operands.type_of(a) for a in op.args)]
        known = all(isinstance(t, Number) and t.dtype == np.float64 for t in types)
        return known and not self.registers.lanes.intersection([*op.outputs, *values_in(op.args)])

    def _scaled(self, op: Apply, terms: Sequence[Term], result: Number) -> Term:
        """A product that is zero where a cotangent or a tangent is."""
        if op in self.groups and not self.in_vectors:
            self._write_group(self.groups[op])
            return self.operands.term(op.outputs[0])
        d, y_bar = terms
        name = None
        if result.dtype == np.complex128:
            name = "scaled_complex"
        elif result.dtype == np.float64 and d.kind == "f" and y_bar.kind == "f":
            name = "scaled_in_vectors" if self.in_vectors else "scaled"
        if name is not None:
            parts = ", ".join(cast(t, result.dtype).text for t in terms)
            return Term(f"{name}({parts})", ATOM, result)
        term: Term = ELEMENTWISE[op.function](result.dtype, d, self.operands.atom(y_bar))
        return term

    def _write_group(self, members: Sequence[Apply]) -> None:
        """Write products of one partial; their operations then use the names."""
        d = self.operands.atom(self.operands.term(members[0].args[0])).text
        lines = []
        for op in members:
            y_bar = self.operands.atom(self.operands.term(op.args[1])).text
            name = self.names.temporary(op.outputs[0].name or "t", FLOAT)
            self.inlined.hold(op.outputs[0], name, ATOM)
            lines.append((name, f"{d} * {y_bar}", f"{self.helpers.use('scaled')}({d}, {y_bar})"))
        self.assignments.write_tested(lines, f"{d} - {d}")

    def is_scalar(self, op: Apply) -> bool:
        """Whether an operation makes a number of numbers."""
        return all(
            not isinstance(a, (list, tuple)) and not is_array(a) and number_type_of(a)
            for a in op.args
        ) and isinstance(op.outputs[0].type, Number)

    def _of_ours(self, op: Apply, result: Number) -> Term:
        """A function that our own passes introduce."""
        if op.function in (length_of, length_if_any):
            array, axis = op.args
            return Term(f"{self.operands.array(array)}.shape[{axis}]", ATOM, result, bits=48)
        if op.function is range_length:
            args = ", ".join(self.operands.text(a) for a in op.args)
            return Term(f"len(range({args}))", ATOM, result, bits=62)
        if op.function is element_place:
            args = ", ".join(self.operands.index_text(a) for a in op.args[:2])
            return Term(f"{self.helpers.use('place')}({args})", ATOM, result, bits=48)
        if op.function is computed:
            args = ", ".join(self.operands.text(a) for a in op.args)
            return Term(f"{self.helpers.use('computed')}({args})", ATOM, result)
        if op.function in (are_disjoint, is_c_contiguous):
            args = ", ".join(self.operands.array(a) for a in op.args)
            helper = self.helpers.use("disjoint" if op.function is are_disjoint else "contiguous")
            return Term(f"{helper}({args})", ATOM, result)
        return cast(self.operands.term(op.args[0]), result.dtype, python=result.python)

    def scalar(self, op: Apply) -> Term:
        """A scalar function as a term."""
        f, result = op.function, op.outputs[0].type
        assert isinstance(result, Number)
        if isinstance(f, Whole):
            raise self.operands.cannot(f"the function {name_of(f)}")
        if f in _OF_OURS:
            return self._of_ours(op, result)
        if f is normalize_axis_index and not values_in(op.operands()):
            return constant(f(*op.args, **op.kwargs))
        if getattr(f, "__module__", "") == checkpoint_schedule.__name__:
            args = ", ".join(self.operands.text(a) for a in op.args)
            return Term(f"{self.helpers.use(f.__name__)}({args})", ATOM, result)
        if op.kwargs:
            raise self.operands.cannot(f"keywords of {name_of(f)}")
        ufunc = as_ufunc(f)
        terms = [self.operands.term(a) for a in op.args]
        if op in self.ahead:
            terms = [self.operands.atom(t) for t in terms]
        term: Term | None = None
        if ufunc is not None:
            if result.python and all(t.type.python for t in terms):
                term = python_term(ufunc, terms, result)
            else:
                term = numpy_term(ufunc, terms)
            if op.any_order and self.in_vectors and term.kind == "f":
                parts = ", ".join(cast(t, term.type.dtype).text for t in terms)
                term = term._replace(text=f"summed({parts})", level=ATOM)
        elif isinstance(f, type) and (
            f in (int, float, complex, bool) or issubclass(f, np.generic)
        ):
            term = conversion_term(f, terms, result)
        elif f in (np.real, np.imag):
            term = part_term(f is np.real, terms[0], result)
        elif f is with_derivative_of:
            term = cast(terms[0], result.dtype, python=result.python)
        elif f is scale_lanes:
            term = self._scaled(op, terms, result)
        elif f is round:
            term = round_term(terms, result)
        elif f in (min, max) and all(t.kind == "i" for t in terms):
            term = extreme_term(f, terms, result)
        elif getattr(f, "__module__", "") == "math":
            term = math_term(f.__name__, [self.operands.atom(t) for t in terms], result)
        if term is None:
            raise self.operands.cannot(f"the function {name_of(f)}")
        if op in self.ahead:
            call = f"math.{library_name(f)}({terms[0].text})"
            term = term._replace(text=term.text.replace(call, self.ahead[op]))
        self.helpers.note(term.text)
        return cast(term, result.dtype)._replace(type=result, bits=term.bits)


def number_type_of(a: Operand) -> bool:
    """Whether an operand is a value or a constant number."""
    return isinstance(a, Value) or number_type(a) is not None
