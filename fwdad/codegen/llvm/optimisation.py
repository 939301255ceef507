"""LLVM's optimisation of a program: its passes run once, at the second level.

Numba runs LLVM's passes over each function alone, then over the whole module. For a program, one
large function and the loops cut out of it, the first round only does what the second does again.
Importing this module needs Numba.
"""

from __future__ import annotations

import faulthandler
import os
import re
import selectors
import signal
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

from llvmlite import binding as llvm
from numba.core import config
from numba.core.codegen import JITCodeLibrary

_OWN = "fwdad.own."
_HIDDEN = (llvm.Linkage.internal, llvm.Linkage.private)
_DYNAMIC = "numba.dynamic.globals"  # Numba's name for what cannot be cached
_COMPILED = "_ZN5numba"
_PATIENCE = 60.0  # seconds
_RUNS_DOWN = re.compile(r"store i64 -\d")  # a step of a slice
_PRUNED = llvm.RefPruneSubpasses
# one more takes it that what raises drops no references, but programs do (see unwinding.py)
_PRUNES = _PRUNED.PER_BB | _PRUNED.DIAMOND | _PRUNED.FANOUT
_LEVEL = 2  # beyond it, loops are unswitched on invariant conditions


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """The code of one program.

    Functions of other libraries that it calls become its own: LLVM drops those that it has inlined,
    and no other process can take another function for one of them.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._names: set[str] = set()
        self.contents = Contents([], [], [])

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave optimisation to the module's passes; functions defined here keep their names."""
        ll_module.data_layout = self._codegen._data_layout
        self._names.update(f.name for f in ll_module.functions if not f.is_declaration)

    def _get_module_for_linking(self) -> Any:
        """The module that callers are linked with: the final one, whose machine code exists."""
        self._ensure_finalized()
        for name in self.contents.visible:
            f = self._final_module.get_function(name)
            if f.linkage == llvm.Linkage.external:
                f.linkage = llvm.Linkage.linkonce_odr
        return self._final_module

    def _finalize_dynamic_globals(self) -> None:
        """List all that the module holds, once: each query of LLVM takes microseconds."""
        self.contents = contents_of(self._final_module)
        self._dynamic_globals += [n for n in self.contents.variables if n.startswith(_DYNAMIC)]

    def _verify_declare_only_symbols(self) -> None:
        """Raise if a function that Numba has compiled was not linked."""
        for name in self.contents.declared:
            if name.startswith(_COMPILED):
                raise AssertionError(f"Symbol {name} not linked properly")

    def _optimize_final_module(self) -> None:
        """Inline what must be inlined, then run all of LLVM's passes; both prune references.

        Loops are rotated first, so that they test at their end: else LLVM vectorises fewer of them.
        """
        machine, module = self._codegen._tm, self._final_module
        hide(module, self._names)
        runs_down = bool(config.LOOP_VECTORIZE and _RUNS_DOWN.search(str(module)))
        _run_passes(machine, module, 0)
        level = min(_LEVEL, int(config.OPT))
        if not runs_down:
            _run_passes(machine, module, level)
        elif (found := _in_child(lambda: _optimised(machine, module, level))) is not None:
            self._final_module: Any = llvm.parse_bitcode(found)
        else:
            _run_passes(machine, module, level, vectorizes=False)


def _optimised(machine: Any, module: Any, level: int) -> bytes:
    """The bitcode of a module after the passes of one level."""
    _run_passes(machine, module, level)
    found: bytes = module.as_bitcode()
    return found


def _run_passes(machine: Any, module: Any, level: int, *, vectorizes: bool = True) -> None:
    """Run LLVM's passes of one level over a module."""
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = bool(level and vectorizes and config.LOOP_VECTORIZE)
    options.slp_vectorization = bool(level and config.SLP_VECTORIZE)
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    if not level:
        passes.add_loop_rotate_pass()
        passes.add_instruction_combine_pass()
        passes.add_jump_threading_pass()
    passes.add_refprune_pass(_PRUNES)
    passes.run(module, builder)


def _in_child(run: Callable[[], bytes]) -> bytes | None:
    """What a child process makes; None where it dies, or there can be none.

    LLVM has two models of what a loop costs, and aborts the process where they choose different
    widths. LLVM 22 has them disagree about the products by which elements are found that lie in
    reverse, which may be decisive where vectors have 512 bits.
    """
    if not hasattr(os, "fork"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks beside threads, by Python and by JAX
        received, sent = os.pipe()
        try:
            child = os.fork()
        except OSError:  # no room for another process
            os.close(received)
            os.close(sent)
            return None
    if not child:
        _send(run, sent)
    os.close(sent)
    found: bytes | None = None
    try:
        found = _received(received)
    finally:  # also where the user interrupts, or a lock is held that the child has inherited
        os.close(received)
        if found is None:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    return found if os.waitstatus_to_exitcode(status) == 0 else None


def _send(run: Callable[[], bytes], sent: int) -> NoReturn:
    """Write what is made into a pipe, in a child process, which ends without a word."""
    status = 1
    try:
        faulthandler.disable()
        import resource  # noqa: PLC0415  (there is none on Windows)

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with open(sent, "wb") as pipe:
            pipe.write(run())
        status = 0
    finally:
        os._exit(status)


def _received(pipe: int) -> bytes | None:
    """All that comes through a pipe until it is closed; None if that takes too long."""
    parts: list[bytes] = []
    until = time.monotonic() + _PATIENCE
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(max(0.0, until - time.monotonic())):
            part = os.read(pipe, 1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
    return None


class _PartLibrary(_Library):
    """The code of a part of a program: what calls it optimises it, and makes machine code of it."""

    def _optimize_final_module(self) -> None:
        hide(self._final_module, self._names)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class Contents(NamedTuple):
    """The names in a module: global variables, functions only called, functions visible to others.

    ``visible`` leaves out Numba's run time, which is the same everywhere.
    """

    variables: list[str]
    declared: list[str]
    visible: list[str]


def contents_of(module: Any) -> Contents:
    """What a module holds now."""
    declared, found = [], []
    for f in module.functions:
        if f.is_declaration:
            declared.append(f.name)
        elif _is_visible(f):
            found.append(f.name)
    return Contents([v.name for v in module.global_variables], declared, found)


def contents_in(library: Any) -> Contents:
    """What the module of a finished library holds."""
    return library.contents if isinstance(library, _Library) else contents_of(library._final_module)


def _is_visible(f: Any) -> bool:
    return f.linkage not in _HIDDEN and not f.name.startswith("NRT_")


def hide(module: Any, kept: Iterable[str]) -> bool:
    """Make all visible functions internal except ``kept``; returns whether there were any.

    They are renamed, too: a module that is linked later may have another function of the same name,
    such as one from Numba's ``np.linalg``. LLVM drops unused arguments of internal functions.
    """
    defined = (f for f in module.functions if not f.is_declaration)
    visible = [f for f in defined if _is_visible(f) and f.name not in kept]
    for f in visible:
        f.linkage = llvm.Linkage.internal
        f.name = f"{_OWN}{f.name}"
    return bool(visible)


def new_library(codegen: Any, name: str, *, is_part: bool = False) -> Any:
    """An empty library for a program, which can be serialised later, or for a part of one."""
    knows = hasattr(llvm, "create_pass_builder")  # LLVM's new pass managers
    ours = knows and config.LLVM_REFPRUNE_PASS and config.OPT != 0
    kind = _PartLibrary if is_part else _Library
    library = kind(codegen, name) if ours else codegen.create_library(name)
    library.enable_object_caching()
    return library
