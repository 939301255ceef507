"""Numbers at equal steps: ``numpy.linspace``, ``geomspace``, ..."""

import numpy as np

from fwdad.frontend.numpy_sources.table import known, stands_for


@stands_for(np.linspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    count, endpoint = num, known(endpoint)
    if count < 0:
        raise ValueError("Number of samples must be non-negative.")
    parts = max(count - 1 if endpoint else count, 1)
    start, stop = _number(start) * 1.0, _number(stop) * 1.0
    own = np.result_type(start, stop, float(count))
    gap = np.subtract(stop, start)
    steps = np.arange(0, count).reshape((-1,) + (1,) * np.ndim(gap)).astype(own)
    step = gap / parts
    y = steps * step + start
    if endpoint and count > 1:
        y[-1] = stop
    if known(axis) != 0:
        y = np.moveaxis(y, 0, known(axis))
    if dtype is not None:
        y = np.floor(y).astype(dtype) if np.dtype(dtype).kind in "iu" else y.astype(dtype)
    elif y.dtype != own:
        y = y.astype(own)
    return (y, step) if retstep else y


def arange_of_values(start, stop=None, step=1.0):
    """``np.arange`` of unknown numbers."""
    if stop is None:
        start, stop = 0.0, start
    count = np.ceil((stop - start) / step)
    gap = (start + step) - start  # as NumPy has it
    if np.isnan(count):
        raise ValueError("arange: cannot compute length")
    if abs(count) >= 2.0**63:
        raise ValueError("Maximum allowed size exceeded")
    return start + gap * np.arange(int(count) if count > 0 else 0)


def _number(x):
    """A list as an array, or a number itself."""
    return x if np.ndim(x) == 0 else np.asarray(x)


@stands_for(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    if np.ndim(base) > 0 or dtype is not None:
        return NotImplemented
    return np.power(base, linspace(start, stop, num, endpoint, axis=axis))


@stands_for(np.geomspace)
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    start, stop = _number(start) * 1.0, _number(stop) * 1.0
    if dtype is not None or np.iscomplexobj(start) or np.iscomplexobj(stop):
        return NotImplemented
    if np.any(start == 0) or np.any(stop == 0):
        raise ValueError("Geometric sequence cannot include zero")
    sign = np.sign(start)
    y = sign * logspace(np.log10(start / sign), np.log10(stop / sign), num, endpoint)
    if known(num) > 0:
        y[0] = start
    if known(num) > 1 and endpoint:
        y[-1] = stop
    return np.moveaxis(y, 0, known(axis)) if known(axis) != 0 else y
