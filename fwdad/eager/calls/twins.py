"""Functions of SciPy's that have a twin: another one computes the same, and has derivatives.

``scipy.spatial.transform`` computes with quaternions in functions in C for NumPy's arrays, and in
functions of the same names in Python for those of other libraries. These are lifted. NumPy's solve
is called by a function of SciPy's own where arrays may be of any library.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import HANDLERS, call
from fwdad.rules.core.registry import when_imported

PACKAGE = "scipy.spatial.transform"


def _through(function: Any, twin: Any) -> Callable[..., Any]:
    """The handler of a function: its twin computes with active arguments."""

    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not is_active((*args, *kwargs.values())):
            return function(*args, **kwargs)
        arrays = (call(np.asarray, x) if isinstance(x, list) else x for x in args)
        return call(twin, *arrays, **kwargs)

    return handle


def _enter(function: Any, twin: Any) -> None:
    HANDLERS[function] = _through(function, twin)


def _install(twins: str, compiled: str) -> Callable[[Any], None]:
    def install(_: Any) -> None:
        functions = vars(importlib.import_module(f"{PACKAGE}.{compiled}"))
        for name, twin in vars(importlib.import_module(f"{PACKAGE}.{twins}")).items():
            if isinstance(twin, types.FunctionType) and name in functions:
                _enter(functions[name], twin)

    return install


for _kind, _function in (("rotation", "from_quat"), ("rigid_transform", "from_matrix")):
    when_imported(f"{PACKAGE}._{_kind}_xp.{_function}", _install(f"_{_kind}_xp", f"_{_kind}_cy"))
when_imported(
    "scipy._lib.array_api_compat.numpy.linalg.solve", lambda solve: _enter(solve, np.linalg.solve)
)
