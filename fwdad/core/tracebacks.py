"""Exceptions as users see them when they leave a public function: without fwdad's own frames.

Nothing is done, and nothing costs time, until an exception reaches the outermost call of fwdad.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

from fwdad.errors import InternalError, is_own_file

P = ParamSpec("P")
R = TypeVar("R")

_DOORS: set[CodeType] = set()  # the code of the functions that users call


def public(f: Callable[P, R]) -> Callable[P, R]:
    """Hide fwdad's frames in the exceptions that leave a function that users call.

    A function that is called very often has the same in its own body, which saves a call::

        try:
            ...
        except BaseException as error:
            leave(error)
            raise
    """
    leaving = leave

    def door(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return f(*args, **kwargs)
        except BaseException as error:
            leaving(error)
            raise

    return as_public(door, f)


def as_public(door: Any, f: Callable[P, R]) -> Callable[P, R]:
    """A function of ours that does what ``door`` does, and looks like f, which it calls."""
    # in f's own namespace, so that a search for the functions of a module finds it there
    function: Any = FunctionType(door.__code__, f.__globals__, f.__name__, None, door.__closure__)
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(function, name, getattr(f, name))
    function.__wrapped__ = f
    _DOORS.add(door.__code__)
    found: Callable[P, R] = function
    return found


def leave(error: BaseException) -> None:
    """Make an exception that leaves the outermost public function what the user expects.

    The caller caught it and raises it again. fwdad's frames are removed from its traceback and from
    those of the exceptions that it is chained to. Exceptions that fwdad itself caught (a failed
    attempt before another method was tried) are dropped from its context. ``FWDAD_TRACEBACK=full``
    keeps everything.
    """
    if os.environ.get("FWDAD_TRACEBACK") == "full" or _is_inside(sys._getframe(1).f_back):  # noqa: SLF001
        return
    _filter(error, set())


def _is_inside(frame: FrameType | None) -> bool:
    """Whether a frame, or one of its callers, is fwdad's."""
    while frame is not None:
        if is_own_file(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def _filter(error: BaseException, done: set[int]) -> None:
    if id(error) in done:
        return
    done.add(id(error))
    context = error.__context__
    while context is not None and _was_caught_here(context):
        context = context.__context__
    suppressed = error.__suppress_context__
    error.__context__ = context
    error.__suppress_context__ = suppressed
    mistake = isinstance(error, InternalError)
    for other in (error.__cause__, context):
        if other is not None and not (mistake and other is error.__cause__):  # what is reported
            _filter(other, done)
    error.__traceback__ = _kept(error.__traceback__)


def _was_caught_here(error: BaseException) -> bool:
    """Whether fwdad's code caught an exception: its traceback begins there."""
    trace = error.__traceback__
    return trace is not None and is_own_file(trace.tb_frame.f_code.co_filename)


def _kept(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without fwdad's own frames."""
    kept = []
    while trace is not None:
        if not is_own_file(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    found = None
    for trace in reversed(kept):
        found = TracebackType(found, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    return found


def behind_doors(f: Any) -> Any:
    """The function behind the doors of the public interface; any other function itself."""
    while f.__code__ in _DOORS:
        f = f.__wrapped__
    return f
