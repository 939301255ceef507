"""The reverse pass of a solve, as one operation of a recorded run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.duals.array import Array
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.errors import MissingTransposeError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype, leaf_shape

Pull = Callable[[Any], list[Any]]


class SolvePullback:
    """What a recorded run calls with the cotangent of the steps' vectors.

    ``pull`` maps it, linearly, to those of ``inputs``, None where there is none.
    """

    def __init__(self, pull: Pull, inputs: list[Any]) -> None:
        self.pull = pull
        self.kinds = [(leaf_shape(x), leaf_dtype(plain(x))) for x in inputs]

    def pulled(self, y_bar: Chunk) -> tuple[Chunk, ...]:
        """The cotangents of the inputs, a lane for each of those that come in."""
        return tuple(Chunk(lanes) for lanes in self._of_lanes(y_bar.lanes))

    def _of_lanes(self, lanes: Any) -> list[Any]:
        if not isinstance_dual(lanes):
            found = [self._one(bar) for bar in lanes]
            return [np.stack(parts) for parts in zip(*found, strict=True)]
        if lanes.tag.record is not None:
            raise MissingTransposeError(
                "the pullback of solve_ivp cannot itself be run backwards: take second derivatives "
                "by fwdad.hessian or fwdad.hvp, which push tangents through it"
            )
        values = self._of_lanes(lanes.p)
        directions = [self._of_lanes(direction) for direction in lanes.t.lanes]
        dots = [np.stack(parts) for parts in zip(*directions, strict=True)]
        return [Array(x, Chunk(dot), lanes.tag) for x, dot in zip(values, dots, strict=True)]

    def _one(self, bar: Any) -> list[Any]:
        """The cotangents of the inputs for one that comes in, in their shapes."""
        found = []
        for x_bar, (shape, dtype) in zip(self.pull(bar), self.kinds, strict=True):
            made = np.zeros(shape, dtype) if x_bar is None else np.asarray(x_bar).reshape(shape)
            found.append((made.real if dtype.kind != "c" else made).astype(dtype))
        return found
