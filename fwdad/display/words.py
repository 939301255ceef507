"""Files, functions and values in words: the same from run to run, without addresses."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def file_in_words(filename: str) -> str:
    """A file by its name: ``In[3]`` for a cell of a notebook; its path from here if it is below.

    A notebook's kernel writes cells to files whose names differ from run to run.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    known = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(filename)
    if known is not None:
        return str(known[1])
    return filename.removeprefix(os.getcwd() + os.sep)  # noqa: PTH109  (names of code are strings)


def function_in_words(f: Callable[..., Any]) -> str:
    """A function by its name; one that was made from another says so itself."""
    name = getattr(f, "__qualname__", None)
    if name is not None and type(f).__module__ in ("builtins", "numpy"):
        return str(name).rpartition("<locals>.")[2]
    return _ADDRESS.sub("", repr(f).removeprefix("<").removesuffix(">"))


def signature_in_words(f: Callable[..., Any]) -> str:
    """A function's parameters, in parentheses."""
    try:
        return _ADDRESS.sub("", str(inspect.signature(f)))
    except (TypeError, ValueError):  # of C code without one
        return "(…)"


def value_in_words(x: Any) -> str:
    """An array by its dtype and shape, a number by its type."""
    shape = np.shape(x)
    return f"{x.dtype} of shape {shape}" if shape else type(x).__name__


def counted(n: int, noun: str) -> str:
    """A number of things."""
    return f"1 {noun}" if n == 1 else f"{n:,} {noun}s"
