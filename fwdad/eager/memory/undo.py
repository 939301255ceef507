"""The undo log: what the objects that a run writes held before, so that they can be set back.

At the first write to an object its whole content is kept: once per object, not once per store.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import types
from array import array
from collections import OrderedDict, deque
from contextvars import ContextVar, Token
from typing import Any

import numpy as np

from fwdad.eager.memory.shadow import KEPT, SHADOWED, Shadow, before_write, owner_of
from fwdad.errors import AliasedArgumentError, is_library_file
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.plain import plain

MISSING = object()
_PURGE_AT = 512


class UndoLog:
    """What the objects written during one call held before."""

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
        kept = np.asarray(whole).copy(order="K")
        if not whole.flags.writeable:
            kept.flags.writeable = False
        self._arrays[key] = (owner, kept, lanes)
        self._purge()

    def _lanes(self, buffer: Any) -> Any:
        """Keep the lanes of a call, which may carry tangents of enclosing calls themselves.

        Those of a call that records are returned as a copy, plain ones are kept as arrays are.
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

    def container(self, o: Any) -> None:
        """Keep the content of a list, dict, set, deque or bytearray."""
        key = id(o)
        if key not in self._objects:
            self._objects[key] = (o, content_of(o))
            self._purge()

    def has(self, o: Any) -> bool:
        """Whether a container's or an object's content is kept."""
        return id(o) in self._objects

    def attributes(self, o: Any) -> None:
        """Keep the attributes of an object: its ``__dict__`` and its slots."""
        key = id(o)
        if key in self._objects:
            return
        self._objects[key] = (o, Attributes(o))
        self._purge()

    def cell(self, cell: Any) -> None:
        """Keep what a closure's cell holds."""
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
        """Forget what nobody but the log can see any more (scratch made inside the call)."""
        if len(self._arrays) + len(self._objects) < self._purge_at:
            return
        self.purge((0, 0))
        self._purge_at = max(_PURGE_AT, 2 * (len(self._arrays) + len(self._objects)))

    def place(self) -> tuple[int, int]:
        """How many arrays and objects have been kept, for :meth:`purge`."""
        return len(self._arrays), len(self._objects)

    def purge(self, since: tuple[int, int]) -> None:
        """Forget what nobody but the log can see, of what was kept since a place."""
        tables: list[dict[int, Any]] = [self._arrays, self._objects]
        for table, start in zip(tables, since, strict=True):
            for key in list(itertools.islice(table, min(start, len(table)), None)):
                # references: the tuple, the shadow, and the argument of getrefcount
                if sys.getrefcount(table[key][0]) <= _ALONE + (key in SHADOWED):
                    if table is self._arrays:
                        SHADOWED.pop(key, None)
                    del table[key]

    # -- what is in it

    def arrays(self) -> list[Any]:
        """The owners of the memory that was written."""
        return [owner for owner, _, _ in self._arrays.values()]

    def before(self, owner: Any) -> np.ndarray | None:
        """What the memory of an array held before it was written."""
        known = self._arrays.get(id(owner))
        return None if known is None else known[1]

    def objects(self) -> list[tuple[Any, Any]]:
        """The containers and objects that were written, each with its content from before."""
        return list(self._objects.values())

    def names(self) -> list[tuple[Any, Any]]:
        """The cells, and names of namespaces, that were written, each with what it held before."""
        return list(self._cells.values())

    def variables(self) -> list[ContextVar[Any]]:
        """The context variables that were set."""
        return [variable for variable, _ in self._contexts.values()]

    # -- ending

    def taken_from(self, roots: Any) -> UndoLog:
        """Take out what can be reached from some values, as a log of its own."""
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
                x = plain(x)  # a dual of a call around this one
                owner = owner_of(x)
                if id(owner) in self._arrays:
                    part._arrays[id(owner)] = self._arrays.pop(id(owner))
                    shadow = SHADOWED.get(id(owner))  # of calls around this one, kept as arrays are
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
        """Leave everything as it is, for the run around this one to set back, should it have to."""
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
        """A log of the same: one of them may be restored, and the other one later."""
        made = UndoLog()
        made._arrays, made._objects = dict(self._arrays), dict(self._objects)
        made._cells = dict(self._cells)
        return made

    def take(self, other: UndoLog) -> None:
        """Have what another log has."""
        made = other.copy()
        self._arrays, self._objects, self._cells = made._arrays, made._objects, made._cells

    def go_back_to(self, earlier: UndoLog) -> None:
        """Keep what is there now of what another log knows, and set it to what that has."""
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
        """Forget what was there before."""
        self._contexts.clear()
        self._arrays.clear()
        self._objects.clear()
        self._cells.clear()

    def restore(self) -> None:
        """Put everything back, last write first."""
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


_ATOMS = {
    int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range,
    np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128, np.complex64,
    types.BuiltinFunctionType, types.ModuleType, types.FunctionType, np.ufunc, type,
}  # fmt: skip


def _held_by(x: Any) -> list[Any]:
    """What a container or an object holds, by its content from before if that is given."""
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
    """What an object holds: its ``__dict__`` and its slots; its class, and a function's code."""

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
    """What a slot holds; its class is not asked for what it may say instead."""
    try:
        return object.__getattribute__(o, name)
    except AttributeError:
        return MISSING


def slot_names(cls: type) -> tuple[str, ...]:
    """The names of a class's own slots, private ones as they are stored."""
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
    """Give a container or an object a content from before."""
    if isinstance(content, Attributes):
        for name, value in content.in_c.items():
            if object.__getattribute__(owner, name) is not value:
                object.__setattr__(owner, name, value)
        if content.held is not None:
            _restore_dict(dict, owner.__dict__, content.held)
        for name, value in content.slots.items():
            if value is not MISSING:
                object.__setattr__(owner, name, value)
            elif slot_of(owner, name) is not MISSING:
                object.__delattr__(owner, name)
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
    """Give a dict a content from before; one who interrupts it finds all of that there."""
    kind.update(owner, content)
    if type(owner) is dict and _is_of_library(
        owner
    ):  # names are added by code that is not looked at, too (its caches)
        return
    for key in [k for k in kind.__iter__(owner) if k not in content]:
        kind.__delitem__(owner, key)
    if list(kind.__iter__(owner)) != list(content):  # the order, after a key was taken out
        kind.clear(owner)
        kind.update(owner, content)


def _restore_variable(variable: ContextVar[Any], tokens: list[Token[Any]]) -> None:
    """Give a context variable the value from before its first setting, or none if it had none."""
    before = tokens[0].old_value
    if before is not Token.MISSING:
        variable.set(before)
        return
    for token in tokens:
        if token.old_value is Token.MISSING:
            with contextlib.suppress(RuntimeError, ValueError):  # reset already, or elsewhere
                variable.reset(token)


def restore_name(target: Any, content: Any) -> None:
    """Give a cell, or a name in a namespace or class, a content from before."""
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
