"""Numba's pass pipeline for programs, with our arrays and our element access.

The code means what NumPy means; only compilation is shorter. Importing this module needs Numba.
"""

from __future__ import annotations

import operator
from contextlib import nullcontext
from typing import Any

import numpy as np
from numba.core import ir
from numba.core import types as _types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import (
    BaseNativeLowering,
    BaseTypeInference,
    NativeLowering,
    NopythonTypeInference,
)
from numba.core.untyped_passes import IRProcessing

from fwdad.codegen.llvm import allocation, reshaping
from fwdad.codegen.llvm.blas import Product
from fwdad.codegen.llvm.long_functions import PART, LongLower, is_long, lent
from fwdad.codegen.llvm.lowering import ProgramLower
from fwdad.codegen.llvm.optimisation import new_library

types: Any = _types

_OURS = allocation.REPLACED | reshaping.REPLACED | {np.dot: Product()}


@register_pass(mutates_CFG=False, analysis_only=False)
class _OwnFunctions(FunctionPass):
    """Replaces ``np.zeros`` and the like by our functions."""

    _name = "fwdad_own_functions"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Replace attributes of the ``numpy`` module; returns whether any was replaced."""
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


@register_pass(mutates_CFG=False, analysis_only=False)
class _Arguments(FunctionPass):
    """Passes arguments one by one; Python packs more than thirty into a tuple."""

    _name = "fwdad_arguments"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Unpack the tuples; returns whether there were any."""
        unpacked: set[str] = set()
        for block in state.func_ir.blocks.values():
            for call in block.find_exprs("call"):
                if call.vararg is not None:
                    (packed,) = state.func_ir._definitions.pop(call.vararg.name)
                    unpacked.add(call.vararg.name)
                    call.args, call.vararg = list(packed.items), None
            block.body = [
                s
                for s in block.body
                if not (isinstance(s, ir.Assign) and s.target.name in unpacked)
            ]
        return bool(unpacked)


_SIGNATURES: dict[Any, Any] = {}
_UNKNOWN = object()


class _Typing:
    """Numba's typing context, which resolves each call or element access once.

    Types are inferred in rounds, until none is new, and each round asks for all calls again.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        ask = self._context.resolve_function_type
        if function is operator.getitem and isinstance(args[0], types.Array):
            return self._of_item(function, tuple(args), ask, kws)
        if kws or not isinstance(function, types.Function):
            return ask(function, args, kws)
        key = function, tuple(args)
        signature = _SIGNATURES.get(key)
        if signature is None:
            signature = ask(function, args, kws)
            if signature is not None:
                _SIGNATURES[key] = signature
        return signature

    def resolve_static_getitem(self, value: Any, index: Any) -> Any:
        """The signature of reading a constant index; for arrays its value does not matter."""
        return self._of_kind("resolve_static_getitem", value, index)

    def resolve_static_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """The signature of writing to a constant index."""
        return self._of_kind("resolve_static_setitem", target, index, value)

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """The signature of writing to an element or a view."""
        ask = self._context.resolve_setitem
        if not isinstance(target, types.Array):
            return ask(target, index, value)
        return self._of_item(operator.setitem, (target, index, value), lambda _, args: ask(*args))

    @staticmethod
    def _of_item(function: Any, args: tuple[Any, ...], ask: Any, *more: Any) -> Any:
        """A signature for elements and views, cached where it does not depend on constant indices.

        Where it does, its arguments differ from those without constants.
        """
        key = function, tuple(map(types.unliteral, args))
        signature = _SIGNATURES.get(key)
        if signature is None:
            signature = ask(function, args, *more)
            if signature is not None and signature.args == key[1]:
                _SIGNATURES[key] = signature
        return signature

    def _of_kind(self, name: str, target: Any, index: Any, *value: Any) -> Any:
        """What Numba returns for an array, and for a constant of the index's kind."""
        ask = getattr(self._context, name)
        if not isinstance(target, types.Array) or isinstance(index, str):
            return ask(target, index, *value)
        key = (name, target, type(index), *value)
        signature = _SIGNATURES.get(key, _UNKNOWN)
        if signature is _UNKNOWN:
            signature = _SIGNATURES[key] = ask(target, index, *value)
        return signature


@register_pass(mutates_CFG=True, analysis_only=False)
class _TypeInference(BaseTypeInference):
    _name = "fwdad_type_inference"

    def run_pass(self, state: Any) -> bool:
        """Infer the types."""
        context = state.typingctx
        state.typingctx = _Typing(context)
        try:
            done: bool = super().run_pass(state)
        finally:
            state.typingctx = context
        return done


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(BaseNativeLowering):
    _name = "fwdad_lowering"

    lowering_class: Any = ProgramLower
    """The class that writes LLVM code."""

    def run_pass(self, state: Any) -> bool:
        """Write the code, and let LLVM compile it."""
        is_part = PART in vars(state.func_id.func)
        self.lowering_class = LongLower if is_long(state.func_id.func) else ProgramLower
        if state.library is None:
            codegen = state.targetctx.codegen()
            state.library = new_library(codegen, state.func_id.func_qualname, is_part=is_part)
        state.flags.no_compile = is_part
        with lent(state) if is_part else nullcontext():
            done: bool = super().run_pass(state)
        if is_part:
            key = state.library.__reduce__  # a function, by which callers find it
            state.targetctx.insert_user_function(key, state.cr.fndesc, [state.library])
            state.cr = state.cr._replace(cfunc=key)
        return done


_NOT_MET = {
    "DeadBranchPrune", "FindLiterallyCalls", "InlineClosureLikes", "InlineInlinables",
    "LiteralPropagationSubPipelinePass", "LiteralUnroll", "MakeFunctionToJitFunction",
    "NopythonRewrites", "PreLowerStripPhis", "ReconstructSSA", "RewriteSemanticConstants",
    "WithLifting",
}  # fmt: skip
"""Passes for what generated programs do not hold: closures, comprehensions, ``with``, branches on
types and literals, arithmetic of whole arrays; several analyse the program anew all the same. And
those for what they are anyway: a name has one type, so that each assignment needs no name of its
own, nor the copies, with a reference each, by which two of these meet."""


_INSTEAD = {NativeLowering: _Lowering, NopythonTypeInference: _TypeInference}


class ProgramCompiler(CompilerBase):
    """Numba's compiler for generated programs."""

    def define_pipelines(self) -> list[Any]:
        """Numba's passes, some of them replaced by ours."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes[:] = [
            (_INSTEAD.get(each, each), name)
            for each, name in pipeline.passes
            if each.__name__ not in _NOT_MET
        ]
        pipeline.add_pass_after(_OwnFunctions, IRProcessing)
        pipeline.add_pass_after(_Arguments, IRProcessing)
        pipeline.finalize()
        return [pipeline]
