"""The user's functions that travel with a pickled one, and the lines that define them."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.eager.lifting.carried import Carried, Key, Sources, Text, key_of, receive
from fwdad.eager.lifting.source import find_lines, imports_of
from fwdad.errors import is_library_file
from fwdad.rules.core.registry import find_rule
from fwdad.tangents.namespaces import referents

_AT_MOST = 100_000  # objects are visited: a source that is missed raises where it is needed
MAIN = ("__main__", "__mp_main__")
_ATOMS = (
    *(bool, int, float, complex, str, bytes, bytearray, type(None), np.generic, np.dtype, np.ufunc),
    *(types.CodeType, types.FrameType, types.GeneratorType, types.BuiltinFunctionType),
)


class Carrier:
    """A wrapper of a function that is pickled with the sources of all that it reaches."""

    __wrapped__: Any
    _carried: Carried | None
    shortcuts: Any = None  # of what is asked for at once, where the function has tapes

    def __reduce__(self) -> Any:
        made = self._made_by()
        if isinstance(self.__wrapped__, Carrier):  # carries them itself
            return made
        sources = sources_of(self.__wrapped__)
        return (_restore, (sources, *made)) if sources else made

    def _made_by(self) -> tuple[Any, tuple[Any, ...]]:
        """A function and the arguments that make this object again, for pickle."""
        raise NotImplementedError


def _restore(sources: Sources, make: Any, args: tuple[Any, ...]) -> Any:
    made = make(*args)
    made._carried = receive(sources)  # as long as it is there, they are found
    return made


def sources_of(f: Any) -> Sources:
    """The sources of all that is pickled by value with a function, which it reaches.

    What the receiving side imports has its source there, and is not carried.
    """
    kept: dict[tuple[str, int], tuple[list[str], set[int], set[Key]]] = {}
    texts: list[Text] = []
    for function in _reached(f):
        code = function.__code__
        if find_rule(function) is not None:
            key = key_of(code)
            texts.append(Text("", (), frozenset({key}), frozenset({(key, code.co_code)})))
            continue
        found = find_lines(function)
        if found is None:
            continue  # there it raises, with the reason, if a derivative needs it
        name = found.source.filename
        place = (name, id(found.lines))
        _, indices, keys = kept.setdefault(place, (found.lines, set(), set()))
        keys.update(_keys(code))
        indices.update(range(found.start, found.end))
        before = imports_of(found.lines[: found.start])
        indices.update(k for k, line in enumerate(before) if line != "\n")
    for (name, _), (lines, indices, keys) in kept.items():
        texts.append(Text(name, _runs(lines, indices), frozenset(keys), frozenset()))
    return tuple(texts)


def _keys(code: types.CodeType) -> Iterator[Key]:
    """The keys of a code object and of all code inside it."""
    yield key_of(code)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _keys(inner)


def _runs(lines: list[str], indices: set[int]) -> tuple[tuple[int, str], ...]:
    """Runs of consecutive lines, each as one text with the index of its first line."""
    runs: list[tuple[int, list[str]]] = []
    for k in sorted(indices):
        if runs and runs[-1][0] + len(runs[-1][1]) == k:
            runs[-1][1].append(lines[k])
        else:
            runs.append((k, [lines[k]]))
    return tuple((first, "".join(run)) for first, run in runs)


def _reached(f: Any) -> list[types.FunctionType]:
    """The user's functions whose code is pickled by value with an object."""
    found: list[types.FunctionType] = []
    seen: dict[int, Any] = {}
    waiting: list[Any] = [f]
    while waiting and len(seen) < _AT_MOST:
        o = waiting.pop()
        if issubclass(type(o), _ATOMS) or id(o) in seen:
            continue
        seen[id(o)] = o  # kept, so that no other object takes on the id
        if type(o) is types.FunctionType:
            if not is_by_value(o):
                continue
            if not is_library_file(o.__code__.co_filename):
                found.append(o)
                waiting += _globals(o)
            waiting += (*_cells(o), *(o.__defaults__ or ()), *(o.__kwdefaults__ or {}).values())
            waiting += vars(o).values()
        elif issubclass(type(o), type):
            if is_by_value(o):
                waiting += (type(o), *o.__bases__, *vars(o).values())
        elif issubclass(type(o), types.ModuleType):
            continue  # imported there; one by value is looked into where a function names it
        elif issubclass(type(o), np.ndarray):
            waiting += o.ravel().tolist() if o.dtype.hasobject else ()
        elif type(o).__module__.partition(".")[0] in ("fwdad", "numba"):
            waiting += _wrapped(o)  # what they have made besides is not pickled
        else:
            waiting += referents(o)
    return found


def _wrapped(o: Any) -> list[Any]:
    """The user's functions in an object of ours or of Numba's."""
    names = ("__wrapped__", "py_func", "f", "function", "owner")
    return [v for v in (getattr(o, name, None) for name in names) if v is not None]


def names_read(f: types.FunctionType) -> list[Any]:
    """What a function reads from its closure and its module."""
    return [*_cells(f), *_globals(f)]


def _cells(f: types.FunctionType) -> list[Any]:
    found = []
    for cell in f.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # nothing is in it yet
            continue
    return found


def _globals(f: types.FunctionType) -> list[Any]:
    """What a function reads from its module, and from modules that are pickled by value."""
    names = names_of_code(f.__code__)
    read = [f.__globals__[name] for name in names if name in f.__globals__]
    for module in read:
        if isinstance(module, types.ModuleType) and is_module_by_value(module.__name__):
            read += [vars(module)[name] for name in names if name in vars(module)]
    return read


def names_of_code(code: types.CodeType) -> set[str]:
    """The names of a module, and of attributes, that some code reads."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return {*code.co_names}.union(*map(names_of_code, inner))


def is_by_value(o: Any) -> bool:
    """Whether a function or class cannot be imported by its name where it is unpickled."""
    home = getattr(o, "__module__", None)
    if is_module_by_value(home or ""):
        return True
    found: Any = sys.modules.get(home or "")
    for name in o.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not o


def is_module_by_value(name: str) -> bool:
    """Whether a module is the main one, or cloudpickle was asked to pickle it by value."""
    if name in MAIN:
        return True
    for home in ("cloudpickle", "joblib.externals.cloudpickle"):
        listed = getattr(sys.modules.get(home), "list_registry_pickle_by_value", None)
        if listed is not None and any(f"{name}.".startswith(f"{package}.") for package in listed()):
            return True
    return False
