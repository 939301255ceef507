"""Calls that have an effect outside of Python's objects, and how it is made.

It is made once for all runs of a derivative call, with the values of the arguments.
"""

from __future__ import annotations

import _io
import functools
from typing import Any

from fwdad.eager.activity import is_active
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.run import STATE
from fwdad.tangents.plain import plain

PACKAGES = frozenset({
    "logging", "subprocess", "shutil", "tempfile", "socket", "sqlite3", "smtplib", "ftplib",
    "matplotlib", "mpl_toolkits", "IPython", "ipykernel", "rich", "wandb", "tensorboard",
    "tensorboardX", "mlflow", "loguru", "structlog", "h5py", "netCDF4", "zarr", "requests",
    "urllib", "http", "plotly", "bokeh", "seaborn",
})  # fmt: skip
"""Packages whose functions put something out, and compute nothing that carries derivatives."""

IN_C = {"posix", "nt", "_socket", "_csv", "fcntl", "_sqlite3", "_posixsubprocess"}
"""Modules in C of the same kind."""

_READS = {"read", "readline", "readlines", "readinto", "read1", "readall", "getvalue", "getbuffer",
          "__next__", "__iter__"}  # fmt: skip


def effect(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make an effect with the values of its arguments, once for all runs of a derivative call."""
    run = STATE.run
    if run is None:
        return f(*args, **kwargs)
    given = without_tangents(args), without_tangents(kwargs)
    run.effects.given.append(given)
    return run.effect(f, *given)


def without_tangents(x: Any) -> Any:
    """A value without duals; a list, tuple, set or dict that holds some is copied."""
    t = type(x)
    if isinstance_dual(x):
        return plain(x)
    if t is list or t is tuple or t is set:
        items = [without_tangents(item) for item in x]
        return x if all(a is b for a, b in zip(items, x, strict=True)) else t(items)
    if t is dict:
        made = {without_tangents(k): without_tangents(v) for k, v in x.items()}
        same = all(k is m and made[m] is x[k] for k, m in zip(x, made, strict=True))
        return x if same else made
    return x


def carries(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether what is written carries a derivative; text may show a number that does."""
    if is_active((*args, *kwargs.values())):
        return True
    return bool(STATE.run.effects.texts) and any(isinstance(a, (str, list)) for a in args)


def file_method(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], file: Any) -> Any:
    """Call a method of a file."""
    run = STATE.run
    if run is not None:
        if f.__name__ in _READS and not isinstance(file, _io._TextIOBase):  # type: ignore[attr-defined]
            run.effects.check_file(file)  # numbers in a text are recognised by their digits
        elif f.__name__ in ("write", "writelines") and carries(args, kwargs):
            run.effects.note_file(file)
    return effect(f, args, kwargs)


def is_file(o: Any) -> bool:
    """Whether an object is one of Python's files."""
    # isinstance would ask a weak proxy for the class of what it stands for, which may be gone
    return issubclass(type(o), _io._IOBase)  # type: ignore[attr-defined]


@functools.cache
def _puts_out(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES


@functools.cache
def _drives(module: str) -> bool:
    return module.partition(".")[0] in ("asyncio", "selectors")


def drives_coroutines(f: Any) -> bool:
    """Whether a function belongs to an event loop, which runs (lifted) coroutines as it is."""
    return _drives(getattr(f, "__module__", None) or "")


def puts_out(f: Any) -> bool:
    """Whether a library's Python function, or class, is from a package that produces output."""
    return _puts_out(getattr(f, "__module__", None) or "")
