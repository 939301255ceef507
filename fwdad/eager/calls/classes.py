"""Calls of classes: ``__new__`` and ``__init__`` in Python are lifted, those of dataclasses too."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.eager.calls import effectful, numpy_calls, protocols
from fwdad.eager.calls.dispatch import HANDLERS, call, is_hashable, on_call, passes_by
from fwdad.eager.calls.missing import missing_rule
from fwdad.eager.duals.explicit import explicit, with_explicit
from fwdad.eager.memory.reach import check_reach, holds_state
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.errors import is_library_file
from fwdad.tangents.namespaces import namespace_of


@on_call(type)
def call_class(
    cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, by_metaclass: bool = True
) -> Any:
    """Make an instance; ``by_metaclass`` is False inside the metaclass's own ``__call__``."""
    special = HANDLERS.get(cls) if is_hashable(cls) else None
    if special is not None:
        return special(args, kwargs)
    if effectful.puts_out(cls):
        return effectful.effect(cls, args, kwargs)
    if effectful.drives_coroutines(cls):
        return cls(*args, **kwargs)
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
            protocols.check_buffers(args)
        if holds_state(cls):
            if is_active((*args, *kwargs.values())):
                raise missing_rule(cls, args, kwargs)
            if SHADOWED:
                check_reach(cls, (*args, *kwargs.values()))
        return cls(*with_explicit(args), **{k: explicit(v) for k, v in kwargs.items()})
    values = (*args, *kwargs.values())
    module = getattr(init if has_init else new, "__code__", None)
    filename = "" if module is None else module.co_filename
    if is_library_file(filename) and passes_by(filename, values):
        return cls(*args, **kwargs)
    if has_new:
        o = call(new, cls, *args, **kwargs)
    elif new is object.__new__:
        o = object.__new__(cls)
    else:
        o = new(cls, *args, **kwargs)
    if isinstance(o, cls):
        if type(o) is not cls and issubclass(type(o), cls):  # __new__ has made a subclass's
            cls, init = type(o), type(o).__init__
            has_init = isinstance(init, types.FunctionType)
        if has_init:
            _initialise(cls, init, o, args, kwargs)
        elif init is not object.__init__:
            init(o, *args, **kwargs)
    return o


def _initialise(
    cls: type, init: Any, o: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Run ``__init__``; if a dataclass generated it, its ``__post_init__`` is still the user's."""
    post = getattr(cls, "__post_init__", None)
    attributes = namespace_of(o)
    generated = hasattr(cls, "__dataclass_fields__")
    if post is None or not generated or "__post_init__" not in init.__code__.co_names:
        call(init, o, *args, **kwargs)
        return
    if attributes is None:
        _initialise_slots(cls, init, post, o, args, kwargs)
        return
    attributes["__post_init__"] = functools.partial(call, post, o)
    try:
        call(init, o, *args, **kwargs)
    finally:
        attributes.pop("__post_init__", None)


def _initialise_slots(
    cls: Any, init: Any, post: Any, o: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Replay the generated ``__init__`` of a dataclass with slots, field by field."""
    bound = inspect.signature(init).bind(o, *args, **kwargs)
    bound.apply_defaults()
    extra = []
    for name, field in cls.__dataclass_fields__.items():
        value = bound.arguments.get(name, field.default) if field.init else field.default
        made = not field.init or value is dataclasses._HAS_DEFAULT_FACTORY  # type: ignore[attr-defined]
        if made and field.default_factory is not dataclasses.MISSING:
            value = call(field.default_factory)
        if field._field_type is dataclasses._FIELD_INITVAR:  # type: ignore[attr-defined]
            extra.append(value)
        elif field._field_type is dataclasses._FIELD and value is not dataclasses.MISSING:  # type: ignore[attr-defined]
            object.__setattr__(o, name, value)
    call(post, o, *extra)
