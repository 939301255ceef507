"""From a program to a callable of its leaves, with an entry that costs about a microsecond."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fwdad.codegen.numba_support import CHECK_BOUNDS, CannotCompileError, have_numba
from fwdad.codegen.numpy_backend.source import Source, compiled, defined, numpy_source
from fwdad.core.fallbacks import report
from fwdad.core.generated_source import define
from fwdad.errors import BoundsError
from fwdad.ir.analysis.layout import Orders
from fwdad.ir.ops import Program
from fwdad.ir.types import Number, Type
from fwdad.rules.core.registry import resolve_pending

if have_numba():
    import numba
    from numba.core.compiler_lock import global_compiler_lock

    from fwdad.codegen.cache import disk_cache
    from fwdad.codegen.llvm.scalars import NO_FLOAT
    from fwdad.codegen.loops.elementwise import BROADCAST
    from fwdad.codegen.loops.source import numba_source
    from fwdad.codegen.numba_compile import OPTIONS, Machine
    from fwdad.codegen.partition.glue import glue_source
    from fwdad.codegen.partition.pieces import Cut, cut, unlike
    from fwdad.codegen.runtime.arithmetic import NO_INT

    resolve_pending()  # Numba has imported parts of SciPy

Backend = Literal["numpy", "numba"]


def _done(*_: Any) -> None:
    """Do nothing: there is nothing to prepare."""


@dataclass
class Compiled:
    """A callable program: ``call(*leaves)`` returns a tuple of its results.

    ``left`` says why something runs under NumPy although Numba was requested; ``kernel`` is Numba's
    dispatcher, or None, and ``serves`` compiles it for a signature if need be. ``pieces`` is empty
    unless the program was cut, and ``backend`` is ``"numba"`` then, too.
    """

    call: Callable[..., tuple[Any, ...]]
    source: Source
    backend: Backend
    left: list[CannotCompileError] = field(default_factory=list)
    kernel: Any = None
    serves: Callable[[tuple[Any, ...]], bool] = lambda _: False
    pieces: list[Compiled] = field(default_factory=list)
    size: int = 0
    prepare: Callable[..., None] = _done

    def reasons(self) -> list[CannotCompileError]:
        """Why something runs under NumPy, in the program or in its pieces."""
        return [*self.left, *(e for p in self.pieces for e in p.reasons())]

    def compiled_parts(self) -> list[Compiled]:
        """The program, or those of its pieces, that Numba runs."""
        if not self.pieces:
            return [self] if self.backend == "numba" else []
        return [part for p in self.pieces for part in p.compiled_parts()]


def compile_program(program: Program, backend: Backend = "numba") -> Compiled:
    """Make a traced program callable under NumPy or Numba.

    What Numba cannot compile runs under NumPy, between compiled pieces where these pay off;
    ``left`` of the result says why.
    """
    plain = _Plain(program)
    if backend == "numpy" or not have_numba():
        return Compiled(plain.run, plain.source, "numpy", size=program.count())
    left = Orders(program).unlike()
    try:
        if left:
            raise unlike(next(op for op in program.walk() if op in left))
        source, types = numba_source(program)
    except CannotCompileError as error:
        return _in_pieces(program, plain, [error], cut(program))
    return _Entry(program, source, types, plain).made


def _in_pieces(
    program: Program, plain: _Plain, errors: list[CannotCompileError], made: Cut
) -> Compiled:
    """A callable for a program that has no compiled form as a whole."""
    if not made.pieces or made.pieces[0].count() == program.count():
        return Compiled(plain.run, plain.source, "numpy", made.left or errors, size=program.count())
    return _Glue(program, made, plain).made


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


class _InterruptedError(Exception):
    """A piece has raised after it may have written: it cannot be run again by itself."""

    def __init__(self, given: Exception) -> None:
        super().__init__(given)
        self.given = given


class _Glue:
    """Runs a program in pieces."""

    def __init__(self, program: Program, made: Cut, plain: _Plain) -> None:
        self.program = program
        self.plain = plain
        source = glue_source(made)
        run = defined(source)
        self._run = compiled(source, run)
        self.made = Compiled(self, source, "numba", made.left, size=made.program.count())
        for piece in made.pieces:
            entry = _Entry(piece, *numba_source(piece), _Plain(piece), within=run.__globals__)
            run.__globals__[piece.name] = entry.made.call
            self.made.pieces.append(entry.made)

    def __call__(self, *leaves: Any) -> tuple[Any, ...]:
        try:
            return self._run(*leaves)
        except _InterruptedError as error:
            given = error.given
            if any(self.program.written):
                raise given from None
        result = self.plain.run(*leaves)  # outside the handler: the exception is the user's own
        if not _leaves_type(given):
            _report(f"a compiled piece of {self.program.name}", given)
        return result


class _Entry:
    """Compiles for the types of arguments as they come, and decides what to do when that fails.

    ``within`` holds the global names of the function that calls it, if it is a piece.
    """

    def __init__(
        self,
        program: Program,
        source: Source,
        types: dict[str, Type],
        plain: _Plain,
        within: dict[str, Any] | None = None,
    ) -> None:
        self.program = program
        self.within = within
        self.plain = plain
        self._digest = disk_cache.program_digest(source, types, OPTIONS)
        self._machine = Machine(source, self._digest, types)
        self.kernel = self._machine.kernel
        self._lock = threading.RLock()
        self.known: dict[tuple[Any, ...], bool] = {}  # signature: whether it is compiled
        self.made = Compiled(
            self._first,
            source,
            "numba",
            kernel=self.kernel,
            serves=self._serves_types,
            size=program.count(),
            prepare=self._prepare,
        )
        self._fast = _wrapper(program, self.kernel, self._failed)

    def _first(self, *leaves: Any) -> tuple[Any, ...]:
        """Compile, then call directly."""
        self._prepare(*leaves)
        return self.made.call(*leaves)

    def _prepare(self, *leaves: Any) -> None:
        """Compile for some arguments; cut the program into pieces if Numba refuses it."""
        if self._serves(leaves):
            self._settle(self._fast)
            return
        entry = self.made
        other = _in_pieces(self.program, self.plain, entry.left, cut(self.program, entry.left))
        entry.backend, entry.source, entry.pieces = other.backend, other.source, other.pieces
        self._settle(other.call)

    def _settle(self, call: Callable[..., Any]) -> None:
        self.made.call = call
        self.made.prepare = _done
        if self.within is not None:
            self.within[self.program.name] = call

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
        that writes into its arguments is not run twice.
        """
        if not isinstance(error, Exception):
            raise error
        if isinstance(error, BoundsError):
            raise self._located(error) from None
        if any(type(x) is int and not -(2**63) <= x < 2**63 for x in leaves):
            return self.plain.run(*leaves)  # nothing has run: the arguments were not accepted
        new = isinstance(error, TypeError) and self._is_new(leaves)
        if new and self._serves(leaves):
            return self._fast(*leaves)
        if any(self.program.written) and not (new or not self._serves(leaves)):
            if self.within is not None:
                raise _InterruptedError(error) from error
            raise error
        result = self.plain.run(*leaves)
        if CHECK_BOUNDS and isinstance(error, IndexError):  # raised by a run-time helper
            raise BoundsError(0, -1, 1, 0) from error
        if not (new or _leaves_type(error)) and self._serves(leaves):
            _report(f"the compiled code of {self.program.name}", error)
        return result

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


def _wrapper(program: Program, kernel: Any, failed: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the leaves that gives the results their NumPy types."""
    n = len(program.block.params)
    names = [f"x{k}" for k in range(n)]
    kinds = [_conversion(r) for r in program.block.results]
    args = ", ".join(names)
    lines = [
        f"def call({args}):",
        "    try:",
        f"        made = kernel({args})",
        "    except BaseException as error:",
        f"        return failed(error, ({args}{',' if n else ''}))",
    ]
    namespace: dict[str, Any] = {"kernel": kernel, "failed": failed}
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
    if all(k is None for k in kinds):
        call.direct = kernel, failed  # what a caller may call directly
    wrapper: Callable[..., Any] = call
    return wrapper


def _conversion(result: Any) -> Any:
    """What converts a result of compiled code to the type that NumPy would return, or None."""
    t = getattr(result, "type", None)
    if isinstance(t, Number) and not t.python:
        return np.dtype(t.dtype).type
    return None
