"""Records among the arguments: dataclasses and the like, whose fields are values of their own."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from fwdad.errors import UnsupportedTypeError, with_article
from fwdad.reversible.arguments.kinds import Exact, Kind, Record, is_value, kind_of
from fwdad.reversible.containers.container import may_grow
from fwdad.reversible.numbers.grid import exact_number


def leaf_kinds(kind: Kind) -> list[Kind]:
    """The kinds of a parameter's variables: its own, or those of its fields."""
    if not isinstance(kind, Record):
        return [kind]
    return [leaf for _, k in kind.fields for leaf in leaf_kinds(k)]


def flat_kinds(kinds: tuple[Kind, ...]) -> list[Kind]:
    """The kinds of values that generated code takes."""
    leaves = [k for kind in kinds for k in leaf_kinds(kind)]
    return [k for k in leaves if is_value(k)]


def flat_values(args: tuple[Any, ...], kinds: tuple[Kind, ...]) -> list[Any]:
    """The values that generated code takes."""
    values: list[Any] = []
    for a, k in zip(args, kinds, strict=True):
        if isinstance(k, Record):
            inner = tuple(getattr(a, name) for name, _ in k.fields)
            values.extend(flat_values(inner, tuple(kind for _, kind in k.fields)))
        elif isinstance(k, Exact):
            values.append(a.stored)
        elif is_value(k):
            values.append(a)
    return values


def rebuilt(args: tuple[Any, ...], kinds: tuple[Kind, ...], values: Iterator[Any]) -> list[Any]:
    """Arguments with new values, in the order of :func:`flat_values`."""
    new_args: list[Any] = []
    for a, k in zip(args, kinds, strict=True):
        if isinstance(k, Record):
            inner = tuple(getattr(a, name) for name, _ in k.fields)
            new = rebuilt(inner, tuple(kind for _, kind in k.fields), values)
            new_args.append(_with_fields(a, k, new))
        elif not is_value(k):
            new_args.append(a)
        elif isinstance(k, Exact):
            new_args.append(exact_number(k.cls, next(values), k.format))
        else:
            new_args.append(next(values))
    return new_args


def updated_in_place(
    args: tuple[Any, ...], kinds: tuple[Kind, ...], values: Iterator[Any]
) -> list[Any]:
    """Arguments whose objects have the new values; arrays have already been updated."""
    new_args: list[Any] = []
    for a, k in zip(args, kinds, strict=True):
        if not isinstance(k, Record):
            new_args += rebuilt((a,), (k,), values)
            continue
        inner = tuple(getattr(a, name) for name, _ in k.fields)
        new = updated_in_place(inner, tuple(kind for _, kind in k.fields), values)
        for (name, kind), value, before in zip(k.fields, new, inner, strict=True):
            is_number = is_value(kind) and not isinstance(kind, Record) and not kind.is_array
            if is_number and value is not before and not isinstance(a, tuple):
                setattr(a, name, value)
        new_args.append(a)
    return new_args


def with_room(args: tuple[Any, ...], *, inplace: bool) -> tuple[Any, ...] | None:
    """Arguments with more room in the containers that may grow; None if there are none.

    With ``inplace`` the arguments themselves are changed and returned.
    """
    grown = [_with_room(a, inplace) for a in args]
    if all(new is None for new in grown):
        return None
    return tuple(a if new is None else new for a, new in zip(args, grown, strict=True))


def _with_room(a: Any, inplace: bool) -> Any:
    if may_grow(a):
        container = a if inplace else copy.copy(a)
        container.make_room()
        return container
    kind = kind_of(a)
    if not isinstance(kind, Record):
        return None
    inner = tuple(getattr(a, name) for name, _ in kind.fields)
    new = with_room(inner, inplace=inplace)
    if new is None:
        return None
    return a if inplace else _with_fields(a, kind, list(new))


def check_mutable(args: tuple[Any, ...], kinds: tuple[Kind, ...], updated: set[int]) -> None:
    """Raise if a number is updated that is a field of an object that cannot be changed."""
    for a, kind, numbers in _records(args, kinds):
        options = getattr(kind.cls, "__dataclass_params__", None)
        frozen = options is not None and options.frozen
        if numbers & updated and (frozen or isinstance(a, tuple)):
            message = (
                "inplace=True cannot update the numbers of "
                f"{with_article(kind.cls.__name__)}, which cannot be "
                "changed: use what the function returns"
            )
            raise UnsupportedTypeError(message)


def shared_records(args: tuple[Any, ...], kinds: tuple[Kind, ...], updated: set[int]) -> bool:
    """Whether one object occurs at two places, and a number of it is updated."""
    seen: dict[int, bool] = {}
    for a, _, numbers in _records(args, kinds):
        changes = bool(numbers & updated)
        if id(a) in seen and (changes or seen[id(a)]):
            return True
        seen[id(a)] = changes
    return False


def _records(
    args: tuple[Any, ...], kinds: tuple[Kind, ...], at: int = 0
) -> Iterator[tuple[Any, Record, set[int]]]:
    """Every record, its kind, and where its own numbers stand among the values."""
    for a, kind in zip(args, kinds, strict=True):
        leaves = [k for k in leaf_kinds(kind) if is_value(k)]
        if isinstance(kind, Record):
            numbers, here = set(), at
            for _, k in kind.fields:
                field_leaves = [leaf for leaf in leaf_kinds(k) if is_value(leaf)]
                if field_leaves == [k] and not k.is_array:
                    numbers.add(here)
                here += len(field_leaves)
            yield a, kind, numbers
            inner = tuple(getattr(a, name) for name, _ in kind.fields)
            yield from _records(inner, tuple(k for _, k in kind.fields), at)
        at += len(leaves)


def _with_fields(a: Any, kind: Record, new: list[Any]) -> Any:
    by_name = dict(zip((name for name, _ in kind.fields), new, strict=True))
    if isinstance(a, tuple):
        return a._replace(**by_name)  # type: ignore[attr-defined]
    record = copy.copy(a)
    for name, value in by_name.items():
        object.__setattr__(record, name, value)
    return record
