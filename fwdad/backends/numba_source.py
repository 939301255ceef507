"""A program as Python source that Numba compiles: loops over elements, checked indices.

Array functions become loops whose types are written down, so that neither promotion, nor overlap,
nor exceptions are left to the compiler's taste. Elementwise operations are written where they are
used, in one loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from fwdad.backends import (
    array_functions,
    array_indices,
    array_products,
    array_reductions,
    array_shapes,
    compiled_math,
)
from fwdad.backends.elementwise import (
    ATOM,
    Term,
    as_ufunc,
    cast,
    constant,
    conversion_term,
    literal,
    loop_types,
    math_term,
    numpy_number,
    numpy_term,
    part_term,
    python_term,
    round_term,
    where_term,
)
from fwdad.backends.numba_support import HELPERS, CannotCompileError
from fwdad.backends.numpy_source import Source
from fwdad.backends.registers import (
    GATHERING,
    NEGATIONS,
    PRODUCTS,
    QUOTIENTS,
    SUMS,
    in_registers,
    is_lane_index,
    is_real,
    lane_memory,
    width,
)
from fwdad.backends.simd import compiled_lanes
from fwdad.tangents.chunk import scale_lanes
from fwdad.tape.alias import memory_of
from fwdad.tape.forward import load_lanes, unit_lanes, zero_lanes
from fwdad.tape.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.tape.show import Writer, _words
from fwdad.tape.types import ArrayType, Dimension, Number, Size, Type, number_type

FAMILIES = (array_functions, array_reductions, array_shapes, array_products, array_indices)
"""The modules whose functions of arrays have a compiled form."""


class Leaf(NamedTuple):
    """An array that an elementwise expression reads: its name and its lengths."""

    name: str
    shape: tuple[Dimension, ...]
    value: Value | None


class NumbaWriter(Writer):
    """Writes a program for Numba.

    Parameters
    ----------
    program : Program
        What to write.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._used.update(HELPERS)
        self.helpers: set[str] = set()
        self.types: dict[str, Type] = {}  # the types that the compiled names must have
        self.writes = {v for op in program.walk() for v in op.writes()}
        self._roots = memory_of(program)
        self._params = set(program.block.params)
        self._lazy: dict[Value, Apply] = {}
        self._terms: dict[Value, Term] = {}
        self._bits: dict[Value, int] = {}
        self._standin: dict[Value, str] = {}  # copies of arrays that are being written
        self.lanes = in_registers(program, self.is_written)
        self._lane_memory = lane_memory(program, self.lanes)
        self._lane_names: dict[str, int] = {}
        self.lane_functions: dict[str, tuple[str, int]] = {}
        self._loose = _merged_arrays(program.block) - self.lanes
        self._op_now: Op | None = None
        self._indices: list[str] = []

    # -- reports

    def cannot(self, what: str) -> CannotCompileError:
        """The error that says that an operation has no compiled form."""
        return CannotCompileError(what, self._op_now.location if self._op_now else None)

    def _op(self, op: Op, block: Block, k: int) -> None:
        outer, self._op_now = self._op_now, op
        try:
            if isinstance(op, (Store, Update)):
                self.flush(op)
                self._store(op)
            elif isinstance(op, Check):
                self.flush(op)
                self._check(op)
            elif isinstance(op, Apply) and not op.outputs:
                self.flush(op)
                handler = array_functions.find(op.function)
                if handler is None:
                    raise self.cannot(f"the function {_name_of(op.function)}")
                self._lowered(op, handler)
            else:
                super()._op(op, block, k)
        except CannotCompileError as error:
            if error.location is None:
                raise CannotCompileError(error.what, op.location) from error
            raise
        finally:
            self._op_now = outer

    def line(self, text: str, op: Op | None = None) -> None:
        """Write one line, at the place of the operation at hand."""
        super().line(text, op if op is not None else self._op_now)

    def name(self, value: Value) -> str:
        """A value's name."""
        made = super().name(value)
        if value in self.lanes:
            self._lane_names[made] = width(value)
        elif made not in self.types:
            self.types[made] = value.type
        return made

    def temporary(self, wanted: str, t: Type | None = None) -> str:
        """A new name."""
        made = self._unique(wanted)
        if t is not None:
            self.types[made] = t
        return made

    # -- numbers

    def type_of(self, operand: Operand) -> Type:
        """What is known of an operand."""
        if isinstance(operand, (Value, Missing)):
            return operand.type
        t = number_type(operand)
        if t is None:
            raise self.cannot(f"a {type(operand).__name__} as a value")
        return t

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
        """An operand as source; elementwise operations that wait are written out."""
        if isinstance(operand, _Ready):
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
        """A value of the right type that nobody will use."""
        t = operand.type
        if isinstance(t, Number):
            return literal(0, t)
        return self.help("loose") + f"({self.empty(['0'] * t.ndim, t.dtype)})"

    def help(self, name: str) -> str:
        """A function of ``compiled_math``, from now on a global of the source."""
        self.helpers.add(name)
        return name

    # -- lanes in registers

    def lane_function(self, what: str, n: int) -> str:
        """The name of a function of N lanes."""
        for name, known in self.lane_functions.items():
            if known == (what, n):
                return name
        name = self._unique(f"{what}_{n}")
        self.lane_functions[name] = (what, n)
        return name

    def lane_text(self, operand: Operand, n: int, level: int = -2) -> str:
        """Lanes as source: from where they are, or loaded from an array."""
        if isinstance(operand, Missing):
            return f"{self.lane_function('zeros', n)}()"
        if operand not in self.lanes:
            return f"{self.lane_function('load', n)}({self.array(operand)})"
        if operand in self._inlined:
            text, own = self._take(operand)
            return f"({text})" if own < level else text
        return self.name(operand)

    def _array_of_lanes(self, operand: Value) -> str:
        n = width(operand)
        text = self.lane_text(operand, n)
        made = self.temporary("a", operand.type)
        self.line(f"{made} = np.empty({n})")
        self.line(f"{self.lane_function('store', n)}({made}, {text})")
        return made

    def _lane_definition(self, op: Apply | Load) -> tuple[str, int]:
        (out,) = op.outputs
        n = width(out)
        if isinstance(op, Load):
            index = "".join(f", {self.index_text(i)}" for i in op.index[1:])
            return f"{self.lane_function('load', n)}({self.array(op.array)}{index})", ATOM
        f, args = op.function, op.args
        if f is load_lanes:
            index = "".join(f", {self.index_text(i)}" for i in args[1:])
            return f"{self.lane_function('load', n)}({self.array(args[0])}{index})", ATOM
        if f is zero_lanes:
            return f"{self.lane_function('zeros', n)}()", ATOM
        if f is unit_lanes:
            return f"{self.lane_function('unit', n)}({self.index_text(args[1])})", ATOM
        if f in GATHERING:
            items = ", ".join(self.real(a).text for a in args[0])
            return f"{self.lane_function('build', n)}({items})", ATOM
        if f is scale_lanes:
            d = self.real(args[0])
            if d.constant is not None and np.isfinite(d.constant):
                return f"{d.at(6)} * {self.lane_text(args[1], n, 7)}", 6
            name = self.lane_function("scale", n)
            return f"{name}({d.text}, {self.lane_text(args[1], n)})", ATOM
        if f in SUMS:
            left, right = self.lane_text(args[0], n, 5), self.lane_text(args[1], n, 6)
            return f"{left} {SUMS[f]} {right}", 5
        if f in PRODUCTS:
            left, right = (
                self.real(a).at(level) if is_real(a) else self.lane_text(a, n, level)
                for a, level in zip(args, (6, 7), strict=True)
            )
            return f"{left} * {right}", 6
        if f in QUOTIENTS:
            return f"{self.lane_text(args[0], n, 6)} / {self.real(args[1]).at(7)}", 6
        assert f in NEGATIONS
        return f"-{self.lane_text(args[0], n, 7)}", 7

    def real(self, operand: Operand) -> Term:
        """A real number as a float64."""
        return cast(self.term(operand), np.dtype(float))

    # -- definitions

    def _definition(self, op: Apply | Load, block: Block, k: int) -> None:
        if len(op.outputs) == 1 and op.outputs[0] in self.lanes:
            self._define(op, *self._lane_definition(op), block, k)
            return
        if isinstance(op, Apply) and len(op.outputs) == 1:
            if self._elementwise(op, block, k):
                return
            handler = array_functions.find(op.function)
            if handler is not None and not self._is_scalar(op):
                self._lowered(op, handler)
                return
        if isinstance(op, Load):
            self._define_load(op, block, k)
            return
        if len(op.outputs) == 1 and isinstance(op.outputs[0].type, Number):
            term = self._scalar(op)
            self._bits[op.outputs[0]] = term.bits
            self._define(op, term.text, term.level, block, k)
            return
        handler = array_functions.find(op.function)
        if handler is not None:
            self._lowered(op, handler)
            return
        raise self.cannot(f"the function {_name_of(op.function)}")

    def _define(self, op: Op, text: str, level: int, block: Block, k: int) -> None:
        (value,) = op.outputs
        if self._may_inline(op, value, block, k):
            self._inlined[value] = (text, level)
            # also what may raise keeps its place among checks and stores
            self._reading.add(value)
            self._pending.append(value)
            return
        if not self._uses[value] and isinstance(op, Load):
            self.line(text, op)
            return
        self.line(f"{self.name(value)} = {text}", op)

    def _lowered(self, op: Apply, handler: Callable[..., Any]) -> None:
        try:
            made = handler(self, op, *op.args, **op.kwargs)
        except TypeError as error:
            raise self.cannot(f"this call of {_name_of(op.function)} ({error})") from error
        if made is None:
            return
        if len(op.outputs) != 1:
            names = ", ".join(self.name(v) for v in op.outputs)
            self.line(f"{names} = {made}", op)
        else:
            self.line(f"{self.name(op.outputs[0])} = {made}", op)

    def _is_scalar(self, op: Apply) -> bool:
        return all(
            not isinstance(a, (list, tuple)) and not is_array(a) and number_type_of(a)
            for a in op.args
        ) and isinstance(op.outputs[0].type, Number)

    def _scalar(self, op: Apply) -> Term:
        """A function of numbers as a term."""
        f, result = op.function, op.outputs[0].type
        assert isinstance(result, Number)
        special = getattr(f, "__qualname__", "")
        if special == "length_of":
            array, axis = op.args
            return Term(f"{self.array(array)}.shape[{axis}]", ATOM, result, bits=48)
        if special == "range_length":
            args = ", ".join(self.text(a) for a in op.args)
            return Term(f"len(range({args}))", ATOM, result, bits=62)
        if special == "_identity":
            return cast(self.term(op.args[0]), result.dtype, python=result.python)
        if getattr(f, "__name__", "") == "normalize_axis_index" and not list(
            values_in(op.operands())
        ):
            return constant(f(*op.args, **op.kwargs))
        if op.kwargs:
            raise self.cannot(f"keywords of {_name_of(f)}")
        ufunc = as_ufunc(f)
        terms = [self.term(a) for a in op.args]
        made: Term | None = None
        if ufunc is not None:
            if result.python and all(t.type.python for t in terms):
                made = python_term(ufunc, terms, result)
            else:
                made = numpy_term(ufunc, terms)
        elif isinstance(f, type) and (
            f in (int, float, complex, bool) or issubclass(f, np.generic)
        ):
            made = conversion_term(f, terms, result)
        elif f in (np.real, np.imag):
            made = part_term(f is np.real, terms[0], result)
        elif f is round:
            made = round_term(terms, result)
        elif f in (min, max) and all(t.kind == "i" for t in terms):
            args = ", ".join(t.text for t in terms)
            made = Term(f"{f.__name__}({args})", ATOM, result, bits=max(t.bits for t in terms))
        elif getattr(f, "__module__", "") == "math":
            made = math_term(f.__name__, [self.atom(t) for t in terms], result)
        if made is None:
            raise self.cannot(f"the function {_name_of(f)}")
        for word in _words_of_calls(made.text):
            self.helpers.add(word)
        return cast(made, result.dtype)._replace(type=result, bits=made.bits)

    # -- elementwise operations on arrays

    def _elementwise(self, op: Apply, block: Block, k: int) -> bool:
        """Take an elementwise operation on arrays; it waits if it is used once."""
        (value,) = op.outputs
        if _arity(op) is None or not any(is_array(a) for a in op.args):
            if not (op.function is np.where and len(op.args) == 3):
                return False
        if isinstance(value.type, Number):
            if any(is_array(a) and a.type.ndim for a in op.args):
                return False
            term = self._element_of(op, [])
            self._define(op, term.text, term.level, block, k)
            return True
        if self._may_inline(op, value, block, k) and value not in self._loose:
            self._lazy[value] = op
            self._inlined[value] = ("", ATOM)
            self._reading.add(value)
            self._pending.append(value)
            for a in op.args:  # what waits inside waits with it
                if is_array(a) and a in self._lazy and a in self._pending:
                    self._pending.remove(a)
            return True
        self._write_loop(op, self.name(value))
        return True

    def done(self, value: Value) -> None:
        """Forget an operation that has been written, and what waited inside it."""
        op = self._lazy.pop(value, None)
        self._inlined.pop(value, None)
        if value in self._pending:
            self._pending.remove(value)
        if op is not None:
            self._done_inside(op)

    def _done_inside(self, op: Apply) -> None:
        for a in op.args:
            if is_array(a) and a in self._lazy:
                self.done(a)

    def materialize(self, value: Value) -> str:
        """Write an operation that waits into an array."""
        op = self._lazy[value]
        made = self.name(value)
        self._write_loop(op, made)
        self.done(value)
        return made

    def flush(self, upto: Op | None = None) -> None:
        """Write out what reads memory that is about to be written."""
        held = {v for o in upto.operands() for v in values_in(o)} if upto is not None else set()
        for value in list(self._pending):
            if value in held or value not in self._pending:
                continue
            if value in self._lazy:
                self.materialize(value)
            else:
                self._pending.remove(value)
                if value in self._inlined:
                    text, _ = self._inlined.pop(value)
                    self.line(f"{self.name(value)} = {text}")

    def array(self, operand: Value) -> str:
        """An array by name."""
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

    def _write_loop(self, op: Apply, name: str) -> None:
        t = op.outputs[0].type
        assert isinstance(t, ArrayType)
        leaves = self.prepare(op)
        lengths, steps = self.lengths(leaves, t.ndim)
        self.line(f"{name} = {self.empty(lengths, t.dtype)}", op)
        with_index = self.open_loops(lengths)
        term = self._element_of(op, with_index, steps)
        self.line(f"{name}[{self.at(with_index)}] = {self.stored(term, t.dtype)}", op)
        self.close_loops(with_index)
        self._done_inside(op)

    def empty(self, lengths: Sequence[str], dtype: np.dtype[Any]) -> str:
        """Source for a new array."""
        return f"np.empty({_tuple(lengths)}, {self.dtype(dtype)})"

    def zeros(self, value: Value, lengths: Sequence[str]) -> str:
        """Source for an array of zeros; lanes that are read and written as one are neighbours."""
        dtype = self.dtype(value.type.dtype)
        if value not in self._lane_memory or len(lengths) < 2:
            return f"np.zeros({_tuple(lengths)}, {dtype})"
        made = f"np.zeros({_tuple([*lengths[1:], lengths[0]])}, {dtype})"
        if len(lengths) == 2:
            return f"{made}.T"
        last = len(lengths) - 1
        return f"{made}.transpose({_tuple([str(k) for k in (last, *range(last))])})"

    def dtype(self, dtype: np.dtype[Any]) -> str:
        """A dtype as source."""
        return "np.bool_" if dtype.kind == "b" else f"np.{dtype}"

    def stored(self, term: Term, dtype: np.dtype[Any]) -> str:
        """A term as it is written into an array of a dtype."""
        for word in _words_of_calls(term.text):
            self.helpers.add(word)
        return cast(term, dtype).text

    def open_loops(self, lengths: Sequence[str]) -> list[str]:
        """Begin one loop over each axis; answers the indices."""
        names = self.index_names(len(lengths))
        for name, length in zip(names, lengths, strict=True):
            self.line(f"for {name} in range({length}):")
            self._indent += 1
        return names

    def close_loops(self, names: Sequence[str]) -> None:
        """End the loops of :meth:`open_loops`."""
        self._indent -= len(names)

    def index_names(self, n: int) -> list[str]:
        """Names for the indices of nested loops."""
        while len(self._indices) < n:
            self._indices.append(self._unique("ijklmnpq"[len(self._indices) % 8]))
        return self._indices[:n]

    def at(self, index: Sequence[str]) -> str:
        """An index as source."""
        return ", ".join(index) if index else "()"

    def prepare(self, op: Apply) -> list[Leaf]:
        """Name every array that an operation and what waits inside it read; hoist its numbers."""
        union = self._union([v for a in op.args if is_array(a) for v in self._leaf_values(a)])
        self._settle(op, union)
        leaves: list[Leaf] = []
        for o in self._tree(op):
            for a in o.args:
                if is_array(a) and a not in self._lazy:
                    leaves.append(Leaf(self.array(a), a.type.shape, a))
                elif isinstance(a, Value) and not is_array(a):
                    self._terms[a] = self.atom(self.term(a))
        return leaves

    def _settle(self, op: Apply, union: dict[int, set[Dimension]]) -> None:
        for a in op.args:
            if is_array(a) and a in self._lazy:
                if self._fits(a, union):
                    self._settle(self._lazy[a], union)
                else:
                    self.materialize(a)

    def _tree(self, op: Apply) -> list[Apply]:
        found = [op]
        for a in op.args:
            if is_array(a) and a in self._lazy:
                found.extend(self._tree(self._lazy[a]))
        return found

    def _leaf_values(self, a: Value) -> list[Value]:
        if a not in self._lazy:
            return [a]
        return [v for o in self._tree(self._lazy[a]) for b in o.args if is_array(b)
                for v in ([b] if b not in self._lazy else [])]  # fmt: skip

    def _union(self, values: list[Value]) -> dict[int, set[Dimension]]:
        """The lengths on each axis, counted from the last, that are not known to be one."""
        made: dict[int, set[Dimension]] = {}
        for v in values:
            for axis, d in enumerate(reversed(v.type.shape)):
                made.setdefault(axis, set())
                if d != 1:
                    made[axis].add(d)
        return made

    def _fits(self, a: Value, union: dict[int, set[Dimension]]) -> bool:
        """Whether what waits has one element for each of the loop's, as far as is known."""
        own = self._union(self._leaf_values(a))
        return own.keys() == union.keys() and all(bool(own[k]) == bool(union[k]) for k in own)

    def lengths(
        self, leaves: list[Leaf], ndim: int
    ) -> tuple[list[str], dict[tuple[str, int], str]]:
        """The lengths of a broadcast, and for arrays that may repeat the step of their index."""
        lengths: list[str] = []
        steps: dict[tuple[str, int], str] = {}
        for axis in range(ndim):
            found: dict[Dimension, list[tuple[str, int]]] = {}
            for leaf in leaves:
                own = axis - (ndim - len(leaf.shape))
                if own >= 0 and leaf.shape[own] != 1:
                    found.setdefault(leaf.shape[own], []).append((leaf.name, own))
            if not found:
                lengths.append("1")
            elif len(found) == 1:
                ((d, places),) = found.items()
                lengths.append(_length(d, *places[0]))
            else:
                lengths.append(self._broadcast(found, steps))
        return lengths, steps

    def _broadcast(
        self, found: dict[Dimension, list[tuple[str, int]]], steps: dict[tuple[str, int], str]
    ) -> str:
        parts = [_length(d, *places[0]) for d, places in found.items()]
        total = parts[0]
        for part in parts[1:]:
            total = f"{self.help('broadcast_length')}({total}, {part})"
        n = self.temporary("n")
        self.line(f"{n} = {total}")
        for (d, places), part in zip(found.items(), parts, strict=True):
            if isinstance(d, Size):
                step = self.temporary("step")
                self.line(f"{step} = 1 if {part} == {n} else 0")
                steps.update(dict.fromkeys(places, step))
        return n

    def element(
        self, a: Operand, index: Sequence[str], steps: dict[tuple[str, int], str] | None = None
    ) -> Term:
        """One element of an operand of a loop."""
        if not is_array(a):
            if isinstance(a, Value):
                return self._terms[a] if a in self._terms else self.term(a)
            return constant(a)
        if a in self._lazy:
            return self._element_of(self._lazy[a], index, steps)
        name = self.array(a)
        own = self.index_into(name, a.type.shape, index, steps)
        return Term(f"{name}[{self.at(own)}]", ATOM, numpy_number(a.type.dtype))

    def index_into(
        self,
        name: str,
        shape: tuple[Dimension, ...],
        index: Sequence[str],
        steps: dict[tuple[str, int], str] | None,
    ) -> list[str]:
        """A loop's index for an array of lower rank, or with axes that repeat."""
        rest = list(index[len(index) - len(shape) :]) if shape else []
        for axis, d in enumerate(shape):
            step = (steps or {}).get((name, axis))
            if d == 1:
                rest[axis] = "0"
            elif step is not None:
                rest[axis] = f"{rest[axis]} * {step}"
        return rest

    def _element_of(
        self, op: Apply, index: Sequence[str], steps: dict[tuple[str, int], str] | None = None
    ) -> Term:
        terms = [self.element(a, index, steps) for a in op.args]
        ufunc = as_ufunc(op.function)
        dtype = op.outputs[0].type.dtype
        if ufunc is not None:
            made = numpy_term(ufunc, terms)
        elif op.function is np.where:
            condition, a, b = terms
            made = where_term(condition, a, b, dtype)
        else:
            made = array_functions.ELEMENTWISE[op.function](dtype, *terms)
        for word in _words_of_calls(made.text):
            self.helpers.add(word)
        return made

    # -- memory

    def roots(self, value: Value) -> set[Value]:
        """Whose memory an array may be."""
        return self._roots.get(value, {value})

    def may_overlap(self, a: Value, b: Value) -> bool:
        """Whether two arrays may share memory; two arguments may, whatever they are called."""
        ra, rb = self.roots(a), self.roots(b)
        return bool(ra & rb) or bool(ra & self._params and rb & self._params)

    def is_written(self, value: Value) -> bool:
        """Whether anything is ever written into the memory of an array."""
        return any(self.may_overlap(value, w) for w in self.writes)

    def _define_load(self, op: Load, block: Block, k: int) -> None:
        (value,) = op.outputs
        array = self.array(op.array)
        if isinstance(value.type, Number) and not any(is_array(i) for i in op.index):
            index = self.scalar_index(op.index, op.array)
            self._define(op, f"{array}[{index}]", ATOM, block, k)
            return
        if op.view:
            text = f"{array}[{self._view_index(op.index)}]"
            if value in self._loose:
                text = f"{self.help('loose')}({text})"
            self._define(op, text, ATOM, block, k)
            return
        array_indices.fancy_load(self, op, array)

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

    def _view_index(self, index: tuple[Operand, ...]) -> str:
        parts = []
        for i in index:
            if i is None:
                parts.append("None")
            elif i is Ellipsis:
                parts.append("...")
            elif isinstance(i, slice):
                parts.append(self._slice_of_ints(i))
            else:
                parts.append(self.index_text(i))
        return ", ".join(parts) if parts else "..."

    def _slice_of_ints(self, s: slice) -> str:
        bounds = [None if x is None else self.index_text(x) for x in (s.start, s.stop, s.step)]
        if isinstance(s.step, Value):
            raise self.cannot("a slice whose step is not known")
        start, stop, step = ("" if b is None else b for b in bounds)
        return f"{start}:{stop}" + (f":{step}" if step else "")

    def _store(self, op: Store | Update) -> None:
        function = op.function if isinstance(op, Update) else None
        index = tuple(op.index)
        if isinstance(op.value, Value) and op.value in self.lanes and self._store_lanes(op):
            return
        if any(is_array(i) or isinstance(i, (list, np.ndarray)) for i in index):
            array_indices.fancy_store(self, op, function)
            return
        ints = [
            i for i in index if i is not None and i is not Ellipsis and not isinstance(i, slice)
        ]
        if len(ints) == op.array.type.ndim and None not in index:
            self._store_item(op, function)
            return
        shape = _shape_of_view(op.array.type.shape, index)
        plain = all(i is Ellipsis or i == slice(None) for i in index if not isinstance(i, Value))
        array = self.array(op.array)
        target = array
        if not (plain and not ints):
            target = self.temporary("window")
            self.line(f"{target} = {array}[{self._view_index(index)}]", op)
        self.write_into(Leaf(target, shape, op.array), op.value, function)

    def _store_lanes(self, op: Store | Update) -> bool:
        t = op.array.type
        assert isinstance(op.value, Value)
        n = width(op.value)
        plain = isinstance(op, Store) or op.function in SUMS
        if not plain or t.dtype != np.dtype(float) or t.shape[0] != n:
            return False
        if not is_lane_index(op.index) or t.ndim != len(op.index):
            return False
        value = self.lane_text(op.value, n, 6)
        at = "".join(f", {self.index_text(i)}" for i in op.index[1:])
        array, store = self.array(op.array), self.lane_function("store", n)
        if isinstance(op, Update):
            load = self.lane_function("load", n)
            value = f"{load}({array}{at}) {SUMS[op.function]} {value}"
        self.line(f"{store}({array}, {value}{at})", op)
        return True

    def _store_item(self, op: Store | Update, function: Any) -> None:
        dtype = op.array.type.dtype
        value = self.number(op.value)
        array = self.array(op.array)
        index = self.scalar_index(op.index, op.array)
        place = f"{array}[{index}]"
        if function is None:
            self.line(f"{place} = {self.stored(value, dtype)}", op)
            return
        old = Term(place, ATOM, numpy_number(dtype))
        self.line(f"{place} = {self.combined(function, old, value, dtype)}", op)

    def combined(self, function: Any, old: Term, value: Term, dtype: np.dtype[Any]) -> str:
        """What an update stores; refused where NumPy refuses the cast."""
        ufunc = as_ufunc(function)
        if ufunc is None:
            raise self.cannot(f"an update by {_name_of(function)}")
        made = loop_types(ufunc, [old.type, value.type])[-1]
        if not np.can_cast(made, dtype, "same_kind"):
            raise self.cannot(f"an update that casts {made} to {dtype}")
        return self.stored(numpy_term(ufunc, [old, value]), dtype)

    def number(self, operand: Operand) -> Term:
        """A number, or the only element of an array."""
        if is_array(operand) and operand.type.ndim:
            if any(d != 1 for d in operand.type.shape):
                raise self.cannot("an array that is stored into an element")
            name = self.array(operand)
            index = self.at(["0"] * operand.type.ndim)
            return Term(f"{name}[{index}]", ATOM, numpy_number(operand.type.dtype))
        return self.term(operand)

    def write_over(self, array: Value, value: Operand) -> None:
        """Write a value over a whole array."""
        self.write_into(Leaf(self.array(array), array.type.shape, array), value, None)

    def write_into(self, target: Leaf, value: Operand, function: Any) -> None:
        """Write a value over a window, broadcast, as if it had been computed beforehand."""
        assert target.value is not None
        dtype = target.value.type.dtype
        if isinstance(value, (list, tuple)):
            raise self.cannot("a list that is stored into an array")
        steps: dict[tuple[str, int], str] = {}
        if is_array(value):
            if value in self._lazy:
                steps = self._fused_steps(target, value)
            if value not in self._lazy:
                self._buffer(target, value, steps)
        else:
            self._terms[value] = self.atom(self.term(value))  # also a constant
        lengths = [_length(d, target.name, axis) for axis, d in enumerate(target.shape)]
        index = self.open_loops(lengths)
        new = self._terms.pop(value) if not is_array(value) else self.element(value, index, steps)
        place = f"{target.name}[{self.at(index)}]"
        if function is None:
            self.line(f"{place} = {self.stored(new, dtype)}")
        else:
            old = Term(place, ATOM, numpy_number(dtype))
            self.line(f"{place} = {self.combined(function, old, new, dtype)}")
        self.close_loops(index)
        self._standin.clear()
        if is_array(value):
            self.done(value)

    def _fused_steps(self, target: Leaf, value: Value) -> dict[tuple[str, int], str]:
        """Leave what waits to the target's own loop if nothing it reads can change there."""
        op = self._lazy[value]
        assert target.value is not None
        leaves = self.prepare(op)
        own = {(ax, d) for ax, d in enumerate(reversed(target.shape))}
        for leaf in leaves:
            dims = [(ax, d) for ax, d in enumerate(reversed(leaf.shape)) if d != 1]
            overlaps = leaf.value is not None and self.may_overlap(leaf.value, target.value)
            if overlaps or any(pair not in own for pair in dims):
                self.materialize(value)
                break
        return {}

    def _buffer(self, target: Leaf, value: Value, steps: dict[tuple[str, int], str]) -> None:
        """Copy an array that may change while it is read; check its lengths."""
        assert target.value is not None
        name = self.array(value)
        if self.may_overlap(value, target.value):
            made = self.temporary("copy")
            self.line(f"{made} = {name}.copy()")
            self._standin[value] = name = made
        extra = value.type.ndim - len(target.shape)
        if extra > 0:
            raise self.cannot("an array that is stored into one of lower rank")
        for axis, d in enumerate(value.type.shape):
            wanted = target.shape[axis - extra]
            if d not in (wanted, 1):
                step = self.temporary("step")
                sizes = f"{_length(d, name, axis)}, {_length(wanted, target.name, axis - extra)}"
                self.line(f"{step} = {self.help('check_length')}({sizes})")
                steps[(name, axis)] = step

    # -- control

    def _check(self, op: Check) -> None:
        condition = cast(self.number(op.condition), np.dtype(bool))
        exception = op.exception
        known = [a for a in op.arguments if isinstance(a, (str, int, float))]
        if isinstance(exception, BaseException):
            known = [a for a in exception.args if isinstance(a, (str, int, float))]
            exception = type(exception)
        if not isinstance(exception, type):
            raise self.cannot("an exception that is no class")
        self.line(f"if not {condition.at(1)}:", op)
        self.line(f"    raise {self.function(exception)}({', '.join(map(repr, known))})", op)

    def _branch(self, op: Branch) -> None:
        condition = cast(self.number(op.condition), np.dtype(bool))
        self.line(f"if {condition.text}:", op)
        self._side(op.then, op)
        if op.other.ops or op.outputs:
            self.line("else:")
            self._side(op.other, op)

    def _assign(self, names: list[str], operands: list[Operand]) -> None:
        """Assign in parallel, in the types that the names have."""
        super()._assign(
            names, [_Ready(self._fitted(n, x)) for n, x in zip(names, operands, strict=True)]
        )

    def _fitted(self, name: str, operand: Operand) -> str:
        if name in self._lane_names:
            return self.lane_text(operand, self._lane_names[name])
        wanted = self.types.get(name)
        if wanted is None or isinstance(operand, Missing):
            return self.text(operand)
        if isinstance(wanted, ArrayType):
            text = self.text(operand)
            if not is_array(operand):
                raise self.cannot("a number where an array is carried")
            if operand not in self._loose and text != name:
                return f"{self.help('loose')}({text})"
            return text
        term = self.number(operand)
        return cast(term, wanted.dtype).text

    def _coalesce(self, op: Loop) -> None:
        """Every value keeps its name: one name has one type."""

    def _loop(self, op: Loop) -> None:
        if op.span is not None:
            start, _, step = op.span
            small = all(isinstance(x, int) and abs(x) < 2**31 for x in (start, step))
            self._bits[op.body.params[0]] = 48 if small else 64
        super()._loop(op)

    def _called(self, op: Call) -> None:
        raise self.cannot(f"a call of {op.program.name}")


class _Ready(NamedTuple):
    """Source that is already written."""

    source: str


def number_type_of(a: Operand) -> bool:
    """Whether an operand is a number."""
    return isinstance(a, Value) or number_type(a) is not None


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _words_of_calls(text: str) -> frozenset[str]:
    return HELPERS.intersection(_words(text))


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)},)" if len(items) == 1 else f"({', '.join(items)})"


def _length(d: Dimension, name: str, axis: int) -> str:
    return str(d) if isinstance(d, int) else f"{name}.shape[{axis}]"


def _arity(op: Apply) -> int | None:
    """How many arguments an elementwise function takes, or None of another function."""
    ufunc = as_ufunc(op.function)
    if ufunc is not None and len(op.args) == ufunc.nin and not op.kwargs:
        return ufunc.nin
    if op.function is np.where and len(op.args) == 3:
        return 3
    try:
        known = op.function in array_functions.ELEMENTWISE
    except TypeError:
        return None
    return len(op.args) if known and not op.kwargs else None


def _shape_of_view(shape: tuple[Dimension, ...], index: Sequence[Operand]) -> tuple[Dimension, ...]:
    """The lengths of a basic index; what is not known is a new unknown."""
    used = sum(i is not None and i is not Ellipsis for i in index)
    rest = list(shape)
    made: list[Dimension] = []
    spread = False
    for i in index:
        if i is None:
            made.append(1)
        elif i is Ellipsis:
            spread = True
            take = len(shape) - used
            made.extend(rest[:take])
            del rest[:take]
        elif isinstance(i, slice):
            d = rest.pop(0)
            made.append(d if i == slice(None) else Size())
        else:
            rest.pop(0)
    return (*made, *rest) if not spread or rest else tuple(made)


def _merged_arrays(block: Block) -> set[Value]:
    """Arrays that stand for one of several: their layout is left open."""
    found: set[Value] = set()
    for op in walk(block):
        if isinstance(op, (Branch, Loop)):
            found.update(v for v in op.outputs if is_array(v))
        if isinstance(op, Loop):
            found.update(v for v in op.carried if is_array(v))
    return found


def numba_source(program: Program) -> tuple[Source, dict[str, Type]]:
    """Write a program as a function that Numba compiles.

    Parameters
    ----------
    program : Program
        What to write.

    Returns
    -------
    Source
        The function answers a tuple of the program's results.
    types : dict
        The types that its variables must have once it is compiled.

    Raises
    ------
    CannotCompileError
        If an operation has no compiled form; with its line.
    """
    writer = NumbaWriter(program)
    params = [writer.name(p) for p in program.block.params]
    name = program.name if program.name.isidentifier() else "traced"
    writer.line(f"def {name}({', '.join(params)}):")
    with writer.indented():
        writer.body(program.block)
        results = [writer.text(r) for r in program.block.results]
        writer.line(f"return ({', '.join(results)}{',' if len(results) == 1 else ''})")
    helpers = {h: getattr(compiled_math, h) for h in sorted(writer.helpers)}
    for h, (what, n) in writer.lane_functions.items():
        helpers[h] = getattr(compiled_lanes(n), what)
    namespace = {"np": np, "math": math, **helpers, **writer.globals}
    text = _with_places(writer.lines, writer.places)
    return Source(name, text, namespace, writer.places), writer.types


def _with_places(lines: list[str], places: list[Any]) -> str:
    """The source, with the user's line behind the first line that comes from it."""
    last = None
    made = []
    for line, place in zip(lines, places, strict=True):
        mark = place and (place.filename, place.line)
        if place is not None and mark != last:
            line = f"{line}  # {PurePath(place.filename).name}:{place.line}"
            last = mark
        made.append(line)
    return "\n".join(made) + "\n"
