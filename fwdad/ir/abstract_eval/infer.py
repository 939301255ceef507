"""The type of a function's result, found by calling the function on small samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fwdad.errors import Location, type_in_words
from fwdad.ir.abstract_eval.broadcasting import BROADCASTING, ELEMENTWISE, broadcast
from fwdad.ir.abstract_eval.purity import is_pure
from fwdad.ir.abstract_eval.samples import (
    ANY_NUMBER,
    NOT_PURE,
    assignments,
    call_on_sample,
    known_lengths,
    numbers_apart,
    reason_of,
)
from fwdad.ir.abstract_eval.shape_rules import BY_NAME, BY_SHAPE
from fwdad.ir.abstract_eval.ufunc_loops import type_by_loops, ufunc_of
from fwdad.ir.ops import Operand, Value, values_in
from fwdad.ir.types import (
    ArrayType,
    CannotInferError,
    Dimension,
    Number,
    Size,
    number_type,
    smallest,
)
from fwdad.ops.record import full_name, record_of
from fwdad.rules.core.registry import find_rule

_BY_SOURCE: list[Callable[..., Any]] = []


def typed_by_source(infer_type: Callable[..., Any]) -> Callable[..., Any]:
    """Register the function that infers a result's type from the source of the called function."""
    _BY_SOURCE.append(infer_type)
    return infer_type


def _by_source(
    function: Callable[..., Any],
    args: Operand,
    kwargs: dict[str, Operand],
    known: dict[Size, int],
    place: Callable[[], Location | None],
) -> Any:
    """The type of the result of a function that is not called on samples."""
    if find_rule(function) is None:  # its source would be traced in line if that could be done
        raise CannotInferError(NOT_PURE)
    try:
        return _BY_SOURCE[0](function, args, kwargs, known, place)
    except CannotInferError as error:
        raise CannotInferError(f"{NOT_PURE} (its source cannot be traced: {error})") from error


def infer(
    function: Callable[..., Any],
    args: Operand,
    kwargs: dict[str, Operand],
    known: dict[Size, int] | None = None,
    place: Callable[[], Location | None] = lambda: None,
) -> Any:
    """The type of ``function(*args, **kwargs)``; None or a string is returned as it is.

    ``known`` holds assumed lengths, to which those that a source needs are added; ``place`` returns
    where the user calls the function. ``CannotInferError`` if the function raises for every sample,
    or if the type depends on values.
    """
    broadcasts = function in BROADCASTING or (function is np.where and len(args) == 3)
    if ufunc_of(function) is not None and not is_pure(function):
        return type_by_loops(function, args, kwargs, known or {})
    if broadcasts or (isinstance(function, np.ufunc) and not function.signature):
        return broadcast(function, args, kwargs, known or {})
    record = record_of(function)
    if record.dtype_of_values or (record.complex_of_values and _is_real([args, kwargs])):
        raise CannotInferError("the dtype of its result depends on values")
    special = BY_SHAPE.get(function) or BY_NAME.get(full_name(function))
    found = special(args, kwargs) if special is not None else None
    if found is not None:
        return found
    known = {} if known is None else known
    if not is_pure(function):
        return _by_source(function, args, kwargs, known, place)
    sizes: list[Size] = []
    for value in values_in([args, kwargs]):
        own = value.type.size if isinstance(value.type, Number) else None
        for d in (*value.type.shape, own):
            if isinstance(d, Size) and d not in sizes and d not in known:
                sizes.append(d)
    lengths = known_lengths(args, kwargs, known)
    reason: Exception | None = None
    for samples in assignments(sizes, lengths):
        full = [{**known, **s} for s in samples]
        try:
            first, second = (call_on_sample(function, args, kwargs, s) for s in full)
        except CannotInferError:
            raise
        except Exception as error:  # noqa: BLE001  (whatever it is, other lengths are tried)
            reason = reason or error
            continue
        break
    else:
        assert reason is not None
        raise CannotInferError(reason_of(reason)) from reason
    samples = full
    guess = function in ELEMENTWISE or isinstance(function, np.ufunc) or record.square
    if _is_data_shaped(function, args, kwargs):
        return _type(first, second, None)
    key = _key(function, [args, kwargs])
    dimensions = _Dimensions(samples, sizes, key, guess=guess)
    if record.rectangular and isinstance(args[0], Value):
        rows, columns = args[0].type.shape[-2:]
        dimensions.rectangle = (rows, columns)
    if not guess:
        dimensions.chance = _by_chance(function, args, kwargs, samples, sizes, first, second)
    if sizes and not guess:
        dimensions.shifted = _shifted(function, args, kwargs, samples, first, second)
    return _type(first, second, dimensions)


def _is_real(operands: Operand) -> bool:
    return all(value.type.dtype.kind != "c" for value in values_in(operands))


def _by_chance(
    function: Callable[..., Any],
    args: Operand,
    kwargs: dict[str, Operand],
    samples: list[dict[Size, int]],
    free: list[Size],
    first: Any,
    second: Any,
) -> dict[int, tuple[int, ...]]:
    """The lengths of a result that agree in two samples, but not in further ones.

    Keyed by position among all lengths of the result; the values are the lengths in the further
    samples. The difference of two lengths may be the same twice (``np.convolve(…, "valid")``), and
    so may the smaller of two (``np.diagonal``): a computed length may turn out to be 1 or 0. So may
    that of two integers (``scipy.linalg.eigh(subset_by_index=[i, j])``).
    """
    a, b = samples
    others = [{s: a[s] if a[s] == b[s] else a[s] * b[s] % 31 + 2 for s in a}]
    short = [s for s in free if s.may_be_one]
    if short:
        others += [{**a, **dict.fromkeys(short, least)} for least in (1, 0)]
    pairs = list(zip(_shapes(first), _shapes(second), strict=False))
    seen: list[list[int]] = []
    tried: list[tuple[dict[Size, int], Any]] = [(s, None) for s in others if len(a) > 1]
    tried += [(s, apart) for apart in numbers_apart(args, kwargs) for s in (b, others[0])]
    for sizes, numbers in tried if any(m == n for m, n in pairs) else ():
        found = _lengths_at(function, args, kwargs, sizes, numbers)
        if found is not None and len(found) == len(pairs):
            seen.append(found)
    lengths = {at: tuple(found[at] for found in seen) for at in range(len(pairs))}
    return {
        at: ks
        for at, ks in lengths.items()
        if pairs[at][0] == pairs[at][1] and {*ks} - {pairs[at][0]}
    }


def _shifted(
    function: Callable[..., Any],
    args: Operand,
    kwargs: dict[str, Operand],
    samples: list[dict[Size, int]],
    first: Any,
    second: Any,
) -> dict[int, Size]:
    """The lengths of a result that are longer or shorter than one of the arguments', by a fixed k.

    Keyed by position among all lengths of the result. It is tried at the shortest lengths, where
    such a difference ends (``np.convolve(…, "valid")``), and with others of the other lengths.
    """
    a, b = samples
    found: dict[int, Size] = {}
    for at, (m, n) in enumerate(zip(_shapes(first), _shapes(second), strict=False)):
        alike = [s for s in a if s is not ANY_NUMBER and a[s] != b[s] and a[s] - m == b[s] - n]
        if m == n or len(alike) != 1:
            continue
        (s,), k = alike, a[alike[0]] - m
        other = {d: x if d is s else b[d] for d, x in a.items()}
        tried = 0
        for sizes in (other, *({**a, s: x} for x in (0, 1, 2, 3, 4, 5, 9))):
            again = _lengths_at(function, args, kwargs, sizes)
            if again is None:
                continue
            if len(again) <= at or again[at] != max(sizes[s] - k, 0):
                break
            tried += sizes[s] > k
        else:
            if tried > 1:
                found[at] = s.minus(k)
    return found


def _lengths_at(
    function: Callable[..., Any],
    args: Operand,
    kwargs: dict[str, Operand],
    sizes: dict[Size, int],
    numbers: Mapping[Value, int] | None = None,
) -> list[int] | None:
    """The lengths of all arrays in a result for a sample; None if the function refuses it."""
    try:
        return list(_shapes(call_on_sample(function, args, kwargs, sizes, numbers)))
    except Exception:  # noqa: BLE001  (these lengths do not go together)
        return None


def _shapes(x: Any) -> Iterator[int]:
    """The lengths of all arrays in a result, in order."""
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
    return bool(record_of(function).lengths_of_values)


def _type(first: Any, second: Any, dimensions: _Dimensions | None) -> Any:
    if isinstance(first, (tuple, list)):
        if getattr(first, "__dict__", None):
            message = f"it returns {type_in_words(first)}, which has attributes beside its items"
            raise CannotInferError(message)
        if len(first) != len(second):
            message = "the number of its results depends on a length that is unknown until run time"
            raise CannotInferError(message)
        parts = [_type(a, b, dimensions) for a, b in zip(first, second, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return type(first)(parts)
    if np.ndim(first) != np.ndim(second):
        raise CannotInferError(
            "the rank of its result depends on values, or on a length that is unknown until run "
            "time"
        )
    if isinstance(first, np.ndarray):
        pairs = zip(first.shape, second.shape, strict=True)
        dims = tuple(Size() if dimensions is None else dimensions.of(m, n) for m, n in pairs)
        return ArrayType(first.dtype, dims)
    number = number_type(first)
    if number is not None:
        return number
    if first is None or isinstance(first, (str, bytes, np.dtype, type)):
        return first
    raise CannotInferError(f"it returns {type_in_words(first)}")


class _Dimensions:
    """The lengths of a result, inferred from two samples.

    ``key`` is what the lengths depend on besides ``sizes``, the lengths of the arguments. With
    ``guess``, any of several lengths that were assumed equal will do.
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
        self.chance: dict[int, tuple[int, ...]] = {}  # alike by chance: what they are else
        self.shifted: dict[int, Size] = {}  # those that differ from an argument's by a number
        self._at = -1  # of the present length, among all of the result
        self.rectangle: tuple[Dimension, ...] = ()  # the lengths of a matrix that is factorised

    def of(self, m: int, n: int) -> Dimension:
        """The dimension that is m in one sample and n in the other; called for each in order."""
        self._at += 1
        others = self.chance.get(self._at, ())
        if m == n and not others:
            return m
        first, second = self.samples
        alike = [
            s for s in first if s is not ANY_NUMBER and m != n and (first[s], second[s]) == (m, n)
        ]  # of one that is known both samples have the same
        if len(alike) == 1 or (alike and self.guess):
            return alike[0]
        if self.rectangle and (m, n) == tuple(
            min(own[d] if isinstance(d, Size) else d for d in self.rectangle)
            for own in self.samples
        ):
            return smallest(*self.rectangle)
        if self._at in self.shifted:
            return self.shifted[self._at]
        # the same call has the same lengths, and so have several results of one call
        return self.sizes[0].derive((*self.key, m, n, *others)) if self.sizes else Size()


def _key(function: Callable[..., Any], operands: Operand) -> tuple[Any, ...]:
    """What the lengths of a result depend on, as a hashable key."""
    frozen = function, _frozen(operands)
    try:
        hash(frozen)
    except TypeError:
        return ("call", object())
    return frozen


def _frozen(x: Operand) -> Any:
    """An operand as a key: floating-point arrays by shape, other values by identity."""
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
