"""A program's function, made for the backend that was asked for."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from fwdad.codegen.numba_support import have_numba
from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.ir.ops import Program


class Runner:
    """A program's function, made for the backend that was asked for.

    Parameters
    ----------
    program : Program
        What to run.
    backend : str
        As :func:`jit` takes it.
    """

    def __init__(self, program: Program, backend: str) -> None:
        self._made: Any = None
        if uses_numba(backend):
            from fwdad.codegen.call_entry import compile_program  # noqa: PLC0415  (imports Numba)

            self._made = compile_program(program, "numba")
        else:
            self._plain = compiled(numpy_source(program))

    def __call__(self, *leaves: Any) -> Any:
        """Run it."""
        return self._plain(*leaves) if self._made is None else self._made.call(*leaves)

    def prepare(self, leaves: list[Any]) -> None:
        """Compile for leaves like these, if that has not been done."""
        if self._made is not None:
            self._made.prepare(*leaves)

    def serves(self, leaves: tuple[Any, ...]) -> bool:
        """Whether Numba has compiled the program as a whole, for leaves like these."""
        from fwdad.codegen.call_entry import signature_of  # noqa: PLC0415  (imports Numba)

        if self._made is None or self._made.kernel is None:
            return False
        signature = signature_of(leaves)
        return signature is not None and bool(self._made.serves(signature))

    @property
    def compiled(self) -> Any:
        """What Numba runs, or None."""
        return self._made

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, as it is after the first call."""
        return self._plain if self._made is None else self._made.call

    def explain(self) -> str:
        """What runs the program, and why Numba does not."""
        if self._made is None:
            return "NumPy"
        reasons = "".join(f"\n  {_place(e)}{e.what}" for e in self._made.reasons())
        parts = self._made.compiled_parts()
        if not parts:
            return f"NumPy, because{reasons}"
        if not self._made.pieces:
            return "Numba"
        held, pieces = sum(p.size for p in parts), "piece" if len(parts) == 1 else "pieces"
        return f"Numba in {len(parts)} {pieces} of {held}, the others by NumPy, because{reasons}"


def _place(error: Any) -> str:
    location = getattr(error, "location", None)
    return "" if location is None else f"{location.filename}:{location.line}: "


def check_backend(backend: str) -> None:
    """Raise if a backend is none that there is."""
    if backend not in ("auto", "numpy", "numba"):
        message = f'backend is "auto", "numpy" or "numba", not {backend!r}'
        raise ValueError(message)


def uses_numba(backend: str) -> bool:
    """Whether Numba runs what is asked for; where it is missing, the log is told once."""
    check_backend(backend)
    if backend == "numpy" or have_numba():
        return backend != "numpy"
    if backend == "numba":
        message = "Numba is not installed: pip install 'fwdad[jit]'"
        raise ImportError(message)
    _say_once("Numba is not installed: fwdad.jit runs under NumPy (pip install 'fwdad[jit]')")
    return False


@functools.cache
def _say_once(message: str) -> None:
    logging.getLogger("fwdad").warning(message)
