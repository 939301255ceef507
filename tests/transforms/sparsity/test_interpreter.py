"""Control flow, memory and calls on nodes: patterns beside dense Jacobians."""

import numpy as np
import pytest

import fwdad
from tests.random_arrays import C, X, random_arrays


def dense(f, x):
    return fwdad.jacobian(f, x, mode="forward").reshape(-1, x.size) != 0


def patterns_of(f, x):
    return [fwdad.jacobian_sparsity(f, x, kind=kind).toarray() for kind in ("global", "local")]


def branching(x):
    y = np.zeros(4)
    if x[0] > 0.5:
        y[0] = x[1]
        y[2:] = x[2:4]
    else:
        y[0] = x[2]
    y[1] = y[0] * (x[4] if x[3] > 0.5 else x[5])
    return y


def test_branches():
    at = [np.array([a, 0.1, 0.2, b, 0.4, 0.5]) for a in (0.2, 0.8) for b in (0.2, 0.8)]
    both = np.zeros((4, 6), bool)
    for x in at:
        both |= dense(branching, x)
        assert np.array_equal(patterns_of(branching, x)[1], dense(branching, x))
    for x in at:
        assert np.array_equal(patterns_of(branching, x)[0], both)


def diffused(u):
    """Steps of a stencil that is written in place, in two buffers that change roles."""
    old, new = u.copy(), np.zeros_like(u)
    for _ in range(3):
        for i in range(1, len(u) - 1):
            new[i] = old[i - 1] + old[i] * old[i + 1]
        old, new = new, old
    return old


def in_place(u):
    """What is read has been written in the same sweep."""
    v = u.copy()
    for i in range(1, len(v)):
        v[i] += 0.5 * v[i - 1]
    return v[::-1]


def recurrence(x):
    s, found = 1.0, np.zeros(len(x))
    for i in range(len(x)):
        if i % 2:
            continue
        s = s * x[i] + 1
        found[i] = s
    return found


@pytest.mark.parametrize("f", [diffused, in_place, recurrence])
def test_loops_of_known_counts(f):
    x = np.random.default_rng(1).random(9) + 0.2
    for pattern in patterns_of(f, x):
        assert np.array_equal(pattern, dense(f, x))


def until(x):
    """A loop whose count depends on x, with a buffer and a carried number."""
    y, s, k = np.zeros(len(x)), x[0], 0
    while s < 2.0 and k < len(x) - 1:
        k += 1
        s = s + x[1]
        y[2] = y[2] * x[2] + y[3]
        y[3] = x[4]
    y[0] = s
    return y


def test_loops_of_unknown_counts():
    wanted = np.zeros((6, 6), bool)
    wanted[0, [0, 1]] = wanted[2, [2, 4]] = wanted[3, 4] = True
    for x0 in (0.1, 1.5, 3.0):
        x = np.array([x0, 0.4, 0.5, 0.6, 0.7, 0.8])
        everywhere, here = patterns_of(until, x)
        assert np.array_equal(everywhere, wanted)
        assert np.array_equal(here & dense(until, x), dense(until, x))
        assert not np.any(here & ~wanted)


def swapped(x):
    a, b = x.copy(), np.zeros(len(x))
    while np.sum(a) < 5.0:
        b[:] = a * 2 + x[::-1]
        a, b = b, a
    return a


def picked(x):
    k = int(fwdad.stop_gradient(x[0]) * 3)
    y = x * x[k]
    y[k] = x[1]
    return y


def shifted(x):
    """Each element comes from the one before, as often as x says."""
    y = x.copy()
    s = x[0]
    while s < 1.0:
        y[1:] = y[:-1]
        s = s * 1.5 + 0.1
    return y


@pytest.mark.parametrize("f", [swapped, picked, shifted])
def test_what_depends_on_values(f):
    for x in np.random.default_rng(2).random((6, 4)) + 0.05:
        for pattern in patterns_of(f, x):
            assert not np.any(dense(f, x) & ~pattern)


def test_memory():
    def f(x):
        a = np.zeros((3, 4))
        b = a.T
        b[1] = x[:3]
        row = a[2]
        row += x[3]
        a[:, ::2][0] *= x[4]
        np.add.at(row, [0, 0, 3], x[:3])
        return a.reshape(-1)

    x = np.random.default_rng(3).random(5) + 0.2
    everywhere, here = patterns_of(f, x)
    assert not np.any(dense(f, x) & ~here)
    assert np.array_equal(everywhere, here)
    assert here.sum() <= dense(f, x).sum() + 3  # zeros are multiplied by x[4]


def parts(x):
    z = x * (1 + 2j)
    z.real[1] = x[0]
    w = np.real(z)
    w[2] = x[3]
    return np.concatenate([z.real, z.imag])


def turned(x):
    a = np.outer(x, x)
    b = np.einsum("ij->ji", a)
    b[0] = x[0]
    return a.ravel()


def flattened(x):
    a = np.asfortranarray(np.outer(x, x))
    b = np.ascontiguousarray(a)
    b[0] = x[3]
    c = np.asarray(a)
    c[1] = x[2]
    return np.concatenate([a.ravel(), b.ravel()])


def absolute(x):
    y = x * 1
    z = abs(y)
    z[0] = x[1]
    return y * z


@pytest.mark.parametrize("f", [parts, turned, flattened, absolute])
def test_views_that_are_written(f):
    x = np.random.default_rng(3).random(4) + 0.2
    for pattern in patterns_of(f, x):
        assert not np.any(dense(f, x) & ~pattern)


def test_an_update_of_what_it_reads():
    def f(x):
        v = np.array(x)
        v[::-1] -= v
        return v

    x = np.array([0.3, 0.5, 0.9])
    for pattern in patterns_of(f, x):
        assert pattern[0, 2]
        assert pattern[2, 0]
        assert not np.any(dense(f, x) & ~pattern)


def power(x, k):
    return x if k == 0 else power(x, k - 1) * x[::-1]


def test_recursion():
    x = np.random.default_rng(3).random(5) + 0.2
    for pattern in patterns_of(lambda x: power(x, 3), x):
        assert np.array_equal(pattern, dense(lambda x: power(x, 3), x))


def halved(x, s):
    return x[0] if s < 1.0 else halved(x[1:], s * 0.5) + x[0]


def test_recursion_without_a_known_end_is_dense():
    def f(x):
        return np.array([halved(x, x[0]), x[1]])

    x = np.array([3.0, 1.0, 0.5, 0.2])
    everywhere, here = patterns_of(f, x)
    assert not np.any(dense(f, x) & ~everywhere)
    assert not np.any(dense(f, x) & ~here)


def test_long_loops_run_once(monkeypatch):
    from fwdad.transforms.sparsity import interpreter  # noqa: PLC0415

    monkeypatch.setattr(interpreter, "_MOST_STEPS", 40)

    def f(u):
        u = u.copy()
        for _ in range(30):
            u[1:] = u[1:] * u[:-1]
        return u

    x = np.random.default_rng(3).random(4) + 0.9
    for pattern in patterns_of(f, x):
        assert np.array_equal(pattern, np.tril(np.ones((4, 4), bool)))


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    f, source = random_arrays(seed)
    J = fwdad.jacobian(f, X, args=(C,), mode="forward").reshape(-1, X.size) != 0
    for kind in ("global", "local"):
        pattern = fwdad.jacobian_sparsity(f, X, kind=kind, args=(C,)).toarray()
        assert not np.any(J & ~pattern), source

    def weighted(x, c):
        y = f(x, c)
        return np.sum(y * np.cos(np.arange(y.size)).reshape(y.shape))

    H = np.abs(fwdad.hessian(weighted, X, args=(C,))) > 1e-12
    pattern = fwdad.hessian_sparsity(weighted, X, args=(C,)).toarray()
    assert not np.any(H & ~pattern), source


def below_the_diagonal(x):
    a = x.reshape(4, 4)
    total = 0.0
    for i in range(4):
        for k in range(4):
            total += np.sum(a[i, k] * a[: i + 1, k])
        total += np.sum(a[: i + 1, : i + 1] @ a[i, : i + 1])
    return total


def test_lengths_that_counters_tell():
    """The tape does not know the length of a slice up to a counter; the run does."""
    x = np.linspace(0.2, 1.1, 16)
    pattern = fwdad.hessian_sparsity(below_the_diagonal, x)
    assert not pattern.dense
    assert np.array_equal(pattern.toarray(), fwdad.hessian(below_the_diagonal, x) != 0)


@pytest.mark.parametrize("function", [abs, np.abs, np.hypot])
def test_absolute_values_of_complex_numbers(function):
    """They are not linear between kinks, as those of real numbers are."""

    def size(x):
        return function(x[0], x[1]) if function is np.hypot else function(x[0] + 1j * x[1])

    x = np.array([0.3, 0.7, 1.1])
    for kind in ("global", "local"):
        found = fwdad.hessian_sparsity(size, x, kind=kind).toarray()
        assert np.array_equal(found, fwdad.hessian(size, x) != 0)
        assert fwdad.hessian_sparsity(lambda x: abs(x[0]) + np.abs(x[1]), x, kind=kind).nnz == 0
