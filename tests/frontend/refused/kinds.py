"""Programs that are refused because a name may be things of different kinds."""

import numpy as np

from tests.frontend.refused.table import Body, Refused, V

PROGRAMS = refuses = Refused()

_ONE_OF_TWO = (
    "a name that is one dict or object, or one list of other things than numbers or of a length "
    "that changes, on one path and another on another path, where both are seen elsewhere"
)
_KINDS = "a name that has values of different kinds (a float or a tuple, rank 1 or rank 2)"


@refuses(_ONE_OF_TWO, 1.0, part="which list it is")
def one_of_two_lists(x):
    a, b = [x], [2.0]
    c = a if x > 0 else b
    c.append(5.0)  # here
    return a, b


@refuses(_ONE_OF_TWO, 1.0, part="which Body it is")
def one_of_two_objects(x):
    a, b = Body(x), Body(2.0)
    c = a if x > 0 else b
    c.x = 5.0  # here
    return a.x, b.x


@refuses(_KINDS, 1.0, part="on one path")
def a_float_or_a_tuple(x):
    y = x if x > 0 else (x, x)
    return y * 2  # here


@refuses(_KINDS, 1.0, part="a str on one path and another one on the other")
def one_of_two_texts(x):
    key = "small" if x < 1 else "large"
    return {"small": x * x, "large": 2 * x}[key]  # here


@refuses(_KINDS, V, 3, part="on one path")
def another_rank(a, n):
    for _ in range(n):
        a = a[None]  # here
    return a.sum()


@refuses(
    "arithmetic with a name that is a number of a small type (`uint8`, `int32`, `float16`) on one "
    "path and of another type on another (`b = 0`, then `b = x[i]`), if its result is of another "
    "dtype",
    V,
    part="NumPy's uint8 and Python's int",
)
def wraps_around_on_one_path(a):
    largest = 0
    for v in a.astype(np.uint8):
        largest = max(largest, v)
    return largest - 1  # here


@refuses("`is` between two ints, or arrays, that may be one object", 1, 2, part="use `==`")
def identity(x, y):
    return (x + 1) is y  # here


@refuses("`id`, `hash` and `dir` of values", 1.0, part="hash")
def hash_of_a_value(x):
    return hash(x)  # here


@refuses("`id`, `hash` and `dir` of values", V, part="id has no rule")
def id_of_a_value(a):
    return float(id(a) > 0)  # here


@refuses("`id`, `hash` and `dir` of values", V, part="dir has no rule")
def dir_of_a_value(a):
    return float("sum" in dir(a))  # here


@refuses("`match` of a value that may be None", V, part="may be None")
def match_of_an_optional(a):
    best = None
    if a[0] > 0:
        best = a[0]
    match best:
        case 0.0:  # here
            return 1.0
        case _:
            return 2.0


@refuses(
    "alternatives of a pattern that bind names and compare values", 1.0, 2.0, part="alternatives"
)
def alternatives(x, y):
    match (x, y):
        case (0.0, z) | (z, 2.0):  # here
            return z
    return y
