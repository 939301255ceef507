"""The dispatcher: sends every call of lifted code to a rule, to lifted source, or to itself."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import os
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.builder import apply, numpy_calls, opaque, protocols
from fwdad.builder.dual import (
    OPAQUE,
    Array,
    Scalar,
    explicit,
    isinstance_dual,
    leak,
    top_tag,
    with_explicit,
)
from fwdad.builder.lift import LIFTED, lift
from fwdad.builder.memory import SHADOWED, find_shadow
from fwdad.builder.run import STATE
from fwdad.errors import DualLeakError, MissingRuleError, UnsupportedTypeError, is_library_file
from fwdad.rules.registry import RULES, find_rule, function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import Undefined, Zero

_NumpyFunction = type(np.sum)
_BUILTIN = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)

HANDLERS: dict[Any, Callable[[tuple[Any, ...], dict[str, Any]], Any]] = {}
"""Functions that the dispatcher treats in a way of their own: ``handler(args, kwargs)``."""

TRANSPARENT: set[Any] = set()
"""Builtins that work on duals by themselves, through the duals' own methods."""

CONTAINER_METHODS: dict[type, frozenset[str]] = {}
"""The methods of Python's containers that change them."""


def handler(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a special treatment of a function."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            HANDLERS[function] = body
        return body

    return register


def is_active(values: Any) -> bool:
    """Whether any value, or item of a list or dict among them, carries a tangent."""
    if top_tag(values) is not None:
        return True
    return bool(SHADOWED) and any(_shadowed(v) for v in values)


def _shadowed(v: Any) -> bool:
    t = type(v)
    if t is np.flatiter:
        return find_shadow(v.base) is not None
    if t is not Array and issubclass(t, np.ndarray):
        return find_shadow(v) is not None
    if t is list or t is tuple:
        return any(_shadowed(item) for item in v)
    return False


def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``f(*args, **kwargs)``, differentiated where an argument is active."""
    t = type(f)
    if t is types.FunctionType:
        if id(f.__code__) in LIFTED:
            return f(*args, **kwargs)
        return call_function(f, args, kwargs)
    resolve = _BY_TYPE.get(t)
    if resolve is not None:
        return resolve(f, args, kwargs)
    return call_object(f, args, kwargs)


def bind(f: Any) -> Any:
    """A callable that may be handed to C code and still goes through the dispatcher."""
    if f is None or isinstance(f, (*_BUILTIN, type)):
        if f is None or f in TRANSPARENT:
            return f
    elif type(f) is types.FunctionType and id(f.__code__) in LIFTED:
        return f
    return functools.partial(call, f)


def call_function(f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Python function: by its rule, or by its lifted source, or as it is."""
    special = HANDLERS.get(f)
    if special is not None:
        return special(args, kwargs)
    rule = find_rule(f)
    if rule is not None:
        if is_active((*args, *kwargs.values())):
            return numpy_calls.with_out(rule, args, kwargs)
        numpy_calls.log_written(f, args, kwargs)
        return f(*args, **kwargs)
    filename = f.__code__.co_filename
    if is_library_file(filename):
        if filename.startswith(_OWN) and not filename.startswith(_OWN_LIFTED):
            return f(*args, **kwargs)
        if is_inert((*args, *kwargs.values())) and (f.__closure__ is None or _closed(f)):
            return f(*args, **kwargs)
        if f.__globals__.get("__name__", "").startswith("numba.") and is_active(
            (*args, *kwargs.values())
        ):
            raise missing_rule(f, args, kwargs)  # a method of a jitclass is machine code
    lifted = lift(f)
    if lifted is None:
        if OPAQUE:
            opaque.check_sourceless(f, args, kwargs)
        return f(*with_explicit(args), **{k: explicit(v) for k, v in kwargs.items()})
    return lifted(*args, **kwargs)


def _closed(f: types.FunctionType) -> bool:
    """Whether a library function's closure cannot reach user code."""
    for cell in f.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:
            continue
        if isinstance(held, types.FunctionType):
            if not is_library_file(held.__code__.co_filename):
                return False
            if held.__closure__ is not None and held is not f:
                return False  # it holds something in its turn: better to look than to guess
        elif not is_inert((held,)):
            return False
    return True


_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OWN_LIFTED = (os.path.join(_OWN, "rules") + os.sep, os.path.join(_OWN, "examples") + os.sep)

_INERT = {
    int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range,
    np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128, np.complex64,
    types.BuiltinFunctionType, types.ModuleType, np.ufunc, type,
}  # fmt: skip


def is_inert(values: Any) -> bool:
    """Whether values can neither carry a tangent nor reach user code."""
    for v in values:
        t = type(v)
        if t in _INERT:
            continue
        if t is np.ndarray:
            if v.dtype.kind == "O" or (SHADOWED and find_shadow(v) is not None):
                return False
            continue
        if t is tuple or t is list or t is set or t is frozenset:
            if is_inert(v):
                continue
            return False
        if t is dict:
            if is_inert(v.values()):
                continue
            return False
        if isinstance(v, (np.dtype, np.generic)) and not isinstance_dual(v):
            continue
        return False
    return True


def missing_rule(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> MissingRuleError:
    """The error for a function that has neither a rule nor a source."""
    name = function_name(f)
    short = name.rpartition(".")[2]
    where = _first_active(f, args, kwargs)
    message = (
        f"no frule for {name} ({where} carries a derivative), and its source is not Python. "
        f"Write one:\n    @fwdad.frule({_public(name)})\n"
        f"    def {short}_frule(primals, tangents):\n"
        "        ...\n        return y, y_dot\n"
        "or say fwdad.stop_gradient(...) where no derivative is wanted"
    )
    return MissingRuleError(message)


def _public(name: str) -> str:
    return name.replace("numpy.", "np.", 1) if name.startswith("numpy.") else name


def _first_active(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    for k, v in enumerate(args):
        if is_active((v,)):
            try:
                names = list(inspect.signature(f).parameters)
                return f"argument `{names[k]}`"
            except (ValueError, TypeError, IndexError):
                return f"argument {k}"
    return next(f"argument `{k}`" for k, v in kwargs.items() if is_active((v,)))


# -- by the type of the callable


def _duck(values: tuple[Any, ...], name: str) -> Any:
    """An argument whose class takes part in a NumPy protocol by a method in Python."""
    for v in values:
        if isinstance(getattr(type(v), name, None), types.FunctionType):
            if not isinstance_dual(v) and not isinstance(v, (Chunk, Zero, Undefined)):
                return v
    return None


def _call_numpy(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    duck = _duck(args, "__array_function__")
    if duck is not None:
        types_ = tuple({type(a) for a in args if hasattr(type(a), "__array_function__")})
        return call(type(duck).__array_function__, duck, f, types_, args, kwargs)
    if SHADOWED:
        args = protocols.all_as_numpy_reads(args)
        kwargs = {k: protocols.as_numpy_reads(v) for k, v in kwargs.items()}
    special = HANDLERS.get(f)
    if special is not None:
        return special(args, kwargs)
    rule = find_rule(f)
    active = is_active((*args, *kwargs.values()))
    if active and numpy_calls.holds_chunk(args):
        return f(*args, **kwargs)
    if not active:
        numpy_calls.log_written(f, args, kwargs)
        if rule is not None or is_inert((*args, *kwargs.values())):
            return f(*args, **kwargs)
    elif rule is not None:
        return numpy_calls.with_out(rule, args, kwargs)
    implementation = getattr(f, "_implementation", None)
    if isinstance(implementation, types.FunctionType):
        lifted = lift(implementation)
        if lifted is not None:
            return lifted(*args, **kwargs)
    if active:
        raise missing_rule(f, args, kwargs)
    return f(*args, **kwargs)


def call_ufunc(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 1 and type(args[0]) is Array and not kwargs:  # the commonest call
        rule = RULES.get(f)
        if rule is not None and rule.kind == "elementwise":
            return apply.apply_to_array(rule, f, args[0])
    duck = _duck(args, "__array_ufunc__")
    if duck is not None:
        return call(type(duck).__array_ufunc__, duck, f, "__call__", *args, **kwargs)
    if SHADOWED:
        args = protocols.all_as_numpy_reads(args)
    return numpy_calls.call_ufunc(f, "__call__", args, kwargs)


def _call_method(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(f.__func__, f.__self__, *args, **kwargs)


def _call_builtin(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    special = HANDLERS.get(f) if _hashable(f) else None
    if special is not None:
        return special(args, kwargs)
    owner = getattr(f, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        if isinstance(owner, np.ufunc):
            if SHADOWED:
                args = protocols.all_as_numpy_reads(args)
            return numpy_calls.call_ufunc(owner, f.__name__, args, kwargs)
        t = type(owner)
        if t is types.GeneratorType:
            return f(*args, **kwargs)
        if t in BY_NAME or isinstance_dual(owner) or t in CONTAINER_METHODS:
            return METHOD[0](owner, f.__name__, *args, **kwargs)
        if f.__name__ == "__reduce_ex__":  # in C it would call the user's __reduce__ unlifted
            return HANDLERS[object.__reduce_ex__]((owner, *args), kwargs)
        if _writes_container(owner) or isinstance(f, types.MethodWrapperType):
            if f.__name__ == "__call__" and isinstance(owner, type):
                return _call_class(owner, args, kwargs, by_metaclass=False)
            return f(*args, **kwargs)
        if isinstance(owner, np.ndarray):
            explicit(owner)  # a subclass cannot carry tangents
            if t is np.memmap:
                return METHOD[0](np.asarray(owner), f.__name__, *args, **kwargs)
            if is_active((*args, *kwargs.values())):
                message = (
                    f"a {t.__name__} cannot carry derivatives: use a plain array, "
                    "numpy.asarray(x), and a['field'] for a field"
                )
                raise UnsupportedTypeError(message)
        if _note_generator(owner):
            _log_drawn_into((*args, *kwargs.values()))
    elif isinstance(f, (types.MethodDescriptorType, types.WrapperDescriptorType)) and args:
        if _writes_container(args[0]):
            return f(*args, **kwargs)
        if f is type.__call__:
            return _call_class(args[0], args[1:], kwargs, by_metaclass=False)
        if f in _TRANSPARENT_SLOTS or isinstance(args[0], BaseException):
            return f(*args, **kwargs)
        if type(args[0]) in BY_NAME or isinstance_dual(args[0]):
            return METHOD[0](args[0], f.__name__, *args[1:], **kwargs)
        if _note_generator(args[0]):
            _log_drawn_into((*args[1:], *kwargs.values()))
    if SHADOWED and getattr(f, "__module__", None) in ("math", "cmath"):
        args = tuple([protocols.as_number(a) for a in args])
    if not is_active((*args, *kwargs.values())):
        if SHADOWED and f is not np.frombuffer:
            _check_buffers(args)
        numpy_calls.log_written(f, args, kwargs)
        return f(*_with_bound_callbacks(f, args), **kwargs)
    if _hashable(f) and f in TRANSPARENT:
        return f(*with_explicit(args), **{k: explicit(v) for k, v in kwargs.items()})
    rule = find_rule(f)
    if rule is None and owner is not None:  # a method in C may have a rule under its class
        rule = find_rule(getattr(type(owner), f.__name__, None))
        args = args if rule is None else (owner, *args)
    if rule is not None:
        return numpy_calls.with_out(rule, args, kwargs)
    raise missing_rule(f, args, kwargs)


BY_NAME = {np.ndarray, np.flatiter, memoryview}
"""Types whose methods are known by their names."""


def _check_buffers(args: tuple[Any, ...]) -> None:
    for a in args:
        if type(a) in protocols.BUFFERS:
            protocols.check_buffer(a)


def _writes_container(o: Any) -> bool:
    """Keep a container, or a subclass of one, whose method in C is about to run."""
    if isinstance(o, _CONTAINERS):
        if STATE.run is not None:
            STATE.run.log.container(o)
        return True
    return False


_CONTAINERS = (list, dict, set, deque, bytearray)

ATTR: list[Callable[..., Any]] = []
METHOD: list[Callable[..., Any]] = []
"""The method hook, which is built on this module."""


def _hashable(f: Any) -> bool:
    try:
        hash(f)
    except TypeError:
        return False
    return True


_GENERATORS = ("numpy.random", "random")


def _note_generator(o: Any) -> bool:
    """Remember the state of a random generator before its first draw."""
    run = STATE.run
    if run is not None and type(o).__module__.startswith(_GENERATORS):
        run.note_generator(o)
        return True
    return False


def _note_draw(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Remember a generator and what it may write, before one of its methods is called."""
    # bound by Python, the generator is the first argument
    if _note_generator(getattr(f, "__self__", None)) or (args and _note_generator(args[0])):
        _log_drawn_into((*args, *kwargs.values()))


def _log_drawn_into(values: tuple[Any, ...]) -> None:
    """Keep what a generator may shuffle or fill."""
    for v in values:
        if type(v) is np.ndarray:
            STATE.run.log.array(v)
        elif isinstance(v, list):
            STATE.run.log.container(v)


def _with_bound_callbacks(f: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """User functions that C code of NumPy and SciPy will call, sent through the dispatcher."""
    module = getattr(f, "__module__", None) or ""
    if STATE.run is None or not (module == "" or module.startswith(("scipy", "numpy"))):
        return args
    if module.startswith("scipy"):  # its solvers, which take no dual for an answer
        return tuple([_callback(a) if type(a) in _FUNCTIONS else a for a in args])
    return tuple([_callback(a) if _is_user_function(a) else a for a in args])


_FUNCTIONS = {types.FunctionType, types.MethodType}


def _is_user_function(a: Any) -> bool:
    if type(a) is types.MethodType:
        a = a.__func__
    return (
        type(a) is types.FunctionType
        and id(a.__code__) not in LIFTED
        and not is_library_file(a.__code__.co_filename)
    )


def _callback(a: Any) -> Any:
    def called_from_c(*args: Any, **kwargs: Any) -> Any:
        value = call(a, *args, **kwargs)
        if is_active((value,)):
            what = "a plain number in the code in C that called it"
            error = DualLeakError(leak(what, _first_dual(value)))
            STATE.run.errors.append(error)  # the code in C may put an error of its own in its place
            raise error
        return value

    return called_from_c


def _first_dual(value: Any) -> Any:
    """A dual to show of a value, which may be a list of them."""
    while type(value) in (list, tuple):
        value = next(v for v in value if is_active((v,)))
    return explicit(value)


def _call_partial(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(f.func, *f.args, *args, **{**f.keywords, **kwargs})


_TRANSPARENT_SLOTS: set[Any] = {object.__init__, object.__getattribute__, object.__init_subclass__}


def _call_class(
    cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, by_metaclass: bool = True
) -> Any:
    special = HANDLERS.get(cls) if _hashable(cls) else None
    if special is not None:
        return special(args, kwargs)
    meta_call = type(cls).__call__
    if by_metaclass and isinstance(meta_call, types.FunctionType):
        return call(meta_call, cls, *args, **kwargs)
    new, init = cls.__new__, cls.__init__
    has_new, has_init = isinstance(new, types.FunctionType), isinstance(init, types.FunctionType)
    if not (has_new or has_init) or issubclass(cls, BaseException):
        if SHADOWED and issubclass(cls, np.number):
            args = tuple([protocols.as_number(protocols.as_numpy_reads(a)) for a in args])
        if issubclass(cls, np.generic) and is_active(args):
            return numpy_calls.call_scalar_type(cls, args)
        if SHADOWED:
            _check_buffers(args)
        return cls(*with_explicit(args), **{k: explicit(v) for k, v in kwargs.items()})
    values = (*args, *kwargs.values())
    module = getattr(init if has_init else new, "__code__", None)
    if module is not None and is_library_file(module.co_filename) and is_inert(values):
        return cls(*args, **kwargs)
    if has_new:
        o = call(new, cls, *args, **kwargs)
    elif new is object.__new__:
        o = object.__new__(cls)
    else:
        o = new(cls, *args, **kwargs)
    if isinstance(o, cls):
        if has_init:
            _initialise(cls, init, o, args, kwargs)
        elif init is not object.__init__:
            init(o, *args, **kwargs)
    return o


def _initialise(
    cls: type, init: Any, o: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Run ``__init__``; a dataclass's is generated, and its ``__post_init__`` is the user's."""
    post = getattr(cls, "__post_init__", None)
    held = getattr(o, "__dict__", None)
    if post is None or not hasattr(cls, "__dataclass_fields__"):
        call(init, o, *args, **kwargs)
        return
    if held is None:
        _initialise_slots(cls, init, post, o, args, kwargs)
        return
    held["__post_init__"] = functools.partial(call, post, o)
    try:
        call(init, o, *args, **kwargs)
    finally:
        held.pop("__post_init__", None)


def _initialise_slots(
    cls: Any, init: Any, post: Any, o: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """A dataclass with slots: its generated ``__init__`` replayed, field by field."""
    bound = inspect.signature(init).bind(o, *args, **kwargs)
    extra = []
    for name, held in cls.__dataclass_fields__.items():
        if held.init and name in bound.arguments:
            value = bound.arguments[name]
        elif held.default_factory is not dataclasses.MISSING:
            value = call(held.default_factory)
        else:
            value = held.default
        if held._field_type is dataclasses._FIELD_INITVAR:  # type: ignore[attr-defined]
            extra.append(value)
        elif held._field_type is dataclasses._FIELD and value is not dataclasses.MISSING:  # type: ignore[attr-defined]
            object.__setattr__(o, name, value)
    call(post, o, *extra)


def _call_cached(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an ``lru_cache``: kept for this derivative call only, or it would keep duals."""
    run = STATE.run
    if run is None:
        return call(f.__wrapped__, *args, **kwargs)
    key = (id(f), _identities(args), _identities(tuple(sorted(kwargs.items()))))
    if key not in run.memo:
        run.memo[key] = (call(f.__wrapped__, *args, **kwargs), f, args, kwargs)
    return run.memo[key][0]


def _identities(values: Any) -> tuple[Any, ...]:
    """A key for cached arguments: a dual is known by its identity, the rest by value."""
    return tuple(
        ("dual", id(v))
        if isinstance_dual(v) or type(v) in OPAQUE
        else _identities(v)
        if type(v) is tuple
        else (type(v), v)
        for v in values
    )


_BY_TYPE: dict[type, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = {
    np.ufunc: call_ufunc,
    _NumpyFunction: _call_numpy,
    types.MethodType: _call_method,
    types.BuiltinFunctionType: _call_builtin,
    types.MethodDescriptorType: _call_builtin,
    types.MethodWrapperType: _call_builtin,
    types.WrapperDescriptorType: _call_builtin,
    types.ClassMethodDescriptorType: _call_builtin,
    functools.partial: _call_partial,
    type: _call_class,
    functools._lru_cache_wrapper: _call_cached,
}


def on_call(cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register how objects of a class are called: ``resolve(f, args, kwargs)``."""

    def register(resolve: Callable[..., Any]) -> Callable[..., Any]:
        _BY_TYPE[cls] = resolve
        return resolve

    return register


def call_object(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call anything else: a class with a metaclass, an object with ``__call__``."""
    if isinstance(f, type):
        return _call_class(f, args, kwargs)
    if _hashable(f):
        special = HANDLERS.get(f)
        if special is not None:
            return special(args, kwargs)
        rule = find_rule(f)
        if rule is not None:
            if is_active((*args, *kwargs.values())):
                return numpy_calls.with_out(rule, args, kwargs)
            _note_draw(f, args, kwargs)
            return f(*args, **kwargs)
    method = getattr(type(f), "__call__", None)  # noqa: B004  (the method itself is wanted)
    by_numba = type(f).__module__.startswith("numba.")
    if by_numba and hasattr(f, "nin"):
        return call_ufunc(f, args, kwargs)
    if isinstance(method, types.FunctionType) and not by_numba:
        if is_library_file(method.__code__.co_filename) and is_inert((f, *args, *kwargs.values())):
            return f(*args, **kwargs)
        return call(method, f, *args, **kwargs)
    if isinstance(f, (staticmethod, classmethod)):
        return call(f.__func__, *args, **kwargs)
    python = python_inside(f)
    if python is not None and not is_inert((*args, *kwargs.values())):
        return call(python, *args, **kwargs)
    _note_draw(f, args, kwargs)
    if type(f) is operator.attrgetter or type(f) is operator.methodcaller:
        return _call_getter(f, *args)
    if type(f) not in _TRANSPARENT_TYPES and is_active((*args, *kwargs.values())):
        raise missing_rule(f, args, kwargs)
    return f(*with_explicit(args), **{k: explicit(v) for k, v in kwargs.items()})


_TRANSPARENT_TYPES = {operator.itemgetter, type(functools.cmp_to_key(max))}


def _call_getter(f: Any, o: Any) -> Any:
    """``operator.attrgetter`` and ``methodcaller`` reach properties and methods of the user's."""
    made, given = f.__reduce__()
    if type(f) is operator.attrgetter:
        found = []
        for dotted in given:
            value = o
            for name in dotted.split("."):
                value = ATTR[0](value, name)
            found.append(value)
        return found[0] if len(found) == 1 else tuple(found)
    options = made.keywords if isinstance(made, functools.partial) else {}
    name, *rest = (*made.args, *given) if isinstance(made, functools.partial) else given
    return METHOD[0](o, name, *rest, **options)


def python_inside(f: Any) -> types.FunctionType | None:
    """The Python function inside a compiled wrapper, such as Numba's dispatcher."""
    if hasattr(f, "nin"):  # that of a ufunc is for one element
        return None
    for name in ("py_func", "__wrapped__"):
        inner = getattr(f, name, None)
        if isinstance(inner, types.FunctionType):
            return inner
    return None


def call_protocol(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function called by code that is not lifted, with a dual among its arguments."""
    return call(f, *args, **kwargs)


opaque.CALL[:] = [call]
protocols.CALL[:] = [call]
apply.set_lifter(lambda body: lift(body) or body if isinstance(body, types.FunctionType) else body)
__all__ = [
    "HANDLERS", "TRANSPARENT", "Array", "Scalar", "bind", "call", "handler", "is_active",
    "python_inside",
]  # fmt: skip
