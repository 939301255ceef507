"""The hooks of ``with``, decorators, ``nonlocal``, ``global``, ``locals()`` and ``eval``."""

from __future__ import annotations

import functools
import types
from typing import Any

from fwdad.core.debuggers import stops
from fwdad.eager.calls.dispatch import call
from fwdad.eager.calls.effectful import is_file
from fwdad.eager.lifting.nodes import PREFIX
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.run import STATE
from fwdad.errors import DualLeakError


class _Manager:
    """A context manager whose methods are called through the dispatcher."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> Any:
        return call(type(self.manager).__enter__, self.manager)

    def __exit__(self, *details: object) -> Any:
        return call(type(self.manager).__exit__, self.manager, *details)


def enter(manager: Any) -> Any:
    """The manager of a ``with`` statement, wrapped if its methods are in Python."""
    t = type(manager)
    if isinstance(getattr(t, "__enter__", None), types.FunctionType) or is_file(manager):
        return _Manager(manager)
    return manager


def decorate(decorator: Any) -> Any:
    """A decorator that is applied through the dispatcher."""
    return functools.partial(call, decorator)


def write_cells(reader: Any) -> None:
    """Keep the variables of a ``nonlocal`` statement before the function writes them."""
    run = STATE.run
    if run is not None:
        for cell in reader.__closure__ or ():
            run.log.cell(cell)


def write_global(namespace: dict[str, Any], *names: str) -> None:
    """Keep the variables of a ``global`` statement before the function writes them."""
    run = STATE.run
    if run is not None:
        for name in names:
            run.log.name(namespace, name)


def stop(f: Any) -> Any:
    """A function itself if it does stop in a debugger, else the function through the dispatcher."""
    return f if stops(f) else functools.partial(call, f)


def own_names(names: Any) -> Any:
    """The result of ``locals()`` or ``dir()`` without the variables that lifting adds."""
    if isinstance(names, dict):
        return {k: v for k, v in names.items() if not str(k).startswith(PREFIX)}
    return [k for k in names if not str(k).startswith(PREFIX)]


def check_eval() -> None:
    """Refuse ``eval`` and ``exec`` where the code could read arrays without their tangents."""
    if SHADOWED:
        message = (
            "eval or exec is called while arrays carry derivatives, which its code would ignore. "
            "Call a function instead"
        )
        raise DualLeakError(message)
