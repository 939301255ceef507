"""Loops over integer arrays, compiled by Numba where that is installed and pays.

A kernel is a Python function that reads and writes its arguments alone, element by element, so that
it runs on lists as well as on arrays: without Numba, and for a few steps, Python runs it on lists,
which is five times as fast as on arrays. Both ways are the same source, so their results are equal.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.codegen.numba_support import CHECK_BOUNDS, have_numba

FEW_STEPS = 20_000
"""Python does these, in all, in some milliseconds; loading compiled code takes longer."""
OPTIONS = {"error_model": "numpy", "boundscheck": CHECK_BOUNDS, "nogil": True}
_LOCK = threading.RLock()


class Kernel:
    """A function of arrays and ints that Python or Numba runs.

    Parameters
    ----------
    function : callable
        It uses no names from outside but ``len`` and ``range``, makes no arrays, and returns an
        int or nothing.
    writes : tuple of str
        The names of the arrays that it writes.
    """

    def __init__(self, function: types.FunctionType, writes: tuple[str, ...]) -> None:
        names = list(inspect.signature(function).parameters)
        self._function = function
        self._written = [names.index(name) for name in writes]
        self._compiled: set[tuple[str, ...]] = set()
        self._steps = 0  # that Python has done
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, steps: int) -> Any:
        """Run on some arguments; ``steps`` says about how often the innermost loop runs."""
        self._steps += steps
        if have_numba() and (self._compiled or self._steps >= FEW_STEPS):
            return self.run_compiled(*args)
        return self.run_on_lists(*args)

    def run_on_lists(self, *args: Any) -> Any:
        """Run under Python."""
        lists = [x.tolist() if isinstance(x, np.ndarray) else x for x in args]
        result = self._function(*lists)
        for k in self._written:
            args[k][:] = lists[k]
        return result

    def run_compiled(self, *args: Any) -> Any:
        """Run under Numba."""
        signature = tuple(x.dtype.str if isinstance(x, np.ndarray) else "" for x in args)
        if signature not in self._compiled:
            with _LOCK:
                self._compile(args)
                self._compiled.add(signature)
        return self._dispatcher(*args)

    @functools.cached_property
    def _dispatcher(self) -> Any:
        import numba  # noqa: PLC0415  (an optional package, and slow to import)

        f = self._function
        copy = types.FunctionType(f.__code__, {}, f.__name__)
        copy.__module__ = f.__module__
        return numba.njit(**OPTIONS)(copy)

    def _compile(self, args: tuple[Any, ...]) -> None:
        """Load code that a process has compiled before, or compile and store it."""
        import numba  # noqa: PLC0415

        from fwdad.codegen.cache import disk_cache  # noqa: PLC0415  (it needs Numba)

        dispatcher = self._dispatcher
        signature = tuple(map(numba.typeof, args))
        entry = disk_cache.entry_digest(
            disk_cache.function_digest(self._function, OPTIONS), signature
        )
        found = disk_cache.load(entry, signature)
        if found is not None:
            context = dispatcher.targetctx
            context.insert_user_function(found.entry_point, found.fndesc, [found.library])
            dispatcher.add_overload(found)
            return
        # cached code has a name that no other has
        dispatcher.py_func.__qualname__ = f"{entry}.{self._function.__name__}"
        dispatcher.compile(signature)
        disk_cache.save(entry, dispatcher.overloads[signature])


def kernel(*writes: str) -> Callable[[Any], Kernel]:
    """Make a function a kernel; the arguments of these names are written."""
    return lambda function: Kernel(function, writes)


def index_array(n: int, value: int, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of n equal indices, of the type that others have."""
    return np.full(n, value, like.dtype)
