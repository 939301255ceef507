"""Functions that call themselves and write into arrays that they are given, run backwards."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.transforms.reverse.sweep import Setting
from tests.differences import central_differences

X = np.array([0.7, 1.3, -0.4, 0.9, 2.1, -1.2])


def merge(a):
    n = len(a)
    if n <= 1:
        return
    m = n // 2
    left, right = a[:m].copy(), a[m:].copy()
    merge(left)
    merge(right)
    i = j = 0
    for k in range(n):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            a[k] = left[i]
            i += 1
        else:
            a[k] = right[j]
            j += 1


def merge_sort(x):
    y = x * x
    merge(y)
    return np.sum(y * np.arange(len(y))) + y[0] * y[1]


def quick(a, low, high):
    if low >= high:
        return
    i = low
    for j in range(low, high):
        if a[j] < a[high]:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[high] = a[high], a[i]
    quick(a, low, i - 1)
    quick(a, i + 1, high)


def quick_sort(x):
    y = x * x
    quick(y, 0, len(y) - 1)
    return np.sum(y * np.arange(len(y))) + y[0] * y[1]


def halves(a):
    n = len(a)
    if n == 1:
        return
    e, o = a[::2].copy(), a[1::2].copy()
    halves(e)
    halves(o)
    w = np.exp(-2j * np.pi * np.arange(n // 2) / n)
    a[: n // 2] = e + w * o
    a[n // 2 :] = e - w * o


def fourier(x):
    z = x[:4] + 0j
    halves(z)
    return np.sum(np.abs(z) ** 2 * np.arange(4)) + z[1].real ** 3


def factors(a):
    if len(a) == 1:
        return
    a[1:, 0] /= a[0, 0]
    a[1:, 1:] -= np.outer(a[1:, 0], a[0, 1:])
    factors(a[1:, 1:])


def lu(x):
    a = np.outer(x[:4], np.sin(x[:4])) + 4 * np.eye(4)
    factors(a)
    return np.log(np.abs(a[3, 3] * a[2, 2])) + a[2, 1] * a[1, 3]


def running(a, i):
    if i >= len(a):
        return
    a[i] = a[i] * a[i - 1] + np.sin(a[i - 1])
    running(a, i + 1)


def read_before(x):
    """What the calls overwrite is read backwards outside of them."""
    a = x * 1.0
    s = np.sum(a * a * a)
    running(a, 1)
    t = np.sum(np.sin(a))
    running(a, 3)
    return s * t + np.sum(a * a)


def in_loops_and_branches(x):
    a = x * 1.0
    s, n = 1.0, 0
    while np.sum(a * a) > 0.3 and n < 4:
        s = s + np.sum(a * a) * x[n]
        if a[1] > 0.5:
            running(a, 2)
        else:
            running(a[1:], 1)
        a *= 0.5
        s = s * np.cos(a[n])
        n += 1
    return s + a[5]


def chosen(order, v, low):
    if low >= len(order):
        return 0.0
    k = low
    for j in range(low, len(order)):
        if v[order[j]] < v[order[k]]:
            k = j
    order[low], order[k] = order[k], order[low]
    v[order[low]] *= 1.0 + low
    return v[order[low]] * low + chosen(order, v, low + 1)


def permutation(x):
    """An array of ints is restored, too: it says what was read."""
    order, v = np.arange(len(x)), x * 1.0
    s = np.sum(v[order] * np.arange(6))
    r = chosen(order, v, 0)
    return s * r + np.sum(v[order] * np.arange(6))


def both(a, b, n):
    if n == 0:
        return a[0] * b[1]
    a[n] += b[n - 1] * b[n]
    b[n] *= a[n - 1]
    r = both(b, a, n - 1)
    a[0] += r * b[2]
    return r * a[n] + both(a, b, n - 2) if n > 2 else r


def arrays_in_turn(x):
    a, b = 0.5 * np.cos(x), np.sin(x)
    r = both(a, b, 4)
    return r * np.sum(a * a) + np.sum(b)


def views_of_one(x):
    a = x * 1.0
    r = both(a[:3], a[3:], 2)
    return r * np.sum(a * a)


def inside_loops(a, n):
    if n == 0:
        return
    for i in range(1, len(a)):
        if a[i] > 0:
            a[i] = np.sin(a[i - 1])
            inside_loops(a[:i], n - 1)
        else:
            a[i] *= a[i - 1]
    inside_loops(a, n - 1)


def loops(x):
    a = x * 1.0
    inside_loops(a, 2)
    return np.sum(a * a)


def strided(a):
    if len(a) < 2:
        return
    a[1:] *= a[:-1]
    strided(a[::-2])
    strided(a[1::2])
    a *= np.cos(a[0])


def of_columns(x):
    m = np.outer(x, np.sin(x)).T
    strided(m[2])
    strided(m[:, 1])
    return np.sum(m * m)


def filled(a, x, n):
    if n == 0:
        return x
    a[n] = x * x
    return filled(a, a[n] * 0.5, n - 1) + a[n]


def numbers(x):
    a = np.zeros(4)
    s = filled(a, x[0], 3)
    t = np.sum(a * a)
    return s * t + filled(a, x[1], 2)


@fwdad.checkpoint(snapshots=2)
def steps(a):
    s = 0.0
    for _ in range(5):
        running(a, 1)
        a *= 0.4
        s = s + np.sum(a * a)
    return s


def from_checkpoints(x):
    a = x * 1.0
    return steps(a) * a[2]


PROGRAMS = [merge_sort, quick_sort, fourier, lu, read_before, in_loops_and_branches, permutation,
            arrays_in_turn, views_of_one, loops, of_columns, numbers,
            from_checkpoints]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")  # on a tape: `jit` records nothing
    for x in (X, X[::-1].copy()):
        expected = fwdad.jacobian(f, x, mode="forward")
        assert_allclose(expected, central_differences(f, x), rtol=1e-5, atol=1e-6)
        assert_allclose(gradient(x), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("f", PROGRAMS)
def test_pullbacks(f):
    expected = fwdad.jacobian(f, X, mode="forward")
    y, pullback = fwdad.vjp(f, X)
    assert_allclose(y, f(X), rtol=1e-13)
    assert_allclose(pullback(1.0), expected, rtol=1e-11, atol=1e-13)
    many = pullback(np.array([1.0, -2.0]))
    assert_allclose(many, [expected, -2 * expected], rtol=1e-11, atol=1e-13)


@pytest.mark.every(3)
@pytest.mark.parametrize("f", [merge_sort, quick_sort, fourier, lu, read_before, permutation,
                               arrays_in_turn, loops])  # fmt: skip
def test_second_derivatives(f):
    v = np.cos(np.arange(len(X)))

    def along(x):
        return np.sum(fwdad.grad(f)(x) * v)

    expected = v @ fwdad.jacobian(lambda x: fwdad.jacobian(f, x, mode="forward"), X, mode="forward")
    found = fwdad.jit(fwdad.grad(along), backend="numpy")(X)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert_allclose(fwdad.jvp(fwdad.grad(f), X, v)[1], expected, rtol=1e-10, atol=1e-12)


def some(x):
    return merge_sort(x) * in_loops_and_branches(x)


def all_of_them(x):
    s = merge_sort(x) + quick_sort(x) + lu(x) + in_loops_and_branches(x) + permutation(x)
    return s * fourier(x)


@pytest.mark.parametrize("f", [some, pytest.param(all_of_them, marks=pytest.mark.slow)])
def test_compiled(f):
    pytest.importorskip("numba")
    gradient = fwdad.jit(fwdad.grad(f))
    for x in (X, X[::-1].copy()):
        assert_allclose(gradient(x), fwdad.jacobian(f, x, mode="forward"), rtol=1e-11)
    assert "Numba" in fwdad.explain(gradient)


def test_a_restore_left_out_is_found(monkeypatch):
    monkeypatch.setattr(Setting, "restores", property(lambda _: False))
    found = fwdad.jit(fwdad.grad(read_before), backend="numpy")(X)
    expected = fwdad.jacobian(read_before, X, mode="forward")
    assert np.max(np.abs(found - expected)) > 1e-3


@pytest.mark.parametrize("f", [merge_sort, quick_sort])
def test_code_does_not_grow_with_the_depth(f):
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    gradient(X)
    few = fwdad.explain(gradient)
    x = np.random.default_rng(3).normal(size=100)
    assert_allclose(gradient(x), central_differences(f, x, accuracy=1e-6), rtol=1e-5, atol=1e-5)
    assert fwdad.explain(gradient) == few


def handed_back(a, i):
    if i >= len(a):
        return a
    a[i] = a[i] * a[i - 1]
    return handed_back(a, i + 1)


def returned(x):
    a = x.copy()
    b = handed_back(a, 1)
    b[0] *= 2
    return np.sum(b * b) + a[1]


def test_what_is_returned_may_be_an_argument_that_is_written():
    expected = fwdad.jacobian(returned, X, mode="forward")
    assert_allclose(fwdad.grad(returned)(X), expected, rtol=1e-12)
    with pytest.raises(fwdad.errors.UntraceableError, match="copy it"):
        fwdad.jit(fwdad.grad(returned), backend="numpy")(X)
