"""From a program to a callable of its leaves, with an entry that costs about a microsecond."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from fwdad.codegen.numba_support import CHECK_BOUNDS, CannotCompileError, have_numba
from fwdad.codegen.numpy_backend.source import Source, compiled, note_places, numpy_source
from fwdad.core.fallbacks import report
from fwdad.core.generated_source import define
from fwdad.errors import BoundsError
from fwdad.ir.ops import Effect, Program
from fwdad.ir.other_way import OtherWayError
from fwdad.ir.types import result_kind
from fwdad.rules.core.registry import resolve_pending

if have_numba():
    import numba
    from numba.core.compiler_lock import global_compiler_lock

    from fwdad.codegen.cache import disk_cache
    from fwdad.codegen.callbacks.callback import was_called_back
    from fwdad.codegen.callbacks.outline import Compilable, compilable
    from fwdad.codegen.llvm.scalars import NO_FLOAT
    from fwdad.codegen.numba_compile import OPTIONS, Machine
    from fwdad.codegen.passes.zero_tests import LostZeroError, without_tests
    from fwdad.codegen.runtime.arithmetic import BROADCAST, NO_INT

    resolve_pending()  # Numba has imported parts of SciPy

Backend = Literal["numpy", "numba"]


def _done(*_: Any) -> None:
    """Do nothing: there is nothing to prepare."""


@dataclass
class Compiled:
    """A callable program: ``call(*leaves)`` returns a tuple of its results.

    ``left`` says why NumPy runs the whole although Numba was requested; ``kernel`` is Numba's
    dispatcher, or None, and ``serves`` compiles it for a signature if need be. ``source`` has what
    compiled code calls of Python's, and ``seconds`` is how long calls have taken if there is any.
    A kernel that ``is_untested`` may raise where the program does not.
    """

    call: Callable[..., tuple[Any, ...]]
    source: Source
    backend: Backend
    left: list[CannotCompileError] = field(default_factory=list)
    kernel: Any = None
    serves: Callable[[tuple[Any, ...]], bool] = lambda _: False
    seconds: float = 0.0
    is_untested: bool = False
    prepare: Callable[..., None] = _done

    def reasons(self) -> list[CannotCompileError]:
        """Why something runs under NumPy: the whole, or what compiled code calls."""
        return [*self.left, *(e for c in self.source.callbacks for e in c.reasons)]


def compile_program(
    program: Program, backend: Backend = "numba", *, untested: bool = False
) -> Compiled:
    """Make a traced program callable under NumPy or Numba.

    What Numba cannot compile is called by compiled code, and runs under NumPy. So does the whole
    program if compiling the rest does not pay; ``left`` of the result says why. With ``untested``
    the kernel may multiply without tests (``passes/zero_tests.py``) and raise: only ``call`` makes
    that good.
    """
    plain = _Plain(program)
    if backend == "numpy" or not have_numba():
        return Compiled(plain.run, plain.source, "numpy")
    try:
        tried = (without_tests(program) if untested else None) or program
        return _Entry(program, tried, compilable(tried), plain).made
    except CannotCompileError as error:
        return Compiled(plain.run, plain.source, "numpy", [error])


class _Plain:
    """A program under NumPy, built on demand: most compiled programs never need it."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @functools.cached_property
    def source(self) -> Source:
        """The generated source."""
        return numpy_source(self._program)

    @functools.cached_property
    def run(self) -> Callable[..., Any]:
        """The function that the source defines."""
        return compiled(self.source)


class _Entry:
    """Compiles for the types of arguments as they come, and decides what to do when that fails."""

    def __init__(self, program: Program, tried: Program, given: Compilable, plain: _Plain) -> None:
        self.program = program
        self._tried = tried  # the program, or one without tests
        self.plain = plain
        self.made = Compiled(self._first, given.source, "numba", serves=self._serves_types)
        self.made.prepare = self._prepare
        self.made.is_untested = tried is not program
        # what has been put out, or written, would be so twice
        self._once = any(program.written) or any(isinstance(op, Effect) for op in program.walk())
        self._lock = threading.RLock()
        self._begin(given)

    def _begin(self, given: Compilable) -> None:
        """Write the code anew, of which nothing is compiled yet."""
        source, types = given
        self._digest = disk_cache.program_digest(source, types, OPTIONS)
        self._machine = Machine(source, self._digest, types)
        self.kernel = self.made.kernel = self._machine.kernel
        self.known: dict[tuple[Any, ...], bool] = {}  # signature: whether it is compiled
        self.made.source = source
        self._fast = _wrapper(self.program, self.kernel, self._failed, self.made)

    def _first(self, *leaves: Any) -> tuple[Any, ...]:
        """Compile, then call directly."""
        self._prepare(*leaves)
        return self.made.call(*leaves)

    def _prepare(self, *leaves: Any) -> None:
        """Compile for some arguments; leave out what Numba refuses, in the end the whole."""
        tried: set[str] = set()
        while not self._serves(leaves):
            made = self.made
            error = made.left[-1]
            try:
                if str(error) in tried:  # what is left of its line is refused again
                    raise error
                tried.add(str(error))
                self._begin(compilable(self._tried, made.left))
            except CannotCompileError:
                made.backend, made.source, made.kernel = "numpy", self.plain.source, None
                self._settle(self.plain.run)
                return
        self.made.left.clear()
        self._settle(self._fast)

    def _settle(self, call: Callable[..., Any]) -> None:
        self.made.call = call
        self.made.prepare = _done

    def _serves(self, leaves: tuple[Any, ...]) -> bool:
        """Whether arguments of these types have compiled code; new types are compiled."""
        signature = signature_of(leaves)
        if signature is None:
            self.made.left.append(CannotCompileError("an argument has a type unknown to Numba"))
            return False
        return self._serves_types(signature)

    def _serves_types(self, signature: tuple[Any, ...]) -> bool:
        if signature not in self.known:
            # Numba's lock comes first, as where a call of ours is compiled inside another function
            with global_compiler_lock, self._lock:
                if signature not in self.known:  # another thread may have been first
                    self._make(signature)
        return self.known[signature]

    def _make(self, signature: tuple[Any, ...]) -> None:
        try:
            self._compile(signature)
            self.known[signature] = True
        except CannotCompileError as error:
            self.known[signature] = False
            self.made.left.append(error)
            frozen = any(isinstance(t, numba.types.Array) and not t.mutable for t in signature)
            if not frozen and not _only_view(error):
                _report(f"compiling {self.program.name}", error)

    def _compile(self, signature: tuple[Any, ...]) -> None:
        """Load code that a process has compiled before, or compile and store it."""
        for callback in self.made.source.callbacks:
            callback.provide()
        entry = None if self._digest is None else disk_cache.entry_digest(self._digest, signature)
        value = None if entry is None else disk_cache.load(entry, signature)
        if value is not None:
            context = self.kernel.targetctx
            context.insert_user_function(value.entry_point, value.fndesc, [value.library])
            self.kernel.add_overload(value)
            self.kernel.disable_compile()
            return
        self._machine.compile(signature)
        if entry is not None:
            disk_cache.save(entry, self.kernel.overloads[signature])

    def _failed(self, error: BaseException, leaves: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return or raise for arguments with which compiled code has raised.

        New types are compiled. Otherwise the program is run again under NumPy, which raises the
        exception in full or has the result (ints of more than 64 bits, complex roots). A program
        that writes into its arguments, or puts anything out, is not run twice.
        """
        if not isinstance(error, Exception) or was_called_back(error):
            raise error
        if isinstance(error, OtherWayError):  # who has called it tries another tape
            raise error
        if isinstance(error, LostZeroError):
            return self._with_tests(leaves)
        if isinstance(error, BoundsError):
            raise self._located(error) from None
        if any(type(x) is int and not -(2**63) <= x < 2**63 for x in leaves):
            return self.plain.run(*leaves)  # nothing has run: the arguments were not accepted
        new = isinstance(error, TypeError) and self._is_new(leaves)
        if new and self._serves(leaves):
            return self._fast(*leaves)
        if self._once and not (new or not self._serves(leaves)):
            note_places(error, self._machine.source, self._machine.filename)
            raise error
        result = self.plain.run(*leaves)
        if CHECK_BOUNDS and isinstance(error, IndexError):  # raised by a run-time helper
            raise BoundsError(0, -1, 1, 0) from error
        if not (new or _leaves_type(error)) and self._serves(leaves):
            _report(f"the compiled code of {self.program.name}", error)
        return result

    def _with_tests(self, leaves: tuple[Any, ...]) -> tuple[Any, ...]:
        """The results of the program with its tests, which is compiled and stays."""
        with global_compiler_lock, self._lock:
            if self._tried is not self.program:
                self._tried, before, self.made.is_untested = self.program, self._fast, False
                try:
                    self._begin(compilable(self.program))
                    self._prepare(*leaves)
                except CannotCompileError as error:
                    self.made.left.append(error)
                    self._settle(self.plain.run)
                    return self.plain.run(*leaves)
                known = [caller.names for caller in before.__dict__.get("callers", ())]
                for names in (before.__globals__, *known):
                    names["kernel"] = self.kernel
                if "direct" in before.__dict__:
                    before.__dict__["direct"] = (self.kernel, *before.__dict__["direct"][1:])
        return self.made.call(*leaves)

    def _located(self, error: BoundsError) -> BoundsError:
        """The error with its line of the source, and the closest user's line at or before it."""
        line, source = error.given[0], self._machine.source
        text = source.code.splitlines()[line - 1] if line else ""
        return error.at(text, next((p for p in reversed(source.places[:line]) if p), None))

    def _is_new(self, leaves: tuple[Any, ...]) -> bool:
        signature = signature_of(leaves)
        return signature is None or signature not in self.known


def _leaves_type(error: Exception) -> bool:
    """Whether compiled code has raised because a result leaves its value's type, as Python's may.

    Or its lengths: the cotangent of something that was broadcast.
    """
    return isinstance(error, OverflowError) or str(error) in (NO_INT, NO_FLOAT, BROADCAST)


def _only_view(error: Exception) -> bool:
    """Whether `reshape` has failed because the array, of which only a view will do, has gaps."""
    return "reshape() supports contiguous array only" in str(error)


def _report(what: str, error: Exception) -> None:
    """Report a mistake of ours that running under NumPy makes good."""
    report(what, error, "NumPy runs it instead", getattr(error, "location", None))


def signature_of(leaves: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Numba's types of some arguments; None if one has no such type, as another byte order.

    Python's ints are always int64: Numba would give larger ones another type, in which the
    program's arithmetic wraps.
    """
    try:
        return tuple(numba.int64 if type(x) is int else numba.typeof(x) for x in leaves)
    except (ValueError, numba.core.errors.NumbaError):
        return None


def _wrapper(
    program: Program, kernel: Any, failed: Callable[..., Any], made: Compiled
) -> Callable[..., Any]:
    """A function of the leaves that gives the results their NumPy types."""
    timed = bool(made.source.callbacks)
    n = len(program.block.params)
    names = [f"x{k}" for k in range(n)]
    kinds = [result_kind(r) for r in program.block.results]
    args = ", ".join(names)
    lines = [
        f"def call({args}):",
        *(["    start = clock()"] if timed else []),
        "    try:",
        f"        made = kernel({args})",
        "    except BaseException as error:",
        f"        return failed(error, ({args}{',' if n else ''}))",
        *(["    finally:", "        entry.seconds += clock() - start"] if timed else []),
    ]
    namespace: dict[str, Any] = {"kernel": kernel, "failed": failed}
    namespace |= {"entry": made, "clock": time.perf_counter} if timed else {}
    if any(k is not None for k in kinds):
        parts = []
        for k, kind in enumerate(kinds):
            if kind is not None:
                namespace[f"as{k}"] = kind
            parts.append(f"made[{k}]" if kind is None else f"as{k}(made[{k}])")
        lines.append(f"    return ({', '.join(parts)},)")
    else:
        lines.append("    return made")
    text = "\n".join(lines) + "\n"
    filename = f"<fwdad entry of {program.name} {abs(hash(text)):x}>"
    call: Any = define(text, filename, namespace, "call")
    if not timed:
        call.direct = kernel, failed, kinds  # what a caller may call directly
    if not timed and made.is_untested:
        call.callers = weakref.WeakSet()  # those, which are given another kernel
    wrapper: Callable[..., Any] = call
    return wrapper
