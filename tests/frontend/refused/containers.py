"""Programs that are refused because a value decides a length, an order or a place in a list."""

import functools
import heapq
import itertools

import numpy as np

import fwdad
from tests.frontend.refused.table import Body, Refused, V

PROGRAMS = refuses = Refused()


# -- lengths that depend on values


@refuses("a list among the arguments that grows in a loop", [1.0], 100, part="grows or shrinks")
def list_in_a_loop(found, n):
    for k in range(n):
        found.append(k)  # here
    return found[0]


@refuses("a dict that grows in a loop", 1.0, 100, part="is needed at trace time")
def dict_in_a_loop(x, n):
    found = {}
    for k in range(n):
        found[k] = x * k  # here
    return found[0]


@refuses("a dict that grows on one side of a branch", 3.0, part="grows or shrinks")
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


@refuses("dict and set comprehensions of which a value decides the length", V, part="depends on")
def comprehension(a):
    return {k: x for k, x in enumerate(a) if x > 1}  # here


@refuses("list comprehensions like that, used as no array can be", V, part="depends on values")
def list_comprehension(a):
    items = [x for x in a if x > 1]  # here
    items.sort(reverse=True)
    return items


@refuses("`filter` by values", V, part="`filter`")
def filtered(a):
    return list(filter(lambda x: x > 1, a))  # here


@refuses("`itertools.takewhile` and the like by values", V, part="takewhile")
def taken(a):
    return list(itertools.takewhile(lambda x: x < 1, a))  # here


@refuses("sets of values", 1.0, part="key of a dict or set")
def set_of_values(x):
    return len({x, 2 * x})  # here


@refuses("dict keys that are values", V, part="computed at run time")
def key_by_value(a):
    return {3: a[0]}[int(np.argmax(a))]  # here


_PLACE = "an item at a computed place of a dict, or of a list or tuple of other things than numbers of one type"


@refuses(_PLACE, V, part="computed at run time")
def item_of_a_dict(a):
    return {0: a[0], 1: a[1], 2: a[2], 3: a[3]}[int(np.argmax(a))]  # here


@refuses(_PLACE, V, part="computed at run time")
def item_of_a_list(a):
    return [a[0], 1.0, a[:2], a[3]][int(np.argmax(a))]  # here


# -- lists that grow at run time

_ITEMS = "in a list that grows at run time: items that are neither numbers, arrays, tuples of these nor lists of numbers"
_TUPLES = "tuples of several lengths or classes"
_LENGTHS = "arrays of different lengths, or of a length that is unknown after the loop"
_SLICES = "of such a list: `out[i:j] = v` and `del out[i:j]`"
_SORT = "`sort` of tuples or arrays"
_OPERATORS = "`+` with a list of other things than numbers of its type"
_ANSWERED = "a derivative of a function that returns such a list"


@refuses(_ITEMS, V, part="lists of lists as items")
def lists_of_lists_on_a_list(a):
    out = []
    for x in a:
        out.append([[x, x * x]])  # here
    return out[0][0][0]


@refuses(_ITEMS, V, part="None as an item")
def nothing_in_a_tuple(a):
    out = []
    for x in a:
        out.append((x, None))  # here
    return out[0][0]


@refuses(_TUPLES, V, part="a tuple of 3 beside a tuple of 2")
def tuples_of_two_lengths(a):
    out = []
    for x in a:
        out.append((x, x * x))
        out.append((x, x, x))  # here
    return out[0][0]


@refuses(_TUPLES, V, part="beside a tuple of 2")
def numbers_and_tuples(a):
    out = [(a[0], 1.0)]
    for x in a:
        out.append(x)  # here
    return out[0][0]


@refuses(_ITEMS, V, part="items of different types")
def kinds_on_a_list(a):
    out = []
    for x in a:
        out.append(x)
        out.append(a * x)  # here
    return out[0]


@refuses(_LENGTHS, V, part="whose length is unknown")
def views_on_a_list(a):
    out = []
    for k in range(len(a)):
        out.append(a[:k])
    return np.concatenate(out)  # here


@refuses(_LENGTHS, V, part="may differ in shape")
def arrays_of_two_lengths(a):
    out = []
    for _ in range(len(a)):
        out.append(a)
        out.append(np.concatenate((a, a)))
    return np.concatenate(out)  # here


@refuses(_SLICES, V, part="changing a slice")
def set_slice(a):
    out = []
    for x in a:
        out.append(x)
    out[:2] = [1.0]  # here
    return out[0]


@refuses(_SLICES, V, part="`del` of a slice")
def deleted_slice(a):
    out = []
    for x in a:
        out.append(x)
    del out[1:]  # here
    return out[0]


@refuses(_SORT, V, part="`sort` of tuples")
def pairs_sorted(a):
    out = []
    for x in a:
        out.append((x, 1.0))
    out.sort()  # here
    return out[0][0]


@refuses(_SORT, V, part="`sort` of arrays")
def arrays_sorted(a):
    out = []
    for x in a:
        out.append(a[:1] * x)
    out.sort()  # here
    return out[0]


@refuses("copies and slices of one that may hold None", V, part="computed at run time")
def copied_with_none(a):
    out = [None] * 100
    for k in range(len(a) * 20):
        out[k] = a[0] * k  # here
    return out.copy()[3]


@refuses(_OPERATORS, V, part="`add` of lists of different types")
def added(a):
    out = []
    for x in a:
        out.append(x)
    return len([1] + out)  # here


@refuses("an array that is appended to such a list and written afterwards", V, part="append a copy")
def written_on_a_list(a):
    y = a * 1.0
    out = []
    for x in a:
        y *= x
        out.append(y)  # here
    return np.array(out)


@refuses("an item of such a list that is an array and is written", V, part="is written")
def written_item(a):
    out = []
    for x in a:
        out.append(a * x)
    out[0][1] = 7.0  # here
    return np.array(out)


@refuses(
    "appending to such a list from outside in a function that is differentiated",
    V,
    part="differentiated function that appends",
)
def appended_by_a_derivative(a):
    out = []
    for x in a:
        out.append(x)

    def f(w):
        out.append(w[0])  # here
        return np.sum(w * w)

    return fwdad.jacobian(f, a)


@refuses(_ANSWERED, V, part="returning, in a differentiated function")
def answered_by_a_derivative(a):
    def f(w):
        out = []
        for x in w:
            if x > 0:
                out.append(x * x)
        return out

    return fwdad.jacobian(f, a)  # here


# -- by values


@refuses("`sorted` of arrays, lists or objects by values", V, part="numpy.argsort")
def sorted_rows(a):
    rows = sorted(np.outer(a, a), key=lambda row: row[0])  # here
    return rows[0]


@refuses("`heapq` of values beside texts, objects or arrays", V, part="numpy.sort")
def heap(a):
    held = []
    for x in (a[0], a[1]):
        heapq.heappush(held, (x, "a text"))  # here
    return held[0][0]


@refuses("`index`, `count` and `remove` of values in a list", 1.0, part="may be None is compared")
def count_of_what_may_be_none(x):
    y = x if x > 0 else None
    return [y, None].count(None)  # here


@refuses("dict keys that are values", 1.0, part="at trace time")
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


@refuses("`max` and `min` of objects by values", V, part="which Body it is")
def largest_object(a):
    return max(Body(a[0]), Body(a[1]), key=lambda b: b.x).x  # here


@refuses("`functools.cmp_to_key`", V, part="cmp_to_key")
def compared(a):
    places = sorted([2, 1], key=functools.cmp_to_key(lambda j, k: j - k))  # here
    return places[0] * a


@refuses("adding an item in a loop over it", V, part="in a loop over it")
def grown_while_read(a):
    held, s = [a[0]], 0.0
    for x in held:  # here
        if x > 0.1:
            held.append(x * 0.5)
        s = s + x
    return s


@refuses("adding an item in a loop over it", V, part="in a loop over it")
def grown_while_enumerated(a):
    held, s = [(a[0], 0), (a[1], 0)], 0.0
    for k, (x, depth) in enumerate(held):  # here
        if x > 0.1 and depth < 3:
            held.append((x * 0.5, depth + 1))
        s = s + x * k
    return s
