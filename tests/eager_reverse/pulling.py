"""Jacobians by pulling cotangents back, and programs that are recorded."""

import numpy as np

from fwdad.eager_reverse import run_recorded
from fwdad.evaluation.arguments import arguments_of
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO


def record(f, *args, argnums=0, **options):
    """Record f at its arguments."""
    x, *rest = args
    arguments, _ = arguments_of(f, x, tuple(rest), None, argnums)
    return run_recorded(f, arguments, **options)


def jacobian_of(outcome, x, width):
    """The Jacobian of one array or number with respect to another, `width` cotangents a time."""
    y = outcome.y
    size = int(np.size(y))
    dtype = np.asarray(y).dtype
    rows = []
    for start in range(0, size, width):
        part = np.eye(size, dtype=dtype)[start : start + width]
        (x_bar,) = outcome.pull([Chunk(part.reshape((len(part), *np.shape(y))))])
        if x_bar is ZERO:
            rows.append(np.zeros((len(part), *np.shape(x))))
        else:
            assert x_bar.n == len(part)
            rows.append(x_bar.lanes)
    joined = np.concatenate(rows) if rows else np.zeros(0)
    return joined.reshape(np.shape(y) + np.shape(x))
