"""What a call can reach, as it is when the call begins, so that the call can be repeated.

Arrays are not copied until somebody is about to write into their memory, which the undo log
announces. For containers, objects, closures and globals the content is kept, which holds references
only.
"""

from __future__ import annotations

import operator
import sys
import threading
import types
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from fwdad.core.reentrant_context import EnteredTwice
from fwdad.eager.build import generator_state, set_generator_state
from fwdad.eager.duals.array import Array, say_again
from fwdad.eager.duals.explicit import settled
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.memory.shadow import (
    SHADOWED,
    Shadow,
    before_write,
    make_shadow,
    owner_of,
)
from fwdad.eager.memory.store import store_plain
from fwdad.eager.memory.undo import MISSING, Attributes, content_of, restore_name, restore_object
from fwdad.eager.run import STATE
from fwdad.eager_reverse.memory import Memory
from fwdad.eager_reverse.tangent import Recorded
from fwdad.errors import is_library_file
from fwdad.tangents.alike import alike
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import HEAP_TYPE
from fwdad.tangents.plain import plain

_ATOMS = {
    int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range,
    np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128, np.complex64,
    types.BuiltinFunctionType, np.ufunc, type(np.sum), np.random.Generator, np.random.RandomState,
}  # fmt: skip
_CALLABLES = {types.FunctionType, types.MethodType, partial}
_CONTAINERS = (list, dict, set, deque, bytearray, array)


class NotRepeatableError(Exception):
    """A call cannot be repeated: something that it can reach cannot be restored."""


class Surroundings:
    """All that a call of a function (``roots``: it and its arguments) can reach at its beginning.

    ``NotRepeatableError`` if that includes something that can be read only once, or that may be
    written without notice.
    """

    def __init__(self, record: Any, roots: tuple[Any, ...]) -> None:
        self.record = record
        self.views: list[Any] = []
        """Arrays, each with its content: None as long as the array itself has it; and whether the
        tangents were in shadow memory, not in the duals that show the array."""
        self.memories: list[tuple[np.ndarray, Memory]] = []
        self.contents: list[tuple[Any, Any]] = []
        """Containers and objects, cells, names, each with its content."""
        self._seen: dict[int, Any] = {}
        self._found: list[Any] = list(roots)
        while self._found:
            self._visit(self._found.pop())
        self._seen.clear()

    # -- what there is

    def _visit(self, x: Any) -> None:
        t = type(x)
        if t in _ATOMS or id(x) in self._seen:
            return
        self._seen[id(x)] = x
        if isinstance_dual(x):
            self._dual(x)
        elif isinstance(x, np.ndarray):
            self._array(x)
        elif isinstance(x, _CONTAINERS):
            self._container(x)
        elif isinstance(x, (tuple, frozenset)):
            self._items(x)
        elif t in _CALLABLES:
            self._callable(x)
        elif isinstance(x, type):
            self._class(x)
        elif not isinstance(x, types.ModuleType):
            self._object(x)

    def _dual(self, x: Any) -> None:
        """Visit what a dual holds; an array's tangent becomes a node that no later use replaces."""
        self._found.append(x.p)
        if type(x) is Array:
            if x.tag is self.record.tag:
                say_again(x, self._settled)
            if x.base_dual is not None:
                self._found.append(x.base_dual)

    def _settled(self, t: Any) -> Any:
        t = self.record.adopt(t)
        if isinstance(t, Recorded):
            t.settle()
        return t

    def _array(self, a: np.ndarray) -> None:
        owner = owner_of(a)
        shadow = SHADOWED.get(id(owner))
        if shadow is not None:
            memory = shadow.lanes.get(self.record.tag)
            if memory is not None:
                self.memories.append((a, memory))
            if a.dtype.kind == "V" and len(shadow.lanes) > (memory is not None):
                message = "it can reach a structured array with derivatives of an enclosing call"
                raise NotRepeatableError(message)
        if a.dtype.hasobject:
            message = "it can reach an array of objects"
            raise NotRepeatableError(message)
        if not a.flags.writeable:
            if not isinstance(owner, np.ndarray) or not owner.flags.writeable:
                return
            a = owner  # what it shows can change, but not through it
        self.views.append([a, None, shadow is not None])

    def _items(self, items: Iterable[Any]) -> None:
        if not set(map(type, items)) <= _ATOMS:
            self._found.extend(items)

    def _container(self, o: Any) -> None:
        self._note(o, content_of(o))
        if isinstance(o, dict):
            self._items(dict.keys(o))
            self._items(dict.values(o))
        elif isinstance(o, (list, set, deque)):
            self._items(o)

    def _callable(self, f: Any) -> None:
        if type(f) is types.FunctionType:
            self._function(f)
        elif type(f) is types.MethodType:
            self._found += (f.__func__, f.__self__)
        else:
            self._found += (f.func, f.args, f.keywords)

    def _function(self, f: types.FunctionType) -> None:
        for cell in f.__closure__ or ():
            content = _held_under(cell)
            self._note(cell, content)
            self._found.append(content)
        self._found += (f.__defaults__, f.__kwdefaults__)
        if not is_library_file(f.__code__.co_filename):
            self._names(f.__code__, f.__globals__)

    def _names(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """The globals that some code can name, also in the user's modules."""
        for name in code.co_names:
            value = namespace.get(name, MISSING)
            if value is MISSING:
                continue
            if not isinstance(value, types.ModuleType):
                self._note((namespace, name), value)
                self._found.append(value)
            elif not is_library_file(getattr(value, "__file__", None) or "<frozen"):
                inner = vars(value)
                for attribute in code.co_names:
                    if attribute in inner:
                        self._note((inner, attribute), inner[attribute])
                        self._found.append(inner[attribute])
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._names(constant, namespace)

    def _class(self, cls: type) -> None:
        """What the user's classes hold, and what their methods can name."""
        for c in cls.__mro__:
            if not _is_users(c):
                continue
            for name, value in list(vars(c).items()):
                inner = value
                if isinstance(value, (staticmethod, classmethod)):
                    inner = value.__func__
                elif isinstance(value, property):
                    self._found += (value.fget, value.fset)
                    continue
                if isinstance(inner, types.FunctionType):
                    self._found.append(inner)
                elif not (name.startswith("__") or hasattr(type(value), "__get__")):
                    self._note((c, name), value)
                    self._found.append(value)

    def _object(self, o: Any) -> None:
        if isinstance(o, Iterator) and not isinstance(type(o).__next__, types.FunctionType):
            message = f"it can reach a {type(o).__name__}, which can be read only once"
            raise NotRepeatableError(message)
        attributes = namespace_of(o)
        users = _is_users(type(o))
        if users:
            self._found.append(type(o))
        # what was made in this run is empty again when the run has ended
        known = users or isinstance(o, types.SimpleNamespace) or STATE.run.log.has(o)
        if known or _holds_arrays(attributes):
            content = Attributes(o)
            self._note(o, content)
            self._items((content.held or {}).values())
            self._items(content.slots.values())

    def _note(self, target: Any, content: Any) -> None:
        """Keep a content; one that has not changed since an earlier call is kept once."""
        key = (id(target[0]), target[1]) if type(target) is tuple else id(target)
        before = self.record.contents.get(key)
        if before is not None and _same(before[1], content):
            self.contents.append(before)
            return
        entry = self.record.contents[key] = (target, content)
        self.contents.append(entry)

    # -- arrays, before they are written

    def arrays(self) -> list[Any]:
        """The arrays that have not been written since, and so hold their content themselves."""
        return [a for a, content, _ in self.views if content is None]

    def copy_from(self, owner: Any, copies: dict[int, Any]) -> None:
        """Copy the views of a memory that is about to be written."""
        for view in self.views:
            a = view[0]
            if view[1] is None and owner_of(a) is owner:
                key = -id(a)  # operations enter their copies, without these derivatives
                if key not in copies:
                    copies[key] = (a, self._copied(a, view[2]))
                view[1] = copies[key][1]

    def _copied(self, a: np.ndarray, shadowed: bool) -> Any:
        """A copy, with the derivatives of enclosing calls that its memory carries."""
        shadow = SHADOWED.get(id(owner_of(a)))
        if shadow is None or not shadowed:
            return alike(a)
        hidden = STATE.hidden
        order = self.record.tag.order
        STATE.hidden = (*hidden, *(tag for tag in list(shadow.lanes) if tag.order >= order))
        try:
            return settled(a)
        finally:
            STATE.hidden = hidden

    def held(self) -> list[Any]:
        """The objects whose memory it keeps."""
        contents = [content for _, content in self.contents if isinstance(content, _CONTAINERS)]
        return [self.views, *contents, *(a if c is None else plain(c) for a, c, _ in self.views)]

    # -- once more

    def set_back(self, run: Any, changed: Changed) -> None:
        """Restore everything; arrays through ``changed``, as the log would copy whole owners."""
        for target, content in self.contents:
            _set_content(run.log, target, content)
        for a, content, shadowed in self.views:
            if content is None:
                continue
            owner = owner_of(a)
            shadow = SHADOWED.get(id(owner))
            if shadowed and (shadow is not None or isinstance_dual(content)):
                run.log.array(a)
                store_plain(a, (Ellipsis,), content)
                continue
            if shadow is not None:
                changed.shadows.append(shadow)
                del SHADOWED[id(owner)]
            changed.set(a, content)
        for a, memory in self.memories:
            make_shadow(a, run.tag, memory)


class Changed(EnteredTwice):
    """A context manager around a repeated run: what was there before surroundings were restored.

    It has what the run's own log does not. Use it as ``with Changed(record) as changed, changed:``.
    """

    def __init__(self, record: Any) -> None:
        self.arrays: list[tuple[np.ndarray, np.ndarray]] = []
        self.shadows: list[Shadow] = []
        self.generators: list[tuple[Any, Any]] = []
        self._record = record
        self._found = STATE.hidden, record.thread, record.operations

    def begin(self) -> None:
        """Let this thread record, and hide calls that began after the run, which it never saw."""
        record = self._record
        later = {t for s in list(SHADOWED.values()) for t in list(s.lanes)}
        order = record.tag.order
        STATE.hidden = (*STATE.hidden, *(t for t in later if t.order > order))
        record.thread = threading.get_ident()

    def set(self, a: np.ndarray, content: np.ndarray) -> None:
        """Set an array's content."""
        before_write(owner_of(a))
        self.arrays.append((a, a.copy()))
        a[...] = content

    def draw_again(self, run: Any, o: Any, state: Any) -> None:
        """Set a random generator's state."""
        run.note_generator(o)
        self.generators.append((o, generator_state(o)))
        set_generator_state(o, state)

    def end(self) -> None:
        """Restore everything; an interrupted end may be repeated."""
        record = self._record
        record.segment, record.closed = None, True
        STATE.hidden, record.thread, record.operations = self._found
        record.append = record.operations.append
        for a, content in reversed(self.arrays):
            before_write(owner_of(a))
            a[...] = content
        for shadow in self.shadows:
            SHADOWED[id(shadow.owner)] = shadow
        for o, state in reversed(self.generators):
            set_generator_state(o, state)
        record.release(copies=False)


def _set_content(log: Any, target: Any, content: Any) -> None:
    """Restore the content of something if it has another one now."""
    if type(target) is tuple or type(target) is types.CellType:
        if _held_under(target) is not content:
            _log_name(log, target)
            restore_name(target, content)
    elif type(content) is Attributes:
        if not _same(Attributes(target), content):
            log.attributes(target)
            restore_object(target, content)
    elif not _same(content_of(target), content):
        log.container(target)
        restore_object(target, content)


def _held_under(target: Any) -> Any:
    """What a cell holds, or a namespace or class under a name; ``MISSING`` if nothing."""
    if type(target) is types.CellType:
        try:
            return target.cell_contents
        except ValueError:
            return MISSING
    namespace, name = target
    return (vars(namespace) if isinstance(namespace, type) else namespace).get(name, MISSING)


def _log_name(log: Any, target: Any) -> None:
    if type(target) is types.CellType:
        log.cell(target)
    elif isinstance(target[0], type):
        log.class_attribute(*target)
    else:
        log.name(*target)


def _same(a: Any, b: Any) -> bool:
    """Whether two contents hold identical objects in the same places."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, dict):
        return _same(list(a), list(b)) and all(map(operator.is_, a.values(), b.values()))
    if type(a) is Attributes:
        return _same(a.held, b.held) and _same(a.slots, b.slots)
    if isinstance(a, set):
        return {id(v) for v in a} == {id(v) for v in b}
    if type(a) is list:
        return len(a) == len(b) and all(map(operator.is_, a, b))
    return isinstance(a, (bytearray, array)) and a == b


def _is_users(cls: type) -> bool:
    """Whether a class is written in Python, in one of the user's files."""
    if not cls.__flags__ & HEAP_TYPE:
        return False
    for value in vars(cls).values():
        if isinstance(value, types.FunctionType):
            return not is_library_file(value.__code__.co_filename)
    module = sys.modules.get(cls.__module__)
    return not is_library_file(getattr(module, "__file__", None) or "<frozen")


def _holds_arrays(held: Any) -> bool:
    """Whether an object of a library's class has arrays as attributes, as sparse matrices do."""
    return isinstance(held, dict) and any(isinstance(v, (np.ndarray, Array)) for v in held.values())
