"""What is concluded of a result's lengths from two small samples, tried on others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fwdad.ir.abstract_eval.samples import ANY_NUMBER, call_on_sample, numbers_apart
from fwdad.ir.ops import Operand, values_in
from fwdad.ir.types import ArrayType, CannotInferError, Dimension, Size

Sizes = dict[Size, int]

_LONG = (97, 101, 103, 107, 109, 113, 127, 131)  # where the example has no lengths
_LONGER = (1009, 613, 617, 619, 631, 641, 643, 647)
_MOST = 1024  # elements along an axis
_MOST_OF_MATRIX = 4096
_MOST_OF_ALL = 2**20  # of what functions make of all pairs of elements, and the like


def by_chance(
    call: Call, samples: list[Sizes], free: list[Size], first: Any, second: Any
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
    pairs = list(zip(shapes(first), shapes(second), strict=False))
    seen: list[list[int]] = []
    tried: list[tuple[Sizes, Any]] = [(s, None) for s in others if len(a) > 1]
    tried += [(s, apart) for apart in numbers_apart(*call.operands) for s in (b, others[0])]
    for sizes, numbers in tried if any(m == n for m, n in pairs) else ():
        found = call.lengths(sizes, numbers)
        if found is not None and len(found) == len(pairs):
            seen.append(found)
    lengths = {at: tuple(found[at] for found in seen) for at in range(len(pairs))}
    return {
        at: ks
        for at, ks in lengths.items()
        if pairs[at][0] == pairs[at][1] and {*ks} - {pairs[at][0]}
    }


def shifted(call: Call, samples: list[Sizes], first: Any, second: Any) -> dict[int, Size]:
    """The lengths of a result that are longer or shorter than one of the arguments', by a fixed k.

    Keyed by position among all lengths of the result. It is tried at the shortest lengths, where
    such a difference ends (``np.convolve(…, "valid")``), and with others of the other lengths.
    """
    a, b = samples
    found: dict[int, Size] = {}
    for at, (m, n) in enumerate(zip(shapes(first), shapes(second), strict=False)):
        alike = [s for s in a if s is not ANY_NUMBER and a[s] != b[s] and a[s] - m == b[s] - n]
        if m == n or len(alike) != 1:
            continue
        (s,), k = alike, a[alike[0]] - m
        other = {d: x if d is s else b[d] for d, x in a.items()}
        tried = 0
        for sizes in (other, *({**a, s: x} for x in (0, 1, 2, 3, 4, 5, 9))):
            again = call.lengths(sizes)
            if again is None:
                continue
            if len(again) <= at or again[at] != max(sizes[s] - k, 0):
                break
            tried += sizes[s] > k
        else:
            if tried > 1:
                found[at] = s.minus(k)
    return found


class Call:
    """A call whose result has lengths that are looked for; ``first`` is what it is for a sample.

    ``operands`` are (args, kwargs).
    """

    def __init__(
        self, function: Callable[..., Any], args: Operand, kwargs: dict[str, Operand], first: Any
    ) -> None:
        self.function = function
        self.operands = args, kwargs
        self._structure = _structure(first)

    def lengths(
        self, sizes: Sizes, numbers: Mapping[Any, int] | None = None, *, varied: bool = False
    ) -> list[int] | None:
        """The lengths of all arrays in a result for a sample; None if the function refuses it.

        ``CannotInferError`` if the result is no such structure as the ``first`` one.
        """
        try:
            made = call_on_sample(self.function, *self.operands, sizes, numbers, varied=varied)
        except Exception:  # noqa: BLE001  (these lengths do not go together)
            return None
        if _structure(made) != self._structure:
            on = "values, or on lengths" if varied else "lengths"
            raise CannotInferError(f"what it returns depends on {on} of its arguments")
        return list(shapes(made))


def _structure(x: Any) -> Any:
    """A result without its lengths: containers, and the ranks of arrays."""
    if isinstance(x, (tuple, list)):
        return (type(x), *map(_structure, x))
    return np.ndim(x)


def shapes(x: Any) -> Iterator[int]:
    """The lengths of all arrays in a result, in order."""
    if isinstance(x, (tuple, list)):
        for item in x:
            yield from shapes(item)
    elif isinstance(x, np.ndarray):
        yield from x.shape


def refuted(call: Call, samples: list[Sizes], found: Any) -> dict[int, tuple[int, ...] | None]:
    """The lengths that are others than ``found``, the type of a result, says, in larger samples.

    Keyed by position among all lengths of the result; the values are what they are there, or None
    if they depend on the numbers in the arguments (``np.histogram(x, "auto")``). The length of the
    example is among those tried: a window is as long as a short argument, and no longer.
    """
    said = list(dimensions(found))
    if not said:
        return {}
    wrong: dict[int, tuple[int, ...] | None] = {}
    for k, sizes in enumerate(larger(call.operands, samples)):
        told = [_length_in(d, sizes) for d in said]
        seen = call.lengths(sizes, varied=k == 0) or call.lengths(sizes)
        if seen is None:
            continue
        for at, (m, n) in enumerate(zip(told, seen, strict=True)):
            if m not in (None, n) and wrong.get(at, ()) is not None:
                wrong[at] = (*(wrong.get(at) or ()), n)
        plain = call.lengths(sizes) if k == 0 and seen != told else None
        pairs = enumerate(zip(plain or seen, seen, strict=True))
        wrong |= {at: None for at, (m, n) in pairs if m != n}  # values decide
    return wrong


def dimensions(t: Any) -> Iterator[Dimension]:
    """The lengths of all arrays in the type of a result, in order."""
    if isinstance(t, (tuple, list)):
        for item in t:
            yield from dimensions(item)
    elif isinstance(t, ArrayType):
        yield from t.shape


def _length_in(d: Dimension, sizes: Sizes) -> int | None:
    """What a length is for given lengths of the arguments; None if that is not known."""
    if not isinstance(d, Size) or d in sizes:
        return sizes[d] if isinstance(d, Size) else d
    of, k = d.shortened
    if of in sizes:
        return max(sizes[of] - k, 0)
    parts = [_length_in(part, sizes) for part in d.smallest_of]
    return min(parts) if parts and None not in parts else None  # type: ignore[type-var]


def larger(operands: Operand, samples: list[Sizes]) -> Iterator[Sizes]:
    """Samples of larger lengths, where two that agreed do; of known lengths, these.

    The first is like the example. They are no larger than a function takes without being noticed
    that makes a matrix of a vector.
    """
    a, b = samples
    alike: dict[tuple[int, int], list[Size]] = {}  # which lengths are to be one
    for s in a:
        if s is not ANY_NUMBER and a[s] != b[s]:
            alike.setdefault((a[s], b[s]), []).append(s)
    if not alike:
        yield b
        return
    for numbers, like_example in ((_LONG, True), (_LONGER, False)):
        sizes = dict(b)
        for group, n in zip(alike.values(), numbers, strict=False):
            hints = [s.hint for s in group if s.hint is not None] if like_example else []
            sizes |= dict.fromkeys(group, hints[0] if hints else n)
        most = _most(operands, sizes)
        if most > 1:
            yield {s: min(n, most) if a[s] != b[s] else n for s, n in sizes.items()}


def _most(operands: Operand, sizes: Sizes) -> int:
    """What unknown lengths are cut down to, so that nothing large is made of the arguments."""
    most, free, known = _MOST, 0, 1
    for v in values_in(operands):
        own = [d for d in v.type.shape if isinstance(d, Size) and d in sizes]
        rest = math.prod(sizes.get(d, 2) if isinstance(d, Size) else d
                         for d in v.type.shape if d not in own)  # fmt: skip
        free, known = free + len(own), known * max(rest, 1)
        if len(v.type.shape) > 1 and own:
            most = min(most, int((_MOST_OF_MATRIX / max(rest, 1)) ** (1 / len(own))))
    return min(most, int((_MOST_OF_ALL / known) ** (1 / free))) if free else most
