"""``scipy.optimize.newton``, differentiated by Newton steps at the root."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from fwdad.evaluation.evaluators import jvp, stop_gradient
from fwdad.frontend.numpy_sources.table import known, refuse, stands_for
from fwdad.rules.core.registry import when_imported


def _enter(newton: Any) -> None:
    # SciPy's source, as a function that nothing stands for
    iterations = types.FunctionType(
        newton.__code__, newton.__globals__, newton.__name__, newton.__defaults__,
        newton.__closure__,
    )  # fmt: skip

    @stands_for(newton)
    def _newton(
        func: Any,
        x0: Any,
        fprime: Any = None,
        args: Any = (),
        tol: Any = 1.48e-8,
        maxiter: Any = 50,
        fprime2: Any = None,
        x1: Any = None,
        rtol: Any = 0.0,
        full_output: Any = False,
        disp: Any = True,
    ) -> Any:
        if known(full_output) or fprime2 is not None or np.ndim(x0) != 0:
            refuse("scipy.optimize.newton with fprime2, full_output or arrays cannot be traced")
        options = (tol, maxiter, None, x1, rtol, False, disp)
        root = stop_gradient(iterations(func, x0, fprime, args, *options))
        y = root
        for _ in range(3):
            value, slope = jvp(func, y, np.ones_like(root), args=args)
            # where the slope is 0, the value stays, and the derivative looks like no number
            y = y - value * np.where(slope == 0, 1e300, np.divide(1.0, slope))
        return root + (y - stop_gradient(y))


when_imported("scipy.optimize.newton", _enter)
