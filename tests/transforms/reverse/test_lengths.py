"""Lengths that a program shows to be equal: nothing is summed over, what is assumed is tested."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
W = np.cos(np.arange(12.0)).reshape(3, 4)
V = np.arange(4.0)


def weighed(x, w):
    return np.sum(x * w)


def product(x, v):
    return np.sum(x @ v) + np.sum((x @ v) @ x)


def column(x, v):
    return np.sum((x + v[:3, None]) * x)


@pytest.mark.parametrize(("f", "other"), [(weighed, W), (product, V), (column, V)])
def test_nothing_is_summed_over(f, other):
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    expected = fwdad.jacobian(f, X, args=(other,), mode="forward")
    assert_allclose(gradient(X, other), expected, rtol=1e-14)
    if f is not column:  # a slice may have one element: that is asked when it runs
        assert "sum_to" not in fwdad.show(gradient)
        assert "np.conj" not in fwdad.show(gradient)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_other_lengths_are_refused(backend):
    """The value is not needed for the gradient, so that nothing else would see the lengths."""
    if backend == "numba":
        pytest.importorskip("numba")
    gradient = fwdad.jit(fwdad.grad(weighed), backend=backend)
    assert_allclose(gradient(X, W), W)
    assert_allclose(gradient(X[:2], W[:2]), W[:2])
    assert_allclose(gradient(X, W[:1]), np.repeat(W[:1], 3, axis=0))  # a tape of its own
    assert_allclose(gradient(X[:1], W), W.sum(axis=0)[None])
    for wrong in (W[:2], W[:, :3]):
        with pytest.raises(ValueError, match="broadcast"):
            gradient(X, wrong)


def test_captured_arrays():
    gradient = fwdad.grad(lambda x: np.sum(x * W) + np.sum(x @ V))
    assert_allclose(gradient(X), W + V)


def test_views_are_taken_again():
    """A view of what is never written is not kept, though its index is."""

    def f(x, w):
        total, at = 0.0, 0
        for k in range(4):
            total += np.sum(x * w[at : at + 3])
            at += k
        return total

    x, w = np.linspace(0.1, 1.0, 3), np.arange(12.0)
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    assert_allclose(gradient(x, w), fwdad.jacobian(f, x, args=(w,), mode="forward"), rtol=1e-13)
    assert "saved_at" in fwdad.show(gradient)


def chosen(x, c, k):
    """Four lengths that are computed: any of them may turn out to be one, and be broadcast."""
    a, b = x[: k[0]], x[: k[1]] * c[: k[2]]
    y = np.where(c[: k[3]] > 0.0, np.sin(a), b)
    return np.sum(np.where(y > 0.0, 0.0, y) * x[: k[0]] + np.select([a > 0.3, b > 0.1], [a, b]))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_choices_of_lengths_that_may_be_one(mode):
    """One tape: where something was broadcast is decided when it runs."""
    x, c = np.array([0.4, -0.7, 1.1, 0.9]), np.array([-1.0, 0.5, 2.0, -0.2])
    derivative = fwdad.grad(chosen) if mode == "reverse" else fwdad.jacfwd(chosen)
    compiled = fwdad.jit(derivative, backend="numpy")
    for k in ((3, 3, 3, 3), (1, 3, 1, 3), (3, 1, 1, 1), (1, 1, 1, 4), (1, 4, 4, 1), (1, 1, 1, 1)):
        expected = fwdad.jacobian(chosen, x, args=(c, np.array(k)), mode="forward")
        assert_allclose(compiled(x, c, np.array(k)), expected, rtol=1e-14, atol=1e-16)
        differences = central_differences(lambda x, k=k: chosen(x, c, k), x)
        assert_allclose(expected, differences, rtol=1e-8, atol=1e-8)
    assert fwdad.cache_info(compiled).traces == 1
    assert "push_" not in fwdad.show(compiled)
    assert "pull_" not in fwdad.show(compiled)


def test_slices_that_are_chosen_are_compiled():
    """What a limiter of fluxes does."""
    pytest.importorskip("numba")

    def limited(x):
        flux = x[1:] - x[:-1]
        return np.sum(np.where(flux * x[1:] > 0.0, 0.0, flux) ** 2)

    compiled = fwdad.jit(fwdad.grad(limited))
    for n in (9, 2, 40):
        x = np.cos(np.arange(float(n)))
        assert_allclose(compiled(x), fwdad.grad(limited)(x), rtol=1e-14)
        assert_allclose(compiled(x), fwdad.jacobian(limited, x, mode="forward"), rtol=1e-13)
    assert "NumPy" not in fwdad.explain(compiled)


def another_length_each_time(u, n):
    part = u[2:]
    for k in range(n):
        v = part[1:] * u[0]
        part = np.concatenate([v, v])[: len(u) - 4 - k]
    return np.sum(part**2)


def another_length_on_each_side(u, n):
    if n > 1:
        part = np.concatenate([u * 2, u])
        part = part[: len(u) - n]
    else:
        part = u[1:]
    return np.sum(part**3)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("f", [another_length_each_time, another_length_on_each_side])
def test_lengths_of_what_a_loop_or_branch_returns(f, n):
    """The length of the last iteration's array was asked where no iteration may have been."""
    x = np.arange(10.0) / 5
    wanted = fwdad.jacobian(lambda x: f(x, n), x, mode="forward")
    assert_allclose(fwdad.grad(f)(x, n), wanted, rtol=1e-14)
    _, pullback = fwdad.vjp(f, x, args=(n,))
    assert_allclose(pullback(1.0), wanted, rtol=1e-14)


def grows(x, m, n):
    a = x * 1.0
    for _ in range(n):
        a = np.concatenate([a, np.cos(a[:1])])
    return np.sum(a**3)


def shrinks_later(x, m, n):
    """That the first of the two changes its length shows only once the second one has."""
    a = b = x * 1.0
    for _ in range(n):
        a = b * b
        b = np.sin(b[1:])
    return a.sum() * len(a) + len(x) * x[0] + np.sum(b)


def first_bound_inside(x, m, n):
    w, a = m[0] * 1.0, m.copy()
    for k in range(n):
        w = np.sin(x) * w
        for _ in range(2):
            v = w[::-1]
        if k % 2 == 0:
            np.add.at(a, [1], np.sin(v))
    return np.sum(a)


def replaced(x, m, n):
    w, a = m[0] * 1.0, m.copy()
    for _ in range(n):
        a = np.tril(np.exp(x) - x[None])  # of one row
    a[np.abs(a) < 0.8] = np.sin(w.sum())
    return np.sum(a**2)


@pytest.mark.parametrize("f", [grows, shrinks_later, first_bound_inside, replaced])
def test_lengths_of_one_iteration(f):
    """What a loop carries may be longer or shorter in each iteration, or not there at first."""
    x, m = np.linspace(0.1, 1.3, 4), np.cos(np.arange(12.0)).reshape(3, 4)
    along = np.array([0.3, -1.0, 0.5, 2.0])

    def slope(x, m, n):
        return np.sum(fwdad.grad(f)(x, m, n) * along)

    def forward_over_reverse(x, m, n):
        return fwdad.jvp(fwdad.grad(f), x, along, args=(m, n))[1]

    once, twice, over = (
        fwdad.jit(g, backend="numpy")
        for g in (fwdad.value_and_grad(f), fwdad.grad(slope), forward_over_reverse)
    )
    for n in range(4):
        y, gradient = fwdad.value_and_jacobian(f, x, args=(m, n), mode="forward")
        hessian = fwdad.jacobian(lambda x, n=n: fwdad.jacfwd(f)(x, m, n), x, mode="forward")
        assert_allclose(once(x, m, n)[0], y, rtol=1e-13)
        assert_allclose(once(x, m, n)[1], gradient, rtol=1e-12)
        assert_allclose(twice(x, m, n), hessian @ along, rtol=1e-11, atol=1e-13)
        assert_allclose(over(x, m, n), hessian @ along, rtol=1e-11, atol=1e-13)
