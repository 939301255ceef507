"""Builtins that need care with duals: conversions, attributes by name, operators by name."""

from __future__ import annotations

import builtins
import operator
import types
from typing import Any

from fwdad.eager import hooks
from fwdad.eager.activity import is_active
from fwdad.eager.calls import protocols
from fwdad.eager.calls.dispatch import HANDLERS, call, handler
from fwdad.eager.duals import methods
from fwdad.eager.duals.dual import OPAQUE, leak
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.hooks import attributes
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.run import STATE
from fwdad.errors import DualLeakError
from fwdad.ops import functions_with, record_of
from fwdad.tangents.plain import plain

# -- conversions


@handler(float)
def _float(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 1:
        x = explicit(args[0])
        _check_text(x)
        if isinstance_dual(x):
            return _to_float(_as_one_number(x))
        method = getattr(type(x), "__float__", None)
        if isinstance(method, types.FunctionType):
            return call(method, x)
    return float(*args, **kwargs)


def _as_one_number(x: Any) -> Any:
    """A dual as a dual Python number."""
    if not isinstance_dual(x):
        return x
    if type(x) is not Scalar:
        complex(plain(x))  # raises what NumPy raises of an array that is no number
    return methods.call_method(x, "item", (), {})


def _check_text(x: Any) -> None:
    if STATE.run is not None and type(x) in (str, bytes):
        STATE.run.effects.check_text(x)


def _to_float(x: Any) -> Any:
    if type(x) is not Scalar:
        return float(x)
    if isinstance(plain(x), complex):
        message = "can't convert complex to float"
        raise TypeError(message)
    return Scalar(_to_float(x.p), x.terms, x.tag)


@handler(complex)
def _complex(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if SHADOWED:
        args = tuple([protocols.as_number(a) for a in args])
    if not is_active((*args, *kwargs.values())):
        for x in args:
            _check_text(x)
        return complex(*args, **kwargs)
    real = args[0] if args else kwargs.get("real", 0.0)
    imag = args[1] if len(args) > 1 else kwargs.get("imag")
    value = _as_one_number(real) + 0j
    if imag is not None:
        value = value + 1j * _as_one_number(imag)
    return value


@handler(int)
def _int(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args:
        x = explicit(args[0])
        _check_text(x)
        if isinstance_dual(x):
            raise DualLeakError(leak("an int", x))
    return int(*args, **kwargs)


@handler(bool)
def _bool(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return bool(*args)


@handler(id)
def _id(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return id(*args)  # of the array itself, not of the dual that stands for it


@handler(type)
def _type(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 1 and (isinstance_dual(args[0]) or type(args[0]) in OPAQUE):
        return type(plain(args[0]))
    return type(*args, **kwargs)


# -- attributes by name


@handler(getattr)
def _getattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    if len(args) == 3:
        try:
            return hooks.attr(args[0], args[1])
        except AttributeError:
            return args[2]
    return hooks.attr(*args)


@handler(hasattr)
def _hasattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    o, name = args
    o = plain(o) if type(o) in OPAQUE else explicit(o)
    if not isinstance_dual(o):
        return attributes.has_attr(o, name)
    try:
        methods.attribute(o, name)
    except AttributeError:
        return False
    return True


@handler(setattr)
def _setattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    o, name, value = args
    hooks.set_attr(value, o, name)


@handler(delattr)
def _delattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    hooks.del_attr(*args)


@handler(object.__getattribute__)
def _object_getattribute(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return attributes.generic_attr(*args)


@handler(object.__setattr__)
def _object_setattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    o, name, value = args
    attributes.generic_set_attr(value, o, name)


@handler(object.__delattr__)
def _object_delattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    attributes.generic_del_attr(*args)


@handler(property.__get__)
def _property_get(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    held, o = args[:2]
    return property.__get__(*args) if o is None or held.fget is None else call(held.fget, o)


@handler(property.__set__)
def _property_set(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    held, o, value = args
    return property.__set__(*args) if held.fset is None else call(held.fset, o, value)


@handler(property.__delete__)
def _property_delete(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    held, o = args
    return property.__delete__(*args) if held.fdel is None else call(held.fdel, o)


@handler(types.FunctionType.__call__, types.MethodType.__call__, types.BuiltinFunctionType.__call__)
def _call_by_slot(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(*args, **kwargs)


@handler(vars)
def _vars(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    if args and STATE.run is not None:
        STATE.run.log.attributes(args[0])
    return builtins.vars(*args)


# -- the operator module


def _with_args(hook: Any) -> Any:
    return lambda args, _kwargs: hook(*args)


for _function, _hook in hooks.OPERATORS.items():
    HANDLERS[_function] = _with_args(_hook)
HANDLERS[operator.abs] = lambda args, _kwargs: call(abs, *args)
HANDLERS[operator.contains] = lambda args, _kwargs: hooks.contains(args[1], args[0])
HANDLERS[operator.getitem] = lambda args, _kwargs: hooks.getitem(*args)
HANDLERS[operator.setitem] = lambda args, _kwargs: hooks.setitem(args[2], args[0], args[1])
HANDLERS[operator.delitem] = lambda args, _kwargs: hooks.delitem(*args)


# -- builtins that ask the class


def _by_special_method(function: Any, name: str) -> None:
    """Handle a builtin that calls a special method of its argument, which may be the user's."""
    previous = HANDLERS.get(function)

    @handler(function)
    def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = getattr(type(args[0]), name, None) if args else None
        if isinstance(own, types.FunctionType) and not isinstance_dual(args[0]):
            return call(own, *args, **kwargs)
        if previous is not None:
            return previous(args, kwargs)
        return function(*[explicit(a) for a in args], **kwargs)


@handler(reversed)
def _reversed(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    (o,) = args
    o = explicit(o)
    items = protocols.in_python(type(o), "__getitem__") and not hasattr(type(o), "__reversed__")
    if isinstance_dual(o) or items:
        return (hooks.getitem(o, k) for k in range(call(len, o) - 1, -1, -1))
    return reversed(o)


for _function in functions_with(lambda record: bool(record.special_method)):
    _by_special_method(_function, record_of(_function).special_method)
