"""What LLVM does with a program: its passes once, those of its second level.

Numba runs LLVM's passes over each function alone, then over the whole module. Of a program, one
large function and the loops cut out of it, the first round only does what the second does again.
Importing this module needs Numba.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import binding as llvm
from numba.core import config
from numba.core.codegen import JITCodeLibrary

_LEVEL = 2  # beyond it, a loop is copied for each condition that stays the same in it


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """The code of one program.

    Functions of other libraries that it calls become its own: LLVM drops those that it has written
    into their callers, and no other process can take another function for one of them.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._names: set[str] = set()

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the module's passes; what is defined here keeps its name."""
        ll_module.data_layout = self._codegen._data_layout
        self._names.update(f.name for f in ll_module.functions if not f.is_declaration)

    def _get_module_for_linking(self) -> Any:
        """What callers are linked with: the module itself, whose machine code has been made."""
        self._ensure_finalized()
        for f in visible(self._final_module, ()):
            if f.linkage == llvm.Linkage.external:
                f.linkage = llvm.Linkage.linkonce_odr
        return self._final_module

    def _optimize_final_module(self) -> None:
        """Inline what must be, then all of LLVM's passes; references are counted less in both.

        Loops are turned, so that they test at their end, before anything else is done: else LLVM
        makes vectors of fewer of them later.
        """
        machine, module = self._codegen._tm, self._final_module
        hide(module, self._names)
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


def visible(module: Any, kept: Iterable[str]) -> list[Any]:
    """The functions but some that others could call.

    Those of Numba's run time are the same everywhere, and are left out.
    """
    return [
        f
        for f in module.functions
        if not f.is_declaration
        and f.name not in kept
        and not f.name.startswith("NRT_")
        and f.linkage not in (llvm.Linkage.internal, llvm.Linkage.private)
    ]


def hide(module: Any, kept: Iterable[str]) -> bool:
    """Make them internal; answer whether there were any."""
    found = visible(module, kept)
    for f in found:
        f.linkage = llvm.Linkage.internal
    return bool(found)


def new_library(codegen: Any, name: str) -> Any:
    """An empty library for a program, which can be written to the disk later."""
    knows = hasattr(llvm, "create_pass_builder")  # LLVM's new pass managers
    ours = knows and config.LLVM_REFPRUNE_PASS and config.OPT != 0
    made = _Library(codegen, name) if ours else codegen.create_library(name)
    made.enable_object_caching()
    return made
