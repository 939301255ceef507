"""The attributes of duals: those of their primals, known, refused or absent."""

import functools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.eager.build import Run
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.scalar import Scalar
from fwdad.errors import MissingRuleError, UnsupportedTypeError
from fwdad.tangents.chunk import Chunk
from tests.differences import central_differences


class Metres(float):
    """A number with an attribute of its own."""

    unit = "m"


def test_an_attribute_of_the_users_number_is_refused():
    for read in (
        lambda x: x.unit,
        lambda x: getattr(x, "unit", "none"),
        lambda x: hasattr(x, "unit"),
        lambda x: x.unit(),
    ):
        with pytest.raises(MissingRuleError, match="'unit' of a value that carries a derivative"):
            fwdad.jvp(lambda x, read=read: (x * 2.0, read(x))[0], Metres(3.0), 1.0)


@pytest.mark.parametrize(
    ("x", "name"),
    [(3.0, "float"), (np.float64(3.0), "float64"), (np.ones(2), "ndarray")],
)
def test_an_attribute_that_the_primal_lacks_is_absent(x, name):
    with pytest.raises(AttributeError, match="has no attribute 'unit'") as raised:
        fwdad.jvp(lambda x: x.unit, x, np.ones_like(x))
    assert f"{name}' object has" in str(raised.value)
    with pytest.raises(AttributeError, match="has no attribute 'unit'"):
        fwdad.jvp(lambda x: x.unit(), x, np.ones_like(x))

    def guarded(x):
        scale = getattr(x, "unit", 2.0)
        return x * (scale if not hasattr(x, "unit") else math.nan)

    assert_allclose(fwdad.jvp(guarded, x, np.ones_like(x))[1], 2.0 * np.ones_like(x))


def test_the_device_is_the_array_s():
    x = np.ones(2)
    numbers = hasattr(x[0], "device")  # not those of NumPy 2.0
    assert fwdad.jvp(lambda x: x * len(x.device), x, x)[1].tolist() == [3.0, 3.0]
    assert fwdad.jvp(lambda x: x * hasattr(x[0], "device"), x, x)[1].tolist() == [numbers] * 2
    if numbers:
        assert fwdad.jvp(lambda x: x * len(x[0].device), x, x)[1].tolist() == [3.0, 3.0]
    assert fwdad.jit(lambda x: x * len(x.device), backend="numpy")(x).tolist() == [3.0, 3.0]


def test_bound_methods_of_duals_work_where_nothing_is_lifted():
    """What C code would do with a dual: look a method up by its name."""
    with Run(2) as run, run:
        a = Array(np.array([1.0, 2.0]), Chunk(np.eye(2)), run.tag)
        assert_allclose(a.sum().t.lanes, [1.0, 1.0])
        s = run.dual(np.float64(2.0), Chunk(np.ones(2)))
        assert_allclose((3.0 * s).conjugate().t.lanes, [3.0, 3.0])
        for dual in (a, s):
            assert not hasattr(dual, "unit")
            assert not hasattr(dual, "__fwdad_symbolic__")


@pytest.mark.parametrize("cls", [Array, Scalar])
def test_slots_are_read_without_a_fallback(cls):
    """With ``__getattr__`` Python would read each slot of a dual the slow way."""
    assert not hasattr(cls, "__getattr__")


def product_with_memory(x):
    work = np.zeros(3)
    work[:] = x * x
    return np.float64(2.0).__mul__(work)


BY_NAME = {
    "__mul__": lambda x: (2.0).__mul__(x[0]) * x,
    "__rpow__ that map calls": lambda x: np.array(list(map((2.0).__rpow__, x))),
    "float.__add__ that reduce calls": lambda x: functools.reduce(float.__add__, [1.0, *x]) * x,
    "float.__rsub__": lambda x: float.__rsub__(2.0, x[1]) * x,
    "__lt__": lambda x: x if (2.0).__lt__(x[0]) else 2.0 * x,
    "memory": product_with_memory,
    "an int's": lambda x: x * (3.0 if (2).__mul__(x[0]) is NotImplemented else 5.0),
    "an array's": lambda x: x * (3.0 if (2.0).__mul__(x) is NotImplemented else 5.0),
    "NumPy's with an array": lambda x: np.float64(2.0).__truediv__(x),
}


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", BY_NAME)
def test_operators_of_plain_numbers_that_are_called_by_name(name, mode):
    f, x = BY_NAME[name], np.array([0.5, 1.25, 2.0])
    found = fwdad.jacobian(f, x, mode=mode)
    assert_allclose(found, central_differences(f, x), rtol=1e-8, atol=1e-8)


def test_an_operator_of_a_plain_number_returns_its_class_s_number():
    for two in (2.0, np.float64(2.0)):
        assert type(two.__mul__(np.float64(1.5))) is type(two)
        value, tangent = fwdad.jvp(two.__mul__, np.float64(1.5), 1.0)
        assert (value, tangent, type(value)) == (3.0, 2.0, type(two))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.view(np.matrix),
        lambda a: a.view(type=np.matrix),
        lambda a: a.view(float, np.matrix),
        lambda a: a.view(dtype=np.matrix),
    ],
)
def test_a_view_of_another_class_is_refused(view, mode):
    """The product of such views would be the one of matrices."""

    def f(x):
        m = view(x.reshape(2, 2) * 1.0)
        return np.asarray(m * m).ravel()

    with pytest.raises(UnsupportedTypeError, match=r"cannot view an array .* as matrix"):
        fwdad.jacobian(f, np.arange(4.0), mode=mode)
    same = fwdad.jacobian(lambda x: x.view(np.ndarray) * 2, np.arange(4.0), mode=mode)
    assert_allclose(same, 2 * np.eye(4))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_resize_of_what_has_been_written(mode):
    kept = []

    def grown(x, start):
        a = np.zeros(start)
        for k in range(start, 3):
            a.resize(k + 1, refcheck=False)
            a[k] = x[k] ** 2
        kept.append(a)
        return a[-1:]

    x = np.array([0.5, 2.0, 3.0])
    assert_allclose(fwdad.jacobian(lambda x: grown(x, 2), x, mode=mode), [[0, 0, 6.0]])
    with pytest.raises(MissingRuleError, match=r"numpy\.concatenate"):
        fwdad.jacobian(lambda x: grown(x, 1), x, mode=mode)


def test_a_method_is_asked_for_its_name():
    """Some libraries look up by it what a method does."""
    doubled = {"cumsum", "take"}

    def f(x):
        total = 0.0
        for name, args in (("cumsum", ()), ("take", ([2, 0, 1],)), ("conj", ())):
            method = getattr(x * 1.0, name)
            assert method.__self__.shape == x.shape
            total = total + method(*args) * (2.0 if method.__name__ in doubled else 1.0)
        return total

    x = np.array([0.5, 2.0, 3.0])
    expected = 2 * np.tri(3) + 2 * np.eye(3)[[2, 0, 1]] + np.eye(3)
    for mode in ("forward", "reverse"):
        assert_allclose(fwdad.jacobian(f, x, mode=mode), expected)
