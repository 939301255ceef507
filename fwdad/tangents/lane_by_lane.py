"""``map_lanes``: a linear function of each lane of a chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import ChunkMismatchError, UntraceableError, type_in_words
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import recorder_of
from fwdad.tangents.zero import Undefined, Zero


def map_lanes(f: Callable[[Any], Any], x_dot: Any) -> Any:
    """Apply a linear function lane by lane, for code that takes plain arrays only.

    Parameters
    ----------
    f : callable
        Linear; takes an array of the primal's shape and returns an array.
    x_dot : Chunk or ZERO
        The tangent.

    Returns
    -------
    Chunk or ZERO

    Raises
    ------
    ChunkMismatchError
        If ``x_dot`` is no tangent, or what f returns has another shape for another lane.

    Notes
    -----
    Costs N calls of ``f``. Such a rule is opaque to reverse mode unless it has a transpose.
    """
    if isinstance(x_dot, (Zero, Undefined)):
        return x_dot
    if recorder_of(x_dot) is not None:
        raise UntraceableError("map_lanes has its lanes when a tape runs: it runs as a whole")
    if not isinstance(x_dot, Chunk):
        raise ChunkMismatchError(f"map_lanes takes a Chunk or ZERO; got {type_in_words(x_dot)}")
    rows = [f(lane) for lane in x_dot.lanes]
    if not rows:  # along no directions there is a shape all the same
        like = np.asarray(f(np.zeros(x_dot.shape, x_dot.lanes.dtype)))
        return Chunk(np.zeros((0, *like.shape), like.dtype))
    if len({np.shape(plain(row)) for row in rows}) > 1 or any(row is None for row in rows):
        shapes = ", ".join("None" if row is None else str(np.shape(plain(row))) for row in rows)
        message = f"map_lanes needs an array of the same shape for each lane; f returned {shapes}"
        raise ChunkMismatchError(message)
    return Chunk(np.stack(rows))
