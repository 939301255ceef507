"""How Numba compiles a program: its own passes, with our arrays and our access to elements.

What is written means what NumPy means; only the way there is shorter. Importing this module needs
Numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import ir
from numba.core import types as _types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering
from numba.core.untyped_passes import IRProcessing

from fwdad.backends import numba_memory
from fwdad.backends.numba_memory import REPLACED

types: Any = _types


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
                    ours = REPLACED.get(getattr(np, e.attr))
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
                place = numba_memory.element(self.context, self.builder, array_type, array, index)
                numba_memory.store_item(self.context, self.builder, array_type, value, place)
                return None
        return super().lower_inst(inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """An expression."""
        if expr.op in ("getitem", "static_getitem"):
            index = self._index(expr.value, expr.index, static=expr.op == "static_getitem")
            if index is not None:
                array_type = self.typeof(expr.value.name)
                array = self.loadvar(expr.value.name)
                place = numba_memory.element(self.context, self.builder, array_type, array, index)
                item = numba_memory.load_item(self.context, self.builder, array_type, place)
                return self.context.cast(self.builder, item, array_type.dtype, resty)
        return super().lower_expr(resty, expr)

    def _index(self, array: Any, index: Any, *, static: bool) -> Any:
        """The index of one element, as :func:`numba_memory.element` takes it, or None."""
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
        return False


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(BaseNativeLowering):
    _name = "fwdad_lowering"

    @property
    def lowering_class(self) -> Any:
        """What writes LLVM code."""
        return _Lower


_NOT_MET = {
    "DeadBranchPrune", "FindLiterallyCalls", "InlineClosureLikes", "InlineInlinables",
    "LiteralPropagationSubPipelinePass", "LiteralUnroll", "MakeFunctionToJitFunction",
    "NopythonRewrites", "RewriteSemanticConstants", "WithLifting",
}  # fmt: skip
"""Passes for what generated programs do not hold: closures, comprehensions, ``with``, branches on
types and literals, arithmetic of whole arrays. Several analyse the program anew all the same."""


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
