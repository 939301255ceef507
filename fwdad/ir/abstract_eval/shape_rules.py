"""Result types of functions whose shape is an argument, or follows from the arguments' shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.abstract_eval import image_shapes, internal_shapes
from fwdad.ir.abstract_eval.samples import sample_of
from fwdad.ir.abstract_eval.shapes import joined_shapes, shape_of
from fwdad.ir.ops import Operand, Value
from fwdad.ir.types import (
    ArrayType,
    CannotInferError,
    Dimension,
    Number,
    Size,
    Type,
    number_type,
    product,
)
from fwdad.tangents import sparse
from fwdad.tangents.linear_map import mapped


def _lengths(shape: Operand) -> tuple[Dimension, ...]:
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(_length(item) for item in items)


def _length(item: Operand) -> Dimension:
    if isinstance(item, Value):
        if item.type.ndim:
            message = "the shape is given by an array whose contents are unknown until run time"
            raise CannotInferError(message)
        return getattr(item.type, "size", None) or Size()
    return int(item) if item != -1 else Size()


def _new_array(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    shape = args[0] if args else kwargs["shape"]
    dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
    return ArrayType(np.dtype(float if dtype is None else dtype), _lengths(shape))


def _filled(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    shape = args[0]
    fill = args[1] if len(args) > 1 else kwargs["fill_value"]
    dtype = args[2] if len(args) > 2 else kwargs.get("dtype")
    if dtype is None:
        held = fill.type if isinstance(fill, Value) else None
        dtype = held.dtype if held is not None else np.asarray(fill).dtype
    return ArrayType(np.dtype(dtype), _lengths(shape))


def _reshaped(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    a = args[0]
    own = a.type if isinstance(a, Value) else ArrayType(np.asarray(a).dtype, np.shape(a))
    shape = args[1] if len(args) > 1 else kwargs.get("shape", kwargs.get("newshape"))
    lengths = _lengths(shape)
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
    rest = [k for k, item in enumerate(items) if isinstance(item, int) and item == -1]
    if len(rest) == 1:
        others = tuple(n for k, n in enumerate(lengths) if k != rest[0])
        lengths = tuple(
            _quotient(own.shape, others) if k == rest[0] else n for k, n in enumerate(lengths)
        )
    return ArrayType(own.dtype, lengths)


def _quotient(shape: tuple[Dimension, ...], others: tuple[Dimension, ...]) -> Dimension:
    """The quotient of a product of lengths by lengths that are factors of it; else a new one."""
    number, factors = _factors(shape)
    by, taken = _factors(others)
    for f in taken:
        if f not in factors:
            return Size()
        factors.remove(f)
    return product(number // by, tuple(factors)) if by and number % by == 0 else Size()


def _factors(lengths: tuple[Dimension, ...]) -> tuple[int, list[Size]]:
    number = 1
    factors: list[Size] = []
    for n in lengths:
        if isinstance(n, Size):
            number *= n.factors[0]
            factors += n.factors[1]
        else:
            number *= n
    return number, factors


def _ranged(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    given = {**dict(zip(("start", "stop", "step", "dtype"), args, strict=False)), **kwargs}
    start, stop, step = (given.get(name) for name in ("start", "stop", "step"))
    if stop is None:  # one number is where it ends
        start, stop = 0, start
    parts = [0 if start is None else start, stop, 1 if step is None else step]
    dtype = given.get("dtype")
    if dtype is None:
        numbers = [sample_of(a.type, {}) if isinstance(a, Value) else a for a in parts]
        dtype = np.result_type(*(np.asarray(p).dtype for p in numbers))
    if any(isinstance(a, Value) for a in parts):
        start, stop, step = parts
        upwards = type(start) is int and start == 0 and type(step) is int and step == 1
        return ArrayType(np.dtype(dtype), (_length(stop) if upwards else Size(),))
    return ArrayType(np.dtype(dtype), (len(np.arange(*parts)),))


def _argument(args: Operand, kwargs: dict[str, Operand], k: int, name: str) -> Any:
    return args[k] if len(args) > k else kwargs[name]


def _along(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    arr, indices = (_argument(args, kwargs, k, n) for k, n in ((0, "arr"), (1, "indices")))
    axis = args[2] if len(args) > 2 else kwargs.get("axis", -1)
    shape = shape_of(indices, {})
    if axis is None:
        return ArrayType(arr.type.dtype, shape)
    if len(shape) != arr.type.ndim or not -len(shape) <= axis < len(shape):
        message = "indices and array must have the same rank, and axis must be less than it"
        raise CannotInferError(message)
    own = list(arr.type.shape)
    own[axis] = shape[axis]  # as many as are taken
    dims = [joined_shapes([(m,), (n,)])[0] for m, n in zip(own, shape, strict=True)]
    return ArrayType(arr.type.dtype, tuple(dims))


def _taken(args: Operand, kwargs: dict[str, Operand]) -> Type:
    """``np.take``, whose index values may be out of bounds for a sample."""
    a, indices = (_argument(args, kwargs, k, n) for k, n in ((0, "a"), (1, "indices")))
    axis = args[2] if len(args) > 2 else kwargs.get("axis")
    own, dtype = _shape_of_any(a), a.type.dtype if isinstance(a, Value) else np.asarray(a).dtype
    if axis is None:
        axis, own = 0, (1,)
    elif not isinstance(axis, int) or not -len(own) <= axis < len(own):
        raise CannotInferError(f"axis {axis} is out of bounds for an array of rank {len(own)}")
    axis %= len(own)
    shape = (*own[:axis], *_shape_of_any(indices), *own[axis + 1 :])
    return ArrayType(dtype, shape) if shape else Number(dtype, python=False)


def _windowed(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    """``sliding_window_view``, whose window may be longer than a sample."""
    x, view = (_argument(args, kwargs, k, n) for k, n in ((0, "x"), (1, "window_shape")))
    axis = args[2] if len(args) > 2 else kwargs.get("axis")
    dims, lengths = list(x.type.shape), _lengths(view)
    axes = range(len(dims)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) != len(lengths) or not all(-len(dims) <= k < len(dims) for k in axes):
        raise CannotInferError("the window must have a length for each axis")
    for k, m in zip(axes, lengths, strict=True):
        n = dims[k]
        dims[k] = n - m + 1 if isinstance(n, int) and isinstance(m, int) else Size()
    return ArrayType(x.type.dtype, (*dims, *lengths))


def _summed(args: Operand, kwargs: dict[str, Operand]) -> ArrayType | None:
    """``np.einsum`` of arrays whose axes have letters; samples do not tell which of two are equal.

    None for the other forms of a call.
    """
    subscripts, *operands = args
    if not isinstance(subscripts, str) or "." in subscripts or kwargs.keys() - {"optimize"}:
        return None
    inputs, _, result = subscripts.replace(" ", "").partition("->")
    shapes = [_shape_of_any(a) for a in operands]
    terms = inputs.split(",")
    if not result or len(terms) < 2 or [*map(len, terms)] != [*map(len, shapes)]:
        return None
    lengths: dict[str, Dimension] = {}
    for letter, d in zip("".join(terms), (d for shape in shapes for d in shape), strict=True):
        lengths[letter] = joined_shapes([(lengths.get(letter, 1),), (d,)])[0]
    if not lengths.keys() >= {*result}:
        return None
    dtypes = [a.type.dtype if isinstance(a, Value) else np.asarray(a).dtype for a in operands]
    return ArrayType(np.result_type(*dtypes), tuple(lengths[c] for c in result))


def _shape_of_any(x: Operand) -> tuple[Dimension, ...]:
    return x.type.shape if isinstance(x, Value) else np.shape(x)


def _sparse_product(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    data, x = (_argument(args, kwargs, k, name).type for k, name in enumerate(("data", "x")))
    rows, _ = _argument(args, kwargs, 5, "shape")
    dtype = np.result_type(data.dtype, x.dtype)
    return ArrayType(dtype, (_length(rows), *x.shape[1:]))


def _sparse_solve(args: Operand, kwargs: dict[str, Operand]) -> tuple[Type, Type]:
    b = _argument(args, kwargs, 1, "b").type
    return ArrayType(b.dtype, b.shape), number_type(0)  # type: ignore[return-value]


def _scattered(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    values = _argument(args, kwargs, 0, "values").type
    return ArrayType(values.dtype, (_length(_argument(args, kwargs, 2, "size")),))


def _solved(k: int) -> Callable[..., Any]:
    """The rule for a solver whose result has the shape of the k-th argument (right-hand sides)."""

    def solution(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
        ab, b = (_argument(args, kwargs, j, n).type for j, n in ((k - 1, "ab"), (k, "b")))
        dtype = np.result_type(ab.dtype, b.dtype)
        return ArrayType(dtype if dtype.kind in "fc" else np.dtype(float), b.shape)

    return solution


def _solved_by_pivots(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    factors, b = (_argument(args, kwargs, k, n) for k, n in ((0, "lu_and_piv"), (1, "b")))
    if not isinstance(factors, tuple) or factors[0].type.ndim != 2:
        raise CannotInferError("it solves with stacks of factors")
    return _solved(1)((factors[0], b), {})


def _of_states(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    """The solution of Riccati's equation, a matrix of the shape of a."""
    names = ["a", "b", "q", "r", *(["s"] if kwargs.get("s") is not None else [])]
    given = [_argument(args, kwargs, k, name).type for k, name in enumerate(names)]
    is_complex = any(t.dtype.kind == "c" for t in given)
    return ArrayType(np.dtype(complex if is_complex else float), given[0].shape)


def _mapped(_args: Operand, _kwargs: dict[str, Operand]) -> ArrayType:
    """A map calls user code, and only that knows the length of its vectors."""
    return ArrayType(np.dtype(float), (Size(),))


# Bands of ones are singular, and not all systems can be stabilised; pivots are indices that LAPACK
# does not check.
BY_NAME: dict[str, Callable[..., Any]] = {
    "scipy.linalg.solve_banded": _solved(2),
    "scipy.linalg.solveh_banded": _solved(1),
    "scipy.linalg.lu_solve": _solved_by_pivots,
    "scipy.linalg.solve_continuous_are": _of_states,
    "scipy.linalg.solve_discrete_are": _of_states,
    **image_shapes.BY_NAME,
}

# The sparse kernels read memory at places that are values: they are not tried on samples.
BY_SHAPE: dict[Any, Callable[..., Any]] = {
    sparse.sparse_product: _sparse_product,
    sparse.sparse_solve: _sparse_solve,
    sparse.scatter_add: _scattered,
    mapped: _mapped,
    np.zeros: _new_array,
    np.ones: _new_array,
    np.empty: _new_array,
    np.full: _filled,
    np.reshape: _reshaped,
    np.broadcast_to: _reshaped,
    np.arange: _ranged,
    np.take_along_axis: _along,
    np.take: _taken,
    np.einsum: _summed,
    np.lib.stride_tricks.sliding_window_view: _windowed,
}
internal_shapes.enter(BY_SHAPE)
