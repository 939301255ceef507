"""Expressions of a nest as LLVM values: names, numbers, elements and views of arrays.

Importing this module needs Numba.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, typing
from numba.core import types as _types

from fwdad.codegen.llvm.elements import Held, Part, as_array, element, load_item, view
from fwdad.codegen.llvm.nests.extraction import known_int
from fwdad.codegen.llvm.nests.types import Typed, index_parts, whole_exponent

types: Any = _types

_IMPLEMENTATIONS: dict[Any, Any] = {}


def implementation(context: Any, function: Any, signature: Any) -> Any:
    """Numba's implementation of an operation, cached for numbers: it searches many, each time."""
    if not all(isinstance(t, (types.Number, types.Boolean)) for t in signature.args):
        return context.get_function(function, signature)
    key = context, function, signature
    if key not in _IMPLEMENTATIONS:
        # resolve these types: the cached signature may come from another function of its kind
        function.get_call_type(context.typing_context, signature.args, {})
        _IMPLEMENTATIONS[key] = context.get_function(function, signature)
    return _IMPLEMENTATIONS[key]


class Number(NamedTuple):
    """A name that is assigned only once."""

    type: Any
    value: Any


class Variable(NamedTuple):
    """A name with a place in memory, which LLVM promotes to a register."""

    type: Any
    place: Any


class Expressions:
    """Writes the expressions of one nest."""

    def __init__(self, context: Any, builder: Any, typed: Typed) -> None:
        self.context = context
        self.builder = builder
        self.typed = typed
        self.nest = typed.nest
        self.names: dict[str, Any] = {}
        self.known: dict[ast.expr, Any] = {}  # expressions whose value is another here
        targets = [n for n in ast.walk(self.nest.tree) if isinstance(n, ast.Name)]
        indices = {id(n.target) for n in ast.walk(self.nest.tree) if isinstance(n, ast.For)}
        self.assigned = {
            n.id for n in targets if isinstance(n.ctx, ast.Store) and id(n) not in indices
        }

    # -- names

    def bind(self, name: str, t: Any, value: Any) -> None:
        """Give a name its value."""
        if isinstance(value, Held):
            self.names[name] = value
        elif name in self.assigned or name in self.nest.results:
            known = self.names.get(name)
            if known is None:
                place = cgutils.alloca_once(self.builder, value.type)
                known = self.names[name] = Variable(t, place)
            self.builder.store(value, known.place)
        else:
            self.names[name] = Number(t, value)

    def name(self, name: str) -> Any:
        """The value of a name."""
        known = self.names[name]
        if isinstance(known, Variable):
            return self.builder.load(known.place)
        return known.value if isinstance(known, Number) else known

    def truth(self, e: ast.expr) -> Any:
        """An expression as an LLVM bit."""
        return self.context.is_true(self.builder, self.typed.of[e], self.value(e))

    # -- expressions

    def value(self, e: ast.expr) -> Any:
        """The LLVM value of an expression, or the parts of an array."""
        if e in self.known:
            return self.known[e]
        t = self.typed.of[e]
        if isinstance(e, ast.Constant):
            return self.context.get_constant(types.unliteral(t), e.value)
        if isinstance(e, ast.Name):
            return self.name(e.id)
        if isinstance(e, ast.Subscript):
            return self._item(e)
        if isinstance(e, ast.Attribute):
            return self._attribute(e)
        if isinstance(e, ast.BoolOp):
            return self._all_or_any(e)
        if isinstance(e, ast.IfExp):
            return self._choice(e)
        if isinstance(e, ast.Tuple):
            return self.context.make_tuple(self.builder, t, [self._whole(x) for x in e.elts])
        if isinstance(e, ast.BinOp) and whole_exponent(e) is not None and isinstance(e.op, ast.Pow):
            return self._power(e)
        return self.call(e, *self._operands(e))[1]

    def _operands(self, e: ast.expr) -> tuple[list[Any], list[Any]]:
        if isinstance(e, ast.BinOp):
            operands = [e.left, e.right]
        elif isinstance(e, ast.UnaryOp):
            operands = [e.operand]
        elif isinstance(e, ast.Compare):
            operands = [e.left, e.comparators[0]]
        else:
            assert isinstance(e, ast.Call)
            operands = e.args
        return [self.typed.of[x] for x in operands], [self._whole(x) for x in operands]

    def _whole(self, e: ast.expr) -> Any:
        """The value of an expression as a Numba value, arrays included."""
        value = self.value(e)
        return as_array(self.context, self.builder, value) if isinstance(value, Held) else value

    def call(self, node: ast.AST, kinds: Sequence[Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Call Numba's implementation; returns the result's type and value."""
        function, signature = self.typed.calls[node]
        called = implementation(self.context, function, signature)

        def one(k: int, wanted: Any) -> Any:
            return self.context.cast(self.builder, args[k], kinds[k], wanted)

        def several(ks: Sequence[int], wanted: Any) -> Any:
            values_of = [one(k, t) for k, t in zip(ks, wanted, strict=True)]
            return cgutils.make_anonymous_struct(self.builder, values_of)

        if signature.pysig is None:
            given = [one(k, t) for k, t in enumerate(signature.args)]
        else:
            given = typing.fold_arguments(
                signature.pysig,
                tuple(range(len(args))),
                {},
                lambda index, _param, k: one(k, signature.args[index]),
                lambda index, _param, default: self.context.get_constant_generic(
                    self.builder, signature.args[index], default
                ),
                lambda index, _param, ks: cgutils.make_anonymous_struct(
                    self.builder,
                    [one(k, t) for k, t in zip(ks, signature.args[index], strict=True)],
                ),
            )
        values = called(self.builder, given)
        self.context.add_linking_libs(getattr(called, "libs", ()))
        t = types.unliteral(signature.return_type)
        return t, self.context.cast(self.builder, values, signature.return_type, t)

    def _power(self, e: ast.BinOp) -> Any:
        n = whole_exponent(e)
        t, x = self.typed.of[e.left], self.value(e.left)
        product_type, made = self.call(e, [t, t], [x, x])
        if n == 2:
            return made
        x = self.context.cast(self.builder, x, t, product_type)
        return self.call(e, [product_type, product_type], [x, made])[1]

    def _attribute(self, e: ast.Attribute) -> Any:
        t = self.typed.of[e]
        if isinstance(e.value, ast.Name) and e.value.id in self.nest.functions:
            known = getattr(self.nest.functions[e.value.id], e.attr)
            return self.context.get_constant(t, known)
        value = self.value(e.value)
        if not isinstance(value, Held):
            if isinstance(self.typed.of[e.value], types.Complex):
                held_type = self.typed.of[e.value]
                number = self.context.make_complex(self.builder, held_type, value)
                return number.real if e.attr == "real" else number.imag
            return value
        if e.attr == "shape":
            return self.context.make_tuple(self.builder, t, value.lengths)
        size = self.context.get_constant(types.intp, 1)
        for n in value.lengths:
            size = self.builder.mul(size, n)
        return size

    def _all_or_any(self, e: ast.BoolOp) -> Any:
        """``and`` or ``or``, with short-circuit evaluation."""
        builder = self.builder
        settled = ir.Constant(ir.IntType(1), int(isinstance(e.op, ast.Or)))
        end = builder.append_basic_block("known")
        came: list[tuple[Any, Any]] = []
        for k, x in enumerate(e.values):
            value = self.truth(x)
            if k == len(e.values) - 1:
                came.append((value, builder.block))
                builder.branch(end)
                break
            came.append((settled, builder.block))
            following = builder.append_basic_block("more")
            pair = (end, following) if isinstance(e.op, ast.Or) else (following, end)
            builder.cbranch(value, *pair)
            builder.position_at_end(following)
        builder.position_at_end(end)
        phi = builder.phi(ir.IntType(1))
        for value, block in came:
            phi.add_incoming(value, block)
        return phi

    def _choice(self, e: ast.IfExp) -> Any:
        builder, t = self.builder, self.typed.of[e]
        sides: list[Any] = []

        def side(x: ast.expr) -> None:
            value = self.context.cast(builder, self.value(x), self.typed.of[x], t)
            sides.append((value, builder.block))

        with builder.if_else(self.truth(e.test)) as (then, other):
            with then:
                side(e.body)
            with other:
                side(e.orelse)
        phi = builder.phi(sides[0][0].type)
        for value, block in sides:
            phi.add_incoming(value, block)
        return phi

    # -- elements and views

    def _item(self, e: ast.Subscript) -> Any:
        if isinstance(self.typed.of[e.value], types.BaseTuple):
            k = known_int(e.slice)
            assert k is not None
            if isinstance(e.value, ast.Attribute) and e.value.attr == "shape":
                array = self.value(e.value.value)
                return array.lengths[k]
            return self.builder.extract_value(self.value(e.value), k % len(self.typed.of[e.value]))
        array = self.value(e.value)
        parts = index_parts(e)
        if len(parts) == array.type.ndim and not any(isinstance(p, ast.Slice) for p in parts):
            place = element(self.context, self.builder, array, self.index(e))
            return load_item(self.context, self.builder, array.type, place)
        index = [self._part(part) for part in parts]
        return view(self.context, self.builder, array, index, self.typed.of[e])

    def index(self, e: ast.Subscript) -> list[tuple[Any, Any, bool]]:
        """An element's index: types and values, and whether each is known to be inside."""
        return [self._place(part) for part in index_parts(e)]

    def _place(self, part: ast.expr) -> tuple[Any, Any, bool]:
        known = known_int(part)
        if known is not None:
            return None, known, False
        return self.typed.of[part], self.value(part), self._is_inner(part)

    def _is_inner(self, part: ast.expr) -> bool:
        """Whether an index is known to be inside, perhaps thanks to a step of 0 or 1."""
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
            return self._is_inner(part.left) and self._is_inner(part.right)
        return isinstance(part, (ast.Name, ast.BinOp)) and ast.unparse(part) in self.nest.inner

    def _part(self, part: ast.expr) -> Any:
        if not isinstance(part, ast.Slice):
            return self._place(part)
        ends = (part.lower, part.upper)
        return Part(*(None if x is None else self._place(x)[:2] for x in ends))
