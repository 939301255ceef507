"""Calls that produce output or read input, each of which is made once, with plain values.

The output has values without derivatives. Where f reads that back, the derivative would be lost
silently: that is refused.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import warnings
from types import FrameType
from typing import Any

from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import HANDLERS, handler
from fwdad.eager.calls.effectful import carries, effect
from fwdad.eager.run import STATE
from fwdad.errors import PACKAGE
from fwdad.ops import functions_with, record_of
from fwdad.rules.core.registry import when_imported


def _as_effect(*functions: Any) -> None:
    for function in functions:
        HANDLERS[function] = functools.partial(effect, function)


_as_effect(input, type(os.environ).__setitem__, type(os.environ).__delitem__)


@handler(print)
def _print(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    file = kwargs.get("file")
    if file is not None and STATE.run is not None and carries(args, {}):
        STATE.run.effects.note_file(file)
    return effect(print, args, kwargs)


@handler(io.open)
def _open(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    mode = kwargs.get("mode", args[1] if len(args) > 1 else "r")
    if STATE.run is not None and args and "b" in mode and ("r" in mode or "+" in mode):
        STATE.run.effects.check_file(args[0])
    return effect(io.open, args, kwargs)


# -- functions that write a value into a file, and those that read one


def _writer(function: Any, position: int | str) -> None:
    @handler(function)
    def write(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if STATE.run is not None and is_active((*args, *kwargs.values())):
            at = (
                args[position]
                if len(args) > position
                else kwargs.get(  # type: ignore[operator]
                    "file", kwargs.get("fname", kwargs.get("fp", kwargs.get("fid")))
                )
            )
            STATE.run.effects.note_file(at)
        return effect(function, args, kwargs)


for _function in functions_with(lambda record: record.writes_file is not None):
    _writer(_function, record_of(_function).writes_file or 0)
when_imported("scipy.io.savemat", lambda savemat: _writer(savemat, 0))


def _reader(function: Any) -> None:
    @handler(function)
    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if STATE.run is not None:
            STATE.run.effects.check_file(args[0] if args else next(iter(kwargs.values()), None))
        return effect(function, args, kwargs)


for _function in functions_with(lambda record: record.reads_file):
    _reader(_function)


@handler(warnings.warn)
def _warn(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return effect(warnings.warn_explicit, *_explicit(*args, **kwargs))


def _explicit(
    message: Any,
    category: Any = None,
    stacklevel: int = 1,
    source: Any = None,
    **_more: Any,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of ``warn_explicit`` for a warning at the user's line."""
    frame = _calling_frame(stacklevel)
    if isinstance(message, Warning):
        category = type(message)
    names: dict[str, Any] = frame.f_globals if frame is not None else vars(sys)
    line = frame.f_lineno if frame is not None else 1
    filename = frame.f_code.co_filename if frame is not None else "sys"
    registry = names.setdefault("__warningregistry__", {})
    where = {"module": names.get("__name__") or "<string>", "registry": registry, "source": source}
    return (message, category or UserWarning, filename, line), where


def _calling_frame(level: int) -> FrameType | None:
    """The frame that ``warnings.warn`` would name if there were none of ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            level -= 1
            if level <= 0:
                return frame
        frame = frame.f_back
    return None
