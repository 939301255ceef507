"""The reasons why a function's source is unavailable, and what to do, for messages."""

from __future__ import annotations

import importlib.machinery
import linecache
import os
import sys
import time
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from fwdad.eager.lifting.source import is_told_apart
from fwdad.eager.lifting.texts import NAMELESS
from fwdad.errors import is_library_file

_STARTED = time.time()
_PICKLE = (
    "make the derivative where f is defined (`df = fwdad.grad(f)`) and pickle that: it contains "
    "the source"
)


class Missing(NamedTuple):
    """Why there is no source, and what to do."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}. {self.remedy[0].upper()}{self.remedy[1:]}"


def why_missing(f: FunctionType) -> Missing:
    """The reason why :func:`~fwdad.eager.lifting.source.find_source` has found nothing."""
    name = f.__code__.co_filename
    if name == NAMELESS or _came_pickled(f):
        return Missing("it came in a pickle, which does not contain its source", _PICKLE)
    if name.startswith("<ipython-input") or f"{os.sep}ipykernel_" in name:
        return Missing("it was defined in a cell of a notebook that runs elsewhere", _PICKLE)
    if name.startswith("<"):
        return _without_file(name, f)
    if not os.path.exists(name):
        return _file_missing(name, f.__globals__)
    return _file_differs(name, f)


def _came_pickled(f: FunctionType) -> bool:
    """Whether a function was put together outside of its module, for instance by pickle."""
    home = sys.modules.get(f.__globals__.get("__name__", ""))
    return home is not None and vars(home) is not f.__globals__


def _without_file(name: str, f: FunctionType) -> Missing:
    if name == "<stdin>" and hasattr(sys, "ps1"):
        reason = "it was typed at Python's prompt, which keeps no source before Python 3.13"
        return Missing(reason, "define it in a file, or in IPython or Jupyter")
    if name == "<stdin>":
        reason = "the program was read from standard input, which cannot be read again"
        return Missing(reason, "save the program in a file, or run it with `python -c`")
    reason = "it was made by exec, eval or compile from text that was not kept"
    if is_library_file(str(f.__globals__.get("__file__"))):
        package = str(f.__module__).partition(".")[0]
        wanted = "pass it fwdad.stop_gradient(x) if its derivative is not needed"
        return Missing(reason, f"it is a function of the package {package}: {wanted}")
    remedy = "define it in a file or a notebook, or add its text to linecache.cache"
    return Missing(reason, remedy)


def _file_missing(name: str, module: dict[str, Any]) -> Missing:
    loaded = str(module.get("__file__") or "")
    archive = next((str(p) for p in Path(name).parents if p.is_file()), None)
    if loaded.endswith(tuple(importlib.machinery.BYTECODE_SUFFIXES)):
        reason = f"only its compiled file {loaded} exists"
        return Missing(reason, f"install {Path(name).name} next to it")
    if archive is not None:
        reason = f"{archive} does not contain it, or has changed since it was imported"
        return Missing(reason, "put the .py file into the archive, and restart Python")
    remedy = f"restore the file, or, if the function came in a pickle, {_PICKLE}"
    return Missing(f"{name} does not exist", remedy)


def _file_differs(name: str, f: FunctionType) -> Missing:
    if not linecache.getlines(name):
        remedy = "make it readable, in the encoding that it declares"
        return Missing(f"{name} cannot be read", remedy)
    if _changed(name, f.__globals__):
        again = "restart Python"
        if f.__module__ not in ("__main__", "__mp_main__"):
            again = f"reload the module (importlib.reload) or {again}"
        return Missing(f"{name} has changed on disk since it was imported", again)
    if not is_told_apart(f):
        reason = "several lambdas begin on its line, and Python was told to forget their columns"
        return Missing(reason, "give each a line of its own, or run Python with debug ranges")
    reason = f"its bytecode is not what {name} compiles to: something has rewritten it"
    remedy = (
        "differentiate the function before a decorator or tool rewrites it; if the file has "
        "changed, reload the module (importlib.reload) or restart Python"
    )
    return Missing(reason, remedy)


def _changed(name: str, module: dict[str, Any]) -> bool:
    """Whether a file has changed since the module was imported, as far as can be told."""
    now = os.stat(name)
    if now.st_mtime > _STARTED:
        return True
    try:
        with open(str(module.get("__cached__")), "rb") as file:
            head = file.read(16)
    except OSError:
        return False  # it was not kept, so nothing is known
    if len(head) < 16 or head[4:8] != bytes(4):  # validated by a hash of the source
        return False
    recorded = (int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:], "little"))
    return recorded != (int(now.st_mtime) & 0xFFFFFFFF, now.st_size & 0xFFFFFFFF)
