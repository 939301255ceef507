"""Arguments of a traced function: leaves that become inputs, and parts that are static."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError, type_in_words, with_article
from fwdad.frontend.guards import CONSTANT, FIELDS, OpaqueError, Same, contents, kind_of
from fwdad.frontend.slots import has_slots, has_slots_as_argument, stand_in
from fwdad.ir.types import ArrayType, Size, Type, number_type
from fwdad.tangents import composite
from fwdad.tangents.back_references import is_simple, reaches
from fwdad.tangents.fields import has_finalizer, is_plain
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import attributes_of

Build = Callable[[list[Any], dict[int, Any]], Any]


class Flattened:
    """Flattened arguments.

    ``leaves`` are numbers and arrays, and ``containers`` the lists, dicts and objects that a
    function could change, both in order. ``key`` is what a tape is specialised on: structure, types
    and static values. ``examples`` says whether numbers and lengths are examples that a tape may
    assume. What lies ``outside`` is not an argument: sets, objects, and instances of subclasses of
    lists and dicts, are static there, and ``paths`` has the keys that lead to each leaf. ``split``
    takes each part apart before it is looked at, into what stands for it and a note, which
    ``notes`` has for each leaf.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        examples: bool = True,
        split: Callable[[Any], tuple[Any, Any]] | None = None,
        outside: bool = False,
    ) -> None:
        self.examples = examples
        self._outside = outside
        self._split = split
        self._note: Any = None
        self.notes: list[Any] = []
        self.leaves: list[Any] = []
        self.paths: list[tuple[Any, ...]] = []
        self._path: list[Any] = []
        self.containers: list[Any] = []
        self._holding: set[int] | None = None
        self._places: dict[int, int] = {}
        self._arrays: dict[int, int] = {}
        self.key, self._build = self._of_call(args, tuple(kwargs.items()))

    def rebuild(
        self, leaves: list[Any], known: Mapping[int, Any] | None = None
    ) -> tuple[Any, Any, list[Any]]:
        """Positional and keyword arguments with other leaves, and their containers in order.

        ``known`` are containers that have been rebuilt before, by their positions.
        """
        rebuilt: dict[int, Any] = dict(known or {})
        args, kwargs = self._build(leaves, rebuilt)
        return args, dict(kwargs), [rebuilt[k] for k in range(len(self.containers))]

    def refers_back(self, x: Any) -> bool:
        """Whether one of the lists, dicts, objects and arrays that hold numbers is met from x."""
        if is_simple(x):
            return False
        if self._holding is None:
            holding = {id(c) for c in self.containers if composite.flatten(c)[0]}
            self._holding = holding | {id(a) for a in self.leaves if isinstance(a, np.ndarray)}
        return reaches(x, self._holding)

    def _of_call(self, *parts: tuple[Any, ...]) -> tuple[Hashable, Build]:
        """Positional and keyword arguments: an array is one within an argument, not beyond."""
        taken: list[list[tuple[Hashable, Build]]] = []
        for part in parts:
            taken.append([])
            for x in part:
                self._arrays.clear()
                taken[-1].append(self._take(x))
        keys = tuple(tuple(key for key, _ in pairs) for pairs in taken)
        builds = [[build for _, build in pairs] for pairs in taken]
        return keys, lambda leaves, made: tuple(
            tuple(b(leaves, made) for b in row) for row in builds
        )

    def _take(self, x: Any) -> tuple[Hashable, Build]:
        if self._split is not None:
            x, self._note = self._split(x)
        if number_type(x) is not None or isinstance(x, np.ndarray):
            return self._leaf(x)
        if self._outside and (isinstance(x, (set, frozenset)) or _is_special(x)):
            return self._by_contents(x)
        if self._outside and kind_of(x) == FIELDS:  # what is read of it is captured by itself
            return Same(x), lambda _, __: x
        if isinstance(x, tuple):
            return self._tuple(x)
        if self._is_container(x):
            if id(x) in self._places:  # the same object again
                k = self._places[id(x)]
                return ("again", k), lambda _, made: made[k]
            return self._container(x)
        if type(x) is types.MethodType and id(x.__self__) in self._places:
            k, f = self._places[id(x.__self__)], x.__func__
            return ("method", k, f), lambda _, made: types.MethodType(f, made[k])
        if isinstance(x, (set, bytearray, types.GeneratorType)):
            message = f"{type_in_words(x)} as an argument cannot be traced: give a list or an array"
            raise UntraceableError(message)
        return static_key(x), lambda _, __: x

    def _is_container(self, x: Any) -> bool:
        return isinstance(x, (list, dict)) or is_record(x)

    def _leaf(self, x: Any) -> tuple[Hashable, Build]:
        if isinstance(x, np.ndarray) and x.dtype.kind not in "biufc":
            message = f"an array of dtype {x.dtype} cannot be traced: give an array of numbers"
            raise UntraceableError(message)
        refuse_subclass(x)
        if id(x) in self._arrays:  # the same array again
            first = self._arrays[id(x)]
            return ("again", "array", first), lambda leaves, _: leaves[first]
        k = len(self.leaves)
        self.leaves.append(x)
        self.notes.append(self._note)
        self.paths.append(tuple(self._path))
        if isinstance(x, np.ndarray):
            self._arrays[id(x)] = k
        return leaf_key(x), lambda leaves, _: leaves[k]

    def _tuple(self, x: Any) -> tuple[Hashable, Build]:
        refuse_attributes(x)
        keys, builds = self._all(enumerate(x))
        cls = type(x)
        if cls is tuple:
            return (cls, keys), lambda leaves, made: tuple(b(leaves, made) for b in builds)
        # a constructor of its own may take other arguments
        return (cls, keys), lambda leaves, made: tuple.__new__(
            cls, [b(leaves, made) for b in builds]
        )

    def _by_contents(self, x: Any) -> tuple[Hashable, Build]:
        """An object from outside that stays what it is, as long as its contents do."""
        try:
            return (type(x), contents(x)), lambda *_: x
        except OpaqueError as error:
            raise UntraceableError(f"it holds {error.why}") from error

    def _container(self, x: Any) -> tuple[Hashable, Build]:
        cls = type(x)
        if isinstance(x, (list, dict)) and cls not in (list, dict):
            raise UntraceableError(
                f"{with_article(cls.__name__)} as an argument cannot be traced: give a "
                "list or a dict"
            )
        k = self._places[id(x)] = len(self.containers)
        self.containers.append(x)
        if isinstance(x, list):
            keys, builds = self._all(enumerate(x))

            def fill_list(leaves: list[Any], made: dict[int, Any]) -> Any:
                if k in made:
                    return made[k]
                held = made[k] = []
                held.extend(b(leaves, made) for b in builds)
                return held

            return (cls, keys), fill_list
        content = x if isinstance(x, dict) else attributes_of(x)
        keys, builds = self._all(content.items())
        names = tuple(content)

        def fill(leaves: list[Any], made: dict[int, Any]) -> Any:
            if k in made:
                return made[k]
            held = made[k] = cls() if isinstance(x, dict) else traced_object(cls)
            target = held if isinstance(x, dict) else vars(held)
            for name, b in zip(names, builds, strict=True):
                target[name] = b(leaves, made)
            return held

        return (cls, names, keys), fill

    def _all(self, items: Iterable[tuple[Any, Any]]) -> tuple[tuple[Hashable, ...], list[Build]]:
        taken: list[tuple[Hashable, Build]] = []
        for name, item in items:
            self._path.append(name)
            taken.append(self._take(item))
            self._path.pop()
        return tuple(key for key, _ in taken), [build for _, build in taken]


def static_key(x: Any) -> Hashable:
    """The key of a tape for an argument that is neither a number, an array nor a container."""
    try:
        if kind_of(x) > CONSTANT:
            return ("contents", Same(x), contents(x))
    except OpaqueError as found:
        raise UntraceableError(
            f"an argument is, or contains, {found.why}: it cannot be traced. Pass the numbers and "
            "arrays in it"
        ) from None
    try:
        hash(x)
    except TypeError:
        return Same(x)
    return ("static", type(x), x)


def refuse_attributes(x: Any, place: Location | None = None) -> None:
    """Refuse a tuple with attributes beside its items, as ``scipy.stats`` returns them."""
    if namespace_of(x):
        message = (
            f"{type_in_words(x)} is a tuple with attributes beside its items, which cannot be "
            "traced: use its items, or call the function that returns it without `jit`"
        )
        raise UntraceableError(message, place)


def new_object(cls: Any) -> Any:
    """An object of a class without attributes."""
    has_own_new = isinstance(
        cls.__new__, types.FunctionType
    )  # the user's, which may want arguments
    return object.__new__(cls) if has_own_new else cls.__new__(cls)


def traced_object(cls: Any) -> Any:
    """An object without attributes, or its stand-in in a trace."""
    return new_object(stand_in(cls) if has_slots(cls) else cls)


def is_record(x: Any) -> bool:
    """Whether an argument, or a part of one, is an object whose attributes are arguments, too."""
    if isinstance(x, (type, types.ModuleType, types.FunctionType, types.MethodType)):
        return False
    if isinstance(x, BaseException):
        return False
    if not isinstance(namespace_of(x), dict):
        return has_slots_as_argument(x)
    if is_plain(type(x)):
        return True
    if has_finalizer(type(x)):
        return False
    own_new = getattr(type(x), "__new__", None) is not object.__new__
    if own_new and type(x) is not types.SimpleNamespace:
        return False
    module = type(x).__module__
    library = module.split(".")[0] in ("numpy", "scipy", "builtins", "functools")
    ours = module.startswith("fwdad.") and not module.startswith("fwdad.examples.")
    return (not library and not ours) or hasattr(type(x), "__fwdad_record__")


def leaf_key(x: Any) -> Hashable:
    """The key of a tape for a leaf: its type, and which lengths are 0 or 1."""
    if isinstance(x, np.ndarray):
        return (x.dtype, tuple(n if n < 2 else -1 for n in x.shape))
    t = number_type(x)
    return (type(x),) if t is None else (t.dtype, t.python)  # there is no longer a leaf


@dataclass(frozen=True)
class Lengths:
    """The lengths of inputs that a tape takes from the example.

    These are those of arrays with no more than ``at_most`` elements, and ``axes``, ``(input,
    axis)``.
    """

    at_most: int = 0
    axes: frozenset[tuple[int, int]] = frozenset()

    def assumes(self, x: np.ndarray, k: int, axis: int) -> bool:
        """Whether the length of one axis of input k is taken from the example."""
        return x.size <= self.at_most or (k, axis) in self.axes


UNKNOWN = Lengths()
EVERY = Lengths(sys.maxsize)


def leaf_type(
    x: Any,
    k: int,
    *,
    example: bool = True,
    lengths: Lengths = UNKNOWN,
    shared: dict[int, Size] | None = None,
) -> Type:
    """The type of input k; lengths of two and more are unknown unless they are assumed.

    With ``shared``, lengths that are equal in the example are one ``Size``.
    """
    if isinstance(x, np.ndarray):
        shape: list[int | Size] = []
        for axis, n in enumerate(x.shape):
            known = n < 2 or (example and lengths.assumes(x, k, axis))
            size = n if known else Size((k, axis), n if example else None)
            if isinstance(size, Size) and shared is not None:
                size = shared.setdefault(n, size)
            shape.append(size)
        return ArrayType(x.dtype, tuple(shape))
    t = number_type(x)
    assert t is not None
    return t


def refuse_subclass(x: Any, place: Any = None) -> None:
    """Raise for arrays of a subclass, or of a dtype such as dates, which tapes do not support."""
    if not isinstance(x, np.ndarray):
        return
    if type(x) is not np.ndarray:
        raise UntraceableError(f"{type_in_words(x)} cannot be traced: give a plain array", place)
    if x.dtype.kind not in "biufc":
        message = f"an array of dtype {x.dtype} cannot be traced: give an array of numbers"
        raise UntraceableError(message, place)


def _is_special(x: Any) -> bool:
    """Whether something is a list or dict of a class of its own."""
    return isinstance(x, (list, dict)) and type(x) not in (list, dict)
