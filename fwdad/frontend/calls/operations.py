"""Calls of library functions: one operation, a store, or a call at tracing time."""

from __future__ import annotations

import copy
import enum
import functools
import types
from itertools import zip_longest
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, type_in_words
from fwdad.frontend.calls import containers
from fwdad.frontend.calls.kinds import (
    CONTAINERS,
    SHAPES,
    STATIC_OPTIONS,
    TEXTS,
    is_computed,
    is_known,
    makes_arrays,
    mentions_symbols,
    writes,
)
from fwdad.frontend.calls.known_calls import known_call
from fwdad.frontend.calls.purity import is_impure, is_of_package
from fwdad.frontend.calls.ufunc_at import updated_at
from fwdad.frontend.captures import fetch
from fwdad.frontend.syntax import iteration, static_arrays
from fwdad.frontend.syntax.raising import native, recorded
from fwdad.frontend.syntax.symbols import OfTrace
from fwdad.frontend.syntax.texts import text_of_method
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.abstract_eval.purity import are_plain, is_pure
from fwdad.ir.builder.array_contents import may_be_option
from fwdad.ir.builder.call_form import positional
from fwdad.ir.symbol import UNBOUND, Symbol, UnknownText
from fwdad.ir.types import is_static_array
from fwdad.ops import record_of
from fwdad.rules.core.registry import find_rule, function_name, is_declared_pure
from fwdad.tangents.namespaces import namespace_of

# C code that trusts the index arrays that it is given
_OPTIONS = {Symbol, np.ndarray, list, tuple}  # what options may be that are not known yet
_PLACES = {np.unravel_index, np.ravel_multi_index}
_NAMES: dict[Any, Any] = {
    np.zeros: ("shape",),
    np.empty: ("shape",),
}  # where NumPy has no signature
_STATIC = (types.ModuleType, types.FunctionType, type, enum.Enum)
"""What is neither a number nor holds any: Python's own business."""

_UNCHECKED = {"scipy.sparse._sparsetools", "scipy.sparse._csparsetools"}


class OperationCalls:
    """Calls of library functions."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.outside = tracer.outside
        self.values = tracer.values

    def call_native(self, f: Any, args: Any, kwargs: Any) -> Any:
        self.values.check_kinds(args, kwargs, getattr(f, "__self__", None))
        args = tuple(iteration.listed(self.tracer, a) for a in args)
        owner = getattr(f, "__self__", None)
        if isinstance(owner, CONTAINERS):
            return containers.call_method(self.tracer, owner, f.__name__, args, kwargs)
        if type(f) is types.MethodDescriptorType and args and isinstance(args[0], CONTAINERS):
            return containers.call_method(self.tracer, args[0], f.__name__, args[1:], kwargs)
        args = tuple(map(self.values.numbers, args))
        if is_static_array(owner):
            return static_arrays.operated(self.tracer, functools.partial(f, **kwargs), *args)
        if (getattr(f, "__module__", "") or "").startswith("numpy.random"):
            message = (
                "random numbers are drawn inside the traced function: draw them outside, and pass "
                "them as an argument"
            )
            raise UntraceableError(message, self.position.location())
        symbolic = mentions_symbols((args, kwargs))
        if symbolic and (find_rule(f) is not None or is_declared_pure(f)):
            args = tuple(self._held(f, x) for x in args)
            kwargs = {key: self._held(f, x) for key, x in kwargs.items()}
        if symbolic and getattr(f, "__module__", "") in _UNCHECKED:
            message = (
                f"{function_name(f)} reads memory without bounds checks, so it cannot be traced: "
                "use a dense array, or call it without jit"
            )
            raise UntraceableError(message, self.position.location())
        if isinstance(owner, str) and (symbolic or isinstance(owner, UnknownText)):
            place = self.position.location()
            return native(lambda: text_of_method(owner, f.__name__, args, kwargs, place))
        if symbolic and f in TEXTS:
            return UnknownText(self.position.location())
        if not symbolic:
            if is_of_package(f) and is_impure(f):
                return known_call(self.tracer, f, args, kwargs)
            self.refuse_impure(f)
            read = () if isinstance(owner, types.ModuleType) else (owner,)
            if not (getattr(f, "__module__", None) or "").startswith("fwdad."):
                for x in (*args, *kwargs.values(), *read):
                    self.outside.read_whole(x)
            if makes_arrays(f) and any(id(x) in self.outside.compared for x in args[:1]):
                found = native(lambda: f(*args, **kwargs))  # may be memory of the object
                self._check_unchanged(f)
                held = isinstance(found, np.ndarray) and type(found) is np.ndarray
                if held and any(np.may_share_memory(found, a) for a in self.outside.read_arrays):
                    return self.outside.bound(found, function_name(f))
                return self.constants(found)
        if not symbolic and (not makes_arrays(f) or is_computed(f)):
            found = native(lambda: f(*args, **kwargs))
            self._check_unchanged(f)
            return self.constants(found) if makes_arrays(f) else self.values.made(found)
        if not symbolic and not is_pure(f):  # it runs once, with the values that it is given
            return self._computed(f, args, kwargs)
        if writes(f):
            target, *others = args
            target = self.recorder.as_symbol(target)
            if len(others) == 2 and isinstance(others[1], (list, tuple)):  # values at an index
                others[1] = self.tracer.call(np.array, (others[1],), {})
            if self.recorder.differentiates and not record_of(f).writes and not kwargs:
                if updated_at(self.tracer, f, target, others[0], tuple(others[1:])):
                    return None
            return self.recorder.mutate(f, (target, *others), kwargs)
        if isinstance(f, types.FunctionType) or is_known(f):
            args, kwargs = self.static_options(f, args, kwargs)
            return recorded(self.recorder.apply, f, args, kwargs)
        message = (
            f"{function_name(f)} has no rule and no Python source, so it cannot be traced: give "
            "it a rule (fwdad.frule)"
        )
        raise UntraceableError(message, self.position.location())

    def _held(self, f: Any, x: Any) -> Any:
        """What stands on the tape for an argument of a function that is not looked into.

        An object from outside is guarded, one that the program has made is copied, since it may
        change it later. An object that holds values would stand for itself, and is refused.
        """
        if not callable(x) or isinstance(x, (Symbol, OfTrace, type)):
            return x
        if mentions_symbols(x):
            message = (
                f"{function_name(f)} has a rule, or is declared pure, and is not looked into: it "
                f"cannot be given {type_in_words(x)} that holds values of the program. Pass these "
                "as arguments of their own"
            )
            raise UntraceableError(message, self.position.location())
        self.outside.read_whole(x)
        return copy.deepcopy(x) if self.recorder.journal.is_own(namespace_of(x)) else x

    def _check_unchanged(self, f: Any) -> None:
        """Refuse a function that has changed an object from outside, which a tape cannot repeat."""
        for path, held in self.outside.guards:
            if path[0] == "contents" and fetch(path) != held:
                message = (
                    f"{function_name(f)} changes {type_in_words(fetch(path[1]))} that existed "
                    "before the call, which cannot be traced: pass it as an argument"
                )
                raise UntraceableError(message, self.position.location())

    def constants(self, found: Any) -> Any:
        """A result computed at tracing time; its arrays are made anew whenever the program runs."""
        if is_static_array(found):
            return static_arrays.made(self.tracer, found)
        if isinstance(found, np.ndarray):
            return self.recorder.apply(np.ndarray.copy, (self.recorder.as_symbol(found),), {})
        if type(found) in (list, tuple):
            parts = [self.constants(part) for part in found]
            return tuple(parts) if type(found) is tuple else self.values.made(parts)
        return found

    def _computed(self, f: Any, args: Any, kwargs: Any) -> Any:
        """The result of a library function that only reads its arguments, all of them known."""
        result = native(lambda: f(*args, **kwargs))
        if not _is_static(result):
            message = (
                f"{function_name(f)} returns {type_in_words(result)}, which cannot be traced: call "
                "it outside, and pass what you need of its result as an argument"
            )
            raise UntraceableError(message, self.position.location())
        return self.constants(result)

    def refuse_impure(self, f: Any) -> None:
        """Refuse a function that depends on more than its arguments, to be called at each run."""
        if is_impure(f):
            message = (
                f"{function_name(f)} would be called once, at trace time, not at each run: call "
                "it outside, and pass what it returns as an argument"
            )
            raise UntraceableError(message, self.position.location())

    def static_options(
        self, f: Any, args: Any, kwargs: Any, static: set[str] = STATIC_OPTIONS
    ) -> tuple[Any, dict[str, Any]]:
        """Arguments with axes and the like known (inputs are assumed), and shapes as tuples."""
        if f in _PLACES:
            static = {*static, "shape", "dims"}

        rule = find_rule(f)
        users = rule is not None and rule.of_user  # a float array is no axis, whatever its name

        def converted(name: str | None, value: Any) -> Any:
            if users and type(value) is Symbol and value.is_array and value.dtype.kind in "fc":
                return value
            if name in static:
                return self._known_option(value)
            return self._lengths(value) if name in SHAPES else value

        made = {key: converted(key, value) for key, value in kwargs.items()}
        if rule is not None and not users:
            made = {key: self._flag(value) for key, value in made.items()}
        if any(type(a) in _OPTIONS for a in args):
            names: tuple[str | None, ...] = tuple(positional(f)) or _NAMES.get(f, ())
            if names and names[0] not in SHAPES:  # a function's first argument is not an option
                names = (None, *names[1:])
            names = names[: len(args)]
            args = tuple(converted(name, a) for a, name in zip_longest(args, names))
            if rule is not None and not users and rule.binder is not None:
                flags = rule.binder.options
                args = tuple(
                    self._flag(a) if name in flags else a for a, name in zip_longest(args, names)
                )
        return args, made

    def _flag(self, x: Any) -> Any:
        """A flag, assumed if it is an input: it may say how many results there are."""
        if type(x) is not Symbol or x.is_array or x.dtype != np.dtype(bool):
            return x
        forced = self.recorder.examples.forced(x.value)
        return x if forced is UNBOUND else bool(forced)

    def _known_option(self, x: Any) -> Any:
        """An option that must be known, perhaps a list or an array of numbers."""
        if isinstance(x, np.ndarray):
            x = self.recorder.as_symbol(x) if may_be_option(x) else x
        if type(x) is Symbol and x.dtype.kind in "fc":
            return x  # were its value assumed, a derivative by it would be lost
        if type(x) is Symbol and x.is_array:
            x = self.values.force(x)
            return tuple(x.tolist()) if x.ndim else x.item()
        if type(x) in (list, tuple):
            return type(x)([self._known_option(item) for item in x])
        known_value = self.values.known(x)
        return int(known_value) if isinstance(known_value, np.integer) else known_value

    def _lengths(self, shape: Any) -> Any:
        """A shape, which may be an array, as a number or a tuple of numbers."""
        if isinstance(shape, np.ndarray) and may_be_option(shape):
            shape = self.recorder.as_symbol(shape)
        if type(shape) is not Symbol or not shape.is_array:
            return shape
        lengths = self.recorder.examples.forced(shape.value)
        if lengths is not UNBOUND:
            return tuple(lengths.tolist()) if lengths.ndim else lengths.item()
        if not shape.type.ndim:
            return self.recorder.load(shape, ())
        rank = self.recorder.lengths.known_length(shape, 0)
        return tuple(self.recorder.load(shape, k) for k in range(rank))


def _is_static(x: Any) -> bool:
    """Whether a value holds no state that a tape would have to watch."""
    if isinstance(x, tuple):
        return all(map(_is_static, x))
    return isinstance(x, _STATIC) or are_plain(x)
