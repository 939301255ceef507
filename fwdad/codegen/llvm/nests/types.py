"""Type inference in a nest: Numba's types, found in one pass over its statements.

Importing this module needs Numba.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence
from typing import Any

from numba import from_dtype
from numba.core import types as _types
from numba.core.errors import NumbaError

from fwdad.codegen.llvm.nests.extraction import Nest, known_int
from fwdad.ir.types import ArrayType, Type

types: Any = _types

OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Not: operator.not_, ast.USub: operator.neg,
    ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip


class NestError(Exception):
    """A nest holds something that cannot be compiled by this path."""


class Typed:
    """The types of a nest's expressions, for some types of its parameters.

    Raises :class:`NestError` if the nest holds something without a type here.
    """

    def __init__(self, typing: Any, nest: Nest, given: Sequence[Any]) -> None:
        self.typing = typing
        self.nest = nest
        self.given = [types.unliteral(t) for t in given]
        self.env: dict[str, Any] = dict(zip(nest.params, self.given, strict=True))
        self.of: dict[ast.AST, Any] = {}  # the types of expressions
        self.calls: dict[ast.AST, tuple[Any, Any]] = {}  # the function and signature of calls
        if not all(isinstance(t, (types.Array, types.Number, types.Boolean)) for t in self.given):
            raise NestError(f"arguments {self.given}")
        try:
            for s in nest.tree.body:
                self._statement(s)
            self.results = [self.env[name] for name in nest.results]
        except (NumbaError, KeyError) as error:
            raise NestError(repr(error)) from error

    @property
    def result(self) -> Any:
        """The type of what the nest returns."""
        if not self.results:
            return types.none
        return self.results[0] if len(self.results) == 1 else types.Tuple(self.results)

    # -- statements

    def _block(self, body: Sequence[ast.stmt]) -> None:
        before = {name: t for name, t in self.env.items() if isinstance(t, types.Array)}
        for s in body:
            self._statement(s)
        for name, t in list(self.env.items()):  # views are scoped to their block
            if isinstance(t, types.Array) and name not in before:
                del self.env[name]

    def _statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.For):
            self._loop(s)
        elif isinstance(s, ast.If):
            self.type_of(s.test)
            self._block(s.body)
            self._block(s.orelse)
        elif isinstance(s, ast.Assign):
            self._assign(s.targets[0], self.type_of(s.value))
        elif isinstance(s, ast.AugAssign):
            left = self.type_of(s.target)
            t = self._resolve(s, OPERATORS[type(s.op)], [left, self.type_of(s.value)])
            self._assign(s.target, t)
        elif isinstance(s, ast.Expr):
            self.type_of(s.value)

    def _loop(self, s: ast.For) -> None:
        assert isinstance(s.iter, ast.Call)
        assert isinstance(s.target, ast.Name)
        if any(self.type_of(x) != types.int64 for x in s.iter.args):
            raise NestError("a range of other numbers than int64")
        self._assign(s.target, types.int64)
        self._block(s.body)

    def _assign(self, target: ast.expr, t: Any) -> None:
        if isinstance(target, ast.Subscript):
            item = self.type_of(target)
            target_type = self.of[target.value]
            if (
                isinstance(item, types.Array)
                or isinstance(t, types.Array)
                or not target_type.mutable
            ):
                raise NestError("a store of more than a number")
            if self.typing.can_convert(t, item) is None:
                raise NestError(f"{t} stored as {item}")
            return
        assert isinstance(target, ast.Name)
        known = self.env.setdefault(target.id, t)
        wanted = self.nest.types.get(target.id)
        if wanted is not None and not agrees(t, wanted):
            raise NestError(f"a name for {t}, which should be {wanted}")
        is_view = isinstance(t, types.Array)
        if known != t or (is_view and target.id in self.nest.params):
            raise NestError(f"a name for {known} and {t}")
        if is_view and target.id in self.nest.results:
            raise NestError("a view as a result")

    # -- expressions

    def type_of(self, e: ast.expr) -> Any:
        """The type of an expression."""
        t = self.of[e] = self._find(e)
        return t

    def _find(self, e: ast.expr) -> Any:
        if isinstance(e, ast.Constant):
            return {bool: types.boolean, int: types.int64, float: types.float64}[type(e.value)]
        if isinstance(e, ast.Name):
            return self.env[e.id]
        if isinstance(e, ast.BinOp):
            if isinstance(e.op, ast.Pow) and whole_exponent(e) is not None:
                return self._square(e)
            return self._resolve(
                e, OPERATORS[type(e.op)], [self.type_of(e.left), self.type_of(e.right)]
            )
        if isinstance(e, ast.UnaryOp):
            return self._resolve(e, OPERATORS[type(e.op)], [self.type_of(e.operand)])
        if isinstance(e, ast.Compare):
            pair = [self.type_of(e.left), self.type_of(e.comparators[0])]
            return self._resolve(e, OPERATORS[type(e.ops[0])], pair)
        if isinstance(e, ast.BoolOp):
            if any(self.type_of(x) != types.boolean for x in e.values):
                raise NestError("`and` of others than bools")
            return types.boolean
        if isinstance(e, ast.IfExp):
            self.type_of(e.test)
            sides = [self.type_of(e.body), self.type_of(e.orelse)]
            unified = self.typing.unify_types(*sides)
            if unified is None or isinstance(unified, types.Array):
                raise NestError(f"a choice of {sides}")
            return unified
        if isinstance(e, ast.Attribute):
            return self._attribute(e)
        if isinstance(e, ast.Subscript):
            return self._item(e)
        if isinstance(e, ast.Call):
            return self._resolve(e, function_of(self.nest, e), [self._argument(x) for x in e.args])
        if isinstance(e, ast.Tuple):
            return types.Tuple([self.type_of(x) for x in e.elts])
        raise NestError(type(e).__name__)

    def _argument(self, e: ast.expr) -> Any:
        """The type of an argument; that of an int literal includes its value."""
        t = self.type_of(e)
        if isinstance(e, ast.Constant) and t == types.int64:
            t = self.of[e] = types.literal(e.value)
        return t

    def _square(self, e: ast.BinOp) -> Any:
        """The type of a small power, which is a product."""
        t = self.type_of(e.left)
        return self._resolve(e, operator.mul, [t, t])

    def _attribute(self, e: ast.Attribute) -> Any:
        if isinstance(e.value, ast.Name) and e.value.id in self.nest.functions:
            value = getattr(self.nest.functions[e.value.id], e.attr)
            return types.float64 if isinstance(value, float) else types.int64
        t = self.type_of(e.value)
        if isinstance(t, types.Array):
            if e.attr == "shape":
                return types.UniTuple(types.int64, t.ndim)
            if e.attr == "size":
                return types.int64
        if isinstance(t, types.Complex) and e.attr in ("real", "imag"):
            return t.underlying_float
        if isinstance(t, (types.Float, types.Integer)) and e.attr == "real":
            return t
        raise NestError(f"the attribute {e.attr} of {t}")

    def _item(self, e: ast.Subscript) -> Any:
        t = self.type_of(e.value)
        if isinstance(t, types.BaseTuple):
            k = known_int(e.slice)
            if k is None:
                raise NestError("an element of a tuple that is not known")
            return t[k]
        if not isinstance(t, types.Array):
            raise NestError(f"an element of {t}")
        parts = index_parts(e)
        for part in parts:
            for x in (part.lower, part.upper) if isinstance(part, ast.Slice) else (part,):
                if x is not None and not isinstance(self.type_of(x), types.Integer):
                    raise NestError(f"the index {ast.unparse(part)}")
        if len(parts) > t.ndim:
            raise NestError("too many indices")
        rank = t.ndim - sum(not isinstance(part, ast.Slice) for part in parts)
        if not rank:
            return t.dtype
        return t.copy(ndim=rank, layout=layout_of(t, parts))

    def _resolve(self, node: ast.AST, function: Any, given: Sequence[Any]) -> Any:
        """The type of a call; records which function and signature it resolves to."""
        known = self.typing.resolve_value_type(function)
        resolved = self.typing.resolve_function_type(known, tuple(given), {})
        if resolved is None:
            raise NestError(f"{function} of {given}")
        self.calls[node] = known, resolved
        if isinstance(resolved.return_type, types.Array):
            raise NestError(f"{function} returns an array")
        return types.unliteral(resolved.return_type)


def function_of(nest: Nest, e: ast.Call) -> Any:
    """The function that is called."""
    if isinstance(e.func, ast.Name):
        return nest.functions[e.func.id]
    assert isinstance(e.func, ast.Attribute)
    assert isinstance(e.func.value, ast.Name)
    return getattr(nest.functions[e.func.value.id], e.func.attr)


def index_parts(e: ast.Subscript) -> list[ast.expr]:
    """An index as a list with an item per axis."""
    return list(e.slice.elts) if isinstance(e.slice, ast.Tuple) else [e.slice]


def whole_exponent(e: ast.BinOp) -> int | None:
    """The exponent of a square or a cube, or None; Numba writes these as products, too."""
    n = known_int(e.right)
    return n if n in (2, 3) else None


def layout_of(held: Any, parts: Sequence[ast.expr]) -> str:
    """The layout of a view: after ints and at most one partial slice the order is kept.

    In Fortran order that is counted from the last axis. One-dimensional results are in C order.
    """
    given = [*parts, *[ast.Slice()] * (held.ndim - len(parts))]
    rest = given if held.layout == "C" else given[::-1] if held.layout == "F" else []
    while rest and not isinstance(rest[0], ast.Slice):
        rest = rest[1:]
    whole = all(isinstance(p, ast.Slice) and p.lower is None and p.upper is None for p in rest[1:])
    if not rest or not whole:
        return "A"
    return "C" if len(rest) == 1 else str(held.layout)


def agrees(found: Any, wanted: Type) -> bool:
    """Whether Numba's type agrees with the tape's."""
    if isinstance(wanted, ArrayType):
        if not isinstance(found, types.Array) or found.ndim != wanted.ndim:
            return False
        return bool(found.dtype == from_dtype(wanted.dtype))
    if isinstance(found, types.Literal):
        found = found.literal_type
    if isinstance(found, types.Omitted):
        return True
    if wanted.dtype.kind == "i" and isinstance(found, types.Integer):
        return bool(found.bitwidth == wanted.dtype.itemsize * 8)
    return bool(found == from_dtype(wanted.dtype))
