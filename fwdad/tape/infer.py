"""What type a function's result has, found by calling it on small samples of the same types."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.tangents import sparse
from fwdad.tangents.quiet import quietly
from fwdad.tape.ops import Missing, Operand, Value, map_values, values_in
from fwdad.tape.types import (
    ArrayType,
    Dimension,
    Number,
    Size,
    Type,
    joined,
    number_type,
    product,
    smallest,
)

# Unknown lengths get two sets of small, distinct numbers: what varies with them is unknown too.
_ANY = Size()  # numbers that are not lengths
_FIRST = (2, 3, 5, 7, 11, 13, 17, 19)
_SECOND = (16, 15, 14, 10, 9, 8, 6, 4)  # falling: the smaller of two is not the same one

_ELEMENTWISE = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.neg, operator.pos, operator.invert, operator.and_, operator.or_,
    operator.xor, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    abs,
}  # fmt: skip

# Functions whose arguments broadcast against each other; others say so by adding themselves.
BROADCASTING: set[Any] = {*_ELEMENTWISE, np.clip}

_MOST_SIZES = 5
_MOST_PATTERNS = 400

# The length of the result depends on values.
_DATA_SHAPED = {
    np.unique, np.nonzero, np.flatnonzero, np.argwhere, np.compress, np.extract, np.trim_zeros,
    np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, np.bincount, np.unique_all,
    np.unique_counts, np.unique_inverse, np.unique_values,
}  # fmt: skip

# Matrices must be square: their two lengths are one.
_OF_SQUARES = {
    np.linalg.eigh, np.linalg.eigvalsh, np.linalg.cholesky, np.linalg.inv, np.linalg.det,
    np.linalg.slogdet, np.linalg.solve, np.linalg.matrix_power,
}  # fmt: skip
# The smaller length of a matrix is one of the result's.
_OF_RECTANGLES = {np.linalg.qr, np.linalg.svd, np.linalg.svdvals}

_DATA_SHAPED_BY_NAME = {"numpy.linalg.lstsq", "scipy.linalg.lstsq"}

# The dtype of the result depends on values.
DATA_TYPED = {np.linalg.eig, np.linalg.eigvals, np.roots, np.real_if_close}
_DATA_TYPED_BY_NAME = {"scipy.linalg.eig", "scipy.linalg.eigvals"}
# The same, of real numbers.
_DATA_TYPED_IF_REAL = {
    np.emath.sqrt, np.emath.log, np.emath.log2, np.emath.log10, np.emath.logn, np.emath.power,
    np.emath.arccos, np.emath.arcsin, np.emath.arctanh,
}  # fmt: skip


# Not everything is defined at one, nor is an array of ones regular when it is made a matrix (None).
_OTHER_SCALES: dict[str, tuple[float | None, ...]] = {
    "math": (0.5,), "cmath": (0.5,), "scipy.special": (8.0,), "numpy.linalg": (None,),
}  # fmt: skip


class CannotInferError(TypeError):
    """No sample of the arguments' types could be evaluated."""


def infer(
    function: Callable[..., Any],
    args: Operand,
    kwargs: dict[str, Operand],
    known: dict[Size, int] | None = None,
) -> Any:
    """The type of ``function(*args, **kwargs)``.

    Parameters
    ----------
    function : callable
        Without side effects.
    args, kwargs
        Operands.
    known : dict, optional
        Lengths that are assumed.

    Returns
    -------
    Number, ArrayType, or a tuple or list of these
        A constant (None, a string) is returned as it is.

    Raises
    ------
    CannotInferError
        If the function raises for every sample, or its type depends on values.
    """
    real = function in _DATA_TYPED_IF_REAL and all(
        value.type.dtype.kind != "c" for value in values_in([args, kwargs])
    )
    if real or function in DATA_TYPED or _is_data_typed(function):
        message = "the dtype of its result depends on values"
        raise CannotInferError(message)
    broadcasts = function in BROADCASTING or (function is np.where and len(args) == 3)
    if broadcasts or (isinstance(function, np.ufunc) and not function.signature):
        return _broadcast(function, args, kwargs, known or {})
    special = _BY_SHAPE.get(function) or _BY_NAME.get(_full_name(function))
    if special is not None:
        return special(args, kwargs)
    sizes: list[Size] = []
    for value in values_in([args, kwargs]):
        own = value.type.size if isinstance(value.type, Number) else None
        for d in (*value.type.shape, own):
            if isinstance(d, Size) and d not in sizes and not (known and d in known):
                sizes.append(d)
    known = known or {}
    lengths = _known_lengths(args, kwargs, known)
    reason: Exception | None = None
    for samples in _assignments(sizes, lengths):
        full = [{**known, **s} for s in samples]
        try:
            first, second = (_sample(function, args, kwargs, s) for s in full)
        except Exception as error:  # noqa: BLE001  (whatever it is, other lengths are tried)
            reason = reason or error
            continue
        break
    else:
        assert reason is not None
        raise CannotInferError(_reason(reason)) from reason
    samples = full
    guess = function in _ELEMENTWISE or isinstance(function, np.ufunc) or function in _OF_SQUARES
    if _is_data_shaped(function, args, kwargs):
        return _type(first, second, None)
    key = _key(function, [args, kwargs])
    dimensions = _Dimensions(samples, sizes, key, guess=guess)
    if function in _OF_RECTANGLES and isinstance(args[0], Value):
        rows, columns = args[0].type.shape[-2:]
        dimensions.rectangle = (rows, columns)
    if sizes and not guess:
        dimensions.chance = _by_chance(function, args, kwargs, samples, first, second)
    return _type(first, second, dimensions)


def _by_chance(
    function: Callable[..., Any],
    args: Operand,
    kwargs: dict[str, Operand],
    samples: list[dict[Size, int]],
    first: Any,
    second: Any,
) -> set[tuple[int, int]]:
    """The lengths of a result that are alike in two samples, and not in a third one.

    The difference of two lengths may be the same number twice (``np.convolve(…, "valid")``).
    """
    a, b = samples
    third = {s: a[s] if a[s] == b[s] else a[s] * b[s] % 31 + 2 for s in a}
    try:
        found = _sample(function, args, kwargs, third)
    except Exception:  # noqa: BLE001  (these lengths do not go together)
        return set()
    lengths = zip(_shapes(first), _shapes(second), _shapes(found), strict=False)
    return {(m, n) for m, n, k in lengths if m == n != k}


def _shapes(x: Any) -> Iterator[int]:
    """The lengths of all arrays in a result, one after another."""
    if isinstance(x, (tuple, list)):
        for item in x:
            yield from _shapes(item)
    elif isinstance(x, np.ndarray):
        yield from x.shape


def _is_data_shaped(
    function: Callable[..., Any], args: Operand, kwargs: dict[str, Operand]
) -> bool:
    if function is np.where:
        return len(args) == 1
    if function in (np.repeat, np.delete, np.insert):  # by an array of counts, or of places
        given = (*args[1:2], *(kwargs[key] for key in ("repeats", "obj") if key in kwargs))
        return any(True for _ in values_in(given))
    # the residuals of least squares are there where the matrix has full rank
    return function in _DATA_SHAPED or _full_name(function) in _DATA_SHAPED_BY_NAME


def _full_name(function: Callable[..., Any]) -> str:
    home = (getattr(function, "__module__", None) or "").partition("._")[0]
    return f"{home}.{getattr(function, '__name__', '')}"


def _is_data_typed(function: Callable[..., Any]) -> bool:
    return _full_name(function) in _DATA_TYPED_BY_NAME


def _known_lengths(args: Operand, kwargs: dict[str, Operand], known: dict[Size, int]) -> list[int]:
    """The lengths, other than 1, that operands are known to have."""
    found = {known.get(d, d) if isinstance(d, Size) else d for v in values_in([args, kwargs])
             for d in v.type.shape}  # fmt: skip
    return sorted(d for d in found if isinstance(d, int) and d > 1)


def _assignments(sizes: list[Size], lengths: list[int]) -> Iterator[list[dict[Size, int]]]:
    """Two samples of the unknown lengths at a time, all free first.

    Then some of them must agree, with each other or with a known length, for the function to
    run; what has to agree is tried, the fewest agreements first. A third way keeps the numbers that
    are no lengths alike.
    """
    for k in (2, 1):
        yield [
            {**dict(zip(sizes, numbers, strict=False)), _ANY: m}
            for m, numbers in ((1, _FIRST), (k, _SECOND))
        ]
    if not sizes or len(sizes) > _MOST_SIZES:
        return
    choices = []
    for k, _ in enumerate(sizes):
        free: list[Any] = [("free", k)]
        choices.append([*free, *(("same", j) for j in range(k)), *(("is", n) for n in lengths)])
    patterns = sorted(
        itertools.product(*choices), key=lambda p: sum(kind != "free" for kind, _ in p)
    )
    for pattern in patterns[1:_MOST_PATTERNS]:
        yield [_sampled(sizes, pattern, numbers) for numbers in (_FIRST, _SECOND)]


def _sampled(sizes: list[Size], pattern: Any, numbers: tuple[int, ...]) -> dict[Size, int]:
    made: dict[Size, int] = {_ANY: 1}
    for size, (kind, k), number in zip(sizes, pattern, numbers, strict=False):
        made[size] = number if kind == "free" else made[sizes[k]] if kind == "same" else k
    return made


def _broadcast(
    function: Callable[..., Any], args: Operand, kwargs: dict[str, Operand], known: dict[Size, int]
) -> Any:
    """An elementwise function: shapes broadcast, and one element tells the dtype."""
    made = _element(function, args, kwargs)
    shapes = [_shape_of(a, known) for a in (*args, *kwargs.values())]
    return _with_shape(made, _joined(shapes))


_ELEMENTS: dict[Any, Any] = {}
_ELEMENTS_KEPT = 4096


def _element(function: Callable[..., Any], args: Operand, kwargs: dict[str, Operand]) -> Any:
    """What an elementwise function answers for one element; what has been tried is known."""

    def single(value: Value) -> Any:
        t = value.type
        return sample_of(t, {}) if isinstance(t, Number) else np.ones((1,) * t.ndim, t.dtype)

    key = None if kwargs else (function, *map(_element_key, args))
    made = _ELEMENTS.get(key) if key is not None and None not in key else None
    if made is not None:
        return made
    try:
        made = quietly(lambda: function(*_concrete(single, args), **_concrete(single, kwargs)))
    except Exception as error:
        raise CannotInferError(_reason(error)) from error
    if key is not None and None not in key:
        if len(_ELEMENTS) >= _ELEMENTS_KEPT:
            _ELEMENTS.clear()
        _ELEMENTS[key] = made
    return made


def _element_key(operand: Operand) -> Any:
    """Equal for operands that stand for equal samples; None where that is not sure."""
    if isinstance(operand, Value):
        t = operand.type
        return (t.dtype, t.python) if isinstance(t, Number) else (t.dtype, t.ndim, "array")
    return (type(operand), operand) if type(operand) in (int, float, bool) else None


def _with_shape(made: Any, shape: tuple[Dimension, ...]) -> Any:
    if isinstance(made, tuple):
        return tuple(_with_shape(part, shape) for part in made)
    if isinstance(made, np.ndarray):
        return ArrayType(made.dtype, shape)
    found = number_type(made)
    if found is None:
        message = f"it answers a {type(made).__name__}"
        raise CannotInferError(message)
    return found


def _shape_of(operand: Operand, known: dict[Size, int]) -> tuple[Dimension, ...]:
    if isinstance(operand, Value):
        return tuple(known.get(d, d) if isinstance(d, Size) else d for d in operand.type.shape)
    return np.shape(operand) if isinstance(operand, (list, tuple)) else ()


def _joined(shapes: list[tuple[Dimension, ...]]) -> tuple[Dimension, ...]:
    """The shapes broadcast; of lengths that are not known one that cannot be 1, if there is one.

    A computed length may turn out to be 1: what it makes together with another one is new.
    """
    rank = max((len(s) for s in shapes), default=0)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    found: list[Dimension] = []
    for lengths in zip(*padded, strict=True):
        many = [d for d in lengths if isinstance(d, Size) or d != 1]
        ints = {d for d in many if not isinstance(d, Size)}
        if len(ints) > 1:
            message = f"operands could not be broadcast together: lengths {sorted(ints)}"
            raise CannotInferError(message)
        sure = [d for d in many if isinstance(d, Size) and not d.may_be_one]
        if ints or not many:
            found.append(ints.pop() if ints else 1)
        elif sure or all(d is many[0] for d in many):
            found.append(sure[0] if sure else many[0])
        else:
            found.append(joined(*(d for d in many if isinstance(d, Size))))
    return tuple(found)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _sample(
    function: Callable[..., Any], args: Operand, kwargs: dict[str, Operand], sizes: dict[Size, int]
) -> Any:
    home = (getattr(function, "__module__", None) or "").partition("._")[0]
    reason: Exception | None = None
    for scale in (1.0, *_OTHER_SCALES.get(home, ())):

        def example(value: Value, scale: float | None = scale) -> Any:
            return sample_of(value.type, sizes, scale)

        given, named = _concrete(example, args), _concrete(example, kwargs)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return quietly(lambda given=given, named=named: function(*given, **named))
        # a function may fail where it words its ValueError (SciPy 1.13's multigammaln: TypeError)
        except (ValueError, TypeError, ZeroDivisionError) as error:
            reason = reason or error
    assert reason is not None
    raise reason


def keeps_arguments(function: Callable[..., Any], operands: Operand) -> bool:
    """Whether a call leaves its arguments as they are, tried on a sample of their types.

    Parameters
    ----------
    function : callable
        What is called.
    operands : tuple
        ``(args, kwargs)``.
    """
    unknown = {d for v in values_in(operands) for d in v.type.shape if isinstance(d, Size)}
    hints = {d: d.hint for d in unknown if d.hint is not None}
    # a window may be longer than what is usual
    return any(_keeps(function, operands, {**dict.fromkeys(unknown, n), **hints}) for n in _USUAL)


_USUAL = (2, 24)


def _keeps(function: Callable[..., Any], operands: Operand, sizes: dict[Size, int]) -> bool:
    args, kwargs = map_values(lambda value: sample_of(value.type, sizes, 0.75), operands)
    before = _copied((args, kwargs))
    try:
        quietly(lambda: function(*args, **kwargs))
    except Exception:  # noqa: BLE001  (what cannot be tried is not relied on)
        return False
    return _alike(before, (args, kwargs))


def _copied(x: Any) -> Any:
    """The arrays in tuples, lists and dicts copied; objects of other classes are not looked at."""
    if isinstance(x, (tuple, list)):
        return [_copied(item) for item in x]
    if isinstance(x, dict):
        return {key: _copied(item) for key, item in x.items()}
    return x.copy() if isinstance(x, np.ndarray) else x


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, dict):
        return all(_alike(a[key], b[key]) for key in a)
    return not isinstance(a, np.ndarray) or np.array_equal(a, b)


def _concrete(example: Callable[[Value], Any], operand: Operand) -> Any:
    made = map_values(example, operand)
    if isinstance(made, tuple):
        return tuple(
            sample_of(item.type, {}) if isinstance(item, Missing) else item for item in made
        )
    return made


def sample_of(t: Type, sizes: dict[Size, int], scale: float | None = 1.0) -> Any:
    """A harmless value of a type: ones, and well-conditioned matrices.

    Parameters
    ----------
    t : Number or ArrayType
        The type.
    sizes : dict
        Lengths for the unknown dimensions; 2 for those that are not in it.
    scale : float or None, default 1
        What floating-point numbers are multiplied by; None makes arrays of numbers of all kinds.
    """
    if isinstance(t, Number):
        if t.python and t.dtype.kind == "i":
            return sizes.get(t.size or _ANY, sizes.get(_ANY, 1))
        one = np.ones((), t.dtype)[()] if t.dtype.kind not in "fc" else t.dtype.type(scale or 1.0)
        return one.item() if t.python else one
    shape = tuple(sizes.get(d, 2) if isinstance(d, Size) else d for d in t.shape)
    made = np.ones(shape, t.dtype)
    if t.dtype.kind in "fc" and scale is None:
        return np.cos(1.0 + np.arange(made.size) ** 2).astype(t.dtype).reshape(shape)
    if t.dtype.kind in "fc" and scale != 1.0:
        made *= scale
    if len(shape) >= 2 and t.dtype.kind in "fc" and shape[-1] == shape[-2]:
        made = np.broadcast_to(np.eye(shape[-1], dtype=t.dtype) * 2 + 0.25, shape).astype(t.dtype)
    return made


def _type(first: Any, second: Any, dimensions: _Dimensions | None) -> Any:
    if isinstance(first, (tuple, list)):
        if len(first) != len(second):
            message = "the number of its results depends on a length that is not known"
            raise CannotInferError(message)
        parts = [_type(a, b, dimensions) for a, b in zip(first, second, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return type(first)(parts)
    if isinstance(first, np.ndarray):
        if first.dtype.kind not in "biufc":
            message = f"it answers an array of dtype {first.dtype}"
            raise CannotInferError(message)
        if first.ndim != np.ndim(second):
            message = "the rank of its result depends on values, or on a length that is not known"
            raise CannotInferError(message)
        pairs = zip(first.shape, second.shape, strict=True)
        dims = tuple(Size() if dimensions is None else dimensions.of(m, n) for m, n in pairs)
        return ArrayType(first.dtype, dims)
    number = number_type(first)
    if number is not None:
        return number
    if first is None or isinstance(first, (str, bytes, np.dtype, type)):
        return first
    message = f"it answers a {type(first).__name__}"
    raise CannotInferError(message)


class _Dimensions:
    """Lengths of a result, told from two samples.

    Parameters
    ----------
    samples : list of dict
        The lengths that were assumed.
    sizes : list of Size
        Those of the arguments.
    key : tuple
        What the result's lengths depend on, beside the sizes.
    guess : bool
        Whether of several lengths that were assumed alike any will do.
    """

    def __init__(
        self,
        samples: list[dict[Size, int]],
        sizes: list[Size],
        key: tuple[Any, ...],
        *,
        guess: bool,
    ) -> None:
        self.samples = samples
        self.sizes = sizes
        self.key = key
        self.guess = guess
        self.chance: set[tuple[int, int]] = set()  # alike by chance
        self.rectangle: tuple[Dimension, ...] = ()  # the lengths of a matrix that is factorised

    def of(self, m: int, n: int) -> Dimension:
        """The length that is m in one sample and n in the other."""
        if m == n and (m, n) not in self.chance:
            return m
        first, second = self.samples
        alike = [s for s in first if s is not _ANY and first[s] == m and second[s] == n]
        if len(alike) == 1 or (alike and self.guess):
            return alike[0]
        if self.rectangle and (m, n) == tuple(
            min(own[d] if isinstance(d, Size) else d for d in self.rectangle)
            for own in self.samples
        ):
            return smallest(*self.rectangle)
        # the same call has the same lengths, and so have several results of one call
        return self.sizes[0].derive((*self.key, m, n)) if self.sizes else Size()


def _key(function: Callable[..., Any], operands: Operand) -> tuple[Any, ...]:
    """What the lengths of a result depend on."""
    frozen = function, _frozen(operands)
    try:
        hash(frozen)
    except TypeError:
        return ("call", object())
    return frozen


def _frozen(x: Operand) -> Any:
    """An operand as a key: floating-point arrays by their shapes, other values by themselves."""
    if isinstance(x, Value):
        plain = isinstance(x.type, ArrayType) and x.type.dtype.kind in "fc"
        return ("array", x.type.shape) if plain else x
    if isinstance(x, (tuple, list)):
        return (type(x), *map(_frozen, x))
    if isinstance(x, dict):
        return (dict, *((key, _frozen(item)) for key, item in x.items()))
    if isinstance(x, slice):
        return (slice, *map(_frozen, (x.start, x.stop, x.step)))
    return (type(x), x)


def leaf_types(found: Any) -> Iterator[Type]:
    """The types in what :func:`infer` answered."""
    if isinstance(found, (tuple, list)):
        for item in found:
            yield from leaf_types(item)
    elif isinstance(found, (Number, ArrayType)):
        yield found


# -- functions whose result has the shape that is asked for


def _lengths(shape: Operand) -> tuple[Dimension, ...]:
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(_length(item) for item in items)


def _length(item: Operand) -> Dimension:
    if isinstance(item, Value):
        return getattr(item.type, "size", None) or Size()
    return int(item) if item != -1 else Size()


def _made(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
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
    """What is left of a product of lengths, where the others are factors of it."""
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
    dtype = kwargs.get("dtype")
    if dtype is None:
        parts = [sample_of(a.type, {}) if isinstance(a, Value) else a for a in args]
        dtype = np.result_type(*(np.asarray(p).dtype for p in parts))
    if any(isinstance(a, Value) for a in args):
        first, *rest = args
        start, stop, step = (first, *rest, 1)[:3] if rest else (0, first, 1)
        upwards = type(start) is int and start == 0 and type(step) is int and step == 1
        return ArrayType(np.dtype(dtype), (_length(stop) if upwards else Size(),))
    return ArrayType(np.dtype(dtype), (len(np.arange(*args)),))


def _argument(args: Operand, kwargs: dict[str, Operand], k: int, name: str) -> Any:
    return args[k] if len(args) > k else kwargs[name]


def _along(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    arr, indices = (_argument(args, kwargs, k, n) for k, n in ((0, "arr"), (1, "indices")))
    axis = args[2] if len(args) > 2 else kwargs.get("axis", -1)
    shape = _shape_of(indices, {})
    if axis is None:
        return ArrayType(arr.type.dtype, shape)
    if len(shape) != arr.type.ndim or not -len(shape) <= axis < len(shape):
        message = "indices and array must have the same rank, and the axis"
        raise CannotInferError(message)
    dims = [_joined([(m,), (n,)])[0] for m, n in zip(arr.type.shape, shape, strict=True)]
    dims[axis] = shape[axis]
    return ArrayType(arr.type.dtype, tuple(dims))


def _taken(args: Operand, kwargs: dict[str, Operand]) -> Type:
    """``np.take``: its indices are values, which a sample may be too short for."""
    a, indices = (_argument(args, kwargs, k, n) for k, n in ((0, "a"), (1, "indices")))
    axis = args[2] if len(args) > 2 else kwargs.get("axis")
    own, dtype = _shape_of_any(a), a.type.dtype if isinstance(a, Value) else np.asarray(a).dtype
    if axis is None:
        axis, own = 0, (1,)
    elif not isinstance(axis, int) or not -len(own) <= axis < len(own):
        message = f"axis {axis} of an array of rank {len(own)}"
        raise CannotInferError(message)
    axis %= len(own)
    shape = (*own[:axis], *_shape_of_any(indices), *own[axis + 1 :])
    return ArrayType(dtype, shape) if shape else Number(dtype, python=False)


def _windowed(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
    """``sliding_window_view``: a sample may be shorter than the window."""
    x, window = (_argument(args, kwargs, k, n) for k, n in ((0, "x"), (1, "window_shape")))
    axis = args[2] if len(args) > 2 else kwargs.get("axis")
    dims, lengths = list(x.type.shape), _lengths(window)
    axes = range(len(dims)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) != len(lengths) or not all(-len(dims) <= k < len(dims) for k in axes):
        message = "the window must have a length for each axis"
        raise CannotInferError(message)
    for k, m in zip(axes, lengths, strict=True):
        n = dims[k]
        dims[k] = n - m + 1 if isinstance(n, int) and isinstance(m, int) else Size()
    return ArrayType(x.type.dtype, (*dims, *lengths))


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
    """Of the shape of the right-hand sides, the k-th argument, behind the matrix."""

    def solution(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
        ab, b = (_argument(args, kwargs, j, n).type for j, n in ((k - 1, "ab"), (k, "b")))
        dtype = np.result_type(ab.dtype, b.dtype)
        return ArrayType(dtype if dtype.kind in "fc" else np.dtype(float), b.shape)

    return solution


# Bands of ones are singular.
_BY_NAME = {"scipy.linalg.solve_banded": _solved(2), "scipy.linalg.solveh_banded": _solved(1)}


# The sparse kernels read memory at places that are values: they are not tried on samples.
_BY_SHAPE: dict[Any, Callable[..., Any]] = {
    sparse.sparse_product: _sparse_product,
    sparse.sparse_solve: _sparse_solve,
    sparse.scatter_add: _scattered,
    np.zeros: _made,
    np.ones: _made,
    np.empty: _made,
    np.full: _filled,
    np.reshape: _reshaped,
    np.broadcast_to: _reshaped,
    np.arange: _ranged,
    np.take_along_axis: _along,
    np.take: _taken,
    np.lib.stride_tricks.sliding_window_view: _windowed,
}
