"""Compiles generated source to machine code with Numba, with the types that the tape has.

Importing this module needs Numba.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numba

from fwdad.codegen.llvm.long_functions import CUT, PART
from fwdad.codegen.llvm.loop_merging import shared_loops
from fwdad.codegen.llvm.lowering import INNER
from fwdad.codegen.llvm.nests.code import NestFunction
from fwdad.codegen.llvm.nests.extraction import without_nests
from fwdad.codegen.llvm.nests.partition import in_parts
from fwdad.codegen.llvm.nests.types import agrees
from fwdad.codegen.llvm.pipeline import ProgramCompiler
from fwdad.codegen.llvm.python_calls import numba_type
from fwdad.codegen.numba_support import (
    CHECK_BOUNDS,
    HELPERS,
    CannotCompileError,
    runtime_module,
)
from fwdad.codegen.numpy_backend.source import Callee, Source, defined, filename
from fwdad.core.gc_pause import NoCollection
from fwdad.core.recursion_limit import HigherLimit
from fwdad.errors import Location
from fwdad.ir.types import Type

OPTIONS = {
    "error_model": "python", "boundscheck": True, "fastmath": False, "nogil": True,
    "no_cfunc_wrapper": True,
}  # fmt: skip
_MOST_INSIDE = 8  # loops; in a function with more of them LLVM takes longer, and none is hot alone
_DEPTH = 50_000  # calls: four for each loop, and Numba gives up long before ten thousand loops


# of Numba's the second is no NumbaError
_REFUSED = (numba.core.errors.NumbaError, numba.core.errors.UnsupportedBytecodeError)


class Machine:
    """A source's functions under Numba; they are cached if there is a ``digest``."""

    def __init__(self, source: Source, digest: str | None, types: dict[str, Type]) -> None:
        self.source = source = in_parts(source)
        self.types = types
        self._digest = digest
        for module in {runtime_module(name) for name in HELPERS.keys() & source.namespace.keys()}:
            if hasattr(module, "provide"):
                module.provide(set(source.namespace))
        self.kernel, self.nests = self._functions()

    def _functions(self, refused: Iterable[str] = ()) -> tuple[Any, list[NestFunction]]:
        """Numba's function, and the loop nests cut out of it and of what it calls."""
        source, nests = without_nests(self.source, self.types, NestFunction, refused)
        run, self.filename = defined(source), filename(source)  # that Numba's frames name
        run.__dict__[INNER] = frozenset(source.inner)
        for callee in source.called:
            run.__globals__[callee.name].__dict__[INNER] = frozenset(callee.inner)
            declared = _declared(_jit(run.__globals__[callee.name], self._digest), callee)
            run.__globals__[callee.name] = declared
        if source.parts:
            run.__dict__[CUT] = True
        for part in source.parts:
            function = run.__globals__[part]
            function.__dict__.update({INNER: frozenset(source.inner), PART: True})
            run.__globals__[part] = _jit(function, self._digest, no_cpython_wrapper=True)
        made_nests = [source.namespace[name] for name in nests]
        # a shared loop is not given all lengths
        shared = {} if CHECK_BOUNDS else shared_loops(nests.values())
        for nest in made_nests:
            nest.shared = shared
            nest.stays_apart = len(nests) > _MOST_INSIDE
        return _jit(run, self._digest), made_nests

    def compile(self, signature: tuple[Any, ...]) -> None:
        """Compile for Numba's types of some arguments.

        Raises :class:`CannotCompileError` if Numba refuses, or infers a type other than the tape's.
        """
        kernel, nests = self.kernel, self.nests
        refused: set[str] = set()
        while True:
            try:
                compiled = self._compiled(kernel, signature)
                break
            except CannotCompileError:
                more = {n.__name__ for n in nests if n.is_refused}
                if not more:
                    raise
                refused |= more
                kernel, nests = self._functions(refused)
        try:
            _compare(compiled, self.types)
            for name, types in self._types_inside().items():
                for each in kernel.py_func.__globals__[name].overloads.values():
                    _compare(each, types)
        except CannotCompileError:
            self.kernel.overloads.pop(signature, None)
            raise
        if kernel is not self.kernel:
            self.kernel.targetctx.insert_user_function(
                compiled.entry_point, compiled.fndesc, [compiled.library]
            )
            self.kernel.add_overload(compiled)
            self.kernel.disable_compile()

    def _types_inside(self) -> dict[str, dict[str, Type]]:
        """The types of the variables of the functions that the first one calls."""
        called = {c.name: c.types for c in self.source.called}
        return called | dict.fromkeys((*self.source.outlined, *self.source.parts), self.types)

    def _compiled(self, kernel: Any, signature: tuple[Any, ...]) -> Any:
        """The compile result of a kernel."""
        try:
            with (
                warnings.catch_warnings(),
                numba.core.compiler_lock.global_compiler_lock,  # the recursion limit is global
                HigherLimit(_DEPTH) as deep,
                deep,
                NoCollection() as resting,
                resting,
            ):
                warnings.simplefilter("ignore", numba.core.errors.NumbaPerformanceWarning)
                kernel.disable_compile(False)
                kernel.compile(signature)
        except (*_REFUSED, NotImplementedError, ValueError) as error:
            what = f"Numba says: {_gist(error)}"
            raise CannotCompileError(what, _place_of(error, self.source)) from error
        finally:
            kernel.disable_compile(bool(kernel.signatures))
        return kernel.overloads[signature]


def _jit(f: Callable[..., Any], digest: str | None, **options: bool) -> Any:
    """Numba's dispatcher; cached code gets a name that no other program has."""
    if digest is not None:
        f.__module__ = __name__  # must be importable
        f.__qualname__ = f"{digest}.{f.__name__}"
    return numba.njit(pipeline_class=ProgramCompiler, **OPTIONS, **options)(f)


def _declared(function: Any, callee: Callee) -> Any:
    """A dispatcher with a declared result type: Numba cannot always infer that of a recursion."""
    plain = len(callee.results) - callee.stacked
    types_of_results = [
        numba_type(t, "A" if k < plain else "C") for k, t in enumerate(callee.results)
    ]
    result = numba.core.types.BaseTuple.from_types(types_of_results)
    compiler = function._compiler
    compile_for = compiler.compile
    compiler.compile = lambda args, _: compile_for(args, result)
    return function


def _compare(made: Any, types: dict[str, Type]) -> None:
    for name, t in made.type_annotation.typemap.items():
        wanted = types.get(_own_name(name))
        if wanted is not None and not agrees(t, wanted):
            what = f"the type of `{name}` is {t} and should be {wanted}"
            raise CannotCompileError(what)


def _own_name(name: str) -> str:
    """The source's name for a Numba variable: ``x.1`` is a second x, ``arg.x`` an argument x."""
    first, _, rest = name.partition(".")
    return rest if first == "arg" and rest[:1].isidentifier() else first


def _place_of(error: BaseException, source: Source) -> Location | None:
    """The user's location of the last generated line that a Numba error mentions, or None."""
    lines = re.findall(rf'File "<fwdad {source.name} [0-9a-f]+>", line (\d+)', str(error))
    return source.places[int(lines[-1]) - 1] if lines else None


def _gist(error: BaseException) -> str:
    """The first lines of a long Numba error message, without its frames."""
    lines = [line.strip() for line in str(error).splitlines()]
    lines_of_cause = [
        x for x in lines if x and not x.startswith(("Failed in", "During:", "File ", "<source"))
    ]
    return " ".join(lines_of_cause[:3]) or type(error).__name__
