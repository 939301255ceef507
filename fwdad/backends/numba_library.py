"""What LLVM does with a program: its passes once, those of its second level.

Numba runs LLVM's passes over each function alone, then over the whole module. Of a program, one
large function and the loops cut out of it, the first round only does what the second does again.
Importing this module needs Numba.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding as llvm
from numba.core import config
from numba.core.codegen import JITCodeLibrary

_LEVEL = 2  # beyond it, a loop is copied for each condition that stays the same in it


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """The code of one program."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the module's passes."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Inline what must be, then all of LLVM's passes; references are counted less in both.

        Loops are turned, so that they test at their end, before anything else is done: else LLVM
        makes vectors of fewer of them later.
        """
        machine, module = self._codegen._tm, self._final_module
        for level in (0, min(_LEVEL, int(config.OPT))):
            options = llvm.create_pipeline_tuning_options(speed_level=level)
            options.loop_vectorization = bool(level and config.LOOP_VECTORIZE)
            options.slp_vectorization = bool(level and config.SLP_VECTORIZE)
            builder = llvm.create_pass_builder(machine, options)
            passes = builder.getModulePassManager()
            if not level:
                passes.add_loop_rotate_pass()
                passes.add_instruction_combine_pass()
                passes.add_jump_threading_pass()
            passes.add_refprune_pass()
            passes.run(module, builder)


def new_library(codegen: Any, name: str) -> Any:
    """An empty library for a program, which can be written to the disk later."""
    knows = hasattr(llvm, "create_pass_builder")  # LLVM's new pass managers
    ours = knows and config.LLVM_REFPRUNE_PASS and config.OPT != 0
    made = _Library(codegen, name) if ours else codegen.create_library(name)
    made.enable_object_caching()
    return made
