"""Samples: small values of given types, on which functions are called."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fwdad.ir.abstract_eval.purity import are_plain, is_pure, trusts_lengths
from fwdad.ir.ops import Missing, Operand, Value, map_values, values_in
from fwdad.ir.types import CannotInferError, Number, Size, Type
from fwdad.tangents.quiet import quietly

ANY_NUMBER = Size()  # numbers that are not lengths
# Unknown lengths get two sets of small, distinct numbers: what varies with them is unknown too.
_FIRST = (2, 3, 5, 7, 11, 13, 17, 19)
_SECOND = (16, 15, 14, 10, 9, 8, 6, 4)  # falling: the smaller of two is not the same one
_ORDERED = ((_FIRST, (4, 6, 8, 9, 10, 14, 15, 16)), (_FIRST[::-1], _SECOND))

_MOST_SIZES = 5
_MOST_PATTERNS = 400

# Not everything is defined at one, nor is an array of ones regular when it is made a matrix (None).
_OTHER_SCALES: dict[str, tuple[float | None, ...]] = {
    "math": (0.5,), "cmath": (0.5,), "scipy.special": (32.0,), "numpy.linalg": (None,),
}  # fmt: skip

NOT_PURE = (
    "it may have side effects, so it is not called with sample values. Declare it with "
    "fwdad.pure(f) if it changes nothing, and reads nothing but its arguments"
)


def sample_of(t: Type, sizes: dict[Size, int], scale: float | None = 1.0) -> Any:
    """A harmless value of a type: ones, and well-conditioned matrices of full rank.

    Matrices of ints hold zeros and ones, which are places in any array. Unknown dimensions that are
    not in ``sizes`` are 2. ``scale`` multiplies floating-point numbers; None fills arrays with
    numbers of varying size and sign, and vectors of ints with their places.
    """
    if isinstance(t, Number):
        if t.python and t.dtype.kind == "i":
            return sizes.get(t.size or ANY_NUMBER, sizes.get(ANY_NUMBER, 1))
        if t.dtype.kind in "iu":  # of which an array's length may be made
            return t.dtype.type(sizes.get(ANY_NUMBER, 1))
        one = np.ones((), t.dtype)[()] if t.dtype.kind not in "fc" else t.dtype.type(scale or 1.0)
        return one.item() if t.python else one
    shape = tuple(sizes.get(d, 2) if isinstance(d, Size) else d for d in t.shape)
    kind = t.dtype.kind
    if kind in "fc" and scale is None:
        return np.cos(1.0 + np.arange(math.prod(shape)) ** 2).astype(t.dtype).reshape(shape)
    if kind in "iu" and scale is None and len(shape) == 1:
        return np.arange(shape[0]).astype(t.dtype)
    one = scale if kind in "fc" and scale is not None else 1
    made = np.full(shape, one, t.dtype)
    if not shape and kind in "iu":
        made[()] = sizes.get(ANY_NUMBER, 1)
    if len(shape) >= 2 and kind in "iufc":
        k = min(shape[-2:])
        diagonal = np.einsum("...ii->...i", made[..., :k, :k])  # a view
        made[...], diagonal[...] = (0, 1) if kind in "iu" else (0.25 * one, 2.25 * one)
    return made


def concrete(example: Callable[[Value], Any], operand: Operand) -> Any:
    """An operand with an example in place of each value."""
    made = map_values(example, operand)
    if isinstance(made, tuple):
        return tuple(
            sample_of(item.type, {}) if isinstance(item, Missing) else item for item in made
        )
    return made


def run_on_sample(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function on made-up values; nothing else in the library may do that.

    ``CannotInferError`` unless the call is known to have no visible effect, and to be safe.
    """
    if not is_pure(function):
        raise CannotInferError(NOT_PURE)
    if trusts_lengths(function):
        raise CannotInferError("it trusts the lengths of its arguments, so samples are not tried")
    if not are_plain((args, kwargs)):
        raise CannotInferError("one of its arguments is an object whose methods it may call")
    return quietly(lambda: function(*args, **kwargs))


def call_on_sample(
    function: Callable[..., Any],
    args: Operand,
    kwargs: dict[str, Operand],
    sizes: dict[Size, int],
    numbers: Mapping[Value, int] | None = None,
    *,
    varied: bool = False,
) -> Any:
    """What a function returns for samples of its arguments' types, at the first working scale.

    ``numbers`` are those of integers that are not lengths, where these are not all equal;
    ``varied`` fills arrays with different numbers.
    """
    home = (getattr(function, "__module__", None) or "").partition("._")[0]
    reason: Exception | None = None
    for scale in (None,) if varied else (1.0, *_OTHER_SCALES.get(home, ())):

        def example(value: Value, scale: float | None = scale) -> Any:
            n = None if numbers is None else numbers.get(value)
            if n is not None and isinstance(value.type, Number):
                return n if value.type.python else value.type.dtype.type(n)
            return sample_of(value.type, sizes, scale)

        given, named = concrete(example, args), concrete(example, kwargs)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return run_on_sample(function, given, named)
        except CannotInferError:
            raise
        # a function may fail as it formats its ValueError (SciPy 1.13's multigammaln: TypeError)
        except (ValueError, TypeError, ZeroDivisionError) as error:
            reason = reason or error
    assert reason is not None
    raise reason


def numbers_apart(args: Operand, kwargs: dict[str, Operand]) -> list[dict[Value, int]]:
    """Samples of integers that are not lengths, all different; none if there is one at most."""
    values = dict.fromkeys(
        v for v in values_in([args, kwargs])
        if isinstance(v.type, Number) and v.type.dtype.kind in "iu" and v.type.size is None
    )  # fmt: skip
    if len(values) < 2:
        return []
    return [{v: least + k for k, v in enumerate(values)} for least in (0, 1)]


def reason_of(error: Exception) -> str:
    """An exception in words."""
    return f"{type(error).__name__}: {error}"


def known_lengths(args: Operand, kwargs: dict[str, Operand], known: dict[Size, int]) -> list[int]:
    """The known lengths of operands, other than 1, in ascending order."""
    found = {known.get(d, d) if isinstance(d, Size) else d for v in values_in([args, kwargs])
             for d in v.type.shape}  # fmt: skip
    return sorted(d for d in found if isinstance(d, int) and d > 1)


def assignments(sizes: list[Size], lengths: list[int]) -> Iterator[list[dict[Size, int]]]:
    """Pairs of samples of the unknown lengths, starting with all of them free.

    The first two pairs leave every length free; the second also keeps integers that are not lengths
    equal, and the next two the order of the lengths (a kernel that has to fit into its image). Then
    lengths are made to agree with each other or with a known one, fewest agreements first.
    """
    for k in (2, 1):
        yield [
            {**dict(zip(sizes, numbers, strict=False)), ANY_NUMBER: m}
            for m, numbers in ((1, _FIRST), (k, _SECOND))
        ]
    for pair in _ORDERED if len(sizes) > 1 else ():
        yield [{**dict(zip(sizes, numbers, strict=False)), ANY_NUMBER: 1} for numbers in pair]
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
    made: dict[Size, int] = {ANY_NUMBER: 1}
    for size, (kind, k), number in zip(sizes, pattern, numbers, strict=False):
        made[size] = number if kind == "free" else made[sizes[k]] if kind == "same" else k
    return made
