"""Outer products that a loop adds to a matrix wait for one another: how many, and which may not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.ir.primitives import outer_products
from fwdad.ir.primitives.outer_products import OuterProducts


@pytest.fixture
def counted(monkeypatch):
    """How many outer products were added by themselves, and how many products of matrices."""
    counts = {"add_outer": 0, "add_product": 0}

    def counting(name):
        function = getattr(outer_products, name)

        def call(*args):
            counts[name] += 1
            function(*args)

        return call

    for name in counts:
        monkeypatch.setattr(outer_products, name, counting(name))
    return counts


# -- where they are added


def added(matrix, products):
    """What a matrix is after all products, one by one; and by the class, in the same order."""
    expected, found = matrix.copy(), matrix.copy()
    later = OuterProducts(found)
    for rows, columns, u, v in products:
        expected[rows, columns] += u[:, None] * v
        later.add_later(rows, columns, u, v)
    later.add_all()
    return found, expected


def views_of(name, m, n):
    """Pairs of slices."""
    if name == "growing":
        return [(slice(None), slice(k, None)) for k in range(n - 1, -1, -1)]
    if name == "shrinking":
        return [(slice(k, None), slice(k, None)) for k in range(min(m, n) + 1)]
    if name == "diagonal":
        return [(slice(k, k + 2), slice(k, k + 2)) for k in range(0, min(m, n), 2)]
    if name == "far apart":
        return [(slice(0, 1), slice(0, 1)), (slice(-1, None), slice(-1, None))] * 3
    return [(slice(None, None, -1), slice(None, None, 2)), (slice(4, 0, -2), slice(1, -1))] * 2


@pytest.mark.parametrize("shape", [(150, 90), (9, 7), (1, 5), (5, 1), (20000, 2), (0, 4)], ids=str)
@pytest.mark.parametrize("name", ["growing", "shrinking", "diagonal", "far apart", "steps"])
def test_every_view_gets_its_product(name, shape):
    rng = np.random.default_rng(0)
    held = rng.normal(size=(shape[0], 2 * shape[1]))[:, : shape[1]]  # rows are not neighbours
    products = [
        (
            rows,
            columns,
            rng.normal(size=len(held[rows])),
            rng.normal(size=held[:, columns].shape[1]),
        )
        for rows, columns in views_of(name, *shape)
    ]
    found, expected = added(held, products)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    wide = np.ones((2 * shape[0], 3 * shape[1]))
    later = OuterProducts(wide[::2, ::3])  # no routine of BLAS takes such a matrix
    for product in products:
        later.add_later(*product)
    later.add_all()
    assert_allclose(wide[::2, ::3], 1.0 + expected - held, rtol=1e-12, atol=1e-11)
    wide[::2, ::3] = 1.0
    assert np.all(wide == 1.0)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 1e200])
def test_an_infinite_factor_stays_in_its_view(bad):
    u = np.array([1.0, bad, 0.5])
    products = [(slice(0, 3), slice(k, k + 2), u, np.array([1.0, 2.0])) for k in range(4)]
    found, expected = added(np.zeros((4, 6)), products)
    assert np.array_equal(found, expected, equal_nan=True)
    assert not found[:, 5:].any()
    assert not found[3].any()


def test_vectors_are_read_when_they_are_given():
    found, u = np.zeros((3, 3)), np.ones(3)
    later = OuterProducts(found)
    for _ in range(3):
        later.add_later(slice(None), slice(None), u, u)
        u += 1.0
    later.add_all()
    assert_allclose(found, np.full((3, 3), 1.0 + 4.0 + 9.0))


# -- in gradients


def covariance(x):
    """Sums of products of columns."""
    out = np.zeros((x.shape[1], x.shape[1]))
    for i in range(x.shape[1]):
        out[i, i:] = x[:, i] @ x[:, i:]
    return np.sum(np.sin(out))


def recurrent(w, x):
    """A network whose weights every step reads."""
    h = np.zeros(w.shape[0])
    total = 0.0
    for t in range(x.shape[0]):
        h = np.tanh(w @ h + x[t])
        total = total + np.sum(h * h)
    return total


def nested(w, x):
    """Two loops, the inner one as long as the outer one says."""
    total = 0.0
    for t in range(x.shape[0]):
        for k in range(t):
            total = total + np.sum(np.sin(w @ (x[t] * x[k])))
    return total


def branching(w, x):
    """Products under a condition."""
    total = 0.0
    for t in range(x.shape[0]):
        if x[t, 0] > 0.0:
            total = total + np.sum(np.sin(w @ x[t]))
        else:
            total = total + np.sum(np.cos(w[:2] @ x[t]))
    return total


def written(w, x):
    """What the loop multiplies with, it also writes."""
    w = w.copy()
    total = 0.0
    for t in range(x.shape[0]):
        total = total + np.sum(np.sin(w @ x[t]))
        w[t % 2] *= 0.5
    return total


def carried(w, x):
    """The matrix is another one in each iteration."""
    total = 0.0
    for t in range(x.shape[0]):
        total = total + np.sum(np.sin(w @ x[t]))
        w = w * 0.5
    return total


@pytest.mark.parametrize("steps", [0, 1, 2, 70])
@pytest.mark.parametrize("f", [recurrent, nested, branching, written, carried])
def test_gradients_are_those_of_forward_mode(f, steps):
    rng = np.random.default_rng(steps)
    w, x = 0.3 * rng.normal(size=(3, 3)), rng.normal(size=(min(steps, 12), 3))
    if f is recurrent:
        x = rng.normal(size=(steps, 3))
    expected = fwdad.jacobian(lambda w: f(w, x), w, mode="forward")
    assert_allclose(fwdad.grad(f)(w, x), expected, rtol=1e-11, atol=1e-12)


def test_those_of_a_loop_are_few_products(counted):
    x = np.random.default_rng(0).normal(size=(90, 80))
    gradient = fwdad.grad(covariance)(x)
    assert counted["add_outer"] <= 2
    assert 2 <= counted["add_product"] <= 4
    direction = np.random.default_rng(1).normal(size=x.shape)
    assert_allclose(
        np.vdot(gradient, direction), fwdad.jvp(covariance, x, direction)[1], rtol=1e-11
    )


@pytest.mark.slow_cases("branching")
@pytest.mark.parametrize("f", [recurrent, nested, branching])
def test_products_wait_where_nobody_reads_the_sum(f, counted):
    x = np.random.default_rng(0).normal(size=(12, 3))
    source = fwdad.show(fwdad.grad(f), np.eye(3), x)
    assert "add_later(" in source
    assert "add_outer(" not in source
    fwdad.grad(f)(np.eye(3), x)
    assert sum(counted.values()) <= 2


@pytest.mark.parametrize("f", [written, carried])
def test_products_do_not_wait_where_the_sum_is_read(f):
    source = fwdad.show(fwdad.grad(f), np.eye(3), np.ones((4, 3)))
    assert "add_later(" not in source
    assert "OuterProducts" not in source
