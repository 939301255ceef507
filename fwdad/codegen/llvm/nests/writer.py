"""Statements of a nest as LLVM code: assignments, branches and loops.

Importing this module needs Numba.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types as _types

from fwdad.codegen.llvm.checks import say_where
from fwdad.codegen.llvm.elements import Held, all_steps, element, get_itemsize, store_item
from fwdad.codegen.llvm.loop_merging import SharedLoop
from fwdad.codegen.llvm.nests.collapsing import chain_of, ends
from fwdad.codegen.llvm.nests.expressions import Expressions, Number
from fwdad.codegen.llvm.nests.extraction import known_int
from fwdad.codegen.llvm.nests.types import Typed
from fwdad.codegen.llvm.outlining import call_apart
from fwdad.codegen.loops.array_provenance import Given
from fwdad.codegen.numba_support import CHECK_BOUNDS

types: Any = _types


class NestWriter:
    """Writes the statements of one nest.

    The ``shared`` loops in it become calls of functions of their own.
    """

    def __init__(
        self, context: Any, builder: Any, typed: Typed, shared: Mapping[ast.For, SharedLoop]
    ) -> None:
        self.context = context
        self.builder = builder
        self.typed = typed
        self.nest = typed.nest
        self.expressions = Expressions(context, builder, typed)
        self.names = self.expressions.names
        self.shared = shared
        self._least: dict[str, int] = {}  # lower bounds of counters
        self._seen: set[ast.For] = set()  # loops inside of those that may run as one

    def write(self, arguments: Sequence[Any], known: Sequence[Given]) -> None:
        """Write the whole function."""
        rest = iter(arguments)
        for name, t, of in zip(self.nest.params, self.typed.given, known, strict=True):
            if isinstance(t, types.Array):
                data, *lengths = (next(rest) for _ in range(1 + t.ndim))
                strides = of.strides(t.ndim, get_itemsize(self.context, t))
                steps = [
                    next(rest) if n is None else self.context.get_constant(types.intp, n)
                    for n in (strides if t.layout == "A" else ())
                ]
                if of.is_apart:
                    data.add_attribute("noalias")
                self._lengths_fit(t, lengths)
                self.names[name] = Held(t, data, lengths, steps)
            else:
                self.expressions.bind(name, t, next(rest))
        self._block(self.nest.tree.body)
        convention = self.context.call_conv
        results = [self.expressions.name(r) for r in self.nest.results]
        if not results:
            convention.return_value(self.builder, self.context.get_dummy_value())
        elif len(results) == 1:
            t = self.typed.result
            result = self.context.get_return_value(self.builder, t, results[0])
            convention.return_value(self.builder, result)
        else:
            t = self.typed.result
            packed = self.context.make_tuple(self.builder, t, results)
            result = self.context.get_return_value(self.builder, t, packed)
            convention.return_value(self.builder, result)

    def _lengths_fit(self, t: Any, lengths: Sequence[Any]) -> None:
        """Let LLVM assume that an array's size in bytes is representable, which removes cases.

        NumPy and our allocation ensure it for all but broadcast arrays, which are read-only.
        """
        most = 2**63 // max(get_itemsize(self.context, t), 2)
        for n in lengths if t.mutable else ():
            self.builder.assume(self.builder.icmp_unsigned("<", n, n.type(most)))

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for s in body:
            self._statement(s)

    def _statement(self, s: ast.stmt) -> None:
        if CHECK_BOUNDS:
            say_where(self.builder, s.lineno)
        if isinstance(s, ast.For) and s in self.shared:
            self._apart(s, self.shared[s])
        elif isinstance(s, ast.For):
            self._loop(s)
        elif isinstance(s, ast.If):
            self._branch(s)
        elif isinstance(s, ast.Assign):
            self._assign(s.targets[0], self.typed.of[s.value], self.expressions.value(s.value))
        elif isinstance(s, ast.AugAssign):
            left, right = self.expressions.value(s.target), self.expressions.value(s.value)
            kinds = [self.typed.of[s.target], self.typed.of[s.value]]
            t, made = self.expressions.call(s, kinds, [left, right])
            self._assign(s.target, t, made)
        elif isinstance(s, ast.Expr):
            self.expressions.value(s.value)

    def _assign(self, target: ast.expr, t: Any, value: Any) -> None:
        if isinstance(target, ast.Subscript):
            array = self.expressions.value(target.value)
            value = self.context.cast(self.builder, value, t, array.type.dtype)
            place = element(self.context, self.builder, array, self.expressions.index(target))
            store_item(self.context, self.builder, array.type, value, place)
        else:
            assert isinstance(target, ast.Name)
            self.expressions.bind(target.id, t, value)

    def _branch(self, s: ast.If) -> None:
        condition = self.expressions.truth(s.test)
        with self.builder.if_else(condition) as (then, other):
            with then:
                self._block(s.body)
            with other:
                self._block(s.orelse)

    def _loop(self, s: ast.For) -> None:
        assert isinstance(s.iter, ast.Call)
        assert isinstance(s.target, ast.Name)
        self._collapse(s)
        builder, args = self.builder, [self.expressions.value(x) for x in s.iter.args]
        start, stop = (args[0].type(0), args[0]) if len(args) == 1 else args[:2]
        step = args[2] if len(args) == 3 else start.type(1)
        begin, body, end = (builder.append_basic_block(n) for n in ("begin", "body", "end"))
        before = builder.block
        forwards = self._goes_up(s, step)
        goes_on = self._is_before(start, stop, forwards)
        if len(args) == 3 and known_int(s.iter.args[2]) is None:
            zero = builder.icmp_signed("==", step, step.type(0))
            from_zero = builder.append_basic_block("zero")
            checked = builder.append_basic_block("checked")
            builder.cbranch(zero, from_zero, checked).set_weights([1, 99])
            builder.position_at_end(from_zero)
            message = "range() arg 3 must not be zero"
            self.context.call_conv.return_user_exc(builder, ValueError, (message,))
            builder.position_at_end(checked)
            before = builder.block
        builder.cbranch(goes_on, begin, end)
        builder.position_at_end(begin)
        index = builder.phi(start.type)
        index.add_incoming(start, before)
        builder.branch(body)
        builder.position_at_end(body)
        least = self._least_of(s.iter.args[0] if len(args) > 1 else None)
        if forwards is False:
            last = self._least_of(s.iter.args[1])
            least = None if last is None else last + 1
            if least is not None and least >= 0 and known_int(s.iter.args[1]) != -1:
                # LLVM finds these only down to 0, and would check each index
                builder.assume(builder.icmp_unsigned("<=", index, start))
                builder.assume(builder.icmp_signed(">=", index, start.type(0)))
        alone = s.target.id not in self.expressions.assigned
        if least is not None and isinstance(forwards, bool) and alone:
            self._least[s.target.id] = least
        self.expressions.bind(s.target.id, types.int64, index)
        self._block(s.body)
        following = builder.add(index, step, flags=("nsw",))
        goes_on = self._is_before(following, stop, forwards)
        index.add_incoming(following, builder.block)
        builder.cbranch(goes_on, begin, end)
        builder.position_at_end(end)

    def _collapse(self, s: ast.For) -> None:
        """Let a loop and those inside it run as one, if that is possible."""
        if s in self._seen or CHECK_BOUNDS:  # which asks each index to be inside its axis
            return
        chain = chain_of(s, self.nest.inner)
        if chain is not None:
            self._seen.update(chain.loops)
            found = dict(ends(self.context, self.builder, chain, self.expressions.value))
            self.expressions.known.update(found)

    def _apart(self, s: ast.For, loop: SharedLoop) -> None:
        """Call the function that a loop has become; a known stride of elements is no argument.

        So a view is of one kind with its base, whose elements are neighbours too.
        """
        kinds: list[tuple[Any, list[Any], bool]] = []
        pairs: list[tuple[Any, Any]] = []  # Numba's types, LLVM's values
        values = [self.expressions.value(x) for x in loop.given]
        places = [_argument_of(v.data) for v in values if isinstance(v, Held)]
        for x, value in zip(loop.given, values, strict=True):
            t = self.typed.of[x]
            if not isinstance(value, Held):
                kinds.append((t, [], False))
                pairs.append((t, value))
                continue
            steps = all_steps(self.context, self.builder, value)
            known = [step.constant if isinstance(step, ir.Constant) else None for step in steps]
            kinds.append((t.copy(layout="A"), known, _is_apart(_argument_of(value.data), places)))
            pairs.append((types.CPointer(t.dtype), value.data))
            pairs += [(types.intp, n) for n, k in zip(steps, known, strict=True) if k is None]

        def write(inside: Any, arguments: Sequence[Any]) -> Any:
            writer, rest = NestWriter(self.context, inside, self.typed, {}), iter(arguments)
            for x, (t, known, is_apart) in zip(loop.given, kinds, strict=True):
                data = next(rest)
                if is_apart:
                    data.add_attribute("noalias")
                if isinstance(t, types.Array):
                    assert isinstance(x, ast.Name)
                    steps = [next(rest) if k is None else ir.IntType(64)(k) for k in known]
                    writer.names[x.id] = Held(t, data, writer.lengths_of(x.id, t.ndim), steps)
                elif isinstance(x, ast.Name):
                    writer.names[x.id] = Number(t, data)
                else:
                    assert isinstance(x, ast.Subscript)
                    assert isinstance(x.value, ast.Attribute)
                    assert isinstance(x.value.value, ast.Name)
                    of = x.value.value
                    k, lengths = (
                        known_int(x.slice),
                        writer.lengths_of(of.id, len(self.typed.of[x.value])),
                    )
                    assert k is not None
                    lengths[k] = data
                    writer.names.setdefault(of.id, Held(self.typed.of[of], None, lengths, []))
            writer._loop(s)
            return self.context.get_dummy_value()

        name = hashlib.sha256(repr((loop.text, kinds)).encode()).hexdigest()[:16]
        signature = types.none(*(t for t, _ in pairs))
        parts = [x for _, x in pairs]
        call_apart(self.context, self.builder, f"loop_{name}", signature, parts, write)

    def lengths_of(self, name: str, rank: int) -> list[Any]:
        """The lengths of an array, or None for each that is not known."""
        known = self.names.get(name)
        return known.lengths if known is not None else [None] * rank

    def _goes_up(self, s: ast.For, step: Any) -> Any:
        """True or False if a step's sign is known, else an LLVM bit."""
        assert isinstance(s.iter, ast.Call)
        if len(s.iter.args) < 3:
            return True
        known = known_int(s.iter.args[2])
        if known:
            return known > 0
        return self.builder.icmp_signed(">", step, step.type(0))

    def _least_of(self, e: ast.expr | None) -> int | None:
        """A lower bound of an int: a constant, or a counter and a constant; None if unknown."""
        if e is None:
            return 0
        if isinstance(e, ast.Name):
            return self._least.get(e.id)
        if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Sub)):
            least, more = self._least_of(e.left), known_int(e.right)
            if least is None or more is None:
                return None
            return least + more if isinstance(e.op, ast.Add) else least - more
        return known_int(e)

    def _is_before(self, i: Any, stop: Any, forwards: Any) -> Any:
        if isinstance(forwards, bool):
            return self.builder.icmp_signed("<" if forwards else ">", i, stop)
        up, down = (self.builder.icmp_signed(sign, i, stop) for sign in "<>")
        return self.builder.select(forwards, up, down)


def _argument_of(pointer: Any) -> Any:
    """The function argument from which a pointer is derived."""
    while isinstance(pointer, (ir.GEPInstr, ir.CastInstr)):
        pointer = pointer.operands[0]
    return pointer


def _is_apart(argument: Any, others: Sequence[Any]) -> bool:
    """Whether an argument is ``noalias`` and occurs once among some."""
    return (
        isinstance(argument, ir.Argument)
        and "noalias" in argument.attributes
        and sum(other is argument for other in others) == 1
    )
