"""Names that are one view or another, or one array or another, as branches and loops choose."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences
from tests.tiers import every

X = np.array([0.7, 1.3, -0.4, 0.9, 2.1, -1.2])


def of_two_arrays(x):
    a, b = x * 2, x * 3
    w = a[1:4] if x[0] < x[1] else b[:3]
    w[0] = x[2] ** 2
    w[1:] *= w[0]
    return np.sum(a * a) + np.sum(b * b * b) + w[1]


def of_one_array(x):
    """By numbers of all kinds: from the end, none, computed."""
    a = x * 2
    n = 1 + int(x[0] > 0)
    for k in range(3):
        if x[k] > 1:
            w = a[-2:]
        elif x[k] > 0:
            w = a[n : n + 2]
        else:
            w = a[:2]
        w[-1] = w[0] * x[k]
        a[5] += w[0]
    return np.sum(a * a * a) + w[0]


def rows_and_elements(x):
    m = np.outer(x, np.sin(x))
    s = 0.0
    for k in range(4):
        r = m[k] if x[k] > 0.8 else m[k + 1]
        c = m[:, k] if r[0] > 0.3 else m[:, 0]
        r[1:] = r[:-1] * x[0]
        c[::2] *= r[k]
        s += np.sum(c[1:] * r[1:])
    return np.sum(m * m) * s


def or_made_there(x):
    a = x * 2
    s = 0.0
    for k in range(4):
        w = a[k : k + 2] if a[k] > 0.5 else np.sin(x[k : k + 2])
        w[0] = w[1] * x[k] + 0.1
        w *= 1.1
        s = s + w[0] * w[1]
    return np.sum(a * a) + s


def moves_on(x):
    a = x * 2
    w = a[:2]
    for k in range(4):
        w[0] = w[1] * w[0]
        w = a[k : k + 2]
        w[1] += x[k]
    return np.sum(a * a) + w[0]


def moves_at_times(x):
    m = np.outer(x, x)
    r = m[0]
    for k in range(1, 4):
        if x[k] > 0.5:
            r = m[k]
        r[k] = r[0] * r[1]
    return np.sum(m * m) + np.sum(r)


def moves_to_another_array(x):
    a, b = x * 2, x * 3
    w = a[:2]
    for k in range(4):
        w *= 0.5 * x[k]
        w = b[k : k + 2] if x[k] > 0.8 else w
        a[k] += w[1]
    w[0] *= w[1]
    return np.sum(a * a) + np.sum(b * b * b)


def until(x):
    a = x * 2
    w = a[:2]
    i = 0
    while w[0] < 5 and i < 4:
        w[1] = w[0] * 1.5 + 0.2
        w = a[i : i + 2] if a[i] > 1 else a[i + 1 : i + 3]
        i += 1
    w[0] *= 2
    return np.sum(a * a * a) + w[0]


def best_so_far(x):
    """As optimisers keep it; nobody writes into it."""
    best, least = x, np.inf
    for k in range(4):
        t = x * 0.9 + 0.1 * k
        t[k] = t[k] ** 2 * x[0]
        value = np.sum((t - k * 0.3) ** 2)
        if value < least:
            best, least = t, value
    return np.sum(best**3) + least


def best_so_far_written(x):
    best = x.copy()
    for k in range(3):
        t = x * x + k
        t[k] = np.sin(x[k]) * best[k]
        if np.sum(t) > np.sum(best):
            best = t
        best[0] *= 1.1
    return np.sum(best * best)


def made_on_one_side(x):
    best = x * 2
    for k in range(4):
        if best[k] > 0.8:
            best = best * 0.7
            best[k] = np.sin(x[k])
        best[0] += 0.3 * best[k]
    return np.sum(best**3)


def written_after_the_loop(x):
    """What is written later may be the array from before."""
    best = x * 1.0
    for k in range(3):
        t = x * (k + 0.2)
        t[k] = best[k]
        if t[1] > best[2]:
            best = t
    first = x * 1.0
    y = best
    y[0] = 7.0 * x[1]
    return np.sum(y * first) + np.sum(best)


def golden_section(x):
    a, b = x * 0.5, x * 1.5
    for k in range(5):
        c, d = 0.6 * a + 0.4 * b, 0.4 * a + 0.6 * b
        c[k] += 0.01 * x[0]
        d[k] -= 0.01
        if np.sum(c * c) > np.sum(d * d * d):
            a = c
        else:
            b = d
    return np.sum(a * a * b)


def heavy_ball(x):
    p, q = x.copy(), x * 0.9
    for k in range(4):
        n = p + 0.5 * (p - q) - 0.1 * np.sin(p)
        n[k] = p[k]
        if n[0] > 0:
            q, p = p, n
        else:
            q = n
        p[1] *= 1.01
    return np.sum(p * q)


def in_turn(x):
    a, b = x * 1.1, x.copy()
    for k in range(3):
        t = 0.6 * a + 0.4 * b
        t[k] = x[0] * x[k]
        b, a = a, t
        b[2] *= 0.9
    return np.sum(a * b)


VIEWS = [of_two_arrays, of_one_array, rows_and_elements, or_made_there, moves_on, moves_at_times,
           moves_to_another_array, until]  # fmt: skip
ARRAYS = [best_so_far, best_so_far_written, made_on_one_side, written_after_the_loop,
          golden_section, heavy_ball, in_turn]  # fmt: skip


def reshaped_with_the_array(x):
    """The array that a view is taken of changes places in the loop."""
    a, b = x[:6] * 1.0, np.cos(x[:6])
    m = a.reshape(2, 3)
    for k in range(5):
        m[:, 1] *= b[:2]
        t = m.T
        t[0] += t[1] * b[k % 4]
        if np.sum(m[0]) > 0.5:
            a[k] = np.exp(-a[k]) * b[1]
        if k % 3 == 1:
            a, b = b, a
            m = a.reshape(2, 3)
    return np.sum(a * a) + np.sum(np.sin(b)) + m[1, 0]


def views_of_views(x):
    """A reshape, an index and a slice of it; two loops choose the array."""
    a, b = np.sin(x[:6]), x[:6] * x[:6]
    w = a.reshape(3, 2)[0][:1]
    for j in range(2):
        for k in range(3):
            w[0] += b[k] * x[j]
            if x[k] > 0.5:
                w = b.reshape(3, 2)[k][j:]
            a[k] *= w[0]
        a, b = b, a
        w *= 0.5
    return np.sum(a * b) + w[0]


def reshaped_to_other_lengths(x):
    """The lengths are chosen, as all numbers of views are."""
    a, b = x[:6] * 2.0, np.cos(x[:6])
    m = a.reshape(2, 3) if x[0] > 5 else b.reshape(3, 2)
    m[1, 0] *= x[1]
    t = a.reshape(2, 3).T if x[1] > 0 else b.reshape(2, 3).T
    for k in range(2):
        t[k] += m[k, 1] * a[k]
        if x[k] > 1:
            t = b.reshape(2, 3).T
    return np.sum(a * a * b) + np.sum(m) + t[2, 1]


RESHAPED = [reshaped_with_the_array, views_of_views, reshaped_to_other_lengths]


@pytest.mark.parametrize("f", [*VIEWS, *ARRAYS, *RESHAPED])
def test_gradients(f):
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")  # on a tape: `jit` records nothing
    for x in (X, X[::-1].copy(), np.append(X, 0.3)):
        expected = fwdad.jacobian(f, x, mode="forward")
        assert_allclose(expected, central_differences(f, x), rtol=1e-6, atol=1e-6)
        assert_allclose(gradient(x), expected, rtol=1e-12)
        assert_allclose(fwdad.vjp(f, x)[1](np.array([1.0, 2.0]))[1], 2 * expected, rtol=1e-12)


@pytest.mark.every(2)
@pytest.mark.parametrize("f", [*VIEWS[:3], *VIEWS[4:], *ARRAYS[1:3], RESHAPED[0]])
def test_second_derivatives(f):
    v = np.cos(np.arange(len(X)))

    def along(x):
        return np.sum(fwdad.grad(f)(x) * v)

    expected = v @ fwdad.jacobian(lambda x: fwdad.jacobian(f, x, mode="forward"), X, mode="forward")
    assert_allclose(fwdad.jit(fwdad.grad(along), backend="numpy")(X), expected, rtol=1e-11)
    assert_allclose(fwdad.jvp(fwdad.grad(f), X, v)[1], expected, rtol=1e-11)


@pytest.mark.slow_cases("views")
@pytest.mark.parametrize(
    "programs", every(2, [VIEWS, ARRAYS, RESHAPED]), ids=["views", "arrays", "reshaped"]
)
def test_compiled(programs):
    pytest.importorskip("numba")

    def f(x):
        s = 0.0
        for g in programs:
            s = s + g(x)
        return s

    gradient = fwdad.jit(fwdad.grad(f))
    for x in (X, X[::-1].copy()):
        assert_allclose(gradient(x), fwdad.jacobian(f, x, mode="forward"), rtol=1e-11)
    assert "Numba" in fwdad.explain(gradient)


def begun_with_another_name(x):
    a = x * 1.5
    best = a
    for k in range(3):
        t = a * x + k
        if k != 1:
            best = t
        best[k] = best[k] ** 2 + a[0]
    return np.sum(best * best) + np.sum(a * a)


def carried_by_another_name(x):
    best, t = x * 2, x * 1.0
    for k in range(4):
        t = t * 0.7 + best[k]
        if best[k] > 0.8:
            best = t
        best[0] *= 1.1
    return np.sum(best**3)


@pytest.mark.parametrize("f", [begun_with_another_name, carried_by_another_name])
def test_what_somebody_could_tell(f):
    """No copies: recorded as it runs, and under `jit` refused."""
    expected = fwdad.jacobian(f, X, mode="forward")
    assert_allclose(expected, central_differences(f, X), rtol=1e-6, atol=1e-6)
    assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-12)
    with pytest.raises(fwdad.errors.UntraceableError, match="changes places"):
        fwdad.jit(fwdad.grad(f), backend="numpy")(X)
