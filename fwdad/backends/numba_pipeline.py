"""How Numba compiles a program: its own passes, with our arrays and our access to elements.

What is written means what NumPy means; only the way there is shorter. Importing this module needs
Numba.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba.core import ir
from numba.core import types as _types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering
from numba.core.untyped_passes import IRProcessing

from fwdad.backends import numba_elements, numba_products
from fwdad.backends.handing_back import answered
from fwdad.backends.nest_code import NestType, write_call
from fwdad.backends.numba_library import new_library
from fwdad.backends.numba_memory import REPLACED
from fwdad.backends.numba_products import Product, ProductType

types: Any = _types


_OURS = REPLACED | {np.dot: Product()}


@register_pass(mutates_CFG=False, analysis_only=False)
class _OwnFunctions(FunctionPass):
    """Let ``np.zeros`` and the like be ours."""

    _name = "fwdad_own_functions"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Replace what is read of the module; whether something was."""
        replaced = {}
        for block in state.func_ir.blocks.values():
            assigned = list(block.find_insts(ir.Assign))
            modules = {
                s.target.name
                for s in assigned
                if isinstance(s.value, ir.Global) and s.value.value is np
            }
            for s in assigned:
                e = s.value
                if isinstance(e, ir.Expr) and e.op == "getattr" and e.value.name in modules:
                    ours = _OURS.get(getattr(np, e.attr))
                    if ours is not None:
                        replaced[e] = s.value = ir.Global(e.attr, ours, e.loc)
        if replaced:
            for found in state.func_ir._definitions.values():
                found[:] = [replaced.get(e, e) if isinstance(e, ir.Expr) else e for e in found]
        return bool(replaced)


INNER = "__fwdad_inner__"
"""The attribute of a function that names the indices that need no check."""


class _Lower(Lower):
    """Writes LLVM code; elements of arrays are read and written with at most one check each."""

    def create_cpython_wrapper(self, release_gil: bool = False) -> Any:
        """The function that Python calls."""
        self.context.create_cpython_wrapper(
            self.library, answered(self.fndesc), self.env, self.call_helper, release_gil=release_gil
        )

    def lower_inst(self, inst: Any) -> Any:
        """A statement."""
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
                parts = numba_elements.held(self.context, self.builder, array_type, array)
                place = numba_elements.element(self.context, self.builder, parts, index)
                numba_elements.store_item(self.context, self.builder, array_type, value, place)
                return None
        return super().lower_inst(inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """An expression."""
        if expr.op == "call" and isinstance(self.typeof(expr.func.name), NestType):
            return self._nest(resty, expr)
        if expr.op == "call" and isinstance(self.typeof(expr.func.name), ProductType):
            return self._product(resty, expr)
        if expr.op in ("getitem", "static_getitem"):
            static = expr.op == "static_getitem"
            array_type = self.typeof(expr.value.name)
            index = self._index(expr.value, expr.index, static=static)
            if index is not None:
                array = self.loadvar(expr.value.name)
                parts = numba_elements.held(self.context, self.builder, array_type, array)
                place = numba_elements.element(self.context, self.builder, parts, index)
                item = numba_elements.load_item(self.context, self.builder, array_type, place)
                return self.context.cast(self.builder, item, array_type.dtype, resty)
            window = self._window(array_type, expr.index, static=static)
            if window is not None and isinstance(resty, types.Array):
                array = self.loadvar(expr.value.name)
                parts = numba_elements.held(self.context, self.builder, array_type, array)
                made = numba_elements.window(self.context, self.builder, parts, window, resty)
                owner = (array_type, array)
                return numba_elements.as_array(self.context, self.builder, made, owner)
        return super().lower_expr(resty, expr)

    def _product(self, resty: Any, expr: Any) -> Any:
        """A call of ``np.dot``."""
        signature = self.fndesc.calltypes[expr]
        if expr.kws or not numba_products.fits(signature.args):
            made = self._lower_call_normal(
                numba_products.plain(self.context.typing_context), expr, signature
            )
        else:
            given = [self.loadvar(a.name) for a in expr.args]
            made = numba_products.product(self.context, self.builder, signature, given)
        return self.context.cast(self.builder, made, signature.return_type, resty)

    def _nest(self, resty: Any, expr: Any) -> Any:
        """The call of a loop that was cut out."""
        signature = self.fndesc.calltypes[expr]
        given = [
            self.context.cast(self.builder, self.loadvar(a.name), self.typeof(a.name), t)
            for a, t in zip(expr.args, signature.args, strict=True)
        ]
        nest = self.typeof(expr.func.name).nest
        made = write_call(self.context, self.builder, nest, signature, given)
        return self.context.cast(self.builder, made, signature.return_type, resty)

    def _window(self, array_type: Any, index: Any, *, static: bool) -> list[Any] | None:
        """The index of a window, as :func:`numba_elements.window` takes it, or None."""
        if not isinstance(array_type, types.Array):
            return None
        if static:
            items = index if isinstance(index, tuple) else (index,)
            found = [_known_part(i) for i in items]
            return found if all(part is not None for part in found) else None
        held, made = self.loadvar(index.name), self._made_of(index)
        if not isinstance(self.typeof(index.name), types.BaseTuple):
            part = self._part(index, held)
            return None if part is None else [part]
        if not (isinstance(made, ir.Expr) and made.op == "build_tuple"):
            return None
        found = [
            self._part(item, self.builder.extract_value(held, k))
            for k, item in enumerate(made.items)
        ]
        return found if all(part is not None for part in found) else None

    def _part(self, item: Any, held: Any) -> Any:
        """One axis of such an index, whose LLVM value is held."""
        t, made = self.typeof(item.name), self._made_of(item)
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
            given = self.typeof(end.name)
            if not (isinstance(given, types.Integer) or given == types.none):
                return None
            is_open = given == types.none
            ends.append(None if is_open else (types.intp, model.get(self.builder, held, name)))
        return numba_elements.Part(*ends)

    def _index(self, array: Any, index: Any, *, static: bool) -> Any:
        """The index of one element, as :func:`numba_elements.element` takes it, or None."""
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
        held = self.loadvar(index.name)
        if not isinstance(t, types.BaseTuple):
            return [(t, held, self._is_inner(index))]
        values = [self.builder.extract_value(held, k) for k in range(len(parts))]
        made = self._made_of(index)
        if isinstance(made, ir.Expr) and made.op == "build_tuple":
            inner = [self._is_inner(item) for item in made.items]
        else:
            inner = [False] * len(parts)
        return list(zip(parts, values, inner, strict=True))

    def _made_of(self, variable: Any) -> Any:
        """What the only statement that assigns a variable assigns to it."""
        found = self.func_ir._definitions.get(variable.name, ())
        return found[0] if len(found) == 1 else None

    def _is_inner(self, index: Any) -> bool:
        """Whether an index is one of a loop before which all lengths have been compared."""
        names = vars(self.func_ir.func_id.func).get(INNER, ())
        while isinstance(index, ir.Var):
            if index.name.partition(".")[0] in names:
                return True
            index = self._made_of(index)
        if isinstance(index, ir.Expr) and index.op == "binop" and index.fn is operator.mul:
            return self._is_inner(index.lhs) and self._is_inner(index.rhs)  # a step keeps it inside
        return False


def _known_part(item: Any) -> Any:
    """An axis of an index that is written down, or None."""
    if type(item) is int:
        return None, item, False
    if isinstance(item, slice) and item.step is None:
        ends = (item.start, item.stop)
        if all(end is None or type(end) is int for end in ends):
            return numba_elements.Part(*(None if end is None else (None, end) for end in ends))
    return None


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(BaseNativeLowering):
    _name = "fwdad_lowering"

    @property
    def lowering_class(self) -> Any:
        """What writes LLVM code."""
        return _Lower

    def run_pass(self, state: Any) -> bool:
        """Write the code, and let LLVM compile it."""
        if state.library is None:
            codegen = state.targetctx.codegen()
            state.library = new_library(codegen, state.func_id.func_qualname)
        done: bool = super().run_pass(state)
        return done


_NOT_MET = {
    "DeadBranchPrune", "FindLiterallyCalls", "InlineClosureLikes", "InlineInlinables",
    "LiteralPropagationSubPipelinePass", "LiteralUnroll", "MakeFunctionToJitFunction",
    "NopythonRewrites", "ReconstructSSA", "RewriteSemanticConstants", "WithLifting",
}  # fmt: skip
"""Passes for what generated programs do not hold: closures, comprehensions, ``with``, branches on
types and literals, arithmetic of whole arrays; several analyse the program anew all the same. And
one for what they are anyway: a name has one type, so that each assignment needs no name of its own,
nor the copies, with a reference each, by which two of these meet."""


class ProgramCompiler(CompilerBase):
    """Numba's compiler for generated programs."""

    def define_pipelines(self) -> list[Any]:
        """Numba's passes, two of them ours."""
        made = DefaultPassBuilder.define_nopython_pipeline(self.state)
        made.passes[:] = [
            (_Lowering if each is NativeLowering else each, name)
            for each, name in made.passes
            if each.__name__ not in _NOT_MET
        ]
        made.add_pass_after(_OwnFunctions, IRProcessing)
        made.finalize()
        return [made]
