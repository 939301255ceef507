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
from fwdad.core.generated_source import define
from fwdad.ir.notation import tuple_text
from fwdad.ir.ops import Program
from fwdad.ir.primitives.undef import missing_on_some_way
from fwdad.ir.types import ArrayType, Number, Type, least_shape


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
        self.source = numpy_source(program)
        params = [p.type for p in program.block.params]
        missing = missing_on_some_way(program)
        results = [(r.type, r in missing) for r in program.block.results]
        returned = [str(t) for t, _ in results]
        text = repr((self.source.code, list(map(str, params)), returned))
        self.symbol = f"fwdad_call_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self._dtypes = [t.dtype for t in params if isinstance(t, ArrayType)]
        self._function = self._made(params, results)

    def provide(self) -> None:
        """Let code that is linked next call this one; others may have the same symbol."""
        provide(self.symbol, self._function, self._dtypes)

    def _made(
        self, params: Sequence[Type], results: Sequence[tuple[Type, bool]]
    ) -> Callable[..., Any]:
        """The function that is called; it is written out, because each call pays for it.

        ``results`` are types, and whether a value may be missing, which is never used then.
        """
        given = [f"x{k}" for k in range(len(params))]
        found = [f"y{k}" for k in range(len(results))]
        namespace: dict[str, Any] = {
            "run": compiled(self.source), "clock": time.perf_counter, "me": self,
            "raised": _RAISED, "ndarray": np.ndarray,
        }  # fmt: skip
        taken = []
        for x, t in zip(given, params, strict=True):
            own = isinstance(t, Number) and not t.python  # boxed as a number of Python's
            namespace |= {f"as_{x}": t.dtype.type} if own else {}
            taken.append(f"as_{x}({x})" if own else x)
        lines = [
            f"def call({', '.join(given)}):",
            "    start = clock()",
            "    try:",
            f"        {f'{tuple_text(found)} = ' if found else ''}run({', '.join(taken)})",
            "    except BaseException as error:",
            "        raised.error = error",
            "        raise",
            "    finally:",
            "        me.calls += 1",
            "        me.seconds += clock() - start",
        ]
        for y, (t, missing) in zip(found, results, strict=True):
            of = _Number(t) if isinstance(t, Number) else _Array(t, params)
            namespace |= {f"kind_{y}": of.kind, f"other_{y}": of.other, f"unused_{y}": _unused(t)}
            if missing:
                lines += [f"    if {y} is None:", f"        {y} = unused_{y}"]
            test = of.test(y, f"kind_{y}")
            test += f" or {y} is unused_{y}" if missing else ""
            lines += [f"    if not ({test}):", f"        {y} = other_{y}({y}, {tuple_text(given)})"]
        lines.append(f"    return {tuple_text(found)}")
        code = "\n".join(lines) + "\n"
        return define(code, f"<fwdad {self.symbol} {id(self):x}>", namespace, "call")


def _unused(t: Type) -> Any:
    """A value of the right type that is never used, but that compiled code is given."""
    return np.empty(least_shape(t), t.dtype) if isinstance(t, ArrayType) else t.dtype.type(0).item()


class _Number:
    """A number that compiled code takes for granted to be of one type."""

    def __init__(self, t: Number) -> None:
        self.t = t
        self.kind = (t.dtype.type, type(t.dtype.type(0).item()))

    def test(self, y: str, kind: str) -> str:
        """Source for whether a value needs no look."""
        if self.t.dtype == np.complex64:  # which Python's C functions do not know
            return "False"
        inside = f" and {-(2**63)} <= {y} < {2**63}" if self.t.dtype.kind == "i" else ""
        return f"type({y}) in {kind}{inside}"

    def other(self, y: Any, _given: Any) -> Any:
        """Another value, if it can be one of the type."""
        dtype = self.t.dtype
        if not np.can_cast(np.asarray(y).dtype, dtype, "same_kind"):
            raise ValueError(NO_FLOAT)
        if dtype.kind == "i" and not -(2**63) <= y < 2**63:
            raise OverflowError("an int of more than 64 bits")
        return complex(y) if dtype.kind == "c" else y


class _Array:
    """An array that is taken to have one type, and the lengths that arguments have, too."""

    def __init__(self, t: ArrayType, params: Sequence[Type]) -> None:
        self.t = t
        self.kind = t.dtype
        self.places: dict[int, tuple[int, int]] = {}  # an axis: that of an argument
        self.lengths = {axis: d for axis, d in enumerate(t.shape) if isinstance(d, int)}
        for k, p in enumerate(params):
            for at, d in enumerate(p.shape if isinstance(p, ArrayType) else ()):
                for axis, other in enumerate(t.shape):
                    if other == d and axis not in self.lengths:
                        self.places.setdefault(axis, (k, at))

    def test(self, y: str, kind: str) -> str:
        """Source for whether a value needs no look."""
        tests = [f"type({y}) is ndarray", f"{y}.dtype is {kind}", f"{y}.flags.aligned"]
        lengths = {axis: str(n) for axis, n in self.lengths.items()}
        lengths |= {axis: f"x{k}.shape[{at}]" for axis, (k, at) in self.places.items()}
        if len(lengths) == self.t.ndim:
            whole = tuple_text([lengths[axis] for axis in range(self.t.ndim)])
            return " and ".join([*tests, f"{y}.shape == {whole}"])
        tests.append(f"{y}.ndim == {self.t.ndim}")
        return " and ".join([*tests, *(f"{y}.shape[{axis}] == {n}" for axis, n in lengths.items())])

    def other(self, y: Any, given: Any) -> Any:
        """Another value, if it is an array of the type all the same."""
        y = np.asarray(y)
        if y.dtype != self.t.dtype or y.ndim != self.t.ndim or not y.flags.aligned:
            raise ValueError(NO_FLOAT)
        places = {axis: given[k].shape[at] for axis, (k, at) in self.places.items()}
        if any(y.shape[axis] != n for axis, n in (self.lengths | places).items()):
            raise ValueError(BROADCAST)
        return y
