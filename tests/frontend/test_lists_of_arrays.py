"""Lists of arrays that are changed, or read while they grow, and lists with None."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.523, 1.257, 0.311, 0.919, 0.737, 1.131, 0.229, 0.853, 0.413, 1.019])
Y = np.random.default_rng(5).uniform(0.1, 1.4, 10)


def array_before_the_last(a):
    out = [a[:2], a[2:4]]
    while out[-1][0] < 100:
        out.append(out[-1] + out[-2])
    return out[-1]


def array_between(a):
    out = [a]
    for x in a:
        out.insert(1, x * a)
    return out[0]


def arrays_at_both_ends(a):
    out = []
    for x in a:
        out.append(x * a)
        out.insert(0, x + a)
    return out[0]


def another_array(a):
    out = []
    for x in a:
        out.append(x * a)
    out[0] = a
    return out[0]


def array_taken_out(a):
    out = []
    for x in a:
        out.append(x * a)
    return out.pop(1)


def array_deleted(a):
    out = []
    for x in a:
        out.append(x * a)
    del out[0]
    return out[0]


def appended_after_a_pop(a):
    out = []
    for x in a:
        out.append(x * a)
    out.pop()
    out.append(a)
    return np.array(out)


def reversed_on_one_side(a):
    out = []
    for x in a:
        out.append(x * a)
    if a[0] > 0:
        out.reverse()
    return np.array(out)


def under_checkpoint(a):
    def squares(a):
        out = []
        for x in a:
            out.append(x * a)
        return np.sum(np.array(out))

    return fwdad.checkpoint(squares)(a)


def states(x):
    """The states of an integrator, each from the one before, by its number."""
    ys = [x[:2].copy()]
    for i in range(40):
        ys.append(ys[i] + 0.05 * np.array([ys[i][1], -ys[i][0]]) * x[2])
    return ys[-1][0] + ys[20][1]


def multistep(x):
    f, y = [x[0], x[1]], [1.0]
    for i in range(40):
        y.append(y[i] + 0.05 * (1.5 * f[i + 1] - 0.5 * f[i]))
        f.append(-y[i + 1] * x[2])
    return y[-1]


def stages(x):
    """Runge and Kutta's fourth order, with a list of stages."""
    ks, y = [np.zeros(len(x)) for _ in range(4)], x.copy()
    for n in range(9):
        for s in range(4):
            z = y if s == 0 else y + 0.05 * (1 + s // 3) * ks[s - 1]
            ks[s] = -z * z + 0.1 * n
        y = y + 0.1 / 6 * (ks[0] + 2 * ks[1] + 2 * ks[2] + ks[3])
    return np.sum(y)


def layers(x):
    W = [np.outer(x[:3] + k, x[3:6]) for k in range(12)]
    h = np.ones(3)
    for k in range(12):
        h = np.tanh(W[k] @ h * 0.1 + W[(k + 1) % 12][0])
    return np.sum(h)


def filled(x):
    out = [None] * len(x)
    for i in range(len(x)):
        out[i] = x[i] ** 2 + (out[i - 1] if i else 0.0)
    return sum(out)


def some_are_none(x):
    best = [None] * len(x)
    for i in range(len(x)):
        j = (i * 3) % len(x)
        if x[j] > 0.6:
            best[j] = x[j] * x[i]
    total = 0.0
    for k in range(len(x)):
        if best[k] is None:
            total += x[k]
        else:
            total += best[k] ** 2
    return total


def arrays_or_none(x):
    ys = [None] * 12
    ys[0] = x[:3] * 1.0
    for i in range(1, 12):
        ys[i] = ys[i - 1] * x[3] + (ys[i - 2] if i > 3 and ys[i - 2] is not None else np.zeros(3))
    return np.sum(ys[-1])


def exchanged(x):
    ys = [x[:3] * k for k in range(20)]
    for i in range(10):
        ys[i], ys[19 - i] = ys[19 - i], ys[i]
    return np.sum(np.array(ys) * np.arange(60).reshape(20, 3))


def moved(x):
    ys, total = [x[:3] * k for k in range(20)], 0.0
    for i in range(10):
        total += ys[(i * 7) % 20] @ ys[i]
        ys.pop(0)
        ys.insert(3, ys[2] * x[1])
    return total + sum(np.sum(y) for y in ys)


def written_under_its_name(x):
    """An array on a list is the array itself: such loops are unrolled."""
    y, ys = x[:2].copy(), []
    for i in range(12):
        y += x[2] * i
        ys.append(y)
        if i > 2:
            y[0] += ys[i - 2][1] * 0.1
    return np.sum(np.array(ys) ** 2)


def written_as_an_item(x):
    ys = [x[:2].copy()]
    for i in range(12):
        ys.append(ys[i] * 0.9 + x[2])
        ys[i][0] = x[i % 5]
    return np.sum(np.array(ys) ** 2)


PROGRAMS = [
    array_before_the_last, array_between, arrays_at_both_ends, another_array, array_taken_out,
    array_deleted, appended_after_a_pop, reversed_on_one_side, under_checkpoint, states, multistep,
    stages, layers, filled, some_are_none, arrays_or_none, exchanged, moved,
    written_under_its_name, written_as_an_item,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_all_modes(f):
    fast, forward = (fwdad.jit(g, backend="numpy") for g in (f, fwdad.jacfwd(f)))
    reverse = fwdad.jit(fwdad.jacrev(f), backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fwdad.TraceWarning)  # some loops are short
        for x in (X, Y, X[::-1].copy()):
            y, J = f(x), fwdad.jacobian(f, x, mode="forward")
            assert_allclose(J, central_differences(f, x, least=0.1), rtol=1e-5, atol=1e-6)
            assert type(fast(x)) is type(y)
            assert_allclose(fast(x), y, rtol=1e-12)
            assert_allclose(forward(x), J, rtol=1e-10, atol=1e-12)
            assert_allclose(reverse(x), J, rtol=1e-10, atol=1e-12)
            for n in (1, 2, 3) if x is X else ():
                v = np.cos(np.arange(n * x.size)).reshape(n, -1)
                found = fwdad.jvp(fast, x, v)[1]
                assert_allclose(found, np.moveaxis(J @ v.T, -1, 0), rtol=1e-10, atol=1e-12)


@pytest.mark.every(3)
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled(f):
    pytest.importorskip("numba")
    fast, reverse = fwdad.jit(f), fwdad.jit(fwdad.jacrev(f))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (X, Y):
            assert_allclose(fast(x), f(x), rtol=1e-12)
            J = fwdad.jacobian(f, x, mode="forward")
            assert_allclose(reverse(x), J, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", [states, multistep, layers, filled, some_are_none, exchanged, moved])
def test_one_body(f):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no loop is unrolled
        fwdad.jit(fwdad.grad(f), backend="numpy")(X)


def kept(x):
    """What was on the list stays what it was, where another one takes its place."""
    ys = [x[:3] * k for k in range(12)]
    total = 0.0
    for i in range(11):
        a = ys[i]
        b = ys.pop(0)
        ys[i] = a * 0.5
        ys.insert(0, x[3:6] * i)
        total += np.sum(a * b)
    return total


def kept_row(x):
    T = [[x[j] * i for j in range(4)] for i in range(9)]
    total = 0.0
    for i in range(9):
        T[i], row = [x[0] * k for k in range(4)], T[i]
        row[1] += T[i][2]
        total += sum(row) * T[i][1]
    return total


@pytest.mark.parametrize("f", [kept, kept_row])
def test_what_was_on_a_list(f):
    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X), rtol=1e-12)
    found = fwdad.jit(fwdad.grad(f), backend="numpy")(X)
    assert_allclose(found, central_differences(f, X), rtol=1e-5, atol=1e-6)


def returned(x):
    ys = [None] * 9
    for k in range(8):
        ys[k + 1] = x[:2] * k
    ys[0] = x[2:4]
    numbers = [None] * 9
    for k in range(9):
        numbers[k] = x[k]
    return ys, numbers


def test_results():
    found, expected = fwdad.jit(returned, backend="numpy")(X), returned(X)
    assert [type(x) for x in found[1]] == [type(x) for x in expected[1]]
    assert_allclose(found[1], expected[1])
    for a, b in zip(found[0], expected[0], strict=True):
        assert type(a) is np.ndarray
        assert_allclose(a, b)


def test_none_in_arithmetic_is_raised():
    def f(x):
        out = [None] * 9
        for k in range(8):
            out[k] = x[k]
        return out[(len(x) * 8) % 9] + x[0]

    with pytest.raises(TypeError):
        f(X)
    with pytest.raises(TypeError):
        fwdad.jit(f, backend="numpy")(X)


def test_a_sum_over_none_is_raised():
    def f(x):
        out = [None] * 9
        for k in range(8):
            out[k] = x[k]
        return sum(out)

    with pytest.raises(TypeError):
        fwdad.jit(f, backend="numpy")(X)
    assert_allclose(fwdad.jit(filled)(X), filled(X))


def test_none_is_returned():
    def f(x):
        out, rows = [None] * 12, [None] * 12
        for k in range(len(x)):
            if x[k] > 0.5:
                out[k] = x[k] * k
                rows[k] = x[:2] * k
        return out, rows

    fast = fwdad.jit(f, backend="numpy")
    for x in (X, Y):
        found, expected = fast(x), f(x)
        assert found[0] == expected[0]
        for a, b in zip(found[1], expected[1], strict=True):
            assert (a is None) is (b is None)
            assert a is None or np.array_equal(a, b)


@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
def test_none_beside_other_lists():
    def f(x):
        out, T = [None] * 9, []
        for k in range(9):
            if k % 2:
                out[k] = x[k]
        both = out + [x[0]]
        for k in range(9):
            T.append([x[k]])
        T[3] = out[1:4:2]
        return both, T[3], out[:2], list(out)

    assert fwdad.jit(f, backend="numpy")(X) == f(X)


@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
def test_other_lengths_are_other_tapes():
    fast = fwdad.jit(stages, backend="numpy")
    for n in (3, 5, 3):
        assert_allclose(fast(X[:n]), stages(X[:n]), rtol=1e-12)
