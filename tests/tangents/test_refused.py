"""What carries no tangents: refused with advice where it is active, passed over among constants."""

import sys
import types
from collections import UserDict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import fwdad
from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.composite import flatten, unflatten
from tests.tangents.classes import Slots


class Units(np.ndarray):
    pass


class Tensor:
    """Some other library's array."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


def pandas_like():
    """A class that says it is pandas': the real one is not imported by fwdad either."""
    return type("Series", (), {"__module__": "pandas.core.series"})()


REFUSED = {
    "np.matrix": (np.eye(2).view(np.matrix), r"numpy\.asarray\(x\)"),
    "masked array": (np.ma.array([1.0, 2.0], mask=[True, False]), r"x\.filled"),
    "subclass of ndarray": (np.ones(2).view(Units), r"Units.*numpy\.asarray"),
    "object array": (np.array([1.0, 2.0], object), r"x\.astype\(float\)"),
    "structured array": (np.zeros(2, [("a", float), ("b", int)]), "dict of its fields"),
    "record array": (np.zeros(2, [("a", float)]).view(np.recarray), "dict of its fields"),
    "pandas": (pandas_like(), r"x\.to_numpy\(\)"),
    "another library's array": (Tensor(), r"numpy\.asarray"),
    "set": ({1.0, 2.0}, "list or a tuple"),
    "frozenset": (frozenset({2j}), "list or a tuple"),
    "Decimal": (Decimal("1.5"), r"float\(x\)"),
    "Fraction": (Fraction(1, 2), r"float\(x\)"),
    "dok": (sp.dok_array((2, 2)), r"x\.tocsr\(\)"),
    "lil": (sp.lil_matrix((2, 2)), r"x\.tocsr\(\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    x, advice = REFUSED[name]
    with pytest.raises(UnsupportedTypeError, match=f"the argument is .*{advice}"):
        flatten(x, strict=True)
    with pytest.raises(UnsupportedTypeError, match=rf"x\['a'\]\[1\]\.other is .*{advice}"):
        flatten({"a": [1.0, Slots(1.0, x)]}, strict=True)
    with pytest.raises(UnsupportedTypeError):
        fwdad.jvp(lambda _: 1.0, x)


@pytest.mark.parametrize("name", REFUSED)
def test_among_constants_nothing_is_refused(name):
    x, _ = REFUSED[name]
    leaves, structure = flatten((1.0, x))
    assert leaves == [1.0]
    assert unflatten(structure, [2.0])[1] is x
    y, y_dot = fwdad.jvp(lambda t, _: t * 2, 3.0, 1.0, args=(x,))
    assert (y, y_dot) == (6.0, 2.0)


@pytest.mark.parametrize(
    "x", [{1, 2}, frozenset("a"), True, np.int64(1), UserDict(), object(), types.SimpleNamespace()]
)
def test_constants_are_not_refused(x):
    assert flatten(x, strict=True)[0] == []


def test_pandas_is_not_imported():
    before = "pandas" in sys.modules
    with pytest.raises(UnsupportedTypeError):
        flatten(pandas_like(), strict=True)
    assert ("pandas" in sys.modules) == before


def test_a_memory_map_is_an_array(tmp_path):
    x = np.memmap(tmp_path / "x", float, "w+", shape=(3,))
    x[:] = [1, 2, 3]
    assert_array_equal(fwdad.jacobian(lambda x: x**2, x), np.diag([2.0, 4.0, 6.0]))
