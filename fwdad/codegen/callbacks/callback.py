"""What Python runs where compiled code calls it: a program under NumPy."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.codegen.llvm.python_calls import provide
from fwdad.codegen.llvm.scalars import NO_FLOAT
from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.codegen.runtime.arithmetic import BROADCAST
from fwdad.ir.ops import Program
from fwdad.ir.types import ArrayType, Number, Type


class _Raised(threading.local):
    """The last exception of this thread that came out of a function that compiled code called."""

    error: BaseException | None = None


_RAISED = _Raised()


def was_called_back(error: BaseException) -> bool:
    """Whether an exception comes from what compiled code has called: it is that of the program."""
    return _RAISED.error is error


class Callback:
    """A program that NumPy runs for compiled code, under the name ``symbol`` there.

    ``reasons`` say why; ``calls`` and ``seconds`` count how often it ran, and how long.
    """

    def __init__(self, program: Program) -> None:
        self.reasons = program.interpreted
        self.calls = 0
        self.seconds = 0.0
        self.source = source = numpy_source(program)
        params = [p.type for p in program.block.params]
        results = [r.type for r in program.block.results]
        text = repr((source.code, list(map(str, params)), list(map(str, results))))
        self.symbol = f"fwdad_call_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self._dtypes = [t.dtype for t in params if isinstance(t, ArrayType)]
        self._function = self._made(compiled(source), params, results)

    def provide(self) -> None:
        """Let code that is linked next call this one; others may have the same symbol."""
        provide(self.symbol, self._function, self._dtypes)

    def _made(
        self, run: Callable[..., Any], params: Sequence[Type], results: Sequence[Type]
    ) -> Callable[..., Any]:
        takes = [_as_numpy(t) for t in params]
        gives = [_checked(t, params) for t in results]

        def function(*given: Any) -> tuple[Any, ...]:
            start = time.perf_counter()
            try:
                found = run(*[x if t is None else t(x) for t, x in zip(takes, given, strict=True)])
            except BaseException as error:
                _RAISED.error = error
                raise
            finally:
                self.calls += 1
                self.seconds += time.perf_counter() - start
            return tuple([give(y, given) for give, y in zip(gives, found, strict=True)])

        return function


def _as_numpy(t: Type) -> Any:
    """What makes of a number of Python's the number that it is under NumPy; None if it is one."""
    return None if isinstance(t, ArrayType) or t.python else t.dtype.type


def _checked(t: Type, params: Sequence[Type]) -> Callable[[Any, Any], Any]:
    """What checks that a value has the type that compiled code takes for granted."""
    return _number(t) if isinstance(t, Number) else _array(t, params)


def _number(t: Number) -> Callable[[Any, Any], Any]:
    own, kind = {t.dtype.type, type(t.dtype.type(0).item())}, t.dtype.kind

    def check(y: Any, _given: Any) -> Any:
        if type(y) not in own and not np.can_cast(np.asarray(y).dtype, t.dtype, "same_kind"):
            raise ValueError(NO_FLOAT)
        if kind == "i" and not -(2**63) <= y < 2**63:
            raise OverflowError("an int of more than 64 bits")
        return complex(y) if kind == "c" else y

    return check


def _array(t: ArrayType, params: Sequence[Type]) -> Callable[[Any, Any], Any]:
    known: dict[Any, tuple[int, int]] = {}
    for k, p in enumerate(params):
        for axis, d in enumerate(p.shape if isinstance(p, ArrayType) else ()):
            known.setdefault(d, (k, axis))
    lengths = [(axis, d) for axis, d in enumerate(t.shape) if isinstance(d, int)]
    same = [(axis, *known[d]) for axis, d in enumerate(t.shape) if d in known]

    def check(y: Any, given: Any) -> Any:
        y = np.asarray(y)
        if y.dtype != t.dtype or y.ndim != t.ndim or not y.flags.aligned:
            raise ValueError(NO_FLOAT)
        shape = y.shape
        if any(shape[axis] != d for axis, d in lengths) or any(
            shape[axis] != given[k].shape[at] for axis, k, at in same
        ):
            raise ValueError(BROADCAST)
        return y

    return check
