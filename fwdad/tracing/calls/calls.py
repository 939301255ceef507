"""Calls: traced functions in line, NumPy's as operations, builtins by their meaning."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import enum
import functools
import inspect
import types
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from fwdad.builder.dispatch import python_inside
from fwdad.builder.source import find_source
from fwdad.errors import UntraceableError, is_library_file
from fwdad.rules.by_position import by_position
from fwdad.rules.registry import find_rule, function_name
from fwdad.tangents import sparse
from fwdad.tape.call_form import positional
from fwdad.tape.journal import set_content
from fwdad.tape.ops import Block
from fwdad.tape.recorder import Recorder
from fwdad.tape.samples import keeps_arguments
from fwdad.tape.symbol import UNBOUND, Symbol, UnknownText
from fwdad.tape.types import number_type
from fwdad.tracing.calls.kinds import (
    C_FUNCTIONS,
    CONTAINERS,
    LOOPS,
    MUTATING,
    NUMPY_FUNCTION,
    STATIC_OPTIONS,
    TEXTS,
    is_computed,
    is_known,
    makes_arrays,
    mentions_symbols,
    public_function,
    writes,
)
from fwdad.tracing.calls.purity import is_impure
from fwdad.tracing.calls.recursion import RecursionFound, call_program
from fwdad.tracing.calls.ufunc_at import updated_at
from fwdad.tracing.numpy_sources.table import SOURCES
from fwdad.tracing.syntax.attributes import Attributes, BoundArrayMethod, class_attribute
from fwdad.tracing.syntax.control import AlwaysRaises, branch
from fwdad.tracing.syntax.frame import FLOW, Closure, Frame, Method, cells_of, names_of
from fwdad.tracing.syntax.merge import mutables
from fwdad.tracing.syntax.symbols import Maybe, Optional

INLINED_AT_MOST = 16  # calls of one function inside each other; then it is a program of its own

CALLED: dict[type, Callable[..., Any]] = {}
"""How objects of some classes are called in a trace: ``call(tracer, f, args, kwargs)``."""

METHODS_OF: dict[type, Callable[..., Any]] = {}
"""How methods of objects of some classes are called: ``call(tracer, method, args, kwargs)``."""

MANAGED: list[Callable[..., Any]] = []
"""How functions under ``contextlib.contextmanager`` are called: one handler."""

BUILTINS: dict[Any, Callable[..., Any]] = {}
"""Builtins with a meaning of their own: ``handle(tracer, *args, **kwargs)``."""

_QUESTIONS = {isinstance, type, hasattr, getattr, callable, bool, round, abs, float, int, len}
"""Those that can be asked about None."""


_MANAGER_CODE = contextlib.contextmanager(lambda: iter(())).__code__


# C code that trusts the index arrays that it is given
def _has_state(x: Any) -> bool:
    """Whether something is an object with attributes, and no function, class or symbol."""
    passive = (type, types.ModuleType, types.FunctionType, types.MethodType, np.ufunc, Symbol,
               Closure, Method, functools.partial, *C_FUNCTIONS, NUMPY_FUNCTION)  # fmt: skip
    return bool(getattr(x, "__dict__", None)) and not isinstance(x, passive)


def _is_of_trace(x: Any) -> bool:
    """Whether a container holds values that are not known when the program is traced."""
    if isinstance(x, (list, tuple, dict)):
        return any(map(_is_of_trace, x.values() if isinstance(x, dict) else x))
    return not isinstance(x, np.ndarray) and mentions_symbols(x)


_UNCHECKED = {"scipy.sparse._sparsetools", "scipy.sparse._csparsetools"}


class Calls(Attributes):
    """Calls and attributes."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.frame: Any = None
        self.node: Any = None
        self.called_at: Any = None  # where the user's code called the library's that is traced
        self.depth = 0
        self.returned: Any = None  # the place of the last `return` of the function itself
        self.handled: list[AlwaysRaises] = []  # exceptions whose handlers are traced
        self.active: list[Any] = []  # code objects and definitions that are being traced
        self.recursive: dict[int, Any] = {}  # those that become programs of their own
        self.programs: dict[Any, Any] = {}
        self.capture_value: Callable[[Any, Any, str], Any] = lambda value, _path, _name: value
        self.capture_container: Callable[[Any, Any, str], Any] = lambda value, _path, _name: value
        self.guards: list[tuple[Any, Any]] = []  # (place, object): what is found there must stay

    # -- what comes from outside

    def captured(self, x: Any, path: Any, name: str) -> Any:
        """A value of the world outside: numbers and arrays become inputs of the tape."""
        if path[0] == "attribute" and type(path[1]).__module__.startswith("fwdad."):
            return x  # our own objects' options
        if number_type(x) is not None and not isinstance(x, bool):
            return self.capture_value(x, path, name)
        if isinstance(x, np.ndarray):
            return self.capture_value(x, path, name)
        if path[0] != "attribute" or name in getattr(path[1], "__dict__", ()):
            self.guards.append((path, x))
        if type(x) in (list, dict) or (isinstance(x, tuple) and mutables(x)):
            return self.capture_container(x, path, name)
        return x

    def force(self, x: Any) -> Any:
        """The value of a symbol as it was in the example; the tape assumes it from now on."""
        if type(x) is not Symbol:
            return x
        found = self.recorder.forced(x.value)
        if found is UNBOUND:
            message = (
                "a value that is computed when the program runs is needed to trace it (as a "
                "length, an axis, a key or an option)"
            )
            raise UntraceableError(message, self.location())
        return found

    def may_change(self, o: Any) -> None:
        """Refuse to change what existed before the trace."""
        if not self.recorder.is_own(o):
            message = (
                f"a {type(o).__name__} that existed before the call is changed: a tape cannot do "
                "that. Pass it as an argument and return it"
            )
            raise UntraceableError(message, self.location())

    def generator(self, frame: Frame, node: Any, key: Any) -> Any:
        """What a call of a generator function answers."""
        raise NotImplementedError

    def container_method(self, owner: Any, name: str, args: Any, kwargs: Any) -> Any:
        """A method of a list, dict, set or deque."""
        raise NotImplementedError

    # -- calls

    def call(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a value."""
        if type(kwargs.get("argnums")) is Symbol:  # a global, which decides what is written
            kwargs = {**kwargs, "argnums": self.known(kwargs["argnums"])}
        if isinstance(f, Closure):
            return self.inline_closure(f, args, kwargs)
        if isinstance(f, Method):
            return self.call(f.function, (f.owner, *args), kwargs)
        if isinstance(f, functools.partial):
            given = {key: self._bound_outside(x, key) for key, x in f.keywords.items()}
            first = [self._bound_outside(x, "a") for x in f.args]
            return self.call(f.func, (*first, *args), {**given, **kwargs})
        if kwargs:
            args, kwargs = by_position(f, args, kwargs)
        try:
            handle = BUILTINS.get(f)
        except TypeError:
            handle = None
        if handle is not None:
            if f in _QUESTIONS and args and isinstance(args[0], Optional):
                return self._asked_of_both(f, args, kwargs)
            return handle(self, *args, **kwargs)
        if type(f) in CALLED:
            return CALLED[type(f)](self, f, args, kwargs)
        if isinstance(f, types.MethodType):
            return self._call_bound(f, args, kwargs)
        if isinstance(f, types.FunctionType):
            return self._call_function(f, args, kwargs)
        if isinstance(f, BoundArrayMethod):
            return f.call(self, args, kwargs)
        if isinstance(f, type):
            return self._call_class(f, args, kwargs)
        if type(f).__module__.startswith("numba."):
            return self._call_numba(f, args, kwargs)
        if type(f).__module__ in ("fwdad.jitted", "functools") and hasattr(f, "__wrapped__"):
            return self.call(f.__wrapped__, args, kwargs)  # under jit, or a cache
        if isinstance(f, NUMPY_FUNCTION) and find_rule(f) is None:
            return self.call_numpy(f, args, kwargs)
        if isinstance(f, (*C_FUNCTIONS, NUMPY_FUNCTION)) or callable(f):
            method = class_attribute(type(f), "__call__")
            if isinstance(method, types.FunctionType):
                return self.call(method, (f, *args), kwargs)
            return self.call_native(f, args, kwargs)
        message = f"'{type(f).__name__}' object is not callable"
        raise AlwaysRaises(TypeError, (message,))

    def _asked_of_both(self, f: Any, args: Any, kwargs: Any) -> Any:
        """What is asked about a value that may be None: of the value, and of None."""
        first, *rest = args
        return branch(
            self.recorder,
            first.flag,
            lambda: self.call(f, (first.value, *rest), kwargs),
            lambda: self.call(f, (None, *rest), kwargs),
        )

    def _call_numba(self, f: Any, args: Any, kwargs: Any) -> Any:
        """A function under ``numba.njit`` by its Python source, a ufunc of Numba's as it is."""
        python = python_inside(f)
        if find_rule(f) is not None or hasattr(f, "nin"):
            args = tuple(self.listed(self.number(a)) for a in args)
            return self.recorder.apply(f, args, kwargs)
        if python is not None:
            return self.call(python, args, kwargs)
        message = f"a {type(f).__name__} of Numba has no Python source that can be traced"
        raise UntraceableError(message, self.location())

    def _call_bound(self, f: types.MethodType, args: Any, kwargs: Any) -> Any:
        if type(f.__self__) in METHODS_OF:
            return METHODS_OF[type(f.__self__)](self, f, args, kwargs)
        return self.call(f.__func__, (f.__self__, *args), kwargs)

    def call_numpy(self, f: Any, args: Any, kwargs: Any) -> Any:
        """A function of NumPy's without a rule: what it is in Python, in line."""
        written = SOURCES.get(f) or getattr(f, "_implementation", None)
        if isinstance(written, types.FunctionType) and mentions_symbols((args, kwargs)):
            return self._call_function(written, args, kwargs, f)
        return self.call_native(f, args, kwargs)

    def _call_function(
        self, f: types.FunctionType, args: Any, kwargs: Any, public: Any = None
    ) -> Any:
        """A function in Python; ``public`` is what it does the work of."""
        if find_rule(f) is not None or f in LOOPS:
            return self.call_native(f, args, kwargs)
        library = is_library_file(f.__code__.co_filename)
        if f.__code__ is _MANAGER_CODE:
            return MANAGED[0](self, f, args, kwargs)
        if library and not mentions_symbols((args, kwargs)) and not self._is_own_object(args[:1]):
            return self.call_native(f, args, kwargs)
        if sparse.is_of_sparse_arrays(f):
            raise UntraceableError(sparse.UNTRACED, self.location())
        written: Any = SOURCES.get(f)
        if written is not None:
            f, public = written, f
        numba = str(f.__globals__.get("__name__")).startswith("numba.")  # methods of a jitclass
        source = None if numba else find_source(f)
        if source is None:
            message = (
                f"{function_name(f)} has no source that can be read, and is called with values "
                "that are not known"
            )
            raise UntraceableError(message, self.location())
        frame = Frame(
            source.node,
            f.__code__.co_filename,
            f.__globals__,
            cells_of(f),
            classes=source.classes,
            owner=cells_of(f).get("__class__"),
        )
        options = (f.__defaults__ or (), f.__kwdefaults__ or {})
        try:
            bound = self._bind(source.node, *options, args, kwargs)
        except AlwaysRaises:
            if public is None:
                raise
            return self.recorder.apply(public, args, kwargs)  # with an option that is not known
        inside = self.frame is not None and is_library_file(self.frame.filename)
        if library and self.frame is not None and (not inside or public in SOURCES):
            public = public or public_function(f)
            run = (frame, source.node, bound, f.__code__)
            return self._inline_or_apply(public, run, args, kwargs)
        return self._run_frame(frame, source.node, bound, f.__code__)

    def _is_own_object(self, args: Any) -> bool:
        """Whether a method is called on an object that the traced program has made.

        NumPy's and SciPy's objects that hold no values are not changed by their methods.
        """
        if not args or type(args[0]).__module__.startswith(("numpy", "scipy")):
            return False
        return self.recorder.is_own(getattr(args[0], "__dict__", None))

    def _inline_or_apply(self, public: Any, run: Any, args: Any, kwargs: Any) -> Any:
        """A library's function in line; one that cannot be traced is one operation."""
        block = Block()
        try:
            with self.recorder.region(block) as region:
                y = self._run_frame(*run)
                if y is NotImplemented:
                    message = f"these arguments of {function_name(public)} cannot be traced"
                    raise UntraceableError(message, self.location())  # noqa: TRY301
                changes = region.changes()
                region.undo()
        except UntraceableError as error:
            if any(map(_has_state, (*args, *kwargs.values()))):
                raise  # on samples, its methods would change the object itself
            try:
                found = self.recorder.apply(public, args, kwargs)
            except UntraceableError:
                raise error from None
            if not keeps_arguments(public, self.recorder.operand((args, kwargs))):
                raise
            return found
        self.recorder.block.ops.extend(block.ops)
        for o, _, now in changes:
            self.recorder.touch(o)
            set_content(o, now)
        return y

    def inline_closure(self, f: Closure, args: Any, kwargs: Any) -> Any:
        """Call a function that was defined while tracing."""
        frame = Frame(
            f.node, f.frame.filename, f.frame.globals, outer=f.frame, classes=f.frame.classes
        )
        bound = self._bind(f.node, f.defaults, f.kw_defaults, args, kwargs)
        return self._run_frame(frame, f.node, bound, f.node)

    def _run_frame(self, frame: Frame, node: Any, bound: dict[str, Any], key: Any) -> Any:
        if id(key) in self.recursive:
            name = getattr(node, "name", "function")
            return call_program(
                self,
                name,
                bound,
                key,
                lambda given: self._run_body(replace(frame, locals={}), node, given, key),
            )
        if sum(key is a for a in self.active) >= INLINED_AT_MOST:
            raise RecursionFound(key)
        return self._run_body(frame, node, bound, key)

    def _run_body(self, frame: Frame, node: Any, bound: dict[str, Any], key: Any) -> Any:
        frame.names = names_of(node)
        self.recorder.own(frame.locals, namespace=True)
        frame.locals.update(dict.fromkeys((*FLOW, "$stop"), False))
        for name, value in bound.items():
            frame.locals[name] = value
            if type(value) is Symbol and value.value.name is None:
                value.value.name = name
        outer, at, called = self.frame, self.node, self.called_at
        self.called_at = self.location() if outer is not None else None
        self.frame = frame
        self.depth += 1
        self.active.append(key)
        try:
            if self.depth == 1:
                self.returned = self.location_of(node)
            if isinstance(node, ast.Lambda):
                return self.evaluate(node.body)
            if frame.names.yields:
                frame.captured = True
                return self.generator(frame, node, key)
            self.run_block(node.body)
            return self._returned(frame)
        except AlwaysRaises as raised:
            raised.location = raised.location or self.location()
            raise
        finally:
            self.depth -= 1
            self.active.pop()
            if not frame.captured:
                self.recorder.disown(frame.locals)
            self.frame, self.node, self.called_at = outer, at, called

    def _returned(self, frame: Frame) -> Any:
        flag = frame.locals["$return"]
        if flag is False:
            return None
        value = frame.locals["$value"]
        if isinstance(value, Maybe):  # some ways end without a `return`: None
            if value.value is None:
                return None
            return Optional(value.flag, value.value) if flag is not True else value.value
        return value

    def _bind(
        self, node: Any, defaults: tuple[Any, ...], kw: dict[str, Any], args: Any, kwargs: Any
    ) -> dict[str, Any]:
        """Arguments bound to parameters, by Python's rules."""
        a = node.args
        name = getattr(node, "name", "<lambda>")
        positional = [p.arg for p in [*a.posonlyargs, *a.args]]
        bound: dict[str, Any] = {}
        extra = dict(kwargs)
        bound.update(zip(positional, args, strict=False))
        rest = args[len(positional) :]
        if a.vararg is not None:
            bound[a.vararg.arg] = tuple(rest)
        elif rest:
            message = (
                f"{name}() takes {len(positional)} positional arguments but {len(args)} were given"
            )
            raise AlwaysRaises(TypeError, (message,))
        only = {p.arg for p in a.posonlyargs}
        for parameter in [*positional, *(p.arg for p in a.kwonlyargs)]:
            if parameter in extra and parameter not in only:
                if parameter in bound:
                    message = f"{name}() got multiple values for argument {parameter!r}"
                    raise AlwaysRaises(TypeError, (message,))
                bound[parameter] = extra.pop(parameter)
        for parameter, value in zip(reversed(positional), reversed(defaults), strict=False):
            if parameter not in bound:
                bound[parameter] = self._bound_outside(value, parameter)
        for parameter, value in kw.items():
            if parameter not in bound:
                bound[parameter] = self._bound_outside(value, parameter)
        missing = [p for p in [*positional, *(p.arg for p in a.kwonlyargs)] if p not in bound]
        if missing:
            message = f"{name}() missing required arguments: {', '.join(missing)}"
            raise AlwaysRaises(TypeError, (message,))
        if a.kwarg is not None:
            bound[a.kwarg.arg] = self.recorder.fresh(extra)
        elif extra:
            message = f"{name}() got an unexpected keyword argument {next(iter(extra))!r}"
            raise AlwaysRaises(TypeError, (message,))
        return bound

    def _bound_outside(self, x: Any, name: str) -> Any:
        """A default, or what a partial function holds: lists and dicts change between calls."""
        if isinstance(x, np.ndarray):
            return self.recorder.as_symbol(x)
        own = any(map(self.recorder.is_own, x if isinstance(x, tuple) else (x,)))
        if own or _is_of_trace(x):
            return x
        if type(x) in (list, dict) or (isinstance(x, tuple) and mutables(x)):
            return self.capture_container(x, ("object", x), name)
        return x

    def _call_class(self, cls: type, args: Any, kwargs: Any) -> Any:
        if cls.__name__ == "prange" and cls.__module__.startswith("numba."):
            return self.call(range, args, kwargs)
        if issubclass(cls, np.generic) or cls in (int, float, complex, bool):
            return self.call_native(cls, args, kwargs)
        if issubclass(cls, BaseException):
            return cls(*args, **kwargs)
        if cls in (np.errstate, warnings.catch_warnings, contextlib.suppress):
            return self.native(lambda: cls(*args, **kwargs))
        if issubclass(cls, enum.Enum):
            return self.native(lambda: cls(*(self.known(a) for a in args), **kwargs))
        if sparse.is_of_sparse_arrays(cls) and mentions_symbols((args, kwargs)):
            raise UntraceableError(sparse.UNTRACED, self.location())
        meta = class_attribute(type(cls), "__call__")
        if isinstance(meta, types.FunctionType) and find_source(meta) is not None:
            return self.call(meta, (cls, *args), kwargs)
        return self.make_instance(cls, args, kwargs)

    def make_instance(self, cls: type, args: Any, kwargs: Any) -> Any:
        """What ``type.__call__`` does."""
        init = getattr(cls, "__init__", None)
        new: Any = cls.__new__
        if isinstance(class_attribute(cls, "__getattribute__"), types.FunctionType):
            self.refuse_getattribute(cls)
        if isinstance(new, types.FunctionType) and find_source(new) is not None:
            made = self.call(new, (cls, *args), kwargs)
            if isinstance(made, cls) and issubclass(type(made), cls):
                init = type(made).__init__  # of a subclass, where __new__ has made one
            if isinstance(made, cls) and isinstance(init, types.FunctionType):
                self.call(init, (made, *args), kwargs)
            return made
        if isinstance(init, types.FunctionType) and find_source(init) is not None:
            if new is not object.__new__:
                message = f"{cls.__name__} has a __new__ of its own, which cannot be traced"
                raise UntraceableError(message, self.location())
            made = new(cls)
            if not hasattr(made, "__dict__"):
                message = f"{cls.__name__} has __slots__, and its objects cannot be traced"
                raise UntraceableError(message, self.location())
            known = not mentions_symbols((args, kwargs))
            if known and is_library_file(init.__code__.co_filename):
                self.native(lambda: init(made, *args, **kwargs))  # a library's object of constants
                self.recorder.own(made.__dict__, namespace=True)
                return made
            self.recorder.own(made.__dict__, namespace=True)
            self.call(init, (made, *args), kwargs)
            return made
        if dataclasses.is_dataclass(cls) and cls.__dataclass_params__.init:
            return self._make_dataclass(cls, args, kwargs)
        if cls is str and mentions_symbols((args, kwargs)):
            return UnknownText(self.location())
        self._refuse_impure(cls)
        if cls is functools._lru_cache_wrapper and not callable(args[0]):
            message = "a cache of calls cannot be traced: what it keeps is not part of a tape"
            raise UntraceableError(message, self.location())
        try:
            made = self.native(lambda: cls(*args, **kwargs))
        except AlwaysRaises as raised:
            if not mentions_symbols((args, kwargs)):
                raise
            message = f"{cls.__name__} does not take values that are not known: {raised.exception}"
            raise UntraceableError(message, self.location()) from raised
        if hasattr(made, "__dict__"):
            self.recorder.own(made.__dict__, namespace=True)
        if isinstance(made, CONTAINERS):
            self.recorder.own(made)
        return made

    def _make_dataclass(self, cls: Any, args: Any, kwargs: Any) -> Any:
        """What a generated ``__init__`` does."""
        fields = cls.__dataclass_fields__
        if any(f._field_type is dataclasses._FIELD_INITVAR for f in fields.values()):
            message = f"{cls.__name__} has an InitVar, and cannot be made in a traced program"
            raise UntraceableError(message, self.location())
        made = cls.__new__(cls)
        if not hasattr(made, "__dict__"):
            message = f"{cls.__name__} has __slots__, and its objects cannot be traced"
            raise UntraceableError(message, self.location())
        self.recorder.own(vars(made), namespace=True)
        signature = inspect.signature(cls)
        given = self.native(lambda: signature.bind(*args, **kwargs)).arguments
        for field in dataclasses.fields(cls):
            if field.init and field.name in given:
                value = given[field.name]
            elif field.default_factory is not dataclasses.MISSING:
                value = self.call(field.default_factory, (), {})
            elif field.default is not dataclasses.MISSING:
                value = self._bound_outside(field.default, field.name)
            else:
                continue
            vars(made)[field.name] = value
        finish = getattr(cls, "__post_init__", None)
        if finish is not None:
            self.call(finish, (made,), {})
        return made

    def call_native(self, f: Any, args: Any, kwargs: Any) -> Any:
        args = tuple(self.listed(self.number(a)) for a in args)
        owner = getattr(f, "__self__", None)
        if isinstance(owner, CONTAINERS):
            return self.container_method(owner, f.__name__, args, kwargs)
        if type(f) is types.MethodDescriptorType and args and isinstance(args[0], CONTAINERS):
            return self.container_method(args[0], f.__name__, args[1:], kwargs)
        if (getattr(f, "__module__", "") or "").startswith("numpy.random"):
            message = "random numbers are drawn: pass them as an argument"
            raise UntraceableError(message, self.location())
        symbolic = mentions_symbols((args, kwargs))
        if symbolic and getattr(f, "__module__", "") in _UNCHECKED:
            message = f"{function_name(f)} reads memory unchecked: it cannot be tried on samples"
            raise UntraceableError(message, self.location())
        if symbolic and (isinstance(owner, str) or f in TEXTS):
            return UnknownText(self.location())
        if not symbolic:
            self._refuse_impure(f)
        if not symbolic and not makes_arrays(f):
            return self.made(self.native(lambda: f(*args, **kwargs)))
        if not symbolic and is_computed(f):
            return self.constants(self.native(lambda: f(*args, **kwargs)))
        if writes(f):
            target, *others = args
            target = self.recorder.as_symbol(target)
            if len(others) == 2 and isinstance(others[1], (list, tuple)):  # values at an index
                others[1] = self.call(np.array, (others[1],), {})
            if self.recorder.differentiates and f not in MUTATING and not kwargs:
                if updated_at(self, f, target, others[0], tuple(others[1:])):
                    return None
            return self.recorder.mutate(f, (target, *others), kwargs)
        if isinstance(f, types.FunctionType) or is_known(f):
            args, kwargs = self._static_options(f, args, kwargs)
            return self.recorder.apply(f, args, kwargs)
        message = f"{function_name(f)} has no rule and no Python source: it cannot be traced"
        raise UntraceableError(message, self.location())

    def constants(self, found: Any) -> Any:
        """What is computed when the program is traced; arrays are made anew whenever it runs."""
        if isinstance(found, np.ndarray):
            return self.recorder.apply(np.ndarray.copy, (self.recorder.as_symbol(found),), {})
        if type(found) in (list, tuple):
            parts = [self.constants(part) for part in found]
            return tuple(parts) if type(found) is tuple else self.made(parts)
        return found

    def _refuse_impure(self, f: Any) -> None:
        """What depends on more than its arguments must be called whenever the program runs."""
        if is_impure(f):
            message = (
                f"{function_name(f)} is called when the program is traced, not when it runs: call "
                "it outside, and pass what it answers as an argument"
            )
            raise UntraceableError(message, self.location())

    def _static_options(self, f: Any, args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Axes and the like must be known; those that are inputs are assumed."""
        made = {
            key: self.known(value) if key in STATIC_OPTIONS else value
            for key, value in kwargs.items()
        }
        if any(type(a) is Symbol and not a.is_array for a in args[1:]):
            names = positional(f)
            args = tuple(
                self.known(a) if name in STATIC_OPTIONS else a
                for a, name in zip_longest(args, names[: len(args)])
            )
        return args, made
