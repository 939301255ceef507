"""SciPy's helpers beside functions of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.rules.core.registry import when_imported


def _by_dtypes(get_lapack_funcs: Any) -> None:
    """LAPACK's routines for some arrays: they follow from dtypes, whatever the layout is."""

    @builtin(get_lapack_funcs)
    def _routines(
        _tracer: Tracer, names: Any, arrays: Any = (), *options: Any, **named: Any
    ) -> Any:
        like = [np.empty(0, a.dtype) if type(a) is Symbol else a for a in arrays]
        return get_lapack_funcs(names, like, *options, **named)


when_imported("scipy.linalg.lapack.get_lapack_funcs", _by_dtypes)


def _which_triangle(cho_factor: Any) -> None:
    """The factor of a matrix; which triangle it is in is said by the call."""

    @builtin(cho_factor)
    def _factor(tracer: Interpreter, *args: Any, **kwargs: Any) -> Any:
        c, which = tracer.operations.call_native(cho_factor, args, kwargs)
        lower = kwargs.get("lower", args[1] if len(args) > 1 else False)
        return c, bool(lower) if isinstance(lower, (bool, int)) else which


when_imported("scipy.linalg.cho_factor", _which_triangle)
