"""Whether Numba is there; everything that needs it asks here first."""

from __future__ import annotations

import functools
import importlib.util

from fwdad.errors import Location


@functools.cache
def have_numba() -> bool:
    """Whether Numba can be imported (it is the extra ``fwdad[jit]``)."""
    return importlib.util.find_spec("numba") is not None


class CannotCompileError(Exception):
    """A program holds something that the Numba source cannot express.

    Parameters
    ----------
    what : str
        The operation.
    location : Location or None
        The user's line.
    """

    def __init__(self, what: str, location: Location | None = None) -> None:
        where = f" ({location.filename}:{location.line})" if location is not None else ""
        super().__init__(f"{what}{where}")
        self.what = what
        self.location = location
