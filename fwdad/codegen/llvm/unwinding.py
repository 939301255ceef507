"""Functions that drop the references of their variables where they raise.

Numba's own lose those that are alive where a function that they call has raised: each such call
would leak the arrays it has made. Importing this module needs Numba.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from numba.core import cgutils
from numba.core.callconv import RETCODE_NONE, RETCODE_OK
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering

from fwdad.codegen.llvm.checks import OWNERS
from fwdad.codegen.llvm.optimisation import new_library

_OWNING: dict[Any, bool] = {}
_RETURNED = (RETCODE_OK.constant, RETCODE_NONE.constant)  # codes of functions that have not raised


class UnwindingLower(Lower):  # type: ignore[misc]
    """Numba's lowering, but where a function raises, it drops the references of its variables."""

    listed: Mapping[str, int] = {}
    """The variables whose references :meth:`drop_listed` drops."""

    def setup_function(self, fndesc: Any) -> None:
        """Begin the function."""
        super().setup_function(fndesc)
        setattr(self.builder, OWNERS, set())
        self._ages: dict[str, int] = {}
        unwinding: dict[tuple[str, ...], Any] = {}
        write_return = self.builder.ret

        def unwind(owners: tuple[str, ...]) -> Any:
            """The block that drops the youngest of these, then the others, and leaves.

            What is freed in the opposite order of its creation shares all but one of its blocks.
            """
            if owners not in unwinding:
                block = unwinding[owners] = self.builder.append_basic_block("unwinds")
                with self.builder.goto_block(block):
                    if owners:
                        youngest = owners[-1]
                        self.decref(self.typeof(youngest), self.loadvar(youngest))
                        self.builder.branch(unwind(owners[:-1]))
                    else:
                        self.drop_listed()
                        write_return(self.builder.load(raised))
            return unwinding[owners]

        def ret(code: Any) -> Any:
            returned = getattr(code, "constant", None) in _RETURNED
            if returned or not (self._owners or self.listed):
                return write_return(code)
            self.builder.store(code, raised)
            return self.builder.branch(
                unwind(tuple(sorted(self._owners, key=self._ages.__getitem__)))
            )

        raised = cgutils.alloca_once(self.builder, RETCODE_OK.type)
        self.builder.ret = ret

    def pre_block(self, block: Any) -> None:
        """Begin a block of statements."""
        super().pre_block(block)
        live = self.func_ir.variable_lifetime.livemap[self._starts[id(block)]]
        kept = live & self.varmap.keys()  # others are local to a block
        owners = {name for name in kept if self.owns(name)}
        setattr(self.builder, OWNERS, owners)

    @property
    def _owners(self) -> set[str]:
        """The variables that may own memory where code is written now."""
        owners: set[str] = getattr(self.builder, OWNERS)
        return owners

    @functools.cached_property
    def _starts(self) -> dict[int, int]:
        """Where each block begins."""
        return {id(block): start for start, block in self.blocks.items()}

    def owns(self, name: str) -> bool:
        """Whether a variable may own memory, of which no list knows."""
        return self.counts(self.typeof(name))

    def drop_listed(self) -> None:
        """Write the code that drops the references of the listed variables."""

    def counts(self, t: Any) -> bool:
        """Whether a value of a type may own memory."""
        known = _OWNING.get(t)
        if known is None:
            known = _OWNING[t] = self.context.data_model_manager[t].contains_nrt_meminfo()
        return known

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """Assign to a variable."""
        super().storevar(value, name, argidx)
        if self.owns(name):
            self._owners.add(name)
            self._ages.setdefault(name, len(self._ages))

    def delvar(self, name: str) -> None:
        """Delete a variable."""
        super().delvar(name)
        self._owners.discard(name)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(BaseNativeLowering):  # type: ignore[misc]
    _name = "fwdad_unwinding_lowering"

    @property
    def lowering_class(self) -> Any:
        """The class that writes LLVM code."""
        return UnwindingLower

    def run_pass(self, state: Any) -> bool:
        """Write the code, for passes that know what it drops where it raises."""
        state.library = new_library(state.targetctx.codegen(), state.func_id.func_qualname)
        done: bool = super().run_pass(state)
        return done


class UnwindingCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler, for functions that are written by hand."""

    def define_pipelines(self) -> list[Any]:
        """Numba's passes, but for the last."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes[:] = [
            (_Lowering if each is NativeLowering else each, name) for each, name in pipeline.passes
        ]
        pipeline.finalize()
        return [pipeline]
