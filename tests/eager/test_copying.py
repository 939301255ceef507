"""`copy.copy` and `copy.deepcopy` of objects that keep active values in arrays of their own."""

import copy
import copyreg
import types

import numpy as np
import pytest

from fwdad.eager.calls.copying import reduce_ex
from tests.cases.check import check_jacobian, programs, with_widths

PROGRAMS, program = programs()

X = np.array([0.7, 1.3, 0.4])


class Work:
    def __init__(self, values=0.0):
        self.a = np.zeros(3)
        self.a[:] = values

    def scaled(self):
        """The array times its sum: a copy that went without tangents would be seen."""
        return self.a * np.sum(self.a)


class ByReduce(Work):
    def __reduce__(self):
        return ByReduce, (self.scaled(),)


class ByReduceEx(Work):
    def __reduce_ex__(self, protocol):
        return ByReduceEx, (self.scaled(),)


class ByState(Work):
    def __getstate__(self):
        return {"a": self.scaled()}


class BySetState(Work):
    def __setstate__(self, state):
        self.a = np.zeros(3)
        self.a[:] = state["a"]
        self.a *= np.sum(state["a"])


class ByArguments(Work):
    def __new__(cls, values=0.0):
        o = object.__new__(cls)
        o.first = values
        return o

    def __getnewargs__(self):
        return (self.scaled(),)


class ByNamedArguments(ByArguments):
    def __getnewargs_ex__(self):
        return (), {"values": self.scaled()}


class ByCopy(Work):
    def __copy__(self):
        return ByCopy(self.scaled())

    def __deepcopy__(self, memo):
        return ByCopy(self.scaled() * 2)


class Plain(Work):
    pass


class Sizes(list):
    def __reduce__(self):
        return Sizes, ([v * np.sum(self[0]) for v in self],)


KINDS = (ByReduce, ByReduceEx, ByState, BySetState, ByArguments, ByNamedArguments, ByCopy, Plain)


def read(o):
    return o.a * getattr(o, "first", 1.0)


def add(kind, how):
    """The object itself, and inside a list, an object and a dict, copied."""
    copied = getattr(copy, how)

    def alone(x):
        return read(copied(kind(x)))

    def within(x):
        made = copied([types.SimpleNamespace(k={"o": (kind(x), x)})])
        return read(made[0].k["o"][0]) * made[0].k["o"][1]

    for f in (alone, within):
        f.__name__ = f.__qualname__ = f"{kind.__name__}_{how}_{f.__name__}"
        program(X)(f)


for _kind in KINDS:
    for _how in ("copy", "deepcopy"):
        add(_kind, _how)


@program(X)
def subclass_of_list(x):
    a = np.zeros(3)
    a[:] = x
    return copy.copy(Sizes([a, a]))[0] + copy.deepcopy(Sizes([a]))[0]


@program(X)
def one_copy_of_what_is_there_twice(x):
    a = np.zeros(3)
    a[:] = x
    made = copy.deepcopy({"p": a, "q": [a, (a, x)]})
    made["p"][0] = 5 * x[1]
    assert made["q"][0] is made["p"] is made["q"][1][0]
    return made["q"][0] + made["q"][1][1] + a


@program(X)
def memo_is_known_by_identity(x):
    a = np.zeros(3)
    a[:] = x
    memo = {}
    made = copy.deepcopy(a, memo)
    assert memo[id(a)] is made
    made *= x[0]
    return made + a


@program(X)
def duals_in_lists(x):
    made = copy.deepcopy([x, x[0], 3, None])
    return made[0] * made[1] * made[2]


@pytest.mark.parametrize(("program", "chunk"), with_widths(PROGRAMS))
def test_program(program, chunk):
    check_jacobian(program, chunk)


class Keyed(dict):
    def __getstate__(self):
        return {"more": 1}

    def __getnewargs__(self):
        return (1,)


class Listed(list):
    def __getstate__(self):
        return {"more": 2}

    def __getnewargs_ex__(self):
        return (1,), {"k": 2}


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
@pytest.mark.parametrize(
    "o", [Keyed(a=1), Listed([1, 2]), ByState(1.0), Plain(1.0)], ids=lambda o: type(o).__name__
)
def test_reduce_is_what_python_makes(o, protocol):
    made, expected = reduce_ex((o, protocol), {}), object.__reduce_ex__(o, protocol)
    assert made[0] is expected[0]
    assert made[0] in (copyreg.__newobj__, copyreg.__newobj_ex__, copyreg._reconstructor)
    for ours, theirs in zip(made[1:], (*expected[1:], None, None), strict=False):
        if hasattr(theirs, "__next__"):
            assert list(ours) == list(theirs)
        elif isinstance(theirs, dict):
            assert ours.keys() == theirs.keys()
        else:
            assert ours == theirs
