"""Programs that a tape runs otherwise than plain Python: one or more for each item of the page.

An item is named by its first words, those in bold face.
"""

import functools
import math
import warnings

import numpy as np

V = np.array([0.5, 1.25, 2.0])
DIFFERENCES = {}


def differs(item):
    """Enter a program for an item."""

    def enter(f):
        DIFFERENCES.setdefault(item, []).append(f)
        return f

    return enter


@differs("Types widen.")
def widened_before_a_loop(x, n):
    s = 0
    for _ in range(n):
        s = s + x
    return s


@differs("Types widen.")
def widened_answer(x):
    if x > 0:
        return 1
    return x


@differs("Types widen.")
def widened_to_a_number_of_numpy(x, n):
    s = x
    for k in range(n):
        s = s * V[k]
    return 1 / s


@differs("Lists that grow at run time")
def positive_rows(x):
    rows = []
    for row in np.outer(x, x):
        if row[0] > 0:
            rows.append(row)
    return np.array(rows)


@differs("Lists that grow at run time")
def places_and_the_argument(x):
    places, held = [], []
    for k in range(len(x)):
        if x[k] > 0:
            places.append(k)
            held.append(x)
    return np.array(places), held


@differs("Output")
def prints_and_warns(x):
    print("x is", x)
    warnings.warn("about to double", stacklevel=1)
    return 2 * x


@differs("Output")
def errstate_around_a_logarithm(a):
    with np.errstate(all="ignore"):
        return np.sum(np.log(a))


@differs("Output")
def filter_around_a_logarithm(a):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.sum(np.log(a))


@differs("After an exception")
def stores_and_appends_before_it_raises(a, items, k):
    items.append(a[0])
    a[0] = 7.0
    return a[0] * a[k]


@differs("After an exception")
def stores_finally(a, k):
    try:
        return a[k] * 2
    finally:
        a[0] = 7.0


class Marked:
    """Stores when it is left."""

    def __init__(self, a):
        self.a = a

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.a[0] = 7.0


@differs("After an exception")
def stores_at_the_exit(a, k):
    with Marked(a):
        return a[k] * 2


@differs("What nobody needs is not run")
def stores_what_is_not_answered(a, k):
    y = a * 1.0
    y[k] = 1.0
    return np.sum(a**2)


@differs("What nobody needs is not run")
def names_what_is_not_read(a, k):
    element = a[k]  # noqa: F841  (nobody reads it)
    unequal = a + np.ones(k)  # noqa: F841
    return np.sum(a**2)


@differs("What nobody needs is not run")
def only_the_value_needs_it(a, k):
    return np.sum(a**2) + V[k]


@differs("What nobody needs is not run")
def raises_for_its_numbers(a, k):
    y = np.zeros(3)
    if k == 1:
        y[0] = 1 / (a[0] - a[0]).item()
    elif k == 2:
        y[0] = math.sqrt(-(a[0] ** 2))
    else:
        y[0] = np.linalg.inv(a[0] * np.ones((2, 2)))[0, 0]
    return np.sum(a**2)


@differs("Messages")
def says_numbers(x, name):
    if x < 0:
        raise ValueError(f"{name} is {x:.3f}, not at least {0.5:g}")
    if x < 1:
        raise ValueError("{} of {:d}, {x!r}: ".format(name, 3, x=x) + str(x) + " is low")
    if x < 2:
        raise ValueError("%s is %.3f, %d %% of 2" % (name, x, 50))
    return 2 * x


@differs("Messages")
def stores_before_it_raises(a, k):
    a[0] = 7.0
    return a[k]


@differs("Two arguments that share memory")
def writes_one_of_two(a, b):
    a[0] = 5.0
    return 2 * b


@differs("One array in two places of an argument")
def product_of_parts(parts):
    return np.sum(parts[0] * parts[1])


TABLE = np.array([2.0])


@functools.cache
def from_table(k):
    return TABLE[0] * k


@differs("What `functools.lru_cache` keeps")
def cached_from_a_table(a):
    return a[0] * from_table(3.0)


@differs("Values that had to be known")
def along_an_axis(a, axis):
    return np.sum(np.sum(a**2, axis=axis)[:1])


@differs("NaN among what is sorted")
def middle_of_three(x, y, z):
    return sorted([x, y, z])[1]
