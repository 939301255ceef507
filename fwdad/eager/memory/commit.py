"""The commit of what one run has written outside, with plain values in place of its duals.

Only what the run itself has put somewhere is visited: the log knows what each container and object
held before, and what was there already holds no dual of this run, or is in the log itself.
"""

from __future__ import annotations

import types
import weakref
from collections import OrderedDict, deque
from functools import partial
from typing import Any

import numpy as np

from fwdad.eager.duals.dual import OPAQUE
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.memory.undo import MISSING, Attributes, UndoLog, slot_names, slot_of
from fwdad.eager.run import LEFT, Tag
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import in_c
from fwdad.tangents.plain import plain

_ATOMS = {
    int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range,
    np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128, np.complex64,
    types.BuiltinFunctionType, types.ModuleType, types.CodeType, np.ufunc, type(np.sum), type,
    *weakref.ProxyTypes,  # what is dead cannot be asked its class; who is alive is held elsewhere
}  # fmt: skip


class Plainly:
    """A walk that replaces the duals of one call in what that call leaves behind.

    ``left`` collects the plain numbers and arrays that have taken their place. If they are replaced
    ``wholly``, nothing is left of what they carried for the calls around, either.
    """

    def __init__(self, tag: Tag, *, wholly: bool = False) -> None:
        self._tag = tag
        self._wholly = wholly
        # what was met, and what stands for it: both are kept, or an id could mean another object
        self._seen: dict[int, tuple[Any, Any]] = {}
        self.left: list[Any] = []

    def log(self, log: UndoLog) -> None:
        """Visit everything that one call has written, and the content that it has put there."""
        for o, before in log.objects():
            self._seen.pop(id(o), None)
            self._written(o, before)
        for target, _before in log.names():
            self._name(target)
        for owner in log.arrays():
            if isinstance(owner, np.ndarray) and owner.dtype.kind == "O":
                self.value(owner)
        for variable in log.variables():
            value = variable.get(MISSING)
            new = self.value(value)
            if new is not value:
                variable.set(new)

    # -- places

    def _written(self, o: Any, before: Any) -> None:
        """Visit a container or an object, except for what it held before."""
        if isinstance(before, Attributes):
            self._attributes(o, before)
        elif isinstance(before, dict):
            self._dict(o, before)
        elif isinstance(before, (list, set)):
            known = set(map(id, before))
            self._items(o, lambda item: id(item) in known)
        else:
            self.value(o)

    def _attributes(self, o: Any, before: Attributes) -> None:
        held, slots = before.held or {}, before.slots
        names = namespace_of(o)
        for name, value in list(names.items()) if names is not None else ():
            if held.get(name, MISSING) is not value:
                new = self.value(value)
                if new is not value:
                    names[name] = new
        for name in slots:
            value = slot_of(o, name)
            if value is not MISSING and slots[name] is not value:
                self._slot(o, name, value)

    def _slot(self, o: Any, name: str, value: Any) -> None:
        new = self.value(value)
        if new is not value:
            in_c(type(o), "__setattr__")(o, name, new)

    def _name(self, target: Any) -> None:
        """Visit a cell, or a name in a namespace or class."""
        if isinstance(target, tuple):
            namespace, name = target
            names = vars(namespace) if isinstance(namespace, type) else namespace
            if name in names:
                new = self.value(names[name])
                if new is not names[name]:
                    if isinstance(namespace, type):
                        setattr(namespace, name, new)
                    else:
                        namespace[name] = new
            return
        self._cell(target)

    def _cell(self, cell: types.CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # the name is unbound
            return
        new = self.value(value)
        if new is not value:
            cell.cell_contents = new

    # -- values

    def value(self, x: Any) -> Any:
        """A value without duals of the call; what is mutable is changed in place."""
        t = type(x)
        if t in _ATOMS:
            return x
        if isinstance_dual(x) or t in OPAQUE:
            return self._primal(x)
        if id(x) in self._seen:
            return self._seen[id(x)][1]
        self._seen[id(x)] = x, x
        if t is tuple or (isinstance(x, tuple) and hasattr(x, "_make")) or t is frozenset:
            return self._rebuilt(x)
        if isinstance(x, np.ndarray):
            if x.dtype.kind == "O":
                for at, item in enumerate(x.flat):
                    new = self.value(item)
                    if new is not item:
                        x.flat[at] = new
        elif isinstance(x, (list, deque, set)):
            self._items(x, lambda _item: False)
        elif isinstance(x, dict):
            self._dict(x, {})
        elif t is partial:
            return self._partial(x)
        elif t is types.MethodType:
            self.value(x.__self__)
        elif t is types.FunctionType:
            self._function(x)
        else:
            self._object(x)
        return x

    def _primal(self, x: Any) -> Any:
        """The value of a dual; a number becomes a new object, which identifies this dual."""
        p = x
        while (isinstance_dual(p) or type(p) in OPAQUE) and p.tag in (self._tag, LEFT):
            p = p.p
        if p is x:
            return x
        p = plain(p) if self._wholly else p
        if type(p) is float:
            p = p * 1.0
        elif type(p) is complex:
            p = complex(p.real, p.imag)
        elif issubclass(type(p), np.generic):
            p = type(p)(p)
        self.left.append(p)
        return p

    def _rebuilt(self, x: Any) -> Any:
        items = [self.value(item) for item in x]
        if all(a is b for a, b in zip(items, x, strict=True)):
            return x
        made = x._make(items) if hasattr(x, "_make") else type(x)(items)
        self._seen[id(x)] = x, made
        return made

    def _items(self, x: Any, known: Any) -> None:
        if isinstance(x, set):
            items = [item if known(item) else self.value(item) for item in x]
            if any(a is not b for a, b in zip(items, x, strict=True)):
                set.clear(x)
                set.update(x, items)
            return
        for at, item in enumerate(list(x)):
            if not known(item):
                new = self.value(item)
                if new is not item:
                    (list if isinstance(x, list) else deque).__setitem__(x, at, new)

    def _dict(self, x: Any, before: Any) -> None:
        base = OrderedDict if isinstance(x, OrderedDict) else dict
        again = False
        for key, item in list(base.items(x)):
            again |= self.value(key) is not key
            if before.get(key, MISSING) is not item:
                new = self.value(item)
                if new is not item:
                    base.__setitem__(x, key, new)
        if again:  # a key is a dual
            items = [(self.value(key), item) for key, item in base.items(x)]
            base.clear(x)
            for key, item in items:
                base.__setitem__(x, key, item)

    def _partial(self, x: Any) -> Any:
        args, words = self.value(x.args), dict(x.keywords)
        self._dict(words, {})
        if args is not x.args or any(words[k] is not v for k, v in x.keywords.items()):
            x.__setstate__((x.func, args, words, vars(x)))
        self.value(x.func)
        return x

    def _function(self, f: types.FunctionType) -> None:
        for cell in f.__closure__ or ():
            self._cell(cell)
        if f.__defaults__:
            f.__defaults__ = self.value(f.__defaults__)
        if f.__kwdefaults__:
            self.value(f.__kwdefaults__)

    def _object(self, x: Any) -> None:
        names = namespace_of(x)
        if type(names) is dict:
            self._dict(names, {})
        for cls in type(x).__mro__:
            for name in slot_names(cls):
                value = slot_of(x, name)
                if value is not MISSING:
                    self._slot(x, name, value)
