"""Functions expressed by simpler ones, for a backend that has a form for those only.

What NumPy and SciPy write in Python, in terms of a few functions in C, is written here in such
terms again, on symbols. Each function returns None for arguments that it does not support: then the
call is left as it is.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.register_into import enter_into
from fwdad.errors import UntraceableError
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.einsum_letters import written_out
from fwdad.ir.ops import Apply, Block, Op, Program, Value, map_values, values_in
from fwdad.ir.rewrite import with_blocks, with_ops
from fwdad.ir.symbol import Symbol
from fwdad.rules.core.registry import function_name
from fwdad.transforms.passes.small.elements import POWERS

_EXPANSIONS: dict[str, Callable[..., Any]] = {}
_ANY_LENGTH = 32  # of axes of which no example has told


def expands(
    *names: str, kinds: str = "", arrays: int = 0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a decomposition of functions, given by their dotted names.

    It is one for a first argument whose dtype is of some ``kinds``, and for first arguments that
    are ``arrays`` with axes.
    """

    def register(decomposition: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(decomposition)
        def where_it_fits(*args: Any, **kwargs: Any) -> Any:
            operands = [*args, *kwargs.values()]
            if kinds and kind_of(operands[0]) not in kinds:
                return None
            return decomposition(*args, **kwargs) if has_axes(*operands[:arrays]) else None

        return enter_into(_EXPANSIONS, names)(where_it_fits)

    return register


def kind_of(x: Any) -> str:
    """The kind of an argument's dtype."""
    return getattr(x, "dtype", np.dtype(object)).kind


def has_axes(*xs: Any) -> bool:
    """Whether arguments are arrays with axes."""
    return all(isinstance(x, Symbol) and x.is_array and x.ndim for x in xs)


def expanded(program: Program) -> Program:
    """A program with calls decomposed into simpler functions; itself if there are none."""
    block = _of_block(program.block)
    return program if block is program.block else dataclasses.replace(program, block=block)


def _of_block(block: Block) -> Block:
    ops: list[Op] = []
    for op in block.ops:
        simpler = _simpler(op) if isinstance(op, Apply) and not op.mutated else None
        if simpler is None:
            ops.append(with_blocks(op, _of_block))
        else:
            ops += simpler
    return with_ops(block, ops)


def _simpler(op: Apply) -> list[Op] | None:
    """The operations that a call decomposes into, or None."""
    function = _EXPANSIONS.get(_name(op.function))
    if function is None and isinstance(op.function, np.ufunc) and set(op.kwargs) == {"dtype"}:
        function = functools.partial(_of_dtype, op.function)
    if function is None:
        return None
    recorder = Recorder()
    recorder.block = Block()
    recorder.place = lambda: op.location
    symbols = {v: Symbol(v, recorder) for v in values_in(op.operands())}
    for v in symbols:
        recorder.lengths.measure(v)
    try:
        args, kwargs = map_values(symbols.__getitem__, [op.args, op.kwargs])
        result = function(
            *args, **{k: a for k, a in kwargs.items() if k != "dtype" or a is not None}
        )
    except (TypeError, UntraceableError):  # arguments that it does not have
        return None
    results = result if isinstance(result, tuple) else (result,)
    values = [getattr(s, "value", None) for s in results]
    fits = len(values) == len(op.outputs) and all(
        isinstance(v, Value) and v not in symbols and _agree(v.type, out.type)
        for v, out in zip(values, op.outputs, strict=True)
    )
    if not fits or len(set(values)) < len(values):
        return None
    renamed = dict(zip(values, op.outputs, strict=True))
    for new in recorder.block.ops:
        new.outputs = tuple(renamed.get(v, v) for v in new.outputs)
        new.replace(lambda v: renamed.get(v, v))
    return _of_block(recorder.block).ops


def _of_dtype(function: np.ufunc, *args: Any, dtype: Any) -> Any:
    """A ufunc with a ``dtype`` argument."""
    return function(
        *(
            a.astype(dtype) if kind_of(a) != "O" and a.is_array and a.dtype != dtype else a
            for a in args
        )
    )


def _name(function: Any) -> str:
    try:
        return function_name(function)
    except (AttributeError, TypeError):
        return ""


def _agree(a: Any, b: Any) -> bool:
    same = type(a) is type(b) and a.dtype == b.dtype and a.ndim == b.ndim
    return same and getattr(a, "python", None) == getattr(b, "python", None)


# -- element by element


@expands("_operator.pow", kinds="fc", arrays=1)
def _power(x: Any, exponent: Any) -> Any:
    known = POWERS.get(exponent) if type(exponent) in (int, float) else None
    # a square has a form of its own, as a product
    return None if known in (None, np.square, np.positive) else known(x)


@expands("numpy.round", "numpy.around", kinds="f")
def _round(a: Any, decimals: Any = 0) -> Any:
    if not isinstance(decimals, int):
        return None
    if not decimals:
        return np.rint(a)
    unit = 10.0 ** abs(decimals)
    return np.rint(a * unit) / unit if decimals > 0 else np.rint(a / unit) * unit


@expands("numpy.fix", kinds="f")
def _fix(x: Any) -> Any:
    return np.trunc(x)


@expands("numpy.angle")
def _angle(z: Any) -> Any:
    return np.arctan2(np.imag(z) if kind_of(z) == "c" else 0.0, np.real(z))


@expands("numpy.heaviside", kinds="f")
def _heaviside(x1: Any, x2: Any) -> Any:
    step = np.where(x1 == 0.0, x2, np.where(x1 > 0.0, 1.0, 0.0))
    return _number(np.where(np.isnan(x1), x1, step))


@expands("numpy.nan_to_num", kinds="f")
def _nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    info = np.finfo(x.dtype)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    return np.where(np.isnan(x), nan, np.where(x == np.inf, high, np.where(x == -np.inf, low, x)))


@expands("numpy.isclose")
def _isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8) -> Any:
    return (np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(b) | (a == b)


@expands("numpy.allclose")
def _allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8) -> Any:
    return bool_of(np.all(_isclose(a, b, rtol, atol)))


def bool_of(x: Any) -> Any:
    """A NumPy number as a Python bool."""
    return x.recorder.apply(bool, (x,), {})


@expands("numpy.isposinf", kinds="f")
def _isposinf(x: Any) -> Any:
    return x == np.inf


@expands("numpy.isneginf", kinds="f")
def _isneginf(x: Any) -> Any:
    return x == -np.inf


@expands("numpy.divmod")
def _divmod(x1: Any, x2: Any) -> Any:
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


@expands("numpy.clip")
def _clip(a: Any, a_min: Any = None, a_max: Any = None, **bounds: Any) -> Any:
    low, high = bounds.get("min", a_min), bounds.get("max", a_max)
    if low is None and high is None:
        return np.positive(a)
    if low is None:
        return np.minimum(a, high)
    return np.maximum(a, low) if high is None else np.minimum(np.maximum(a, low), high)


# -- along axes


def _number(x: Any) -> Any:
    """A 0-d array as a number, which is what reductions return."""
    return x[()] if x.is_array and not x.ndim else x


@expands("numpy.prod", "numpy.mean", "numpy.max", "numpy.min", kinds="fc")
def _of_number(a: Any) -> Any:
    if not isinstance(a, Symbol) or a.is_array:
        return None
    return a.recorder.apply(a.dtype.type, (a,), {})


@expands("numpy.any", "numpy.all")
def _truth(a: Any, axis: Any = None) -> Any:  # noqa: ARG001 (a number has one result)
    if not isinstance(a, Symbol) or a.is_array:
        return None
    return a.recorder.apply(np.bool_, (a,), {})


@expands("numpy.sum")
def _sum(a: Any, axis: Any = None, keepdims: Any = False, where: Any = None) -> Any:
    if where is None:
        return _of_number(a) if axis is None and not keepdims else None
    return np.sum(np.where(where, a, 0), axis=axis, keepdims=keepdims)


@expands("numpy.nansum", kinds="f")
def _nansum(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.sum(_without_nan(a, 0.0), axis=axis, keepdims=keepdims)


@expands("numpy.nanprod", kinds="f")
def _nanprod(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.prod(_without_nan(a, 1.0), axis=axis, keepdims=keepdims)


@expands("numpy.nanmean", kinds="f")
def _nanmean(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _nansum(a, axis, keepdims) / _count(a, axis, keepdims)


@expands("numpy.nanvar", kinds="f")
def _nanvar(a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    off = np.where(np.isnan(a), 0.0, a - _nanmean(a, axis, keepdims=True))
    return np.sum(off * off, axis=axis, keepdims=keepdims) / (_count(a, axis, keepdims) - ddof)


@expands("numpy.nanstd", kinds="f")
def _nanstd(a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    return np.sqrt(_nanvar(a, axis, ddof, keepdims))


@expands("numpy.nanmax", kinds="f")
def _nanmax(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _nan_extreme(np.max, -np.inf, a, axis, keepdims)


@expands("numpy.nanmin", kinds="f")
def _nanmin(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _nan_extreme(np.min, np.inf, a, axis, keepdims)


def _nan_extreme(f: Any, least: float, a: Any, axis: Any, keepdims: Any) -> Any:
    extreme = f(_without_nan(a, least), axis=axis, keepdims=keepdims)
    none = np.all(np.isnan(a), axis=axis, keepdims=keepdims)
    return _number(np.where(none, np.nan, extreme))


def _without_nan(a: Any, other: float) -> Any:
    return np.where(np.isnan(a), other, a)


def _count(a: Any, axis: Any, keepdims: Any) -> Any:
    return np.sum(np.where(np.isnan(a), 0.0, 1.0), axis=axis, keepdims=keepdims)


@expands("numpy.median", kinds="f")
def _median(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    if keepdims or not isinstance(axis, (int, type(None))):
        return None
    if axis is None:
        a, axis = np.ravel(a), 0
    axis %= a.ndim
    ordered = np.sort(a, axis=axis)
    n = a.recorder.length(a, axis)
    before = (slice(None),) * axis
    low, high, last = (ordered[(*before, k)] for k in ((n - 1) // 2, n // 2, n - 1))
    return _number(np.where(np.isnan(last), last, (low + high) / 2.0))


@expands("scipy.special.softmax", kinds="f")
def _softmax(x: Any, axis: Any = None) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


@expands("scipy.special.log_softmax", kinds="f")
def _log_softmax(x: Any, axis: Any = None) -> Any:
    most = np.max(x, axis=axis, keepdims=True)
    off = x - np.where(np.isfinite(most), most, 0.0)
    return off - np.log(np.sum(np.exp(off), axis=axis, keepdims=True))


@expands("scipy.special.logsumexp", kinds="f")
def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: Any = False) -> Any:
    """``logsumexp`` with the largest terms apart, so that small ones are not rounded away."""
    if b is not None:
        return None
    most = np.max(a, axis=axis, keepdims=True)
    is_most = a == most
    rest = np.where(is_most, 0.0, np.exp(a - np.where(np.isfinite(most), most, 0.0)))
    count = np.sum(np.where(is_most, 1.0, 0.0), axis=axis, keepdims=keepdims)
    largest = most if keepdims else np.sum(most, axis=axis)
    return np.log1p(np.sum(rest, axis=axis, keepdims=keepdims) / count) + np.log(count) + largest


# -- norms


@expands("numpy.linalg.norm", kinds="fc")
def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A002
    if not isinstance(a, Symbol):
        return None
    axes = tuple(range(a.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    if ord is None or (axis is None and ord in ("f", "fro") and a.ndim == 2):
        return _vector_norm(a, 2, axes, keepdims=keepdims) if ord or keepdims else None
    if len(axes) == 2:
        return _matrix_norm(a, ord, axes, keepdims=keepdims)
    known = ord in (np.inf, -np.inf) or (ord == 2 and not keepdims)
    return None if known or len(axes) != 1 else _vector_norm(a, ord, axes, keepdims=keepdims)


@expands("numpy.linalg.vector_norm")
def _vector_norm(
    x: Any,
    ord: Any = 2,  # noqa: A002
    axis: Any = None,
    *,
    keepdims: Any = False,
) -> Any:
    if not isinstance(ord, (int, float)):
        return None
    size = np.abs(x)
    if ord in (np.inf, -np.inf):
        return (np.max if ord > 0 else np.min)(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum(np.where(x != 0, 1.0, 0.0).astype(size.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        square = np.real(np.conjugate(x) * x) if kind_of(x) == "c" else x * x
        return np.sqrt(np.sum(square, axis=axis, keepdims=keepdims))
    return np.sum(size**ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)


@expands("numpy.linalg.matrix_norm")
def _of_last_axes(x: Any, *, keepdims: Any = False, ord: Any = "fro") -> Any:  # noqa: A002
    return _matrix_norm(x, ord, (-2, -1), keepdims=keepdims)


def _matrix_norm(x: Any, order: Any, axes: tuple[int, ...], *, keepdims: Any) -> Any:
    if order in ("f", "fro"):
        return _vector_norm(x, 2, axes, keepdims=keepdims)
    x = np.moveaxis(x, axes, (-2, -1))
    if order in (1, -1, np.inf, -np.inf):
        sums = np.sum(np.abs(x), axis=-2 if abs(order) == 1 else -1)
    elif order in (2, -2, "nuc"):
        sums = np.linalg.svd(x, compute_uv=False)
    else:
        return None
    if order == "nuc":
        y = np.sum(sums, axis=-1)
    else:
        y = (np.max if order > 0 else np.min)(sums, axis=-1)
    if not keepdims:
        return y
    rank = x.ndim
    return np.expand_dims(y, tuple(sorted(k % rank for k in axes))) if rank > 2 else None


@expands("numpy.linalg.cond")
def _cond(x: Any, p: Any = None) -> Any:
    if p not in (None, 2, -2):
        return None
    s = np.linalg.svd(x, compute_uv=False)
    large, small = (s[0], s[-1]) if x.ndim == 2 else (s[..., 0], s[..., -1])
    ratio = small / large if p == -2 else large / small
    bad = np.isnan(ratio) & ~np.any(np.isnan(x), axis=(-2, -1))
    return _number(np.where(bad, np.inf, ratio))


# -- products


@expands("numpy.tensordot", "numpy.linalg.tensordot")
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if isinstance(axes, int):
        of_a, of_b = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        of_a, of_b = ([k] if isinstance(k, int) else list(k) for k in axes)
    if len(of_a) != len(of_b):
        return None
    if not of_a:
        return a[(..., *[None] * b.ndim)] * b if has_axes(a, b) else a * b
    of_a, of_b = [k % a.ndim for k in of_a], [k % b.ndim for k in of_b]
    rest_a = [k for k in range(a.ndim) if k not in of_a]
    rest_b = [k for k in range(b.ndim) if k not in of_b]
    left, right = np.transpose(a, (*rest_a, *of_a)), np.transpose(b, (*of_b, *rest_b))
    if max(len(rest_a), len(rest_b), len(of_a)) == 1:
        return left @ right
    lengths = [a.recorder.length(x, k) for x, rest in ((a, rest_a), (b, rest_b)) for k in rest]
    inner = _product([a.recorder.length(a, k) for k in of_a])
    rows = _product(lengths[: len(rest_a)])
    columns = _product(lengths[len(rest_a) :])
    product = np.reshape(left, (rows, inner)) @ np.reshape(right, (inner, columns))
    return np.reshape(product, tuple(lengths)) if lengths else product[0, 0]


def _product(lengths: list[Any]) -> Any:
    total: Any = 1
    for n in lengths:
        total = n if type(total) is int and total == 1 else total * n
    return total


@expands("numpy.dot", arrays=2)
def _dot(a: Any, b: Any) -> Any:
    if max(a.ndim, b.ndim) <= 2:
        return None
    return a @ b if b.ndim <= 2 else np.tensordot(a, b, (a.ndim - 1, b.ndim - 2))


@expands("numpy.einsum")
def _einsum(subscripts: Any, *operands: Any, optimize: Any = False) -> Any:
    """A planned einsum of three operands is some of two."""
    if not optimize or len(operands) < 3 or not has_axes(*operands):
        return None
    return _in_pairs(subscripts, list(operands), optimize)


def _in_pairs(subscripts: str, operands: list[Any], optimize: Any) -> Any:
    """Products of two operands at a time, in NumPy's order for lengths as in the example."""
    terms, result = written_out(subscripts, [x.ndim for x in operands])
    lengths: dict[str, int] = {}
    for letter, d in zip("".join(terms), (d for x in operands for d in x.type.shape), strict=True):
        n = d if isinstance(d, int) else d.hint or _ANY_LENGTH
        lengths[letter] = max(lengths.get(letter, 1), n)
    whole = ",".join(terms) + "->" + result
    views = [np.broadcast_to(0.0, [lengths[c] for c in term]) for term in terms]
    path, _ = np.einsum_path(whole, *views, optimize=optimize)
    for step in path[1:]:
        places = sorted(step, reverse=True)
        some, factors = [terms.pop(k) for k in places], [operands.pop(k) for k in places]
        left = {*result, *"".join(terms)}
        kept = "".join(dict.fromkeys(c for c in "".join(reversed(some)) if c in left))
        term = kept if terms else result
        last = not terms  # only then whether it is planned tells a number from a 0-d array
        terms.append(term)
        operands.append(np.einsum(",".join(some) + "->" + term, *factors, optimize=last))
    return operands[0]


@expands("numpy.linalg.matmul")
def _matmul(x1: Any, x2: Any) -> Any:
    return x1 @ x2


@expands("numpy.linalg.outer")
def _outer(x1: Any, x2: Any) -> Any:
    return np.outer(x1, x2)


@expands("numpy.vecdot", "numpy.linalg.vecdot")
def _vecdot(x1: Any, x2: Any) -> Any:
    return np.sum(np.conjugate(x1) * x2 if kind_of(x1) == "c" else x1 * x2, axis=-1)


@expands("numpy.matvec")
def _matvec(x1: Any, x2: Any) -> Any:
    return (x1 @ x2[..., None])[..., 0]


@expands("numpy.linalg.diagonal")
def _diagonal(x: Any, offset: Any = 0) -> Any:
    return np.diagonal(x, offset, -2, -1)


@expands("numpy.linalg.matrix_transpose")
def _matrix_transpose(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)
