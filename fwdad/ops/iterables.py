"""Python's functions that read iterables, call functions or change lists, all of them in C."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import operator
from collections import deque
from typing import Any

from fwdad.ops.parameters import Parameters, Result, Role
from fwdad.ops.record import Memory, op

ITEMS, OPTION, VALUE, LIST = Role.ITEMS, Role.OPTION, Role.VALUE, Role.LIST
FUNCTION, TEST, KEY = Role.FUNCTION, Role.TEST, Role.KEY
LAZY, ITERATOR = Result.LAZY, Result.ITERATOR


def _takes(
    *functions: Any,
    others: Role = VALUE,
    result: Result = Result.VALUE,
    default: Any = None,
    **named: Role,
) -> None:
    parameters = Parameters(named, others, result, default)
    op(*functions, memory=Memory.UNKNOWN, parameters=parameters)


# -- iterators, which read an item when they are asked for one
_takes(zip, itertools.chain, itertools.zip_longest, others=ITEMS, result=LAZY)
_takes(itertools.cycle, itertools.pairwise, iterable=ITEMS, result=LAZY)
_takes(enumerate, iterable=ITEMS, start=VALUE, result=LAZY)
_takes(itertools.islice, iterable=ITEMS, others=OPTION, result=LAZY)
_takes(itertools.tee, iterable=ITEMS, n=OPTION, result=LAZY)
_takes(itertools.chain.from_iterable, iterable=Role.ROWS, result=LAZY)
_takes(itertools.compress, data=ITEMS, selectors=Role.TRUTHS, result=LAZY)
if hasattr(itertools, "batched"):
    _takes(itertools.batched, iterable=ITEMS, n=OPTION, result=LAZY)

# -- the same, with a function
_takes(map, function=FUNCTION, others=ITEMS, result=LAZY)
_takes(itertools.starmap, function=FUNCTION, iterable=Role.ROWS, result=LAZY)
_takes(filter, itertools.filterfalse, function=TEST, iterable=ITEMS, result=LAZY)
_takes(itertools.takewhile, itertools.dropwhile, predicate=TEST, iterable=ITEMS, result=LAZY)
_takes(itertools.groupby, iterable=ITEMS, key=KEY, result=LAZY)
_takes(
    itertools.accumulate, iterable=ITEMS, func=FUNCTION, initial=VALUE,
    default=operator.add, result=LAZY,
)  # fmt: skip

# -- all items are read at once
_takes(itertools.product, others=ITEMS, result=ITERATOR)
_takes(
    itertools.combinations, itertools.combinations_with_replacement, itertools.permutations,
    iterable=ITEMS, r=OPTION, result=ITERATOR,
)  # fmt: skip
_takes(list, tuple, set, frozenset, any, all, iterable=ITEMS)
_takes(deque, iterable=ITEMS, maxlen=OPTION)
_takes(dict.fromkeys, iterable=ITEMS, value=VALUE)
_takes(tuple.__new__, frozenset.__new__, cls=VALUE, iterable=ITEMS)
_takes(list.__init__, self=VALUE, iterable=ITEMS)
_takes(functools.reduce, function=FUNCTION, iterable=ITEMS, initial=VALUE)
_takes(sorted, iterable=ITEMS, key=FUNCTION, reverse=OPTION)
_takes(heapq.nlargest, heapq.nsmallest, n=OPTION, iterable=ITEMS, key=FUNCTION)

# -- lists are changed
_takes(heapq.heapify, heapq.heappop, heap=LIST)
_takes(heapq.heappush, heapq.heappushpop, heapq.heapreplace, heap=LIST, item=VALUE)
_takes(bisect.insort_left, bisect.insort_right, a=LIST, x=VALUE, lo=OPTION, hi=OPTION, key=FUNCTION)

_takes(functools.cmp_to_key, mycmp=FUNCTION)
