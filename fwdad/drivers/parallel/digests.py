"""Digests of functions and values by their content, equal in every process that has the same."""

from __future__ import annotations

import contextlib
import dis
import enum
import functools
import hashlib
import importlib
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fwdad.eager.lifting.reached import MAIN, names_of_code
from fwdad.errors import CheckpointError, is_library_file, type_in_words
from fwdad.rules.core.registry import find_rule

_BY_TEXT = (
    *(bool, int, float, complex, str, bytes, bytearray, type(None), type(Ellipsis)),
    *(range, slice, np.dtype),
)
_BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)

_HOLDERS: dict[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
}


def digest_of(x: Any) -> str:
    """The digest of a value: of arrays their numbers, of functions their code and what it reads.

    What belongs to an installed package is known by its name and the package's version. Comments
    and places in a file do not count.
    """
    digest = hashlib.blake2b(digest_size=16)
    walk = _Walk(digest.update)
    walk.visit(x)
    return digest.hexdigest()


class _Walk:
    """A value that is read for a digest."""

    def __init__(self, update: Any) -> None:
        self._update = update
        self._seen: dict[int, tuple[int, Any]] = {}  # keeps what it has, so that no id comes twice

    def _write(self, *words: Any) -> None:
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode(errors="surrogatepass")
            self._update(f"{len(data)}:".encode())
            self._update(data)

    def visit(self, x: Any) -> None:
        """Read a value, once: the second time its number."""
        if type(x) in _BY_TEXT:
            self._write(type(x).__name__, repr(x))
            return
        if id(x) in self._seen:
            self._write("again", self._seen[id(x)][0])
            return
        self._seen[id(x)] = len(self._seen), x
        self._write(type(x).__name__)
        rule = _rule(x)
        if rule is not None:
            self.visit(rule)
        self._content(x)

    def _all(self, items: Iterable[Any]) -> None:
        items = list(items)
        self._write(len(items))
        for item in items:
            self.visit(item)

    def _content(self, x: Any) -> None:
        if isinstance(x, np.ndarray) and not x.dtype.hasobject:
            self._write(x.dtype.str, x.shape)
            self._update(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data)
        elif isinstance(x, np.ndarray):
            self._write(x.shape)
            self._all(x.ravel().tolist())
        elif isinstance(x, np.generic):
            self._write(x.dtype.str, x.tobytes())
        elif isinstance(x, enum.Enum):
            self._write(*_name(type(x)), x.name)
        elif isinstance(x, (set, frozenset)):
            self._write(*sorted(digest_of(item) for item in x))
        elif type(x) in (tuple, list):
            self._all(x)
        elif type(x) is dict:
            self._all(item for pair in x.items() for item in pair)
        else:
            self._code(x)

    def _code(self, x: Any) -> None:
        if isinstance(x, types.CodeType):
            self._write(x.co_code, x.co_names, x.co_varnames, x.co_freevars, x.co_flags)
            self._all(x.co_consts)
        elif isinstance(x, types.FunctionType):
            self._function(x)
        elif isinstance(x, types.ModuleType):
            self._write(x.__name__, _version(x.__name__))
        elif isinstance(x, (*_BUILT_IN, np.ufunc)):
            self._write(*_name(x), getattr(x, "__name__", ""))
        elif isinstance(x, type):
            self._class(x)
        else:
            self._wrapper(x)

    def _wrapper(self, x: Any) -> None:
        """What holds functions; what does not is any other object."""
        for cls, names in _HOLDERS.items():
            if isinstance(x, cls):
                self._all(getattr(x, name) for name in names)
                return
        if isinstance(getattr(x, "py_func", None), types.FunctionType):  # one of Numba's
            self.visit(x.py_func)
        elif callable(getattr(x, "_made_by", None)):  # a derivative, or one of ours
            self._all(x._made_by())  # noqa: SLF001  (of this library)
        else:
            self._object(x)

    def _function(self, f: types.FunctionType) -> None:
        if is_library_file(f.__code__.co_filename):
            self._write(*_name(f))
            return
        self.visit(f.__code__)
        self._all((f.__defaults__, f.__kwdefaults__))
        self._all(sorted(vars(f).items()))
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            self._write(name)
            try:
                self.visit(cell.cell_contents)
            except ValueError:  # nothing is in it yet
                self._write("empty")
        names = sorted(names_of_code(f.__code__))
        for name in names:
            if name in f.__globals__:
                self._write(name)
                self.visit(f.__globals__[name])
        self._modules(f, names)

    def _modules(self, f: types.FunctionType, names: list[str]) -> None:
        """What f reads from modules of the user's, by ``module.name``; also those it imports."""
        found = [f.__globals__.get(name) for name in names] + list(_imported(f))
        waiting = [m for m in found if isinstance(m, types.ModuleType)]
        seen: set[int] = set()
        while waiting:
            module = waiting.pop(0)
            if id(module) in seen or _is_package(module):
                continue
            seen.add(id(module))
            for name in names:
                value = vars(module).get(name)
                if isinstance(value, types.ModuleType):
                    waiting.append(value)
                elif name in vars(module):
                    self._write(module.__name__, name)
                    self.visit(value)

    def _class(self, cls: type) -> None:
        self._write(*_name(cls))
        module = sys.modules.get(cls.__module__)
        if module is not None and _is_package(module):
            return
        self._all(cls.__bases__)
        for name, value in sorted(vars(cls).items()):
            if name not in ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__"):
                self._write(name)
                self.visit(value)

    def _object(self, x: Any) -> None:
        if isinstance(x, (types.GetSetDescriptorType, types.MemberDescriptorType)):
            self._write(*_name(x))
            return
        try:
            made = x.__reduce_ex__(4)
        except Exception as error:
            raise CheckpointError(
                f"checkpoint_to=: f or its arguments hold {type_in_words(x)}, of which nothing "
                f"tells whether it is the same in the next run ({error}): leave it out, or give "
                "its class a __reduce__"
            ) from error
        if isinstance(made, str):
            self._write(*_name(x), made)
            return
        make, given, state, items, pairs = (*made, None, None, None, None)[:5]
        self._all((make, given, state, list(items or ()), list(pairs or ())))


def _rule(x: Any) -> Any:
    """The user's own rule for a function."""
    try:
        rule = find_rule(x) if callable(x) else None
    except TypeError:  # it has no hash
        return None
    body = None if rule is None else rule.body
    code = getattr(body, "__code__", None)
    return None if code is None or is_library_file(code.co_filename) else body


def _imported(f: types.FunctionType) -> Iterator[types.ModuleType]:
    """The modules that f, or a function inside it, imports when it runs."""
    codes = [f.__code__]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        for step in dis.get_instructions(code):
            if step.opname != "IMPORT_NAME":
                continue
            home = f.__globals__.get("__package__") or None
            for name, package in ((step.argval, None), (f".{step.argval}", home)):
                with contextlib.suppress(ImportError, TypeError):  # f itself raises it
                    yield importlib.import_module(name, package)
                    break


def _name(x: Any) -> tuple[str, str]:
    module = getattr(x, "__module__", None) or ""
    if isinstance(module, str) and module in MAIN:  # a spawned process calls it by another name
        module = "__main__"
    return f"{module} {_version(str(module))}", getattr(x, "__qualname__", "")


def _version(module: str) -> str:
    package = sys.modules.get(module.partition(".")[0])
    return str(getattr(package, "__version__", ""))


def _is_package(module: types.ModuleType) -> bool:
    """Whether a module is built in, or of an installed package."""
    file = getattr(module, "__file__", None)
    return module.__name__ not in MAIN if file is None else is_library_file(file)
