"""Programs that are refused because a value decides a length, an order or a place in a list."""

import functools
import heapq
import itertools

import numpy as np

from tests.tracing.refused.table import Body, Refused, V

PROGRAMS = refuses = Refused()


# -- lengths that depend on values


@refuses("a list or dict that grows in a loop", 1.0, 100, part="grows or shrinks")
def list_in_a_loop(x, n):
    found = []
    for k in range(n):
        found.append(x * k)  # here
    return found


@refuses("a list or dict that grows on one side of a branch", 3.0, part="grows or shrinks")
def list_on_one_side(x):
    found = [x]
    if x > 1:
        found.append(x)
    return found


@refuses("a list or dict that grows on one side of a branch", 3.0, part="grows or shrinks")
def dict_on_one_side(x):
    found = {}
    if x > 1:
        found["a"] = x
    return found


@refuses("a loop over a list of more than 1280 items", 1.0, part="too large")
def long_list(x):
    total = x
    for k in [2.0] * 1300:  # here
        total += k
    return total


@refuses("comprehensions of which a value decides the length", V, part="depends on values")
def comprehension(a):
    return [x for x in a if x > 1]  # here


@refuses("`filter` by values", V, part="`filter`")
def filtered(a):
    return list(filter(lambda x: x > 1, a))  # here


@refuses("`itertools.takewhile` and the like by values", V, part="takewhile")
def taken(a):
    return list(itertools.takewhile(lambda x: x < 1, a))  # here


@refuses("sets of values", 1.0, part="key of a dict or set")
def set_of_values(x):
    return len({x, 2 * x})  # here


@refuses("dict keys that are values", V, part="computed when the program runs")
def key_by_value(a):
    return {3: a[0]}[int(np.argmax(a))]  # here


@refuses(
    "an item of a list, tuple or dict at a computed place", V, part="computed when the program runs"
)
def item_of_a_list(a):
    return [a[0], a[1], a[2], a[3]][int(np.argmax(a))]  # here


# -- by values


@refuses("`sorted` of arrays, lists or objects by values", V, part="numpy.argsort")
def sorted_rows(a):
    rows = sorted(np.outer(a, a), key=lambda row: row[0])  # here
    return rows[0]


@refuses("`heapq` of values", V, part="numpy.sort")
def heap(a):
    held = []
    for x in (a[0], a[1]):
        heapq.heappush(held, x)  # here
    return held[0]


@refuses("`index`, `count` and `remove` of values in a list", 1.0, part="may be None is compared")
def count_of_what_may_be_none(x):
    y = x if x > 0 else None
    return [y, None].count(None)  # here


@refuses("dict keys that are values", 1.0, part="may be None cannot be a key")
def key_that_may_be_none(x):
    y = x if x > 0 else None
    return len({y: x})  # here


@refuses("`index`, `count` and `remove` of values in a list", V, part="decide a branch")
def place_of_a_value(a):
    return [a[0], a[1]].index(a[1])  # here


@refuses("`index`, `count` and `remove` of values in a list", V, part="decide a branch")
def removed(a):
    held = [a[0], a[1]]
    held.remove(a[1])  # here
    return held


@refuses("`index`, `count` and `remove` of values in a list", V, part="decide a branch")
def counted(a):
    return [a[0], a[1]].count(a[1])  # here


@refuses("`max` and `min` of objects by values", V, part="one Body or another")
def largest_object(a):
    return max(Body(a[0]), Body(a[1]), key=lambda b: b.x).x  # here


@refuses("`functools.cmp_to_key`", V, part="cmp_to_key")
def compared(a):
    places = sorted([2, 1], key=functools.cmp_to_key(lambda j, k: j - k))  # here
    return places[0] * a
