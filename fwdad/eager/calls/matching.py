"""``match`` in lifted code: what a pattern reads of its subject goes through the hooks.

Python itself reads the attributes that a class pattern names, and so would run a user's property
without the dispatcher. The lifter therefore calls :func:`matches`, with the pattern as data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.eager import hooks
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.lifting.lift import install_hooks
from fwdad.tangents.plain import plain

_SELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes whose one positional sub-pattern is matched by the subject itself."""

_ABSENT = object()


def matches(subject: Any, pattern: tuple[Any, ...]) -> dict[str, Any] | None:
    """The names that one ``case`` binds for a subject; None if its pattern does not match.

    ``pattern`` is its kind and parts, as ``lift.py`` writes them. Expressions in it are functions,
    which are called when the match comes to them.
    """
    bindings: dict[str, Any] = {}
    return bindings if _match(subject, pattern, bindings) else None


def _match(subject: Any, pattern: tuple[Any, ...], bindings: dict[str, Any]) -> bool:
    kind, *parts = pattern
    return _KINDS[kind](subject, bindings, *parts)


def _value(subject: Any, _found: dict[str, Any], value: Callable[[], Any]) -> bool:
    return bool(hooks.COMPARISONS["eq"](subject, value()))


def _singleton(subject: Any, _found: dict[str, Any], value: Any) -> bool:
    return subject is value


def _as(subject: Any, bindings: dict[str, Any], inner: Any, name: str | None) -> bool:
    if inner is not None and not _match(subject, inner, bindings):
        return False
    if name is not None:
        bindings[name] = subject
    return True


def _or(subject: Any, bindings: dict[str, Any], *choices: Any) -> bool:
    for choice in choices:
        bound: dict[str, Any] = {}
        if _match(subject, choice, bound):
            bindings.update(bound)
            return True
    return False


def _sequence(subject: Any, bindings: dict[str, Any], star: int, name: Any, *parts: Any) -> bool:
    # an array is a sequence since NumPy 2.5, and then a dual array is one as well
    match plain(subject) if isinstance_dual(subject) else subject:
        case [*_]:
            pass
        case _:
            return False
    items = list(hooks.iterate(subject))
    if star < 0:
        if len(items) != len(parts):
            return False
        return all(_match(i, part, bindings) for i, part in zip(items, parts, strict=True))
    after = len(parts) - star
    if len(items) < len(parts):
        return False
    middle = items[star : len(items) - after]
    ends = items[:star] + items[len(items) - after :]
    for k, (item, part) in enumerate(zip(ends, parts, strict=True)):
        if k == star and name is not None:
            bindings[name] = middle
        if not _match(item, part, bindings):
            return False
    if name is not None:
        bindings[name] = middle
    return True


def _mapping(
    subject: Any, bindings: dict[str, Any], keys: tuple[Any, ...], parts: tuple[Any, ...], rest: Any
) -> bool:
    match subject:
        case {}:
            pass
        case _:
            return False
    if keys and call(len, subject) < len(keys):
        return False
    seen: list[Any] = []
    values = []
    for key in keys:
        k = key()
        if k in seen:
            message = f"mapping pattern checks duplicate key ({k!r})"
            raise ValueError(message)
        seen.append(k)
    for k in seen:
        value = hooks.method(subject, "get", k, _ABSENT)
        if value is _ABSENT:
            return False
        values.append(value)
    if not all(_match(v, part, bindings) for v, part in zip(values, parts, strict=True)):
        return False
    if rest is not None:
        names = [k for k in hooks.iterate(subject) if k not in seen]
        bindings[rest] = {k: hooks.getitem(subject, k) for k in names}
    return True


def _class(
    subject: Any,
    bindings: dict[str, Any],
    cls: Callable[[], Any],
    positional: tuple[Any, ...],
    names: tuple[str, ...],
    keyword: tuple[Any, ...],
) -> bool:
    kind = cls()
    match subject:
        case kind():  # and Python's own error if it is no class
            pass
        case _:
            return False
    values = []
    seen: list[str] = []
    if positional:
        declared = getattr(kind, "__match_args__", None)
        whole = declared is None and issubclass(kind, _SELF)
        declared = _positional_names(kind, declared, whole, len(positional))
        if whole:
            values.append(subject)
        else:
            seen.extend(declared[: len(positional)])
    seen.extend(names)
    for k, name in enumerate(seen):
        if name in seen[:k]:
            message = f"{kind.__name__}() got multiple sub-patterns for attribute {name!r}"
            raise TypeError(message)
        try:
            values.append(hooks.attr(subject, name))
        except AttributeError:
            return False
    parts = (*positional, *keyword)
    return all(_match(v, part, bindings) for v, part in zip(values, parts, strict=True))


def _positional_names(kind: type, declared: Any, whole: bool, given: int) -> tuple[str, ...]:
    """The names behind positional sub-patterns, checked with Python's own error messages."""
    if declared is None:
        declared = ()
    elif type(declared) is not tuple:
        message = f"{kind.__name__}.__match_args__ must be a tuple (got {type(declared).__name__})"
        raise TypeError(message)
    accepted = 1 if whole else len(declared)
    if given > accepted:
        plural = "" if accepted == 1 else "s"
        message = (
            f"{kind.__name__}() accepts {accepted} positional sub-pattern{plural} ({given} given)"
        )
        raise TypeError(message)
    return declared


_KINDS: dict[str, Callable[..., bool]] = {
    "value": _value,
    "singleton": _singleton,
    "as": _as,
    "or": _or,
    "sequence": _sequence,
    "mapping": _mapping,
    "class": _class,
}


def constantly(value: Any) -> Callable[[], Any]:
    """A function that returns a value that is already known."""
    return lambda: value


install_hooks({"matches": matches, "constantly": constantly})
