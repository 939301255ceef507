"""Programs that are refused for what they do to, or read from, the world outside."""

import decimal
import functools
import os
import sys
import time

import numpy as np

import fwdad
from tests.frontend.refused.table import Body, Refused, V

PROGRAMS = refuses = Refused()


# -- changes of it

GUESS = np.ones(4)


@refuses(
    "differentiating a function that stores derivatives in an array from outside, and reads there "
    "first",
    V,
    part="before it writes there",
)
def kept_guess(x):
    def f(x):
        y = 0.5 * (GUESS + x / GUESS)  # here
        GUESS[:] = y
        return np.sum(y)

    return fwdad.grad(f)(x)


COUNT = 0.0
HISTORY = []
_NOT_ARGUMENT = (
    "changing an object, list or dict that is not an argument, but by `append` to a list that is "
    "not read"
)


@refuses("assigning to a global name", 1.0, part="is a global name")
def global_name(x):
    global COUNT
    COUNT = x  # here
    return x


@refuses(_NOT_ARGUMENT, 1.0, part="is appended to, and is read")
def global_list(x):
    HISTORY.append(0)
    return x + len(HISTORY)  # here


BODY = Body(1.0)


@refuses(_NOT_ARGUMENT, 1.0, part="existed before the call")
def global_object(x):
    BODY.x = 2.0  # here
    return x


@refuses("setting an attribute of a class", 1.0, part="attributes of a type")
def class_attribute(x):
    Body.held = 1.0  # here
    return x


# -- what is read of it

_DRAWS = (
    "random draws, but those of a generator that is made from a seed in the same place "
    "(`np.random.default_rng(0)`, not from outside a loop or branch that draws)"
)
RNG = np.random.default_rng(0)


@refuses(_DRAWS, 1.0, part="random numbers")
def draw(x):
    return x + np.random.rand()  # here


@refuses(_DRAWS, 1.0, part="random numbers")
def draw_of_a_generator(x):
    return x + RNG.normal()  # here


@refuses("clocks", 1.0, part="at trace time")
def clock(x):
    return x + time.time()  # here


@refuses("files and the environment", 1.0, part="at trace time")
def environment(x):
    return x * len(os.getcwd())  # here


_TEXT = "the text of a number, other than in the message of an exception or in what is printed or logged"


@refuses(_TEXT, 1.0, part="the message of an error")
def text(x):
    return 1.0 if f"{x}" == "1.0" else 0.0  # here


@refuses(_TEXT, 1.0, part="the message of an error")
def length_of_a_text(x):
    return len(str(x))  # here


@refuses(_TEXT, 1.0, part="the message of an error")
def characters_of_a_text(x):
    return sum(c == "1" for c in f"{x:.3f}")  # here


@refuses(_TEXT, 1.0, part="the message of an error")
def start_of_a_text(x):
    return 2.0 if "1.25 and so on".startswith(str(x)) else x  # here


@refuses(_TEXT, 1.0, part="the message of an error")
def stripped_text(x):
    return 2.0 if str(x).strip("1.0") else x  # here


@refuses(_TEXT, 1.0, part="the message of an error")
def text_as_a_key(x):
    return {"…": 1.0}.get(str(x), 2.0)  # here


_IN_C = "functions and classes in C without a rule, but NumPy's and SciPy's (no derivatives then)"


@refuses(_IN_C, 1.0, part="Decimal")
def c_class(x):
    return float(decimal.Decimal(x))  # here


@refuses(_IN_C, 1.0, part="no rule")
def c_function(x):
    return float(sys.getsizeof(x))  # here


EXECUTED = {}
exec("def plus_one(x):\n    return x + 1\n", EXECUTED)  # a function without source
plus_one = EXECUTED["plus_one"]


@refuses("functions without source, called on values", 1.0, part="no source")
def without_source(x):
    return plus_one(x)  # here


_TYPES = (
    "`np.vectorize` without `otypes` of a function that returns, or computes with, ints on one path "
    "and floats on another"
)


@refuses(_TYPES, V, part="give `otypes=[float]`")
def vectorized(a):
    return np.vectorize(lambda x: max(0, x))(a)  # here


@refuses("with a `signature`, of arrays that have to be broadcast", V, part="broadcast")
def vectorized_over_rows(a):
    f = np.vectorize(lambda x, y: x @ y, signature="(n),(n)->()")
    return f(np.stack([a, a]), np.stack([a])[None])  # here


@refuses("`np.frompyfunc`", V, part="used as a value")
def from_python(a):
    return np.frompyfunc(lambda x: x * x, 1, 1)(a).astype(float)  # here


_CHANGES = "a function under `functools.lru_cache` that changes what it has not made"


@refuses(_CHANGES, 1.5, part="first call only")
def counted(x):
    calls = [0]

    @functools.cache
    def scale(k):
        calls[0] += 1
        return x * k

    total = scale(2) + 1.0  # here
    return total * calls[0]


_AGAIN = "one that reads, or has returned, names, lists or arrays that change between its calls"


@refuses(_AGAIN, 1.5, part="first result")
def cached_before_it_changes(x):
    held = [x]

    @functools.cache
    def scaled(k):
        return held[0] * k

    total, left = 0.0, x
    while left > 0:
        total += scaled(2.0)  # here
        held[0] = held[0] * 3.0
        left = left - 1
    return total


MANY = [float(k) for k in range(600)]


@refuses("more than 512 numbers in a list or dict from outside", 1.0, part="make it an array")
def many_numbers(x):
    return x * MANY[3]  # here
