"""The texts that may contain a function's source, from wherever Python has read it."""

from __future__ import annotations

import _collections_abc
import functools
import importlib.util
import io
import linecache
import os
import stat
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from fwdad.eager.lifting.carried import Carried, carried_texts

_FROZEN = {"<frozen _collections_abc>": _collections_abc.__file__}
"""Where the source of code stands that is frozen into the interpreter: the abstract containers."""


NAMELESS = "<dynamic-code>"
"""What cloudpickle calls the file of each function that it pickles by value."""


def texts(f: FunctionType) -> Iterator[tuple[str, list[str], Carried | None]]:
    """Each text that may hold a function's definition, likeliest first: its name and lines.

    None is trusted: the caller compares what it compiles to. Texts that came with a pickle have the
    object that carries them as a third item.
    """
    name = _FROZEN.get(f.__code__.co_filename, f.__code__.co_filename)
    for of, lines, held in carried_texts(f.__code__):
        if of in ("", f.__code__.co_filename) or f.__code__.co_filename == NAMELESS:
            yield of, lines, held
    for lines in _known(name, f):
        yield f.__code__.co_filename, lines, None
    file = f.__globals__.get("__file__")
    if name == NAMELESS and isinstance(file, str):  # a script's: it may be on this machine
        yield file, linecache.getlines(file), None


def _known(name: str, f: FunctionType) -> Iterator[list[str]]:
    """The texts that this process knows."""
    no_file = name.startswith("<")
    if not no_file and name not in linecache.cache and not os.path.exists(name):
        _load(name, f.__globals__)
    lines = linecache.getlines(name)
    if lines:
        yield lines
        if not no_file:  # a module that was loaded again, after its file had been read
            linecache.checkcache(name)
            again = linecache.getlines(name)
            if again and again is not lines:
                yield again
    if no_file:
        yield from _typed(f.__code__)
        yield from _from_loader(f.__globals__)
        yield from _command()
        if name == "<stdin>":
            yield from _standard_input()


def _load(name: str, module: dict[str, Any]) -> None:
    """Enter a module's text into linecache if its file is no real file but inside a zip archive."""
    if module.get("__file__") != name:
        return
    for lines in _from_loader(module):
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def _from_loader(module: dict[str, Any]) -> list[list[str]]:
    """The source of a module according to its own loader."""
    spec = module.get("__spec__")
    loader = getattr(spec, "loader", None) or module.get("__loader__")
    get_source = getattr(loader, "get_source", None)
    name = getattr(spec, "name", None) or module.get("__name__")
    if get_source is None or name is None:
        return []
    try:
        text = get_source(name)
    except (ImportError, OSError):  # the loader has none, or its archive has gone
        return []
    return [] if text is None else [_split(text)]


def _typed(code: CodeType) -> list[list[str]]:
    """The lines that Python itself keeps for code without a file: since 3.13, the prompt and -c."""
    by_code = getattr(linecache, "_getlines_from_code", None)
    lines = by_code(code) if by_code is not None else None
    return [lines] if lines else []


@functools.cache
def _command() -> list[list[str]]:
    """The program that was given as ``python -c program``."""
    text = command_of(sys.orig_argv[1:])
    if text is None:
        return []
    plain = textwrap.dedent(text)  # so does Python, since 3.14
    return [_split(text), *([_split(plain)] if plain != text else [])]


def command_of(argv: list[str]) -> str | None:
    """The argument of ``-c`` in the command line after the interpreter's name; or None."""
    rest = iter(argv)
    for argument in rest:
        if argument == "--check-hash-based-pycs":
            next(rest, None)
        if argument.startswith("--"):
            continue
        if not argument.startswith("-") or argument == "-":
            return None  # the name of a script
        for k, letter in enumerate(argument[1:], 2):
            if letter in "cmWX":  # these take the rest, or the next one
                value = argument[k:] or next(rest, None)
                if letter == "c":
                    return value
                if letter == "m":
                    return None
                break
    return None


@functools.cache
def _standard_input() -> list[list[str]]:
    """The program that Python has read from standard input, if that is a file."""
    try:
        handle = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or not hasattr(os, "pread"):
            return []
        text = importlib.util.decode_source(os.pread(handle, found.st_size, 0))
    except (OSError, ValueError, SyntaxError):  # closed, or in no encoding that Python knows
        return []
    return [_split(text)]


def _split(text: str) -> list[str]:
    """The lines as Python's compiler counts them, in which a form feed ends none."""
    lines = io.StringIO(text, newline=None).readlines()
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines
