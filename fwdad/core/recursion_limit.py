"""Python's recursion limit, raised where frames of the library stand between a program's own."""

from __future__ import annotations

import functools
import platform
import sys
import threading

from fwdad.core.reentrant_context import EnteredTwice

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

FRAMES = 9
"""Frames for one of the user's at most: the longest way of a call through hooks and dispatcher."""

_BYTES = 1024  # of the C stack for a frame: 100 to 600 were measured, with what C calls in between
_SMALL_STACK = 1 << 20

_LOCK = threading.Lock()  # the limit is that of all threads
_ASKED: dict[object, int] = {}


class _Limit:
    """The program's own limit, and the values that may be set here: two while it changes."""

    own = 0
    ours: tuple[int, ...] = ()

    @classmethod
    def note(cls, now: int) -> None:
        """Take another limit than ours for the program's own."""
        if not _ASKED or now not in cls.ours:
            cls.own = now

    @classmethod
    def change(cls, now: int, limit: int) -> None:
        """Set the limit."""
        cls.ours = now, limit
        if limit != now:
            sys.setrecursionlimit(limit)
        cls.ours = (limit,)


class HigherLimit(EnteredTwice):
    """The recursion limit is at least ``limit``, or what the program's own limit needs under hooks.

    A program that runs at some depth in Python runs at that depth under a derivative, too. Requests
    of several threads and nested ones hold together; the last that ends restores the limit that was
    found, or that the program has set meanwhile.
    """

    __slots__ = ("_limit",)

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit

    def begin(self) -> None:
        """See the class."""
        limit = self._limit
        with _LOCK:
            now = sys.getrecursionlimit()
            _Limit.note(now)
            if not limit:
                main = threading.get_ident() == _MAIN
                limit = under_hooks(_Limit.own, main, threading.stack_size())
            _ASKED[self] = limit
            _Limit.change(now, max(limit, now))

    def end(self) -> None:
        """See the class."""
        with _LOCK:
            if not _ASKED:  # nothing was begun, or it has ended
                return
            now = sys.getrecursionlimit()
            _Limit.note(now)
            limits = [limit for request, limit in _ASKED.items() if request is not self]
            _Limit.change(now, max(_Limit.own, *limits, 0))
            _ASKED.pop(self, None)


_MAIN = threading.main_thread().ident


@functools.cache
def under_hooks(limit: int, main: bool, chosen: int) -> int:
    """The limit with which as many frames of the user's fit as ``limit`` allows without hooks.

    Python 3.11 counts frames and knows nothing of the C stack, on which some of ours lie: there the
    limit stays below what fits. From 3.12 on Python counts what lies there by itself. ``main`` says
    whether this is the main thread, ``chosen`` what ``threading.stack_size`` returns.
    """
    most = limit * FRAMES
    if sys.version_info < (3, 12):
        most = min(most, stack_size(main, chosen) // _BYTES)
    return max(limit, most)


def stack_size(main: bool, chosen: int) -> int:
    """The bytes of a thread's C stack."""
    if resource is None:
        return chosen or _SMALL_STACK
    if not main and (chosen or platform.libc_ver()[0] != "glibc"):
        return chosen or _SMALL_STACK
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize if main else 2 * _SMALL_STACK  # that of glibc
    return soft
