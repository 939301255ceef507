"""The type of a function's result, found by calling the function on small samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.containers import of_class
from fwdad.errors import Location, type_in_words
from fwdad.ir.abstract_eval.broadcasting import BROADCASTING, ELEMENTWISE, broadcast
from fwdad.ir.abstract_eval.length_trials import Call, by_chance, refuted, shifted
from fwdad.ir.abstract_eval.purity import is_pure
from fwdad.ir.abstract_eval.samples import (
    ANY_NUMBER,
    NOT_PURE,
    assignments,
    call_on_sample,
    known_lengths,
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
    of_reals = _is_real([args, kwargs])
    if record.dtype_of_values or (record.complex_of_values if of_reals else record.real_of_values):
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
    if guess:
        return _type(first, second, dimensions)
    call = Call(function, args, kwargs, first)
    dimensions.chance = by_chance(call, samples, sizes, first, second)
    dimensions.shifted = shifted(call, samples, first, second) if sizes else {}
    found = _type(first, second, dimensions)
    dimensions.refuted = refuted(call, samples, found)
    return _type(first, second, dimensions.anew()) if dimensions.refuted else found


def _is_real(operands: Operand) -> bool:
    return all(value.type.dtype.kind != "c" for value in values_in(operands))


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
        return of_class(type(first), parts)
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
        self.refuted: dict[int, tuple[int, ...] | None] = {}  # others in larger samples
        self._at = -1  # of the present length, among all of the result
        self.rectangle: tuple[Dimension, ...] = ()  # the lengths of a matrix that is factorised

    def anew(self) -> _Dimensions:
        """The same, for the lengths of the result from the first on."""
        self._at = -1
        return self

    def of(self, m: int, n: int) -> Dimension:
        """The dimension that is m in one sample and n in the other; called for each in order."""
        self._at += 1
        others = self.chance.get(self._at, ())
        if self._at in self.refuted:
            return self._computed(m, n, others)
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
        return self._computed(m, n, others)

    def _computed(self, m: int, n: int, others: tuple[int, ...]) -> Size:
        """A length that is unknown until run time."""
        found = self.refuted.get(self._at, ())
        if not self.sizes or found is None:
            return Size()
        # the same call has the same lengths, and so have several results of one call
        return self.sizes[0].derive((*self.key, m, n, *others, *found))


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
