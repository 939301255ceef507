"""Recognising calls that stop a program in a debugger, which inspects the frame that makes them."""

from __future__ import annotations

import ast
import sys
import types
from typing import Any

_NAMES = {"breakpoint", "set_trace", "embed", "interact"}
_MODULES = {"pdb", "bdb", "code", "ipdb", "pudb", "pdbp", "pdbpp", "IPython", "debugpy", "pydevd",
            "web_pdb", "rpdb", "remote_pdb", "madbg", "wdb"}  # fmt: skip


def name_of_stop(called: ast.expr) -> str:
    """The called name if it may stop the program, as in ``pdb.set_trace()``; else empty."""
    name = getattr(called, "id", None) or getattr(called, "attr", None)
    return name if name in _NAMES else ""


def stops(f: Any) -> bool:
    """Whether a function stops the program in a debugger."""
    if f is breakpoint or f is sys.breakpointhook or f is sys.__breakpointhook__:
        return True
    if not isinstance(f, (types.FunctionType, types.MethodType)):
        return False
    home = str(getattr(f, "__module__", None)).partition(".")[0]
    return home in _MODULES and getattr(f, "__name__", "") in _NAMES
