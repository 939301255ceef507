"""Loops over numbers whose whole body is written with vectors, for the Numba source.

``for j in range(n): s += math.exp(x[j] - m)`` calls the C library's vector function for W
iterations at once; results are stored W at a time, too, and their sum is added up in its order.
LLVM does not vectorise such a loop, because of the exceptions and of that order. A body that does
more than this is strip-mined (:mod:`fwdad.codegen.loops.strip_mining`).
"""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from fwdad.codegen.loops.notation import subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.strip_mining import Ahead, is_function, is_long, shift_of
from fwdad.codegen.loops.terms.number_terms import Term, constant, numpy_number
from fwdad.codegen.loops.terms.numpy_terms import as_ufunc
from fwdad.codegen.loops.terms.python_terms import math_term
from fwdad.codegen.loops.vectors.vector_terms import (
    Elements,
    has_vector_form,
    lanes_of,
    library_name,
)
from fwdad.codegen.loops.vectors.vector_terms import vector_term as term_of
from fwdad.codegen.runtime import libmvec
from fwdad.ir.analysis.costs import cost_of
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Load, Loop, Op, Operand, Store, Value, type_of_operand, values_in
from fwdad.ir.primitives.stacks import push
from fwdad.ir.types import Number
from fwdad.ops import Cost

_DOUBLE = np.dtype(np.float64)
_SUMS = {operator.add, operator.sub}
_CHECKED = {"in_domain", "in_range"}


@dataclass
class Body:
    """What a loop's body does.

    ``sums`` maps the additions to the carried values that they add to, ``shifts`` the elements that
    are read and written to their distances from the counter.
    """

    around: Ahead
    sums: dict[Apply, Value] = field(default_factory=dict)
    shifts: dict[Load | Store, int] = field(default_factory=dict)


def vector_body(w: Parts, loop: Loop) -> Body | None:
    """A loop's body, if all of it has a vector form that LLVM does not find itself; else None.

    Capacity for what the loop pushes must have been reserved.
    """
    if not libmvec.register_bits() or any(w.program.written) or w.usage.count[loop.exec_count]:
        return None
    if loop.span is None or loop.leaves or loop.checkpoint or not is_long(loop.span):
        return None
    ops = loop.body.ops
    if not any(map(is_function, ops)):
        return None
    definitions = {v: op for op in ops for v in op.outputs}
    inside = {*loop.body.params, *definitions}
    body = Body(Ahead(loop.span[0], definitions, loop.body.params[0], inside))
    if not _adds_up(loop, body):
        return None
    carried = {*loop.carried, *(v for op in body.sums for v in op.outputs)}
    if not all(_fits(w, body, op, carried) for op in ops):
        return None
    stores = [op for op in body.shifts if isinstance(op, Store)]
    for k, store in enumerate(stores):
        others = [op.array for op in body.shifts if isinstance(op, Load)]
        others += [op.array for op in stores[:k]]
        if any(w.memory.may_overlap(store.array, a) for a in others):
            return None
    return body


def _adds_up(loop: Loop, body: Body) -> bool:
    """Whether all carried values of a loop are sums, which nothing else in the body reads."""
    uses = Counter(v for op in loop.body.ops for v in values_in(op.operands()))
    uses.update(values_in(loop.body.results))
    for p, r in zip(loop.carried, loop.body.results, strict=True):
        op = body.around.made.get(r) if isinstance(r, Value) else None
        if not isinstance(op, Apply) or op.function not in _SUMS or not _is_double(p):
            return False
        if op.args[0] is not p or uses[p] != 1 or uses[op.outputs[0]] != 1:
            return False
        body.sums[op] = p
    return True


def _is_double(x: Operand) -> bool:
    t = type_of_operand(x)
    return isinstance(t, Number) and t.dtype == _DOUBLE


def _fits(w: Parts, body: Body, op: Op, carried: set[Value]) -> bool:
    """Whether an operation has a vector form."""
    around = body.around
    if isinstance(op, (Load, Store)):
        *outer, last = op.index or (None,)
        shift = shift_of(around, last)
        if shift is None or len(op.index) != op.array.type.ndim or Ellipsis in op.index:
            return False
        if around.inside.intersection(values_in([op.array, outer])):
            return False
        if (
            op.array.type.dtype != _DOUBLE
            or op.array in w.registers.lanes
            or op.array in w.elements.lazy
        ):
            return False
        if isinstance(op, Store) and (not _is_double(op.value) or op.value in carried):
            return False
        body.shifts[op] = shift
        return True
    if not isinstance(op, Apply) or op.kwargs:
        return False
    if op.function is push:
        stack, x = op.args
        layout = w.stacks.held[stack]
        alone = len(layout.stacks) == 1 and isinstance(layout.type, Number) and op in w.stacks.roomy
        return alone and _is_double(x) and x not in carried
    if op in body.sums:
        return _is_double(op.args[1])
    if len(op.outputs) != 1:  # an effect has none
        return False
    if _is_shift(around, op):
        return True
    if not _is_double(op.outputs[0]) or carried.intersection(op.args):
        return False
    if not all(map(_is_double, op.args)) or around.counter in op.args:
        return False
    if op.function in (float, np.float64):
        return True
    plain = cost_of(op) is Cost.ARITHMETIC and has_vector_form(op)
    return plain or is_function(op)


def _is_shift(around: Ahead, op: Apply) -> bool:
    """Whether an operation computes an index at a fixed distance from the counter."""
    return shift_of(around, op.outputs[0]) is not None


def write_body(w: Parts, loop: Loop, body: Body) -> None:
    """Write a loop over W iterations at a time; what it begins with has been assigned."""
    _Writer(w, loop, body).write()


class _Writer:
    def __init__(self, w: Parts, loop: Loop, body: Body) -> None:
        self.w = w
        self.line = w.draft.vector_line
        self.loop = loop
        self.body = body
        self.width = lanes_of(_DOUBLE)
        self.held: dict[Value, Elements] = {}
        self.views: dict[tuple[Any, ...], str] = {}

    def write(self) -> None:
        w, loop, around = self.w, self.loop, self.body.around
        for op in loop.body.ops:
            for v in values_in(op.operands()):
                if v not in around.inside and isinstance(v.type, Number) and v not in self.held:
                    self.held[v] = Elements(w.operands.atom(w.operands.term(v)), False)
        assert loop.span is not None
        last = w.operands.atom(w.operands.term(loop.span[1])).text
        first = str(around.start)
        self.n, (self.k,) = w.names.temporary("n"), w.loops.index_names(1)
        w.code.line(f"{self.n} = {last} - {first}" if around.start else f"{self.n} = {last}", loop)
        w.code.line(f"if {self.n} > 0:")
        with w.code.indented():
            for op, shift in self.body.shifts.items():
                self._view(op, shift, first, last)
            w.code.line(f"for {self.k} in range(0, {self.n}, {self.width}):", loop)
            with w.code.indented():
                for op in loop.body.ops:
                    self._op(op)
            for op in loop.body.ops:
                if isinstance(op, Apply) and op.function is push:
                    w.code.line(f"{w.stacks.held[op.args[0]].top} += {self.n}")

    def _key(self, op: Load | Store, shift: int) -> tuple[Any, ...]:
        return (op.array, shift, *map(str, op.index[:-1]))

    def _view(self, op: Load | Store, shift: int, first: str, last: str) -> None:
        """Name the elements of all iterations; one outside raises before the first iteration."""
        w, key = self.w, self._key(op, shift)
        if key in self.views:
            return
        name = self.views[key] = w.names.temporary("row")
        ends = [f"{end} + {shift}" if shift else end for end in (first, last)]
        index = [w.operands.atom(w.operands.term(i)).text for i in op.index[:-1]]
        w.code.line(
            f"{name} = {w.operands.array(op.array)}[{subscript([*index, ':'.join(ends)])}]", op
        )
        w.code.line(f"if {name}.shape[0] != {self.n}:")
        w.code.line(
            "    raise IndexError('index is out of bounds')"
        )  # the NumPy program reports which

    def _elements(self, x: Operand) -> Elements:
        if isinstance(x, Value):
            return self.held[x]
        return Elements(constant(x), False)

    def _vector(self, x: Operand) -> str:
        """An operand as a vector."""
        terms = self._elements(x)
        if terms.is_vector:
            return terms.term.text
        return f"vector_filled({self.width}, {terms.term.text})"

    def _op(self, op: Op) -> None:
        around = self.body.around
        if isinstance(op, Store):
            row = self.views[self._key(op, self.body.shifts[op])]
            self.line(f"vector_write({self._vector(op.value)}, {self.n}, {row}, {self.k})", op)
            return
        if isinstance(op, Load):
            row = self.views[self._key(op, self.body.shifts[op])]
            self._define(op, f"vector_read({self.width}, {self.n}, {row}, {self.k})")
            return
        assert isinstance(op, Apply)
        if op.function is push:
            layout = self.w.stacks.held[op.args[0]]
            place = f"{layout.top} + {self.n}, {layout.name}, {layout.top} + {self.k}"
            self.line(f"vector_write({self._vector(op.args[1])}, {place})", op)
        elif op in self.body.sums:
            total, x = self.w.names.name(self.body.sums[op]), self._vector(op.args[1])
            if op.function is operator.sub:
                x = f"-{x}"
            self.line(f"{total} = vector_added({total}, {x}, {self.n}, {self.k})", op)
        elif not _is_shift(around, op):
            self._apply(op)

    def _apply(self, op: Apply) -> None:
        terms = [self._elements(a) for a in op.args]
        if is_function(op):
            x = self._vector(op.args[0])
            name = library_name(op.function)
            self._define(op, f"vector_{name}({x})")
            check = _check_of(op)
            if check:
                self.line(f"vector_{check}({self._vector(op.outputs[0])}, {x})", op)
        elif op.function in (float, np.float64):
            self.held[op.outputs[0]] = terms[0]
        elif any(x.is_vector for x in terms):
            self._define(op, term_of(op, terms, partial(self.w.draft.vector_atom, wanted="v")).text)
        else:
            temporary = self.w.names.temporary("t")
            self.line(f"{temporary} = {self.w.numbers.scalar(op).text}", op)
            self.held[op.outputs[0]] = Elements(Term(temporary, ATOM, numpy_number(_DOUBLE)), False)

    def _define(self, op: Op, text: str) -> None:
        name = self.w.names.temporary("v")
        self.line(f"{name} = {text}", op)
        self.held[op.outputs[0]] = Elements(Term(name, ATOM, numpy_number(_DOUBLE)), True)


def _check_of(op: Apply) -> str:
    """The name of the test for the exceptions of a function of :mod:`math`; empty if none."""
    if as_ufunc(op.function) is not None:
        return ""
    result = op.outputs[0].type
    assert isinstance(result, Number)
    term = math_term(op.function.__name__, [Term("x", ATOM, numpy_number(_DOUBLE))], result)
    assert term is not None
    name = term.text.partition("(")[0]
    return name if name in _CHECKED else ""
