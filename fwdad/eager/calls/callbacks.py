"""User functions that C code of NumPy and SciPy calls."""

from __future__ import annotations

import types
from typing import Any

from fwdad.core.lifted_code import LIFTED
from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.dual import leak
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.run import STATE
from fwdad.errors import DualLeakError, is_library_file


def with_bound_callbacks(f: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments whose user functions are bound to the dispatcher, for C code to call."""
    module = getattr(f, "__module__", None) or ""
    if STATE.run is None or not (module == "" or module.startswith(("scipy", "numpy"))):
        return args
    if module.startswith("scipy"):  # its solvers, which take no dual for a result
        return tuple([_callback(a) if type(a) in _FUNCTIONS else a for a in args])
    return tuple([_callback(a) if _is_user_function(a) else a for a in args])


_FUNCTIONS = {types.FunctionType, types.MethodType}


def _is_user_function(a: Any) -> bool:
    if type(a) is types.MethodType:
        a = a.__func__
    return (
        type(a) is types.FunctionType
        and id(a.__code__) not in LIFTED
        and not is_library_file(a.__code__.co_filename)
    )


def _callback(a: Any) -> Any:
    def called_from_c(*args: Any, **kwargs: Any) -> Any:
        value = call(a, *args, **kwargs)
        if is_active((value,)):
            what = "a plain number in the C code that called this function,"
            error = DualLeakError(leak(what, _first_dual(value)))
            STATE.run.errors.append(error)  # the C code may replace it by an error of its own
            raise error
        return value

    return called_from_c


def _first_dual(value: Any) -> Any:
    """A dual to show in a message, from a value that may be a list of them."""
    while type(value) in (list, tuple):
        value = next(v for v in value if is_active((v,)))
    return explicit(value)
