"""The tangent types, which describe the N tangents of the values of one type."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.tangents import vectors
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import flatten, is_part, unflatten
from fwdad.tangents.matching import match_or_none
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.seeds import BasisSeeds, leaf_dtype, leaf_shape, random_seeds
from fwdad.tangents.zero import NoTangent, Undefined, Zero


@dataclass(frozen=True)
class ArrayType:
    """The type of the arrays of one dtype, which ``numpy.ndarray`` alone does not specify."""

    dtype: np.dtype[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def __repr__(self) -> str:
        return f"ndarray[{self.dtype}]"


@dataclass(frozen=True, eq=False, repr=False)
class TangentType:
    """The type of the N tangents of the values of one type T, ``primal``.

    There is one object for each (T, N).
    """

    primal: Any
    n: int

    def __repr__(self) -> str:
        name = getattr(self.primal, "__name__", None) or repr(self.primal)
        return f"<tangents of {name}, N = {self.n}>"

    def fits(self, x: Any) -> bool:
        """Whether a value is of the primal type."""
        raise NotImplementedError

    def zero(self, x: Any) -> Any:
        """The zero tangents of a value, written out."""
        return vectors.zero_tangent(self._checked(x), self.n)

    def basis(self, x: Any, start: int = 0) -> Any:
        """The unit directions ``start`` to ``start + n`` of a value, leaf after leaf in C order."""
        leaves, structure = flatten(self._checked(x), strict=True)
        chunks = BasisSeeds(leaves).lanes(start, start + self.n)
        return unflatten(structure, chunks, lambda _: NoTangent)

    def random(self, x: Any, rng: np.random.Generator) -> Any:
        """Random tangents of a value, normal in every real part."""
        leaves, structure = flatten(self._checked(x), strict=True)
        chunks = [Chunk(lanes) for lanes in random_seeds(leaves, self.n, rng)]
        return unflatten(structure, chunks, lambda _: NoTangent)

    def holds(self, x: Any, x_dot: Any) -> bool:
        """Whether ``x_dot`` is a valid tangent of ``x``: of its structure, shapes and dtypes."""
        if not self.fits(x):
            return False
        parts, structure = flatten(x, leaf=lambda v: is_part(v) or type(v) in OWN)
        tangents = match_or_none(structure, x_dot)
        if tangents is None:
            return False
        return all(self._part_holds(v, t) for v, t in zip(parts, tangents, strict=True))

    def _part_holds(self, v: Any, t: Any) -> bool:
        if isinstance(t, (Zero, Undefined)):
            return True
        if type(v) in OWN:
            wanted = OWN[type(v)].tangent
            return (
                isinstance(t, Chunk) and t.n == self.n and all(type(k) is wanted for k in t.lanes)
            )
        if vectors.tangent_space_of(v) is None:
            return t is NoTangent
        if not isinstance(t, Chunk) or t.n != self.n or t.shape != leaf_shape(v):
            return False
        return t.dtype.kind in "fc" and (t.dtype.kind == "f" or leaf_dtype(plain(v)).kind == "c")

    def _checked(self, x: Any) -> Any:
        if not self.fits(x):
            message = f"expected {self.primal!r}; got {type_in_words(x)}, {x!r:.60}"
            raise UnsupportedTypeError(message)
        return x


class NumberTangent(TangentType):
    """Tangents of Python's and NumPy's floats and complex numbers: a ``Chunk`` of shape ``()``."""

    def fits(self, x: Any) -> bool:
        """Whether a value is a number of the class."""
        return isinstance(plain(x), self.primal)


class ArrayTangent(TangentType):
    """Tangents of arrays of one dtype: a ``Chunk`` of the array's shape."""

    def fits(self, x: Any) -> bool:
        """Whether a value is an array of the dtype."""
        return isinstance(x, np.ndarray) and plain(x).dtype == self.primal.dtype


@dataclass(frozen=True, eq=False, repr=False)
class CompositeTangent(TangentType):
    """Tangents of composites: the same structure, with the tangents at the leaves.

    ``parts`` are the tangent types of the parts; None means structural, decided leaf by leaf. With
    ``repeats`` the first part stands for any number of them, as in ``tuple[float, ...]``.
    """

    container: type
    parts: tuple[TangentType, ...] | None = None
    repeats: bool = False

    def fits(self, x: Any) -> bool:
        """Whether a value is of the class, and its parts are of their types."""
        if not isinstance(x, self.container):
            return False
        if self.parts is None:
            return True
        if isinstance(x, dict):
            key, value = self.parts
            return all(key.fits(k) and value.fits(v) for k, v in x.items())
        if isinstance(x, tuple) and not self.repeats:
            same = len(x) == len(self.parts)
            return same and all(p.fits(v) for p, v in zip(self.parts, x, strict=True))
        return all(self.parts[0].fits(v) for v in typing.cast("list[Any]", x))


@dataclass(frozen=True, eq=False, repr=False)
class AnyTangent(TangentType):
    """Tangents of values whose type is not known beforehand (``Any``, unions): structural.

    ``alternatives`` are the members of a union; None means any type.
    """

    alternatives: tuple[TangentType, ...] | None = None

    def fits(self, x: Any) -> bool:
        """Whether a value is of one of the union's types."""
        return self.alternatives is None or any(kind.fits(x) for kind in self.alternatives)


class NoSpace(TangentType):
    """A part of a composite that has no tangent space; alone it is ``NoTangent``."""

    def fits(self, x: Any) -> bool:
        """Whether a value is of the class."""
        if isinstance(self.primal, ArrayType):
            return isinstance(x, np.ndarray) and x.dtype == self.primal.dtype
        return x is None if self.primal is None else isinstance(x, self.primal)


class OwnTangent(TangentType):
    """Tangents of a class that was registered with a tangent class of its own."""

    def fits(self, x: Any) -> bool:
        """Whether a value is of the class."""
        return type(x) is self.primal

    def basis(self, x: Any, start: int = 0) -> Any:
        """Raise: a user's tangent class has no known basis."""
        raise UnsupportedTypeError(
            f"{self.primal.__qualname__} has a tangent class of its own, for which fwdad knows "
            f"no basis: pass the directions, as in jvp(f, x, v) (asked from direction {start} of "
            f"{x!r:.60})"
        )

    def random(self, x: Any, rng: np.random.Generator) -> Any:
        """Raise: a user's tangent class has no known random direction."""
        del rng
        return self.basis(x)
