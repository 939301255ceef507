"""Output of a traced program, which is produced whenever the program runs, with actual values."""

from __future__ import annotations

import logging
import os
import pprint
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.containers import of_class
from fwdad.eager.calls.effectful import effect, is_file
from fwdad.errors import Location, UntraceableError, is_library_file, type_in_words
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.captures import fetch
from fwdad.frontend.guards import outcome
from fwdad.frontend.syntax.frame import Frame
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Effect
from fwdad.ir.symbol import Symbol, UnknownText
from fwdad.ops import functions_with
from fwdad.rules.core.registry import function_name


def put_out(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Make an effect of a program; texts are made from the numbers that they show."""
    effect(function, tuple(map(_said, args)), {key: _said(x) for key, x in kwargs.items()})


def render(function: Callable[..., Any], *args: Any) -> Any:
    """What is made when the program runs, as texts are: an operand holds it before its parts."""
    return function(*map(_said, args))


def _said(x: Any) -> Any:
    if type(x) is tuple:
        return render(*x[1:]) if x and x[0] is render else tuple(map(_said, x))
    if type(x) is list:
        return list(map(_said, x))
    return {key: _said(item) for key, item in x.items()} if type(x) is dict else x


def _named(cls: Any, *items: Any) -> Any:
    """A tuple of a class that names its items."""
    return of_class(cls, items)


def emit(tracer: Tracer, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Write an effect into the program that is traced."""
    if isinstance(function, types.FunctionType) and args and isinstance(args[0], logging.Logger):
        function, args = types.MethodType(function, args[0]), args[1:]
    try:
        operands = tuple([_operand(tracer, function, a) for a in args])
        named = {key: _operand(tracer, function, a) for key, a in kwargs.items()}
    except UntraceableError:
        if _is_disabled(tracer, function, args):
            return
        raise
    recorder = tracer.recorder
    recorder.prints = True
    recorder.emit(Effect(put_out, (function, operands, named), location=tracer.position.location()))


def _is_disabled(tracer: Tracer, function: Any, args: Any) -> bool:
    """Whether a logger drops what it is given, which the tape then assumes."""
    logger = getattr(function, "__self__", None)
    if not isinstance(logger, logging.Logger):
        return False
    name = function.__name__
    level = args[0] if name == "log" else getattr(logging, _LEVELS.get(name, name.upper()))
    place: Any = ("called", logger.isEnabledFor, (level,), {}, False)
    now = fetch(place)
    if now != outcome(False, None, kept=False):
        return False
    tracer.outside.guard(place, now)
    tracer.outside.kept_paths.append(place)
    return True


_LEVELS = {"warn": "WARNING", "exception": "ERROR"}


def _operand(tracer: Tracer, function: Any, x: Any) -> Any:
    """The operand for a value; for a text, its recipe."""
    if isinstance(x, UnknownText):
        if x.recipe is None:
            message = (
                f"{function_name(function)} is given a string of numbers that are unknown until "
                "run time, made in a way that cannot be traced: pass the numbers themselves, or "
                "an f-string of them"
            )
            raise UntraceableError(message, tracer.position.location())
        made, *parts = x.recipe
        return (render, made, *[_operand(tracer, function, part) for part in parts])
    if is_file(x):
        return x
    if isinstance(x, os.PathLike):
        return os.fspath(x)
    if isinstance(x, tuple):
        items = [_operand(tracer, function, item) for item in x]
        return tuple(items) if type(x) is tuple else (render, _named, type(x), *items)
    if type(x) is list:
        return [_operand(tracer, function, item) for item in x]
    if type(x) is dict:
        return {key: _operand(tracer, function, item) for key, item in x.items()}
    if type(x) is range:
        return (render, range, x.start, x.stop, x.step)
    if not isinstance(x, (list, dict)) and (type(x) is Symbol or not mentions_symbols(x)):
        return tracer.recorder.operand(x)
    message = (
        f"{function_name(function)} is given {type_in_words(x)} made in the traced function: "
        "under jit only numbers, arrays, strings and lists of these can be printed, logged or "
        "written"
    )
    raise UntraceableError(message, tracer.position.location())


def append(items: Any, x: Any) -> None:
    """``items.append(x)``, with arrays copied, because the program may write into them later."""
    items.append(x.copy() if isinstance(x, np.ndarray) else x)


_OF_LOGGERS = {"debug", "info", "warning", "warn", "error", "critical", "exception", "log"}
_OF_FILES = {"write", "writelines", "flush"}


def puts_out(f: Any) -> bool:
    """Whether a function or bound method of a logger or file only produces output."""
    function = getattr(f, "__func__", f)
    if isinstance(function, types.FunctionType):
        return function.__module__ == "logging" and function.__name__ in _OF_LOGGERS
    return type(f) is types.BuiltinMethodType and f.__name__ in _OF_FILES and is_file(f.__self__)


def _writes_a_file(function: Callable[..., Any]) -> None:
    @builtin(function)
    def write(tracer: Tracer, *args: Any, **kwargs: Any) -> None:
        emit(tracer, function, args, kwargs)


for _function in functions_with(lambda record: record.writes_file == 0):
    _writes_a_file(_function)


@builtin(logging.getLogger)
def _logger(tracer: Tracer, name: Any = None) -> Any:
    """A logger, which is always the same object for a name."""
    return logging.getLogger(tracer.values.known(name))


def _prints(function: Callable[..., Any]) -> None:
    @builtin(function)
    def show(tracer: Tracer, *args: Any, **kwargs: Any) -> None:
        emit(tracer, function, args, kwargs)


for _function in (print, pprint.pprint, pprint.pp):
    _prints(_function)


@builtin(warnings.warn)
def _warn(
    tracer: Tracer,
    message: Any,
    category: Any = None,
    stacklevel: Any = 1,
    *_rest: Any,
    **_options: Any,
) -> None:
    """A warning as an effect; a library's is dropped, as no reason to record a run instead."""
    place = _calling_place(tracer, tracer.values.known(stacklevel))
    if is_library_file(tracer.position.frame.filename) or place is None:
        return
    if isinstance(message, Warning):
        category = type(message)
    warning_arguments = (message, category or UserWarning, place.filename, place.line)
    emit(tracer, warnings.warn_explicit, warning_arguments, {})


def _calling_place(tracer: Tracer, level: int) -> Location | None:
    """The location that ``warnings.warn`` would name; the caller of the trace is unknown."""
    position = tracer.position
    frame: Frame | None = position.frame
    place, called_at = position.location(), position.called_at
    for _ in range(level - 1):
        if frame is None or called_at is None:
            break
        place = called_at
        frame, called_at = frame.caller
    return place


@builtin(warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings)
def _filter(tracer: Tracer, *_args: Any, **_kwargs: Any) -> None:
    """A filter of warnings, which is not part of the tape."""
    tracer.recorder.prints |= not is_library_file(tracer.position.frame.filename)
