"""A program made callable for the backend that was asked for."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fwdad.codegen.numba_support import have_numba
from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.display.words import file_in_words
from fwdad.ir.check import check_program
from fwdad.ir.clone import copied
from fwdad.ir.ops import Effect, Program, Value, is_array


class Runner:
    """A program as a function under the backend that was asked for, one of those of :func:`jit`.

    It must be well formed: in compiled code, what a path leaves undefined is any number.
    """

    def __init__(self, program: Program, backend: str) -> None:
        check_program(program, assumed=True)
        self._program = program
        self._made: Any = None
        self._serves: dict[Any, bool] = {}
        if uses_numba(backend):
            from fwdad.codegen.call_entry import compile_program  # noqa: PLC0415  (imports Numba)

            self._made = compile_program(program, "numba", untested=True)
        else:
            self._plain = compiled(numpy_source(program))

    def __call__(self, *leaves: Any) -> Any:
        """Run the program."""
        return self._plain(*leaves) if self._made is None else self._made.call(*leaves)

    def prepare(self, leaves: list[Any]) -> None:
        """Compile for leaves like these unless that has been done."""
        if self._made is not None:
            self._made.prepare(*leaves)

    def serves(self, leaves: tuple[Any, ...]) -> bool:
        """Whether Numba has compiled the program for leaves like these."""
        if self._made is None or self._made.kernel is None:
            return False
        from fwdad.codegen.call_entry import signature_of  # noqa: PLC0415  (imports Numba)

        key = _memory_key(leaves)  # a signature takes ten times as long
        if key not in self._serves:
            signature = signature_of(leaves)
            self._serves[key] = signature is not None and bool(self._made.serves(signature))
        return self._serves[key]

    @property
    def compiled(self) -> Any:
        """The program compiled for Numba, or None under NumPy."""
        return self._made

    @functools.cached_property
    def callee(self) -> Any:
        """The same for other compiled code to call, which does not run it again if it raises."""
        if self._made is None or not self._made.is_untested:
            return self._made
        from fwdad.codegen.call_entry import compile_program  # noqa: PLC0415  (imports Numba)

        return compile_program(self._program, "numba")

    @property
    def function(self) -> Callable[..., Any]:
        """The underlying function, without this object around it."""
        return self._plain if self._made is None else self._made.call

    def explain(self) -> str:
        """What runs the program, and the reasons where it is not Numba."""
        if self._made is None:
            return "NumPy"
        if self._made.kernel is None:
            reasons = [_place(e) + e.what for e in self._made.reasons()]
            return "\n  ".join(["NumPy, because", *reasons])
        callbacks = self._made.source.callbacks
        if not callbacks:
            return "Numba"
        called = [_in_lines(c.reasons) + _counted(c, self._made.seconds) for c in callbacks]
        return "\n  ".join(["Numba, which calls NumPy for", *called])


def entry_without_arguments(
    program: Program, backend: str, leaves: list[Any]
) -> Callable[..., Any] | None:
    """What Numba's dispatcher would call of a program for leaves of these types and layouts.

    It does not look at them again, and does not return what the program returns of its arguments,
    into which it writes. None of a program that returns other arrays, calls Python or puts anything
    out.
    """
    own = copied(program)
    params = set(own.block.params)
    own.block.results = [r for r in own.block.results if not (type(r) is Value and r in params)]
    arrays = any(type(r) is Value and is_array(r) for r in own.block.results)
    if not uses_numba(backend) or arrays:
        return None
    if any(isinstance(op, Effect) for op in own.walk()):
        return None
    from fwdad.codegen.call_entry import compile_program, signature_of  # noqa: PLC0415  (Numba)

    made = compile_program(own, "numba")
    made.prepare(*leaves)
    if made.kernel is None or made.source.callbacks:
        return None
    overload = made.kernel.overloads.get(signature_of(tuple(leaves)))
    return None if overload is None else overload.entry_point


def _memory_key(x: Any) -> Any:
    """A key of all that Numba's type of a value depends on: equal keys have equal types."""
    if type(x) is np.ndarray:
        flags = x.flags
        return (x.dtype, x.ndim, flags.c_contiguous, flags.f_contiguous, flags.aligned,
                flags.writeable)  # fmt: skip
    return tuple(map(_memory_key, x)) if type(x) is tuple else type(x)


def _in_lines(reasons: Iterable[Any]) -> str:
    """Reasons, those of one line together."""
    of_places: dict[str, list[str]] = {}
    for e in reasons:
        of_places.setdefault(_place(e), []).append(e.what)
    return "; ".join(f"{place}{', '.join(each)}" for place, each in of_places.items())


def _counted(callback: Any, seconds: float) -> str:
    """How often compiled code has called a function, and which share of its time that took."""
    if not callback.calls:
        return " (not called yet)"
    times = "once" if callback.calls == 1 else f"{callback.calls} times"
    each = f"{1e6 * callback.seconds / callback.calls:,.3g} µs a call"
    return f" (called {times}, {each}, {100 * callback.seconds / seconds:.0f} % of the time)"


def _place(error: Any) -> str:
    location = getattr(error, "location", None)
    return "" if location is None else f"{file_in_words(location.filename)}:{location.line}: "


def threads_of(backend: str, *, parallel: bool) -> int:
    """The number of cores that chunks of columns are spread over."""
    if not parallel or backend == "numpy" or not have_numba():
        return 1
    from fwdad.codegen.loops.parallel_elements import count_threads  # noqa: PLC0415  (Numba)

    return count_threads()


def check_backend(backend: str) -> None:
    """Raise ``ValueError`` for an unknown backend."""
    if backend not in ("auto", "numpy", "numba"):
        raise ValueError(f'backend is "auto", "numpy" or "numba", not {backend!r}')


def uses_numba(backend: str) -> bool:
    """Whether Numba runs the program; if ``"auto"`` does not find it, that is logged once."""
    check_backend(backend)
    if backend == "numpy" or have_numba():
        return backend != "numpy"
    if backend == "numba":
        raise ImportError("Numba is not installed: pip install 'fwdad[jit]'")
    _say_once("Numba is not installed: fwdad.jit runs under NumPy (pip install 'fwdad[jit]')")
    return False


@functools.cache
def _say_once(message: str) -> None:
    logging.getLogger("fwdad").warning(message)
