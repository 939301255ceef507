"""A region of elementwise operations as loops over vectors, for the Numba source."""

from __future__ import annotations

from collections import Counter

from fwdad.codegen.loops.notation import subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import Term, numpy_number
from fwdad.codegen.loops.vectors.vector_terms import Elements, lanes_of, vector_term
from fwdad.codegen.passes.fusion import Region
from fwdad.codegen.runtime import libmvec
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Operand, Value, is_array, values_in

_CACHED = 2**17  # bytes of partials that are kept in the cache for the lanes
_LONGEST = 88  # characters of an inlined expression


def write_region(w: Parts, region: Region) -> None:
    """Write the loops of a region."""
    _RegionWriter(w, region).write()


def _work(op: Apply) -> int:
    """Estimated cost of an operation per element, in tenths of a nanosecond."""
    return 20 if getattr(op.function, "__name__", "") in libmvec.ARGUMENTS else 2


class _RegionWriter:
    def __init__(self, w: Parts, region: Region) -> None:
        self.w = w
        self._line = w.draft.vector_line
        self.region = region
        self.width = lanes_of(region.dtype)
        self.ops = [*region.base, *region.lanes]
        self.made = {op.outputs[0]: op for op in self.ops}
        self.inside = Counter(v for op in self.ops for v in values_in(op.operands()))
        self.kept = [v for v in self.made if w.usage.count[v] > self.inside[v]]
        self.names: dict[Value, str] = {}  # arrays that are read
        self.numbers: dict[Value, Term] = {}
        self.held: dict[Value, Term] = {}  # values that have a name in the current loop
        self.index: list[str] = []
        self.stop = ""
        self.strips: dict[Value, str] = {}  # buffers of partials for the lanes
        self.strip = 0  # how many elements a buffer holds
        self.start = ""

    def write(self) -> None:
        """Write everything."""
        self._name_operands()
        *outer, n = lengths = self._lengths()
        lanes = self._lane_count() if self.region.lanes else None
        for v in self.kept:
            shape = lengths if v.type.ndim == len(lengths) else [str(lanes), *lengths]
            self.w.arrays.new(v, shape, self.made[v])
        before = len(self.w.code.lines)
        spread = self.w.loops.spreads
        first, last = ("first", "last") if spread else ("0", n)
        if lanes is not None:
            self._name_strips(n)
        with self.w.loops.nest(outer) as names:
            if lanes is not None:
                self._in_strips(names, first, last, lanes)
            else:
                self._loop(self.region.base, names, first, last)
        if spread:
            work = [str(sum(map(_work, self.region.base)))]
            if lanes is not None:
                work.append(f"{lanes} * {sum(map(_work, self.region.lanes))}")
            self.w.loops.spread_region(before, n, " * ".join([*lengths, f"({' + '.join(work)})"]))

    # -- before the loops

    def _name_operands(self) -> None:
        for op in self.ops:
            for a in op.args:
                if not isinstance(a, Value) or a in self.made or a in self.names:
                    continue
                if is_array(a) and a.type.ndim:
                    self.names[a] = self.w.operands.array(a)
                elif a not in self.numbers:
                    self.numbers[a] = self.w.operands.atom(self.w.operands.term(a))

    def _lengths(self) -> list[str]:
        """The lengths of the elements; checked once here to be those of all arrays."""
        rank = len(self.region.shape)
        lengths_by_axis: list[dict[str, None]] = [{} for _ in range(rank)]
        for a, name in self.names.items():
            for axis, d in enumerate(a.type.shape):
                text, own = f"{name}.shape[{axis}]", axis - a.type.ndim + rank
                if d == 1:
                    if axis < a.type.ndim - 1:
                        self._line(f"{self.w.helpers.use('equal_length')}({text}, 1)")
                elif own >= 0:
                    lengths_by_axis[own][text] = None
        for axis, d in enumerate(self.region.shape):
            if isinstance(d, int):
                lengths_by_axis[axis][str(d)] = None
        return [self.w.elements.equal(list(texts)) for texts in lengths_by_axis]

    def _lane_count(self) -> str:
        rank = len(self.region.shape) + 1
        texts: dict[str, None] = {}
        for a, name in self.names.items():
            if a.type.ndim == rank and a.type.shape[0] != 1:
                texts[f"{name}.shape[0]"] = None
        d = self.region.lanes[0].outputs[0].type.shape[0]
        if isinstance(d, int):
            texts[str(d)] = None
        return self.w.elements.equal(list(texts))

    # -- loops

    def _name_strips(self, n: str) -> None:
        """Allocate buffers for what the lanes need of a strip of elements."""
        wanted = {v for op in self.region.lanes for v in values_in(op.operands())}
        values = [op.outputs[0] for op in self.region.base if op.outputs[0] in wanted]
        self.strip = _CACHED >> (3 + (len(values) - 1).bit_length())
        room = f"min({self.strip}, {n} + {self.width})"  # vectors are written as a whole
        for v in values:
            if v not in self.kept:
                self.strips[v] = self.w.names.temporary(v.name or "part")
                self._line(f"{self.strips[v]} = {self.w.arrays.empty([room], v.type.dtype)}")

    def _in_strips(self, outer: list[str], first: str, last: str, lanes: str) -> None:
        """Write the elements of a strip, then its lanes in turn."""
        w = self.w
        self.start, stop = w.names.temporary("start"), w.names.temporary("stop")
        self._line(f"for {self.start} in range({first}, {last}, {self.strip}):")
        with w.code.indented():
            self._line(f"{stop} = min({self.start} + {self.strip}, {last})")
            self._loop(self.region.base, outer, self.start, stop)
            lane = w.loops.index_names(len(outer) + 2)[-1]
            self._line(f"for {lane} in range({lanes}):")
            with w.code.indented():
                self._loop(self.region.lanes, [lane, *outer], self.start, stop)

    def _loop(self, ops: list[Apply], outer: list[str], start: str, stop: str) -> None:
        """Write the innermost loop, over vectors."""
        w = self.w
        i = w.loops.index_names(len(self.region.shape))[-1]
        self.index, self.stop = [*outer, i], stop
        self.held = {}
        self.here = Counter(v for op in ops for v in values_in(op.operands()))
        self._line(f"for {i} in range({start}, {stop}, {self.width}):")
        with w.code.indented():
            for op in ops:
                v = op.outputs[0]
                written = [self.w.names.name(v)] if v in self.kept else []
                if self.here[v] > 1 or (written and self.here[v]) or v in self.strips:
                    self._hold(v, self._term(op), op)
                elif written:
                    self.held[v] = self._term(op)
                for name in written:
                    at = f"{stop}, {name}, {subscript(self.index)}"
                    self._line(f"vector_write({self.held[v].text}, {at})", op)
                if v in self.strips:
                    at = f"None, {self.strips[v]}, {i} - {start}"
                    self._line(f"vector_write({self.held[v].text}, {at})", op)

    def _hold(self, v: Value, term: Term, op: Apply | None = None) -> Term:
        """Give the elements of an array a name."""
        if term.text.isidentifier():
            self.held[v] = term
            return term
        base = v.name or (self.names.get(v, None))
        name = self.w.names.temporary(f"{base}_{self.index[-1]}" if base else "t")
        self._line(f"{name} = {term.text}", op)
        self.held[v] = term._replace(text=name, level=ATOM)
        return self.held[v]

    def _term(self, op: Apply) -> Term:
        term = vector_term(op, [self._elements(a) for a in op.args], self.w.draft.vector_atom)
        return self.w.draft.vector_atom(term) if len(term.text) > _LONGEST else term

    def _elements(self, a: Operand) -> Elements:
        if not isinstance(a, Value):
            return Elements(self.w.operands.term(a), False)
        if a in self.numbers:
            return Elements(self.numbers[a], False)
        if a in self.held:
            return Elements(self.held[a], True)
        if a in self.made and self._is_in_loop(a):
            return Elements(self._term(self.made[a]), True)
        return self._read(a)

    def _is_in_loop(self, a: Value) -> bool:
        return (a.type.ndim == len(self.index)) and a not in self.strips

    def _read(self, a: Value) -> Elements:
        t = numpy_number(a.type.dtype)
        if a in self.strips:
            at = f"{self.index[-1]} - {self.start}"
            text = f"vector_read({self.width}, None, {self.strips[a]}, {at})"
        else:
            name = self.names[a] if a in self.names else self.w.names.name(a)
            index = self.index[len(self.index) - a.type.ndim :]
            index = ["0" if d == 1 else k for d, k in zip(a.type.shape, index, strict=True)]
            if a.type.shape[-1] == 1:
                return Elements(Term(f"{name}[{subscript(index)}]", ATOM, t), False)
            text = f"vector_read({self.width}, {self.stop}, {name}, {subscript(index)})"
        term = Term(text, ATOM, t)
        return Elements(self._hold(a, term) if self.here[a] > 1 else term, True)
