"""``np.vectorize``: loops of calls, traced in line."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import CALLED, builtin
from fwdad.frontend.numpy_sources import vectorized
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.symbols import OfFunction, OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Apply, Block, type_of_operand, walk
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import number_type

_PYTHON: dict[str, Any] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


class Vectorized(OfFunction):
    """A function of the trace under ``np.vectorize``; ``options`` has the same options."""

    kind = np.vectorize

    def __init__(self, function: Any, options: np.vectorize) -> None:
        self.function = self.like = function
        self.options = options


class Decorator(OfTrace):
    """The result of ``np.vectorize(otypes=…)``, to be called with a function."""

    def __init__(self, options: np.vectorize) -> None:
        self.options = options


@builtin(np.vectorize)
def _vectorize(tracer: Tracer, pyfunc: Any = None, *args: Any, **kwargs: Any) -> Any:
    if mentions_symbols((args, kwargs)):
        _refuse(tracer, "with options that are unknown at trace time")
    if pyfunc is None:
        return Decorator(native(lambda: np.vectorize(**kwargs)))
    stand_in = pyfunc if not isinstance(pyfunc, OfTrace) else _stands_for_it
    options = native(lambda: np.vectorize(stand_in, *args, **kwargs))
    return Vectorized(pyfunc, options)


def _stands_for_it(*_args: Any) -> None:
    """A placeholder for a function that is not known yet."""


def _of_trace(tracer: Tracer, f: Vectorized, args: Any, kwargs: Any) -> Any:
    return _call(tracer, f.function, f.options, args, kwargs)


def _from_outside(tracer: Tracer, f: Any, args: Any, kwargs: Any) -> Any:
    if not callable(f.pyfunc) or f.pyfunc is getattr(np, "_NoValue", None):
        return Vectorized(args[0], f)
    return _call(tracer, f.pyfunc, f, args, kwargs)


CALLED[Vectorized] = _of_trace
CALLED[np.vectorize] = _from_outside
CALLED[Decorator] = lambda _tracer, f, args, _kwargs: Vectorized(args[0], f.options)


class _Rest(OfTrace):
    """A call in which only some of the arguments are looped over."""

    def __init__(self, function: Any, args: Any, kwargs: Any, places: Any, names: Any) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.places = places
        self.names = names


def _call_rest(tracer: Tracer, f: _Rest, args: Any, _kwargs: Any) -> Any:
    positional = list(f.args)
    for place, x in zip(f.places, args, strict=False):
        positional[place] = x
    named = dict(zip(f.names, args[len(f.places) :], strict=True))
    return tracer.call(f.function, tuple(positional), {**f.kwargs, **named})


CALLED[_Rest] = _call_rest


def _call(tracer: Tracer, function: Any, options: Any, args: Any, kwargs: Any) -> Any:
    """Call a function under ``np.vectorize``."""
    if kwargs or options.excluded:
        names = [name for name in kwargs if name not in options.excluded]
        places = [k for k in range(len(args)) if k not in options.excluded]
        function = _Rest(function, args, kwargs, places, names)
        args = (*(args[k] for k in places), *(kwargs[name] for name in names))
    if not args and options.signature is None:
        return tracer.call(function, (), {})
    arrays = [tracer.call(np.asarray, (a,), {}) for a in args]
    if any(a.dtype.kind not in _PYTHON for a in arrays):
        _refuse(tracer, "on arrays that do not hold numbers")
    dtypes = None if options.otypes is None else [np.dtype(t) for t in options.otypes]
    if dtypes is not None and any(t.kind not in _PYTHON for t in dtypes):
        _refuse(tracer, "whose results are not numbers")
    if options.signature is not None:
        results = _by_parts(tracer, function, options, arrays, dtypes)
    else:
        results = _by_elements(tracer, function, options, arrays, dtypes)
    return tuple(results) if len(results) != 1 else results[0]


def _by_elements(tracer: Tracer, function: Any, options: Any, arrays: Any, dtypes: Any) -> Any:
    rows = tracer.call(vectorized.elements, (arrays,), {})
    like = tracer.call(vectorized.like_result, (arrays,), {})
    first: tuple[Any, ...] = ()
    if dtypes is None:
        first = _first(tracer, function, rows, known=False)
        dtypes = [_dtype(tracer, x) for x in first]
    known_first = first if options.cache else ()
    kinds = tuple(_PYTHON[a.dtype.kind] for a in arrays)
    one = _Numbers(function, len(dtypes))
    return tracer.call(
        vectorized.over_elements, (one, rows, like, kinds, tuple(dtypes), known_first), {}
    )


class _Numbers(OfTrace):
    """A function that must return ``count`` numbers, or arrays by a signature."""

    def __init__(self, function: Any, count: int, ranks: tuple[int, ...] | None = None) -> None:
        self.function = function
        self.count = count
        self.ranks = (0,) * count if ranks is None else ranks


def _call_numbers(tracer: Tracer, f: _Numbers, args: Any, kwargs: Any) -> Any:
    found = tracer.call(f.function, args, kwargs)
    results = found if isinstance(found, tuple) else (found,)
    if len(results) != f.count or tuple(_rank(tracer, x) for x in results) != f.ranks:
        _refuse(tracer, "of a function whose results differ in number or in rank")
    return found


CALLED[_Numbers] = _call_numbers


def _by_parts(tracer: Tracer, function: Any, options: Any, arrays: Any, dtypes: Any) -> Any:
    inputs, outputs = options._in_and_out_core_dims
    if len(arrays) != len(inputs):
        message = f"wrong number of positional arguments: expected {len(inputs)}, got {len(arrays)}"
        raise AlwaysRaises(TypeError, (message,))
    ranks = [len(core) for core in inputs]
    outer = [a.ndim - rank for a, rank in zip(arrays, ranks, strict=True)]
    if min(outer) < 0:
        message = "an argument does not have enough dimensions for all core dimensions"
        raise AlwaysRaises(ValueError, (message,))
    lengths: dict[str, list[Any]] = {}

    def note(array: Any, core: Any) -> None:
        shape = tracer.attribute(array, "shape")
        for name, n in zip(core, shape[len(shape) - len(core) :], strict=True):
            lengths.setdefault(name, []).append(n)

    for array, core in zip(arrays, inputs, strict=True):
        note(array, core)
    axes = max(outer)
    if any(n not in (0, axes) for n in outer):
        _refuse(
            tracer,
            "with a signature, on arrays that need broadcasting (call np.broadcast_to first),",
        )
    looped = tuple(n > 0 for n in outer)
    over = [a for a, goes in zip(arrays, looped, strict=True) if goes]
    ones = {tuple(n == 1 for n in tracer.recorder.as_symbol(a).type.shape[:axes]) for a in over}
    if len(ones) > 1:
        _refuse(
            tracer,
            "with a signature, on arrays that need broadcasting (call np.broadcast_to first),",
        )
    shapes = [tracer.attribute(a, "shape")[:axes] for a in over]
    tracer.call(vectorized.check_apart_from_core, (shapes,), {})
    for first_parts in lengths.values():
        tracer.call(vectorized.check_lengths, (first_parts,), {})
    counted = [len(core) for core in outputs]
    one = _Numbers(function, len(outputs), tuple(counted))
    if not axes:
        first = _first(tracer, one, arrays, known=dtypes is not None, whole=True)
    else:
        arrays = [
            tracer.call(vectorized.parts, (a, rank), {}) if goes else a
            for a, rank, goes in zip(arrays, ranks, looped, strict=True)
        ]
        n = tracer.recorder.length(arrays[looped.index(True)], 0)
        tracer.call(vectorized.check_some, (n,), {})
        first_parts = [
            tracer.subscript(a, 0) if goes else a for a, goes in zip(arrays, looped, strict=True)
        ]
        first = _first(tracer, one, first_parts, known=dtypes is not None, whole=True)
    first = tuple(tracer.call(np.asarray, (x,), {}) for x in first)
    for x, core in zip(first, outputs, strict=True):
        note(x, core)
    for first_parts in lengths.values():
        tracer.call(vectorized.check_lengths, (first_parts,), {})
    types = tuple(dtypes or [x.dtype for x in first])
    if not axes:
        return [
            tracer.call(np.array, (x,), {"dtype": t}) for x, t in zip(first, types, strict=True)
        ]
    run = (one, arrays, looped, shapes[0], types, first)
    return tracer.call(vectorized.over_parts, run, {})


def _first(
    tracer: Tracer, function: Any, rows: Any, *, known: bool, whole: bool = False
) -> tuple[Any, ...]:
    """The first results, which determine the types of all."""
    recorder = tracer.recorder
    before, widened = len(recorder.block.ops), recorder.widened
    if whole:
        result = tracer.call(function, tuple(rows), {})
    else:
        result = tracer.call(vectorized.first_result, (function, rows), {})
    run = Block(ops=recorder.block.ops[before:])
    if not known and (recorder.widened != widened or any(map(_mixes, walk(run)))):
        _refuse(
            tracer,
            "without `otypes` (NumPy takes the type of the first result, which is unknown at "
            "trace time; give `otypes=[float]`) of a function that returns, or computes with, "
            "ints on one path and floats on another",
        )
    return result if isinstance(result, tuple) else (result,)


def _mixes(op: Any) -> bool:
    """Whether the kind of an operation's result depends on values."""
    if not isinstance(op, Apply) or op.function not in (max, min, pow):
        return False
    kinds = [type_of_operand(x).dtype.kind for x in op.args]
    return len(set(kinds)) > 1


def _rank(tracer: Tracer, x: Any) -> int:
    if type(x) is Symbol:
        return len(x.shape) if x.is_array else 0
    if isinstance(x, np.ndarray):
        return x.ndim
    if number_type(x) is None:
        _refuse(tracer, "of a function whose results are not numbers")
    return 0


def _dtype(tracer: Tracer, x: Any) -> Any:
    if _rank(tracer, x):
        _refuse(tracer, "of a function whose results are not numbers")
    t: Any = x.type if type(x) is Symbol else number_type(x)
    return t.dtype


def _refuse(tracer: Tracer, what: str) -> None:
    raise UntraceableError(f"`np.vectorize` {what} cannot be traced", tracer.position.location())
