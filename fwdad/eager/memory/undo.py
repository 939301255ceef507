"""The undo log: the former content of the objects that a run writes, so that it can be restored.

At the first write to an object its whole content is kept: once per object, not once per store.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
import types
from array import array
from collections import OrderedDict, deque
from contextvars import ContextVar, Token
from typing import Any

import numpy as np

from fwdad.core.existing_objects import Existing
from fwdad.eager.memory.shadow import KEPT, SHADOWED, Shadow, before_write, owner_of
from fwdad.errors import AliasedArgumentError, is_library_file
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import in_c
from fwdad.tangents.plain import plain

MISSING = object()
_PURGE_AT = 512


class UndoLog:
    """The content of the objects written during one call from before they were written."""

    def __init__(self) -> None:
        self._arrays: dict[int, tuple[Any, Any, dict[Any, Any]]] = {}
        self.shared: dict[int, tuple[Any, str]] = {}
        """Arrays that must not be written, each with the message for who does."""
        self._objects: dict[int, tuple[Any, Any]] = {}
        self._cells: dict[Any, tuple[Any, Any]] = {}
        self._contexts: dict[int, tuple[ContextVar[Any], list[Token[Any]]]] = {}
        self._purge_at = _PURGE_AT

    # -- recording

    def array(self, a: np.ndarray) -> None:
        """Keep the memory behind an array, and the tangents that it carries."""
        owner = a if a.base is None else owner_of(a)
        key = id(owner)
        if KEPT and key in KEPT:
            before_write(owner)
        if key in self._arrays:
            return
        if key in self.shared:
            raise AliasedArgumentError(self.shared[key][1])
        whole = owner if isinstance(owner, np.ndarray) else np.frombuffer(owner, np.uint8)
        shadow = SHADOWED.get(key)
        lanes = {} if shadow is None else {t: self._lanes(b) for t, b in list(shadow.lanes.items())}
        content = np.asarray(whole).copy(order="K")
        if not whole.flags.writeable:
            content.flags.writeable = False
        self._arrays[key] = (owner, content, lanes)
        self._purge()

    def _lanes(self, buffer: Any) -> Any:
        """Keep the lanes of a call, which may carry tangents of enclosing calls themselves.

        Those of a call that records are returned as a copy; plain ones are logged like any array.
        """
        if not isinstance(buffer, np.ndarray):
            return buffer.copy()
        self.array(buffer)
        return None

    def wrote(self, a: np.ndarray) -> bool:
        """Whether the memory behind an array was written."""
        return id(owner_of(a)) in self._arrays

    def anything(self) -> bool:
        """Whether any array was written."""
        return bool(self._arrays)

    def reaches_outside(self) -> bool:
        """Whether anything was written that others can see, too."""
        self.purge((0, 0))
        return bool(self._arrays or self._objects or self._cells or self._contexts)

    def reaches(self, existed: Existing) -> bool:
        """Whether an array was written that others can see, or one of the objects that existed."""
        self._purge_all()
        if self._arrays:
            gc.collect()  # cycles hold references, too
            self._purge_all()
        if self._arrays or any(
            tokens[0].old_value is not var.get(Token.MISSING)
            for var, tokens in self._contexts.values()
        ):
            return True
        bound = [c for c, old in self._cells.values() if not _is_same(name_content(c), old)]
        holders = (c[0] if type(c) is tuple else c for c in bound)
        written = (o for o, content in self._objects.values() if not _is_as_before(o, content))
        objects = [*holders, *written]
        return any(
            o in existed if gc.is_tracked(o) else existed.hold(o)  # a dict of numbers is not
            for o in objects
        )

    def newly_held(self) -> list[Any]:
        """What names, objects and containers hold by now that they did not before."""
        found = [name_content(c) for c, old in self._cells.values() if name_content(c) is not old]
        for o, content in self._objects.values():
            before = set(map(id, _held_by(content)))
            found += [x for x in _held_by(o) if id(x) not in before]
        return found

    def container(self, o: Any) -> None:
        """Keep the content of a list, dict, set, deque or bytearray."""
        key = id(o)
        if key not in self._objects:
            self._objects[key] = (o, content_of(o))
            self._purge()

    def has(self, o: Any) -> bool:
        """Whether the content of a container or an object is kept."""
        return id(o) in self._objects

    def attributes(self, o: Any) -> None:
        """Keep the attributes of an object: its ``__dict__`` and its slots."""
        key = id(o)
        if key in self._objects:
            return
        self._objects[key] = (o, Attributes(o))
        self._purge()

    def cell(self, cell: Any) -> None:
        """Keep the content of a closure's cell."""
        if id(cell) not in self._cells:
            try:
                self._cells[id(cell)] = (cell, cell.cell_contents)
            except ValueError:
                self._cells[id(cell)] = (cell, MISSING)

    def name(self, namespace: dict[str, Any], name: str) -> None:
        """Keep a global variable."""
        key = (id(namespace), name)
        if key not in self._cells:
            self._cells[key] = ((namespace, name), namespace.get(name, MISSING))

    def class_attribute(self, cls: type, name: str) -> None:
        """Keep an attribute of a class."""
        key = (id(cls), name)
        if key not in self._cells:
            self._cells[key] = ((cls, name), cls.__dict__.get(name, MISSING))

    def context(self, token: Token[Any]) -> None:
        """Keep the token of a context variable that was set."""
        self._contexts.setdefault(id(token.var), (token.var, []))[1].append(token)

    def _purge(self) -> None:
        """Forget what only the log can still see (scratch memory made inside the call)."""
        if len(self._arrays) + len(self._objects) < self._purge_at:
            return
        self.purge((0, 0))
        self._purge_at = max(_PURGE_AT, 2 * (len(self._arrays) + len(self._objects)))

    def place(self) -> tuple[int, int]:
        """The numbers of arrays and objects that have been kept, for :meth:`purge`."""
        return len(self._arrays), len(self._objects)

    def purge(self, since: tuple[int, int]) -> None:
        """Forget what only the log can still see, among what was kept since a place."""
        tables: list[dict[int, Any]] = [self._arrays, self._objects]
        for table, start in zip(tables, since, strict=True):
            for key in list(itertools.islice(table, min(start, len(table)), None)):
                # references: the tuple, the shadow, and the argument of getrefcount
                if sys.getrefcount(table[key][0]) <= _ALONE + (key in SHADOWED):
                    if table is self._arrays:
                        SHADOWED.pop(key, None)
                    del table[key]

    def _purge_all(self) -> None:
        """Forget what only the log can still see, or what it forgets thereby."""
        known = -1
        while known != len(self._arrays) + len(self._objects):
            known = len(self._arrays) + len(self._objects)
            self.purge((0, 0))

    # -- what is in it

    def arrays(self) -> list[Any]:
        """The owners of the memory that was written."""
        return [owner for owner, _, _ in self._arrays.values()]

    def before(self, owner: Any) -> np.ndarray | None:
        """The memory of an array before it was written; None if it was not."""
        known = self._arrays.get(id(owner))
        return None if known is None else known[1]

    def objects(self) -> list[tuple[Any, Any]]:
        """The containers and objects that were written, each with its former content."""
        return list(self._objects.values())

    def names(self) -> list[tuple[Any, Any]]:
        """The cells and names that were written, each with its former content."""
        return list(self._cells.values())

    def variables(self) -> list[ContextVar[Any]]:
        """The context variables that were set."""
        return [variable for variable, _ in self._contexts.values()]

    # -- ending

    def taken_from(self, roots: Any) -> UndoLog:
        """Remove what can be reached from some values, and return it as a log of its own."""
        part = UndoLog()
        if not (self._arrays or self._objects):
            return part
        found, seen = list(roots), set()
        while found:
            x = found.pop()
            if type(x) in _ATOMS or id(x) in seen:
                continue
            seen.add(id(x))
            if isinstance(x, np.ndarray):
                x = plain(x)  # a dual of an enclosing call
                owner = owner_of(x)
                if id(owner) in self._arrays:
                    part._arrays[id(owner)] = self._arrays.pop(id(owner))
                    shadow = SHADOWED.get(id(owner))  # of enclosing calls, kept as arrays are
                    if shadow is not None:
                        found.extend(b for b in shadow.lanes.values() if isinstance(b, np.ndarray))
                if x.dtype.kind == "O":
                    found.extend(x.flat)
                continue
            known = self._objects.pop(id(x), None)
            if known is not None:
                part._objects[id(x)] = known
            found.extend(_held_by(x if known is None else known[1]))
        return part

    def hand_over(self, outer: UndoLog) -> None:
        """Leave everything as it is, and let the enclosing run restore it should it have to."""
        tables: tuple[tuple[dict[int, Any], dict[int, Any]], ...] = (
            (self._arrays, outer._arrays),
            (self._objects, outer._objects),
            (self._cells, outer._cells),
        )
        for table, into in tables:
            for key, entry in table.items():
                into.setdefault(key, entry)
        for key, (variable, tokens) in self._contexts.items():
            outer._contexts.setdefault(key, (variable, []))[1].extend(tokens)
        self.clear()

    def copy(self) -> UndoLog:
        """A copy of the log, so that one may be restored now and the other one later."""
        log = UndoLog()
        log._arrays, log._objects = dict(self._arrays), dict(self._objects)
        log._cells = dict(self._cells)
        return log

    def take(self, other: UndoLog) -> None:
        """Replace the content by that of another log."""
        copied = other.copy()
        self._arrays, self._objects, self._cells = copied._arrays, copied._objects, copied._cells

    def go_back_to(self, earlier: UndoLog) -> None:
        """Restore the state of an earlier log, after keeping the present one in this log."""
        for owner in earlier.arrays():
            self.array(owner if isinstance(owner, np.ndarray) else np.frombuffer(owner, np.uint8))
        for o, content in earlier.objects():
            if isinstance(content, Attributes):
                self.attributes(o)
            else:
                self.container(o)
        for target, _ in earlier.names():
            if not isinstance(target, tuple):
                self.cell(target)
            elif isinstance(target[0], type):
                self.class_attribute(*target)
            else:
                self.name(*target)
        earlier.copy().restore()

    def clear(self) -> None:
        """Forget all former content."""
        self._contexts.clear()
        self._arrays.clear()
        self._objects.clear()
        self._cells.clear()

    def restore(self) -> None:
        """Restore everything, last write first."""
        if not (self._arrays or self._objects or self._cells or self._contexts):
            return
        for owner, content in reversed(self._objects.values()):
            restore_object(owner, content)
        for target, content in reversed(self._cells.values()):
            restore_name(target, content)
        for owner, content, lanes in reversed(self._arrays.values()):
            whole = owner if isinstance(owner, np.ndarray) else np.frombuffer(owner, np.uint8)
            if KEPT:
                before_write(owner)
            shadow: Shadow | None = SHADOWED.get(id(owner))
            if shadow is not None:
                if not any(tag in lanes for tag in list(shadow.lanes)):
                    SHADOWED.pop(id(owner), None)
                for tag in list(shadow.lanes):
                    if tag not in lanes:
                        shadow.drop(tag)
                    elif lanes[tag] is not None:
                        shadow.lanes[tag][...] = lanes[tag]
            del shadow  # NumPy resizes no array that others refer to
            _restore_array(whole, content)
        for variable, tokens in self._contexts.values():
            _restore_variable(variable, tokens)
        self.clear()


def _is_as_before(o: Any, content: Any) -> bool:
    """Whether a container, or an object, holds what it held: code that may write it has not."""
    if isinstance(content, Attributes):
        now = Attributes(o)
        pairs = ((content.held or {}, now.held or {}), (content.slots, now.slots),
                 (content.in_c, now.in_c))  # fmt: skip
        return all(_hold_the_same(a, b) for a, b in pairs)
    return _hold_the_same(content, content_of(o))


def _is_same(a: Any, b: Any) -> bool:
    """Whether two contents of a name are one object, or one text or whole number."""
    return a is b or (type(a) is type(b) and type(a) in (str, bytes, int) and a == b)


def _hold_the_same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return list(a) == list(b) and all(a[key] is b[key] for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
    return bool(a == b)


_ATOMS = {
    int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range,
    np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128, np.complex64,
    types.BuiltinFunctionType, types.ModuleType, types.FunctionType, np.ufunc, type,
}  # fmt: skip


def _held_by(x: Any) -> list[Any]:
    """What a container or an object holds; for ``Attributes``, what they list."""
    if isinstance(x, Attributes):
        return [*(x.held or {}).values(), *x.slots.values()]
    if isinstance(x, dict):
        return [*x, *x.values()]
    if isinstance(x, (list, tuple, set, frozenset, deque)):
        return list(x)
    if isinstance(x, (bytearray, array, type)):
        return []
    held = Attributes(x)
    return [*(held.held or {}).values(), *held.slots.values()]


def content_of(o: Any) -> Any:
    """A shallow copy of a container's content, by its base type (a subclass may have no copy)."""
    if isinstance(o, OrderedDict):
        return OrderedDict(list(OrderedDict.items(o)))
    if isinstance(o, dict):
        return dict(dict.items(o))
    if isinstance(o, deque):
        return list(o)
    for kind in (list, set, bytearray):
        if isinstance(o, kind):
            return kind(o)
    return o[:] if isinstance(o, array) else o.copy()


_OF_FUNCTIONS = (
    "__code__", "__defaults__", "__kwdefaults__", "__doc__", "__name__", "__qualname__",
)  # fmt: skip


class Attributes:
    """An object's attributes: its ``__dict__``, slots and class, and a function's code."""

    __slots__ = ("held", "in_c", "slots")

    def __init__(self, o: Any) -> None:
        of_c = ("__class__", *_OF_FUNCTIONS) if type(o) is types.FunctionType else ("__class__",)
        self.in_c = {name: object.__getattribute__(o, name) for name in of_c}
        held = namespace_of(o)
        self.held = None if held is None else dict(held)
        self.slots = {
            name: slot_of(o, name)
            for cls in type(o).__mro__
            for name in slot_names(cls)
            if type(getattr(type(o), name, None)) is types.MemberDescriptorType  # not hidden
        }


def slot_of(o: Any, name: str) -> Any:
    """The value in a slot, without the class's own attribute lookup."""
    try:
        return object.__getattribute__(o, name)
    except AttributeError:
        return MISSING


def slot_names(cls: type) -> tuple[str, ...]:
    """The names of a class's own slots, with private ones as they are stored."""
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    names = (n for n in names if n not in ("__dict__", "__weakref__"))
    return tuple(
        f"_{cls.__name__.lstrip('_')}{n}" if n.startswith("__") and not n.endswith("__") else n
        for n in names
    )


def _restore_array(whole: Any, content: np.ndarray) -> None:
    if whole.shape != content.shape:
        whole.resize(content.shape, refcheck=False)
    if not whole.flags.writeable:  # made read-only after it was written
        whole.flags.writeable = True
    np.copyto(np.asarray(whole), content, casting="no")
    if not content.flags.writeable:
        whole.flags.writeable = False


def restore_object(owner: Any, content: Any) -> None:
    """Restore the former content of a container or an object."""
    if isinstance(content, Attributes):
        store, delete = (in_c(type(owner), name) for name in ("__setattr__", "__delattr__"))
        for name, value in content.in_c.items():
            if object.__getattribute__(owner, name) is not value:
                store(owner, name, value)
        if content.held is not None:
            _restore_dict(dict, namespace_of(owner), content.held)
        for name, value in content.slots.items():
            if value is not MISSING:
                store(owner, name, value)
            elif slot_of(owner, name) is not MISSING:
                delete(owner, name)
    elif isinstance(owner, list):
        list.__setitem__(owner, slice(None), content)
    elif isinstance(owner, deque):
        deque.clear(owner)
        deque.extend(owner, content)
    elif isinstance(owner, set):
        set.update(owner, content)
        set.intersection_update(owner, content)
    elif isinstance(owner, dict):
        _restore_dict(OrderedDict if isinstance(owner, OrderedDict) else dict, owner, content)
    else:
        owner[:] = content


def _is_of_library(held: dict[Any, Any]) -> bool:
    """Whether a dict is the namespace of a library's module."""
    module = sys.modules.get(str(held.get("__name__")))
    named = getattr(module, "__dict__", None) is held
    return named and is_library_file(str(held.get("__file__")))


def _restore_dict(kind: Any, owner: Any, content: Any) -> None:
    """Restore a dict's former content, which is complete even if this is interrupted."""
    kind.update(owner, content)
    if type(owner) is dict and _is_of_library(
        owner
    ):  # code that is not tracked adds names, too (its caches)
        return
    for key in [k for k in kind.__iter__(owner) if k not in content]:
        kind.__delitem__(owner, key)
    if list(kind.__iter__(owner)) != list(content):  # the order, after a key was taken out
        kind.clear(owner)
        kind.update(owner, content)


def _restore_variable(variable: ContextVar[Any], tokens: list[Token[Any]]) -> None:
    """Restore a context variable's value from before its first setting, or unset it."""
    before = tokens[0].old_value
    if before is not Token.MISSING:
        variable.set(before)
        return
    for token in tokens:
        if token.old_value is Token.MISSING:
            with contextlib.suppress(RuntimeError, ValueError):  # reset already, or elsewhere
                variable.reset(token)


def name_content(target: Any) -> Any:
    """What is in a cell now, or bound to a name in a namespace or class."""
    if not isinstance(target, tuple):
        try:
            return target.cell_contents
        except ValueError:
            return MISSING
    namespace, name = target
    held = namespace.__dict__ if isinstance(namespace, type) else namespace
    return held.get(name, MISSING)


def restore_name(target: Any, content: Any) -> None:
    """Restore the former content of a cell, or of a name in a namespace or class."""
    if isinstance(target, tuple):
        namespace, name = target
        if isinstance(namespace, type):
            if content is MISSING:
                if name in namespace.__dict__:
                    delattr(namespace, name)
            else:
                setattr(namespace, name, content)
        elif content is MISSING:
            namespace.pop(name, None)
        else:
            namespace[name] = content
    elif content is MISSING:
        del target.cell_contents
    else:
        target.cell_contents = content


def _references_when_alone() -> int:
    table = {0: (object(), None)}
    counts = [sys.getrefcount(table[key][0]) for key in list(table)]
    return counts[0]


_ALONE = _references_when_alone()
