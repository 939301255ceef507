"""Lowers statements of a program to LLVM code, where Numba's own lowering takes longer.

The semantics are Numba's. Importing this module needs Numba.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils, ir
from numba.core import types as _types
from numba.core.errors import LoweringError

from fwdad.codegen.boxing import with_result_type
from fwdad.codegen.llvm import blas, elements, reshaping
from fwdad.codegen.llvm.allocation import copied, lengths_of
from fwdad.codegen.llvm.blas import ProductType
from fwdad.codegen.llvm.checks import say_where
from fwdad.codegen.llvm.nests.code import NestType, write_call
from fwdad.codegen.llvm.nests.expressions import implementation
from fwdad.codegen.llvm.unwinding import UnwindingLower
from fwdad.codegen.loops.array_provenance import Arrays, Given, met
from fwdad.codegen.numba_support import CHECK_BOUNDS

types: Any = _types

OWNER_TYPE = types.MemInfoPointer(types.voidptr)
"""The type of what counts the references to memory."""

_NUMBERS = (types.Integer, types.Float, types.Complex, types.Boolean)
_POWERS = (operator.pow, operator.ipow)

INNER = "__fwdad_inner__"
"""The attribute of a function that names the indices that need no check."""
APART = "__fwdad_apart__"
"""The attribute of a function that names the parameters that share memory with no other."""


class ProgramLower(UnwindingLower):
    """Writes LLVM code; each element access has at most one check."""

    _known: dict[Any, list[Given]] | None = None  # facts about the arguments of nests

    def create_cpython_wrapper(self, release_gil: bool = False) -> Any:
        """Create the wrapper that Python calls."""
        self.context.create_cpython_wrapper(
            self.library,
            with_result_type(self.fndesc),
            self.env,
            self.call_helper,
            release_gil=release_gil,
        )

    def incref(self, typ: Any, val: Any) -> None:
        """Add a reference; does nothing for types that own no memory."""
        self._count(self.context.nrt.incref, typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        """Drop a reference; does nothing for types that own no memory."""
        self._count(self.context.nrt.decref, typ, val)

    def _count(self, how: Any, t: Any, value: Any) -> None:
        if isinstance(t, types.Array):
            owner = elements.owner_of(self.context, self.builder, t, value)
            how(self.builder, OWNER_TYPE, owner)
        elif self.counts(t):
            how(self.builder, t, value)

    def alloca_lltype(self, name: str, lltype: Any, **_: Any) -> Any:
        """Allocate a variable, without the debug information that would need its size."""
        return cgutils.alloca_once(self.builder, lltype, name=name)

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """Assign to a variable."""
        t = self.typeof(name)
        counts = self.counts(t)
        if name in self._singly_assigned_vars or argidx is not None or counts:
            super().storevar(value, name, argidx)
        else:  # there is nothing to free
            self._alloca_var(name, t)
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Delete a variable."""
        if self.counts(self.typeof(name)):
            super().delvar(name)

    def lower_inst(self, inst: Any) -> Any:
        """Lower a statement; Numba's own method formats each as text first."""
        if CHECK_BOUNDS:
            say_where(self.builder, self.loc.line)
        if isinstance(inst, ir.Del):
            return self.delvar(inst.value)
        if isinstance(inst, ir.Assign) and not isinstance(inst.value, ir.Arg):
            name = inst.target.name
            return self.storevar(self.lower_assign(self.typeof(name), inst), name)
        if isinstance(inst, (ir.SetItem, ir.StaticSetItem)):
            static = isinstance(inst, ir.StaticSetItem)
            index = self._index(inst.target, inst.index, static=static)
            if index is not None:
                array_type = self.typeof(inst.target.name)
                array = self.loadvar(inst.target.name)
                value = self.context.cast(
                    self.builder,
                    self.loadvar(inst.value.name),
                    self.typeof(inst.value.name),
                    array_type.dtype,
                )
                parts = elements.held(self.context, self.builder, array_type, array)
                place = elements.element(self.context, self.builder, parts, index)
                elements.store_item(self.context, self.builder, array_type, value, place)
                return None
        return super().lower_inst(inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Lower an expression."""
        made = None
        if expr.op == "call":
            made = self._call(resty, expr)
        elif expr.op in ("getitem", "static_getitem"):
            made = self._item(resty, expr)
        elif expr.op == "getattr":
            made = self._attribute(resty, expr)
        return super().lower_expr(resty, expr) if made is None else made

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """Lower an operator; of two numbers, only powers need to know whether one is constant."""
        given = [expr.lhs, expr.rhs]
        kinds = [self.typeof(x.name) for x in given]
        if op in _POWERS or not all(isinstance(t, _NUMBERS) for t in kinds):
            return super().lower_binop(resty, expr, op)
        signature = self.fndesc.calltypes[expr]
        function = self.context.typing_context.resolve_value_type(op)
        values = [
            self.context.cast(self.builder, self.loadvar(x.name), t, wanted)
            for x, t, wanted in zip(given, kinds, signature.args, strict=True)
        ]
        made = implementation(self.context, function, signature)(self.builder, values)
        return self.context.cast(self.builder, made, signature.return_type, resty)

    def _call(self, resty: Any, expr: Any) -> Any:
        """Lower a call of a function that is written here; None for others."""
        called = self.typeof(expr.func.name)
        if isinstance(called, NestType):
            return self._nest(resty, expr)
        if isinstance(called, ProductType):
            return self._product(resty, expr)
        if isinstance(called, types.Function) and called.typing_key is slice:
            return self._slice(resty, expr)
        if isinstance(called, types.BoundFunction):
            signature, array = self.fndesc.calltypes[expr], self.loadvar(expr.func.name)
            result = self._method(called.typing_key, signature, array, expr.args)
            if result is not None:
                return self.context.cast(self.builder, result, signature.return_type, resty)
        return None

    def _method(self, name: str, signature: Any, array: Any, args: Any) -> Any:
        """What a method of an array returns, or None if it is left to Numba."""
        given = self.context, self.builder, signature.recvr, array
        if name == "array.copy":
            return copied(*given)
        if len(args) != 1:
            return None
        if name == "array.transpose":
            order = self._known_ints(args[0])
            if order is not None:
                return reshaping.transposed(*given, order, signature.return_type)
        elif name == "array.reshape":
            if signature.recvr.layout == "F" and signature.recvr.ndim > 1:
                message = "reshape of a Fortran-contiguous array"  # Numba's is wrong
                raise LoweringError(message)
            if signature.recvr.layout != "C":
                return None
            t, value = self.typeof(args[0].name), self.loadvar(args[0].name)
            if isinstance(t, types.BaseTuple):
                lengths = lengths_of(self.context, self.builder, t, value)
            else:
                lengths = [self.context.cast(self.builder, value, t, types.intp)]
            return reshaping.reshaped(*given, lengths, signature.return_type)
        return None

    def _item(self, resty: Any, expr: Any) -> Any:
        """An element of an array or a view of it, or an item of a tuple; None if left to Numba."""
        static = expr.op == "static_getitem"
        array_type = self.typeof(expr.value.name)
        if static and isinstance(array_type, types.UniTuple) and type(expr.index) is int:
            array_value = self.loadvar(expr.value.name)
            item = self.builder.extract_value(array_value, expr.index % len(array_type))
            made = self.context.cast(self.builder, item, array_type.dtype, resty)
            self.incref(resty, made)
            return made
        index = self._index(expr.value, expr.index, static=static)
        if index is not None:
            array = self.loadvar(expr.value.name)
            parts = elements.held(self.context, self.builder, array_type, array)
            place = elements.element(self.context, self.builder, parts, index)
            item = elements.load_item(self.context, self.builder, array_type, place)
            return self.context.cast(self.builder, item, array_type.dtype, resty)
        view = self._view(array_type, expr.index, static=static)
        if view is not None and isinstance(resty, types.Array):
            array = self.loadvar(expr.value.name)
            parts = elements.held(self.context, self.builder, array_type, array)
            made = elements.view(self.context, self.builder, parts, view, resty)
            return elements.as_view(self.context, self.builder, made, array_type, array)
        return None

    def _attribute(self, resty: Any, expr: Any) -> Any:
        """The shape, size or transpose of an array; None for other attributes."""
        t = self.typeof(expr.value.name)
        if not isinstance(t, types.Array) or expr.attr not in ("shape", "size", "T"):
            return None
        array = self.loadvar(expr.value.name)
        model = self.context.data_model_manager[t]
        if expr.attr == "size":
            return model.get(self.builder, array, "nitems")
        if expr.attr == "shape":
            return model.get(self.builder, array, "shape")
        parts = elements.held(self.context, self.builder, t, array)
        steps = elements.own_steps(self.context, self.builder, t, array)
        transposed = elements.Held(resty, parts.data, parts.lengths[::-1], steps[::-1])
        return elements.as_view(self.context, self.builder, transposed, t, array)

    def _slice(self, resty: Any, expr: Any) -> Any:
        """A slice without a step, or None: Numba tests the sign even of a step that is missing."""
        signature = self.fndesc.calltypes[expr]
        if len(expr.args) != 2 or expr.kws or signature.return_type.has_step:
            return None
        model = self.context.data_model_manager[signature.return_type]
        struct = cgutils.get_null_value(model.get_value_type())
        ends = zip(("start", "stop"), expr.args, signature.args, (0, 2**63 - 1), strict=True)
        for name, end, t, open_end in ends:
            value = self.context.get_constant(types.intp, open_end)
            if t != types.none:
                value = self.loadvar(end.name)
                value = self.context.cast(self.builder, value, self.typeof(end.name), types.intp)
            struct = model.set(self.builder, struct, value, name)
        struct = model.set(self.builder, struct, self.context.get_constant(types.intp, 1), "step")
        return self.context.cast(self.builder, struct, signature.return_type, resty)

    def _product(self, resty: Any, expr: Any) -> Any:
        """Lower a call of ``np.dot``."""
        signature = self.fndesc.calltypes[expr]
        if expr.kws or not blas.fits(signature.args):
            made = self._lower_call_normal(blas.plain(self.context.typing_context), expr, signature)
        else:
            operands = [self.loadvar(a.name) for a in expr.args]
            made = blas.product(self.context, self.builder, signature, operands)
        return self.context.cast(self.builder, made, signature.return_type, resty)

    def _nest(self, resty: Any, expr: Any) -> Any:
        """Lower the call of a nest that was cut out."""
        signature = self.fndesc.calltypes[expr]
        casted = [
            self.context.cast(self.builder, self.loadvar(a.name), self.typeof(a.name), t)
            for a, t in zip(expr.args, signature.args, strict=True)
        ]
        nest = self.typeof(expr.func.name).nest
        known = self._known_of_nests()[nest, signature.args]
        results = write_call(self.context, self.builder, nest, signature, casted, known)
        return self.context.cast(self.builder, results, signature.return_type, resty)

    def _known_of_nests(self) -> dict[Any, list[Given]]:
        """What is known of the arguments of each nest at all its calls."""
        if self._known is None:
            apart = vars(self.func_ir.func_id.func).get(APART, ())
            arrays = Arrays(self.func_ir.blocks.values(), self.typeof, apart)
            calls: dict[Any, list[list[Given]]] = {}
            for block in self.func_ir.blocks.values():
                for call in block.find_exprs("call"):
                    called = self.typeof(call.func.name)
                    if isinstance(called, NestType):
                        key = called.nest, self.fndesc.calltypes[call].args
                        given = arrays.given([a.name for a in call.args])
                        calls.setdefault(key, []).append(given)
            self._known = {key: met(each) for key, each in calls.items()}
        return self._known

    def _view(self, array_type: Any, index: Any, *, static: bool) -> list[Any] | None:
        """The index of a view, as :func:`.elements.view` takes it, or None."""
        if not isinstance(array_type, types.Array):
            return None
        if static:
            items = index if isinstance(index, tuple) else (index,)
            parts_of_index = [_known_part(i) for i in items]
            return parts_of_index if all(part is not None for part in parts_of_index) else None
        held, made = self.loadvar(index.name), self.made_of(index)
        if not isinstance(self.typeof(index.name), types.BaseTuple):
            part = self._part(index, held)
            return None if part is None else [part]
        if not (isinstance(made, ir.Expr) and made.op == "build_tuple"):
            return None
        parts_of_index = [
            self._part(item, elements.item_of(self.builder, held, k))
            for k, item in enumerate(made.items)
        ]
        return parts_of_index if all(part is not None for part in parts_of_index) else None

    def _part(self, item: Any, held: Any) -> Any:
        """One axis of such an index, from its LLVM value; None if it has no such form."""
        t, made = self.typeof(item.name), self.made_of(item)
        if isinstance(made, (ir.Const, ir.Global, ir.FreeVar)):
            return _known_part(made.value)
        if isinstance(t, types.Integer):
            return t, held, self._is_inner(item)
        if not isinstance(t, types.SliceType) or t.has_step:
            return None
        if not (isinstance(made, ir.Expr) and made.op == "call" and len(made.args) == 2):
            return None
        model = self.context.data_model_manager[t]
        ends = []
        for end, name in zip(made.args, ("start", "stop"), strict=True):
            end_type = self.typeof(end.name)
            if not (isinstance(end_type, types.Integer) or end_type == types.none):
                return None
            is_open = end_type == types.none
            ends.append(None if is_open else (types.intp, model.get(self.builder, held, name)))
        return elements.Part(*ends)

    def _index(self, array: Any, index: Any, *, static: bool) -> Any:
        """The index of one element, as :func:`.elements.element` takes it, or None."""
        array_type = self.typeof(array.name)
        if not isinstance(array_type, types.Array) or not array_type.ndim:
            return None
        if static:
            items = index if isinstance(index, tuple) else (index,)
            known = all(type(i) is int for i in items) and len(items) == array_type.ndim
            return [(None, i, False) for i in items] if known else None
        t = self.typeof(index.name)
        parts = list(t) if isinstance(t, types.BaseTuple) else [t]
        if len(parts) != array_type.ndim or not all(isinstance(p, types.Integer) for p in parts):
            return None
        loaded = self.loadvar(index.name)
        if not isinstance(t, types.BaseTuple):
            return [(t, loaded, self._is_inner(index))]
        values = [elements.item_of(self.builder, loaded, k) for k in range(len(parts))]
        definition = self.made_of(index)
        if isinstance(definition, ir.Expr) and definition.op == "build_tuple":
            inner = [self._is_inner(item) for item in definition.items]
        else:
            inner = [False] * len(parts)
        return list(zip(parts, values, inner, strict=True))

    def made_of(self, variable: Any) -> Any:
        """The right-hand side of the only assignment to a variable, or None."""
        definitions = self.func_ir._definitions.get(variable.name, ())
        return definitions[0] if len(definitions) == 1 else None

    def _constant(self, variable: Any) -> Any:
        """The constant value of a variable, or None."""
        definition = self.made_of(variable)
        return (
            definition.value if isinstance(definition, (ir.Const, ir.Global, ir.FreeVar)) else None
        )

    def _known_ints(self, variable: Any) -> list[int] | None:
        """The ints of a constant tuple, or None."""
        definition = self.made_of(variable)
        if not (isinstance(definition, ir.Expr) and definition.op == "build_tuple"):
            return None
        constants = [self._constant(item) for item in definition.items]
        return [k for k in constants if type(k) is int] if None not in constants else None

    def _is_inner(self, index: Any) -> bool:
        """Whether an index is a counter of a loop before which all lengths have been compared."""
        names = vars(self.func_ir.func_id.func).get(INNER, ())
        while isinstance(index, ir.Var):
            if index.name.partition(".")[0] in names:
                return True
            index = self.made_of(index)
        if isinstance(index, ir.Expr) and index.op == "binop":
            if index.fn is operator.mul:  # a step keeps it inside
                return self._is_inner(index.lhs) and self._is_inner(index.rhs)
            added = self._constant(index.rhs)
            if index.fn is operator.add and type(added) is int:
                return f"{index.lhs.name.partition('.')[0]} + {added}" in names
        return False


def _known_part(item: Any) -> Any:
    """A constant item of an index, or None if views do not support it."""
    if item is None:
        return elements.NEW_AXIS
    if type(item) is int:
        return None, item, False
    if isinstance(item, slice) and item.step is None:
        ends = (item.start, item.stop)
        if all(end is None or type(end) is int for end in ends):
            return elements.Part(*(None if end is None else (None, end) for end in ends))
    return None
