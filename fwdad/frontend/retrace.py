"""Restarts of a trace that meets a function or list which must be written in another way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from fwdad.core.recursion_limit import HigherLimit
from fwdad.errors import UntraceableError
from fwdad.frontend.calls.recursion import InlineFound, RecursionFound
from fwdad.frontend.syntax.control import NotOneBodyError
from fwdad.frontend.syntax.early_ends import InTurnFound
from fwdad.frontend.syntax.growing_lists.items import ONE_BODY, ListGrows, root
from fwdad.frontend.syntax.growing_lists.making import fill_one_by_one
from fwdad.frontend.ways import LoopFollowedError, Places, WayNeededError

_OFTEN = 16  # a list's items have as many wider types, and some
_FEW_WAYS = 6  # branches, each a new trace: then the example is followed everywhere


def until_traced(attempt: Callable[[dict[Any, Any], dict[Any, Any], Places], Any]) -> Any:
    """The result of an attempt, repeated until it knows all recursion and all growing lists.

    And all branches at which it must follow the example, and all comprehensions that must be traced
    item by item.
    """
    recursive: dict[Any, Any] = {}
    lists: dict[Any, Any] = {}
    while True:
        try:
            return _until_known(attempt, recursive, lists)
        except UntraceableError:
            if not fill_one_by_one(lists):
                raise


def _until_known(attempt: Any, recursive: dict[Any, Any], lists: dict[Any, Any]) -> Any:
    ways, again = Places(), Counter[Any]()
    while True:
        try:
            with HigherLimit() as raised, raised:
                return attempt(recursive, lists, ways)
        except WayNeededError as found:
            ways.add(found.place)
            ways.refusals[found.place] = found.refusal
            ways.all = len(ways.of_branches) > _FEW_WAYS
        except LoopFollowedError as found:  # it is too long, or its length unknown
            raise found.refusal from None
        except (NotOneBodyError, ListGrows) as error:
            key, known = error.found
            again[key] += 1
            if error.place is None or (key in lists and known is None):
                raise
            if again[key] > _OFTEN:
                raise UntraceableError("a list has other items in each trace") from error
            lists[key] = known
            lists.setdefault((root(error.place), "how"), ONE_BODY)
        except InTurnFound as error:
            lists[error.place] = error
        except RecursionFound as found:
            if id(found.key) in recursive:
                raise UntraceableError("calls are nested too deeply to be traced") from found
            recursive[id(found.key)] = found.key
        except InlineFound as found:
            recursive[tuple(map(id, found.keys))] = found.keys
        except RecursionError as error:  # ours: what known code raises arrives as `AlwaysRaises`
            raise UntraceableError(
                "calls, or attributes that ask for each other, are nested too deeply to be traced"
            ) from error
