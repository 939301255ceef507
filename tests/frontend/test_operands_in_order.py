"""``a op= value`` where computing the value changes a: Python has read ``a`` before."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad


def writer(v):
    def put(i, y):
        v[i] = y
        return v.sum()

    return put


def element_of_a_sum(x):
    b = np.zeros(4)
    b[0] = 0.3
    b[0] += writer(b)(0, x[1]) * 0.1
    return b.sum()


def element_in_a_sum(x):
    b = np.zeros(4)
    b[0] = x[0]

    def put(y):
        b[0] = y
        return y

    t = b[0] + put(x[1])
    return t + b[0]


def element(x):
    b = np.zeros(4)
    b[0] = x[0]

    def put(y):
        b[0] = y
        return y

    b[0] = b[0] + put(x[1])
    return b.sum()


def element_of_a_list(x):
    b = [x[0]]

    def put(y):
        b[0] = y
        return y

    b[0] += put(x[1])
    return b[0]


def a_slice(x):
    b = x * 1.0

    def put(y):
        b[1:3] = y
        return y

    b[1:3] += put(x[0])
    return b.sum()


class Box:
    pass


def attribute(x):
    c = Box()
    c.k = x[0]

    def put(y):
        c.k = y
        return y

    c.k += put(x[1])
    return c.k


def name(x):
    k = x[0]

    def put(y):
        nonlocal k
        k = y
        return y

    k += put(x[1])
    return k


def array_by_name(x):
    b = x * 1.0

    def put(y):
        nonlocal b
        b = b * y
        return y

    b += put(x[1])
    return b.sum()


def chosen(x):
    b = x * 1.0

    def put(y):
        b[:] = b * y
        return y

    b[[0, 2]] += put(x)[0]
    return b @ np.arange(4.0)


def shifted(b, y):
    b[1:] = b[:-1] * y
    return y


def masks(x):
    b = x * 1.0
    b[1:3] *= shifted(b, x[0])
    b[b > 0.5] += shifted(b, x[1])
    b[2] -= shifted(b, x[3])
    return b @ np.arange(4.0)


def loop(x):
    b = x * 1.0
    for i in range(4):
        b[i] += shifted(b, b[i])
    return b @ np.arange(4.0)


def item_of_a_dict(x):
    d = {"v": x * 1.0}

    def put(y):
        d["v"] = d["v"] * y
        return y

    d["v"] += put(x[1])
    return d["v"].sum()


def array_of_an_attribute(x):
    c = Box()
    c.v = x * 1.0

    def put(y):
        c.v = c.v * y
        return y

    c.v += put(x[1])
    return c.v.sum()


def item_of_a_list(x):
    q = [x * 1.0]

    def put(y):
        q[0] = q[0] * y
        return y

    q[0] += put(x[1])
    return q[0].sum()


def item_of_a_tuple(x):
    t = (x * 1.0,)
    try:
        t[0] += x[1]
    except TypeError:
        return t[0].sum() * 2
    return t[0].sum()


def keys_of_a_dict(x):
    order = []

    def noted(k, v):
        order.append(k)
        return v

    d = {noted(1.0, "a"): noted(2.0, x[0]), noted(3.0, "b"): noted(4.0, x[1])}
    return d["a"] * d["b"] * (order[0] + 10 * order[1] + 100 * order[2] + 1000 * order[3])


@pytest.mark.parametrize(
    "f",
    [
        keys_of_a_dict,
        element_of_a_sum,
        element_in_a_sum,
        element,
        element_of_a_list,
        a_slice,
        attribute,
        name,
        array_by_name,
        chosen,
        masks,
        loop,
        item_of_a_dict,
        array_of_an_attribute,
        item_of_a_list,
        item_of_a_tuple,
    ],
)
def test_what_is_read_first(f):
    x, v, h = np.array([0.8, 0.4, 1.2, -0.3]), np.array([0.3, -0.2, 0.5, 0.7]), 1e-6
    expected = (f(x + h * v) - f(x - h * v)) / (2 * h)
    assert_allclose(fwdad.jit(f)(x), f(x), rtol=1e-14)
    for d in (fwdad.grad, fwdad.jacfwd):
        assert_allclose(fwdad.jit(d(f))(x) @ v, expected, rtol=1e-8, atol=1e-9)
        assert_allclose(d(f)(x) @ v, expected, rtol=1e-8, atol=1e-9)
    assert_allclose(fwdad.jvp(f, x, v)[1], expected, rtol=1e-8, atol=1e-9)


class Length:
    """Feet, which may know better how to add."""

    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return self.value + other.value

    def __radd__(self, other):
        return 2.0 * self.value + other.value

    def __gt__(self, other):
        return self.value > other.value

    def __lt__(self, other):
        return other.value > 5.0


class Inheriting(Length):
    pass


class Overriding(Length):
    def __radd__(self, other):
        return 10.0 * self.value + other.value


def a_sum(x):
    return Length(x) + Inheriting(2.0) + (Length(x) + Overriding(x)) * 0.1


def a_comparison(x):
    return x * 3.0 if Length(x) > Inheriting(2.0) else x * 5.0


def one_class(x):
    return Overriding(x) + Overriding(3.0)


@pytest.mark.parametrize("f", [a_sum, a_comparison, one_class])
def test_the_method_of_a_subclass_goes_first(f):
    for x in (1.5, 7.0):
        assert fwdad.jit(f)(x) == f(x)
        expected = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
        assert_allclose(fwdad.jit(fwdad.grad(f))(x), expected, rtol=1e-8)
        assert_allclose(fwdad.grad(f)(x), expected, rtol=1e-8)


@pytest.mark.parametrize("transform", [fwdad.grad, fwdad.value_and_grad, fwdad.hessian, None])
@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: {"a": 1.0}["b"] * x, KeyError),
        (lambda x: list(range(2))[3] * x, IndexError),
        (lambda x: float("a") * x, ValueError),
    ],
)
def test_what_always_raises(f, error, transform):
    g = fwdad.jit(f if transform is None else transform(f))
    for _ in range(2):
        with pytest.raises(error):
            g(1.5)
