"""Duals of values whose tangents have a class of their own: only frules look inside.

Such a value has no parts through which its derivative could be followed. Its methods and operators
are called with the dual, and find their frules; reading its attributes without one raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, NoReturn

from fwdad.core.operators import COMPARISONS
from fwdad.eager.duals.dual import OPAQUE, Dual, check_alive
from fwdad.eager.lifting.why_missing import why_missing
from fwdad.eager.run import Tag
from fwdad.errors import ChunkMismatchError, MissingRuleError, with_article
from fwdad.rules.core.registry import Rule
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN


class Opaque(Dual):
    """The dual of a value whose tangents have a class of their own: ``t`` is a chunk of objects.

    Each class of such values has a subclass of this one, with the special methods that it has. The
    attributes ``p`` (a dual if derivatives are nested), ``t`` and ``tag`` are for the builder:
    lifted code sees those of the value.
    """

    __slots__ = ("p", "t", "tag")

    def __init__(self, p: Any, t: Any, tag: Tag) -> None:
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "t", t)
        object.__setattr__(self, "tag", tag)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # NumPy and copy look up methods that the class does not have
            message = f"{_name(self)!r} object has no attribute {name!r}"
            raise AttributeError(message)
        value = attribute(self, name)
        # code that is not lifted would call the method's function past its frule
        return functools.partial(self.tag.call, value) if isinstance(value, MethodType) else value

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        refuse_write(self, name)

    def __delattr__(self, name: str) -> NoReturn:
        refuse_write(self, name)

    def __copy__(self) -> Opaque:
        return self

    def __deepcopy__(self, _memo: Any) -> Opaque:
        return self

    def __hash__(self) -> int:
        # as a key it would find what was stored under an equal value with another tangent
        message = (
            f"unhashable: {with_article(_name(self))} that carries a derivative. Use "
            "fwdad.stop_gradient(x) to look up its value"
        )
        raise TypeError(message)


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(a: Any, b: Any) -> Any:
        check_alive(a.tag)
        return compare(plain(a), plain(b))

    return method


for _compare in COMPARISONS:
    setattr(Opaque, _compare.method, _comparison(_compare.function))


def _through(name: str) -> Callable[..., Any]:
    """A special method that calls that of the value's class through the dispatcher."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.tag.call(getattr(type(plain(self)), name), self, *args, **kwargs)

    return method


# the results of these carry no derivatives
_BY_VALUE: dict[str, Callable[..., Any]] = {
    "__len__": lambda self: len(plain(self)),
    "__contains__": lambda self, item: plain(item) in plain(self),
}

_MADE: dict[type, type[Opaque]] = {}


def _dual_class(cls: type) -> type[Opaque]:
    dual_class = _MADE.get(cls)
    if dual_class is None:
        methods: dict[str, Any] = {"__slots__": (), "__module__": cls.__module__}
        for name in set(dir(cls)) - set(dir(Opaque)):
            if name.startswith("__") and name.endswith("__"):
                if isinstance(getattr(cls, name, None), FunctionType):
                    methods[name] = _BY_VALUE.get(name) or _through(name)
        methods.setdefault("__array_ufunc__", None)  # NumPy's arrays leave operators to the class
        dual_class = _MADE.setdefault(cls, type(cls.__name__, (Opaque,), methods))
        OPAQUE.add(dual_class)
    return dual_class


def make_opaque(x: Any, x_dot: Any, tag: Tag, what: str) -> Opaque:
    """A dual of a value whose tangents have a class of their own; ``what`` made its tangent.

    ``ChunkMismatchError`` if the lanes are not of that class, or their number is wrong.
    """
    cls = type(plain(x))
    wanted = OWN[cls].tangent
    lanes = x_dot.lanes
    if x_dot.n != tag.n or x_dot.shape != () or any(type(t) is not wanted for t in lanes):
        message = (
            f"{what} returns {x_dot!r} of {plain(lanes).dtype} as the tangent of "
            f"{with_article(cls.__name__)}; expected {tag.n} lanes, each "
            f"{with_article(wanted.__name__)}"
        )
        raise ChunkMismatchError(message)
    return _dual_class(cls)(x, x_dot, tag)


def attribute(o: Any, name: str) -> Any:
    """``o.name``: a method, property or class attribute; the instance's own would lose tangents."""
    check_alive(o.tag)
    value = plain(o)
    cls = type(value)
    if name == "__class__":
        return cls
    attributes = namespace_of(value) or {}
    for base in cls.__mro__:
        if name in base.__dict__:
            member = base.__dict__[name]
            if isinstance(member, property) and member.fget is not None:
                return o.tag.call(member.fget, o)
            if name in attributes:
                break
            if isinstance(member, FunctionType):
                return MethodType(member, o)
            if isinstance(member, (staticmethod, classmethod)) or not hasattr(member, "__get__"):
                return getattr(cls, name)
            break
    if not hasattr(value, name):
        message = f"{cls.__name__!r} object has no attribute {name!r}"
        raise AttributeError(message)
    message = (
        f"the attribute {name!r} of {with_article(cls.__name__)}, whose tangents have a class of "
        "their own, would lose the derivative: write an frule for the function that reads it"
    )
    raise MissingRuleError(message)


def refuse_write(o: Any, name: str) -> NoReturn:
    """Raise for ``o.name = value`` and ``del o.name``."""
    message = (
        f"the attribute {name!r} of {with_article(_name(o))} that carries a derivative is "
        "assigned, which would leave the tangent as it was: create a new instance instead, in a "
        "function with an frule"
    )
    raise MissingRuleError(message)


def check_rule(rule: Rule, primals: tuple[Any, ...]) -> None:
    """Refuse rules of NumPy's functions, and rules that write, for values of such classes."""
    for k, x in enumerate(primals):
        if type(x) not in OPAQUE:
            continue
        module = getattr(rule.function, "__module__", None) or "numpy"
        if module.startswith(("numpy", "scipy", "math", "builtins")):
            message = (
                f"{rule.name} got {with_article(_name(x))}, whose tangents have a class of their "
                "own: write an frule for the function that turns it into numbers or arrays"
            )
            raise MissingRuleError(message)
        if k in rule.mutates:
            message = (
                f"the frule of {rule.name} writes into {with_article(_name(x))}, whose tangents "
                "have a class of their own, but a rule can write into arrays only. Return a new "
                "instance"
            )
            raise MissingRuleError(message)


def check_sourceless(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse code that cannot be lifted where it could read the builder's own attributes."""
    for x in (*args, *kwargs.values()):
        if type(x) not in OPAQUE:
            continue
        taken = [name for name in Opaque.__slots__ if hasattr(plain(x), name)]
        if taken:
            message = (
                f"{f!r} has no source that can be read: {why_missing(f)}. It got "
                f"{with_article(_name(x))} that carries a derivative: it might read the "
                f"attribute {taken[0]!r}. Alternatively, write an frule for it"
            )
            raise MissingRuleError(message)


def _name(o: Any) -> str:
    return type(plain(o)).__name__
