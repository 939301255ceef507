"""Users' objects that C code reads by itself: items, arrays, numbers, mappings and buffers.

Each object keeps active values in an array of its own, so whatever reads it without the dispatcher
would see bare numbers and lose the derivative in silence.
"""

import array
import collections
import functools
import itertools
import math
import pickle
import struct
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.cases.check import line_of
from tests.differences import central_differences, complex_step

X = np.array([0.7, 1.3, 0.4])


class Keeps:
    def __init__(self, values):
        self.a = np.zeros(3)
        self.a[:] = values


class Items(Keeps):
    """A sequence by ``__len__`` and ``__getitem__`` alone."""

    def __len__(self):
        return 3

    def __getitem__(self, k):
        if k >= 3:
            raise IndexError(k)
        return np.sum(self.a[: k + 1]) * self.a[0]


class Sequence(Items, collections.abc.Sequence):
    pass


class Iterable(Keeps):
    def __iter__(self):
        for k in range(3):
            yield np.sum(self.a[: k + 1])


class Table(Keeps, collections.abc.Mapping):
    def __len__(self):
        return 3

    def __iter__(self):
        return iter("abc")

    def __getitem__(self, key):
        return np.sum(self.a[: {"a": 1, "b": 2, "c": 3}[key]] ** 2)


class Number(Keeps):
    def __float__(self):
        return float(np.sum(self.a**2))


class ArrayLike(Keeps):
    def __array__(self, dtype=None, copy=None):
        return self.a * np.sum(self.a)


def named(a, b, c):
    return a * b * c


def written(x, write):
    z = np.ones(3)
    write(z)
    return z * x[0]


def added_in_place(z, *values):
    for value in values:
        z += value
    return z


def joined(d, other):
    d |= other
    return d


OF_SEQUENCES = [
    lambda x: np.array(Items(x)),
    lambda x: np.array([Items(x), Sequence(2 * x)]),
    lambda x: np.asarray(Sequence(x), float),
    lambda x: np.sum(Items(x)),
    lambda x: np.sum(a=Sequence(x)),
    lambda x: np.dot(Items(x), [1.0, 2.0, 3.0]),
    lambda x: np.dot(Items(x), x),
    lambda x: np.stack([Items(x), x]),
    lambda x: np.concatenate([Items(x), [1.0]]),
    lambda x: np.sin(Items(x)),
    lambda x: np.add(Items(x), 1.0),
    lambda x: np.ones(3) + Items(x),
    lambda x: Items(x) * x,
    lambda x: np.eye(3) @ Items(x),
    lambda x: np.ones((3, 3)).dot(Items(x)),
    lambda x: np.tensordot(Items(x), np.ones(3), 1),
    lambda x: np.einsum("i,i->", Items(x), np.ones(3)),
    lambda x: np.broadcast_to(Items(x), (2, 3)),
    lambda x: np.full(3, Items(x)),
    lambda x: np.interp(1.5, [0.0, 1.0, 2.0], Items(x)),
    lambda x: np.where([True, False, True], Items(x), 0.0),
    lambda x: np.linalg.solve(2 * np.eye(3), Items(x)),
    lambda x: np.maximum.reduce(Items(x)),
    lambda x: np.add.accumulate(Items(x)),
    lambda x: np.multiply.outer(Items(x), [1.0, 2.0]),
    lambda x: written(x, lambda z: z.__setitem__(slice(None), Items(x))),
    lambda x: written(x, lambda z: z.put([0, 1], Items(x))),
    lambda x: written(x, lambda z: np.copyto(z, Items(x))),
    lambda x: written(x, lambda z: np.add.at(z, [0, 1, 2], Items(x))),
    lambda x: added_in_place(np.ones(3), Items(x)),
    lambda x: added_in_place(x * 1, Items(x)),
    lambda x: np.array(added_in_place([1.0], Items(x))),
    lambda x: np.array(added_in_place([1.0], Iterable(x))),
    lambda x: np.array(list(reversed(Items(x)))),
    lambda x: np.array(list(reversed(Sequence(x)))),
    lambda x: np.array(list(Sequence(x))),
    lambda x: [z := [1.0, 2.0, 3.0], z.__setitem__(slice(0, 2), Items(x))] and np.array(z),
    lambda x: [z := [], z.extend(Sequence(x))] and np.array(z),
]

OF_ITERATORS = [
    lambda x: sum(collections.deque(Iterable(x))),
    lambda x: sum(itertools.islice(Iterable(x), 2)),
    lambda x: sum(a * b for a, b in itertools.product(Iterable(x), repeat=2)),
    lambda x: sum(a * b for a, b in itertools.combinations(Iterable(x), 2)),
    lambda x: sum(a * b for a, b in itertools.pairwise(Iterable(x))),
    lambda x: sum(a * b for a, b in itertools.zip_longest(Iterable(x), [1.0], fillvalue=2.0)),
    lambda x: sum(itertools.compress(Iterable(x), [1, 0, 1])),
    lambda x: sum(itertools.takewhile(below, Items(x))),
    lambda x: sum(itertools.dropwhile(below, Iterable(x))),
    lambda x: sum(itertools.filterfalse(below, Iterable(x))),
    lambda x: sum(k * sum(g) for k, g in itertools.groupby(Iterable(x), doubled)),
    lambda x: sum(itertools.islice(itertools.cycle(Iterable(x)), 5)),
    lambda x: sum(a * b for a, b in zip(*itertools.tee(Iterable(x)), strict=True)),
    lambda x: sum(iter(stepping(x), None)),
    lambda x: np.array(sorted(x, key=functools.cmp_to_key(descending))),
]

OF_MAPPINGS = [
    lambda x: named(**Table(x)),
    lambda x: dict(Table(x))["b"],
    lambda x: {"k": 1.0, **Table(x)}["c"],
    lambda x: [d := {}, d.update(Table(x))] and d["b"],
    lambda x: joined({}, Table(x))["b"],
    lambda x: collections.OrderedDict(Table(x))["c"],
    lambda x: sum(Table(x).values()) * sum(v for _, v in Table(x).items()),
    lambda x: collections.ChainMap({}, Table(x))["b"],
    lambda x: dict(zip("abc", Iterable(x), strict=True), k=2)["b"],
    lambda x: dict([("k", x[0])], n=x[1])["n"],
]

OF_NUMBERS = [
    lambda x: math.sin(Number(x)),
    lambda x: math.hypot(Number(x), 2.0),
    lambda x: math.pow(2.0, Number(x)),
    lambda x: math.fsum([Number(x), 1.0]),
    lambda x: float(Number(x)),
    lambda x: np.float64(Number(x)),
    lambda x: complex(Number(x)).real,
    lambda x: np.array([Number(x), 1.0], dtype=float),
    lambda x: written(x, lambda z: z.__setitem__(0, Number(x))),
    lambda x: written(x, lambda z: z.fill(Number(x))),
]

OF_ARRAYS = [
    lambda x: np.sum(ArrayLike(x)),
    lambda x: np.exp(ArrayLike(x)),
    lambda x: np.ones(3) - ArrayLike(x),
    lambda x: ArrayLike(x) * x,
    lambda x: np.array(ArrayLike(x)),
    lambda x: np.stack([ArrayLike(x), ArrayLike(x)]),
    lambda x: np.clip(a=np.full(3, 0.5), a_min=ArrayLike(x), a_max=2.0),
    lambda x: np.interp(x=1.5, xp=[0.0, 1.0, 2.0], fp=ArrayLike(x)),
    lambda x: added_in_place(x * 1, ArrayLike(x)),
    lambda x: np.frombuffer(shared(x)) * 2,
    lambda x: np.array(shared(x)) * 2,
    lambda x: np.asarray(memoryview(shared(x))) * 2,
]


def below(v):
    return v < 1.0


def doubled(v):
    return 2 * np.sum(v)


def descending(a, b):
    return float(b - a)


def stepping(x):
    kept = Keeps(x)
    places = iter([0, 1, 2])
    return functools.partial(step, kept, places)


def step(kept, places):
    k = next(places, None)
    return None if k is None else np.sum(kept.a[: k + 1])


def shared(x):
    """An ``array.array`` whose memory a NumPy array writes."""
    held = array.array("d", [0.0, 0.0, 0.0])
    np.frombuffer(held)[:] = x
    return held


@pytest.mark.parametrize("chunk", [1, 2, None])
@pytest.mark.parametrize(
    "f", [*OF_SEQUENCES, *OF_ITERATORS, *OF_MAPPINGS, *OF_NUMBERS, *OF_ARRAYS], ids=line_of
)
def test_read_with_tangents(f, chunk):
    value, jacobian = fwdad.value_and_jacobian(f, X, chunk=chunk)
    np.testing.assert_array_equal(value, f(X.copy()))
    assert_allclose(jacobian, central_differences(f, X), rtol=1e-7, atol=1e-7)


def view_of(x):
    y = np.zeros(3)
    held = memoryview(y)
    y[:] = x
    return held


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * view_of(x)[0],
        lambda x: x * view_of(x).tolist()[0],
        lambda x: x * view_of(x).__getitem__(0),
        lambda x: x * view_of(x).cast("B").cast("d")[0],
        lambda x: x * np.frombuffer(view_of(x).tobytes())[0],
        lambda x: x * np.frombuffer(bytes(view_of(x)))[0],
        lambda x: x * struct.unpack("ddd", view_of(x))[0],
        lambda x: x * shared(x)[0],
        lambda x: x * [v for v in shared(x)][0],  # noqa: C416, RUF015
        lambda x: x * shared(x).tolist()[0],
        lambda x: x * shared(x).pop(),
        lambda x: x * sum(shared(x)),
        lambda x: pickle.loads(pickle.dumps(Keeps(x))).a,
        lambda x: pickle.loads(pickle.dumps([types.SimpleNamespace(k=Keeps(x))]))[0].k.a,
    ],
    ids=line_of,
)
def test_buffers_and_pickles_are_refused(f):
    with pytest.raises(fwdad.errors.DualLeakError) as found:
        fwdad.jacobian(f, X)
    assert found.value.filename == __file__


def test_buffers_without_tangents_are_read():
    def f(x):
        work = Keeps(x)
        held = array.array("d", [3.0, 4.0])
        view = memoryview(bytearray(8))
        return work.a * held[0] * sum(held) * (view.tolist()[0] + len(bytes(view)))

    assert_allclose(fwdad.jacobian(f, X), 168.0 * np.eye(3))


def test_objects_that_make_arrays_of_duals_in_python():
    """``np.polymul`` multiplies objects of ``np.poly1d``, which have an ``__array__``."""
    x = np.linspace(0.3, 1.7, 6)

    def f(x):
        return np.polymul(x[:3], x[3:])

    expected = complex_step(f, x)
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(fwdad.jacobian(f, x, mode=mode), expected, rtol=1e-14)
