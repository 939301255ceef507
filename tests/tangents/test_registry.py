"""``tangent_type``: which type the tangents of each type have, and the classes that users add."""

import gc
import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import fwdad
from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.kinds import (
    AnyTangent,
    ArrayTangent,
    ArrayType,
    CompositeTangent,
    NumberTangent,
)
from fwdad.tangents.registry import tangent_type, typeof
from fwdad.tangents.zero import NoTangent
from tests.tangents.classes import Body, Box, Point, Unknown

# -- one type for each (T, N)


@pytest.mark.parametrize(
    "T",
    [
        float,
        complex,
        np.float32,
        np.ndarray,
        ArrayType(np.complex64),
        tuple[float, np.ndarray],
        dict[str, float],
        list,
        Body,
        Point,
    ],
    ids=str,
)
def test_unique(T):
    first = tangent_type(T, 3)
    assert tangent_type(T, 3) is first
    assert tangent_type(T, 2) is not first
    assert (first.primal, first.n) != (tangent_type(T, 2).primal, tangent_type(T, 2).n)


def test_spellings_of_one_type_are_one():
    one = tangent_type(np.ndarray, 2)
    assert one is tangent_type(ArrayType(np.float64), 2)
    assert one is tangent_type(typeof(np.ones(3)), 2)
    assert one is tangent_type(npt.NDArray[np.float64], 2)
    assert one is not tangent_type(npt.NDArray[np.float32], 2)
    assert ArrayType("f4") == ArrayType(np.float32)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement is younger")
def test_names_of_type_statements():
    names = {"np": np}
    exec("type Pair[T] = tuple[T, np.ndarray]\ntype Known = Pair[float]", names)
    one = tangent_type(tuple[float, np.ndarray], 2)
    assert one is tangent_type(names["Pair"][float], 2)
    assert one is tangent_type(names["Known"], 2)
    known = names["Known"]
    assert tangent_type(list[known], 2).zero([(1.0, np.ones(3))])[0][1].shape == (3,)


def test_unique_across_threads():
    made = []
    start = threading.Barrier(8)

    def ask():
        start.wait()
        made.append(tangent_type(tuple[float, list[complex]], 5))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(kind) for kind in made}) == 1


@pytest.mark.usefixtures("young_heap")
def test_nothing_is_kept_that_nobody_holds():
    from fwdad.tangents import registry  # noqa: PLC0415  (its table is looked into)

    gc.collect()
    before = len(registry._UNIQUE)
    for n in range(1000):
        tangent_type(tuple[float, float], n)
    gc.collect()
    assert len(registry._UNIQUE) <= before + 2


# -- what it returns


@pytest.mark.parametrize(
    ("T", "kind"),
    [
        (float, NumberTangent),
        (complex, NumberTangent),
        (np.float64, NumberTangent),
        (np.complex64, NumberTangent),
        (np.ndarray, ArrayTangent),
        (ArrayType(np.float32), ArrayTangent),
        (npt.NDArray[np.complex128], ArrayTangent),
        (tuple, CompositeTangent),
        (tuple[()], CompositeTangent),
        (tuple[float, ...], CompositeTangent),
        (list[np.ndarray], CompositeTangent),
        (dict[str, tuple[float, int]], CompositeTangent),
        (Point, CompositeTangent),
        (Body, CompositeTangent),
        (Box[float], CompositeTangent),
        (sp.csr_array, CompositeTangent),
        (Unknown, CompositeTangent),
        (Any, AnyTangent),
        (float | None, AnyTangent),
    ],
    ids=str,
)
def test_kind(T, kind):
    assert type(tangent_type(T, 2)) is kind


@pytest.mark.parametrize(
    "T",
    [int, bool, str, bytes, None, type(None), np.int64, np.bool_, ArrayType(int), ArrayType(bool),
     ArrayType("U3"), ArrayType("M8[s]"), type(len), type(lambda: 0), type, range, slice],
    ids=str,
)  # fmt: skip
def test_no_tangent(T):
    assert tangent_type(T, 2) is NoTangent


@pytest.mark.parametrize(
    ("T", "advice"),
    [
        (threading.Thread, "register_tangent_type"),
        (np.matrix, r"numpy\.asarray"),
        (np.ma.MaskedArray, r"x\.filled"),
        (ArrayType(object), "astype"),
        (ArrayType([("a", float)]), "dict of its fields"),
        (tuple[float, np.matrix], r"numpy\.asarray"),
        (set, "list or a tuple"),
        (3.0, "typeof"),
        ("float", "typeof"),
    ],
    ids=str,
)
def test_refused(T, advice):
    with pytest.raises(UnsupportedTypeError, match=advice):
        tangent_type(T, 2)


@pytest.mark.parametrize("n", [-1, 1.0, True, "2", None])
def test_lanes_are_counted(n):
    with pytest.raises(UnsupportedTypeError, match="number of lanes"):
        tangent_type(float, n)


@pytest.mark.parametrize(
    ("x", "T"),
    [
        (1.0, float),
        (np.float32(1), np.float32),
        (2, int),
        (None, type(None)),
        (np.ones(2, np.complex64), ArrayType(np.complex64)),
        ((1.0, np.ones(2)), tuple[float, ArrayType(float)]),
        ((), tuple),
        ([1.0, 2.0], list[float]),
        ([1.0, 2], list),
        ([], list),
        ({"a": 1.0, "b": 2.0}, dict[str, float]),
        ({"a": 1.0, 2: 2.0}, dict),
        ({"a": (1.0, 2)}, dict[str, tuple[float, int]]),
        (Point(1.0, np.ones(1)), Point),
        (Body(1.0, np.ones(3)), Body),
        (sp.csr_array(np.eye(2)), sp.csr_array),
    ],
    ids=str,
)
def test_typeof(x, T):
    assert typeof(x) == T


def test_typeof_ends_where_a_list_holds_itself():
    x = [1.0]
    x.append(x)
    assert typeof(x) is list
    assert typeof((x, 1.0)) == tuple[list, float]


def test_typeof_a_dual_is_that_of_its_primal():
    def f(x):
        assert typeof(x) == ArrayType(float)
        assert typeof((x[0], 1)) == tuple[np.float64, int]
        return x * 2

    assert_array_equal(fwdad.jvp(f, np.ones(2), np.ones(2))[1], [2.0, 2.0])
