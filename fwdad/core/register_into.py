"""A decorator that enters functions into tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from typing import Any


def enter_into(
    table: MutableMapping[Any, Any], keys: Iterable[Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function to enter it into a table under each of some keys."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        table.update(dict.fromkeys(keys, function))
        return function

    return enter
