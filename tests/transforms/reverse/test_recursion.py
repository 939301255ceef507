"""Recursion run backwards: a program that undoes the calls of another one, with stacks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences, difference_along

LEFT = np.array([1, 3, -1, -1, -1])
RIGHT = np.array([2, 4, -1, -1, -1])
V = np.array([0.5, 1.2, -0.7, 0.3, 2.0])


def power(x, n):
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


def two_calls(x, n):
    if n < 2:
        return x * x
    return np.sin(two_calls(x, n - 1)) + x * two_calls(x, n - 2)


def pairs(x, y, n):
    if n == 0:
        return x * y, y
    a, b = pairs(x * y, np.sin(y), n - 1)
    return a * b + x, b * y


def of_pairs(x, n):
    return pairs(x, 1.2, n)[0] + pairs(0.5, x, n)[1]


def tree(v, i, left, right):
    """Arrays that are handed through; an element is read here and there."""
    if i < 0:
        return 0.0
    below = tree(v, left[i], left, right)
    return np.sin(v[i] * below) + v[i] * tree(v, right[i], left, right) + v[i]


def of_tree(v, i):
    return tree(v, i, LEFT, RIGHT)


def even(x, n):
    if n == 0:
        return x
    return odd(x * 1.1 + np.sin(x), n - 1)


def odd(x, n):
    if n == 0:
        return -x
    return even(x * x * 0.5, n - 1) * x


def called_in_a_loop(x, n):
    """Calls inside a loop of the function itself: what both keep lies in turns."""
    if n == 0:
        return x * x
    s = 0.0
    for k in range(n):
        s += called_in_a_loop(x * (k + 1.0) * 0.3, k) * np.cos(x)
    return s


def halves(x):
    if len(x) == 1:
        return x * x
    h = len(x) // 2
    a, b = halves(x[:h]), halves(x[h:])
    return np.concatenate([a * np.sum(b), np.sin(b)])


def of_halves(x, n):
    return np.sum(halves(x) ** 2) * n


def made_arrays(x, n):
    if n == 0:
        return np.sum(x)
    return np.sum(np.sin(x)) + made_arrays(x * x * 0.5, n - 1)


def own_memory(x, n):
    """An array of each call's own, overwritten after the call inside."""
    t = np.zeros(3)
    t[0] = x
    if n == 0:
        return x
    t[1] = own_memory(t[0] * 0.9, n - 1)
    t[2] = t[1] * t[0]
    t[0] = t[2] * t[1]
    return t[0] + np.sum(t)


def put_back(x, n):
    """What a call needs of an array is overwritten after the call inside, and restored."""
    b = x * 2.0
    b[0] = b[1] * b[2]
    if n == 0:
        return np.sum(b * b)
    s = put_back(b * 0.3, n - 1)
    b[1] = s
    return np.sum(np.sin(b)) * s


def structures(x, n):
    if n == 0:
        return (x, [x * x, 3])
    a, (b, k) = structures(x * 0.7, n - 1)
    return (a * b, [b + x * k, k + 1])


def of_structures(x, n):
    a, (b, k) = structures(x, n)
    return a * b * k


def handed_back(x, n):
    """An argument that is returned, a view of it, and neither is written."""
    if n == 0:
        return x
    return handed_back(x[1:] if len(x) > 3 else x, n - 1)


def of_handed_back(x, n):
    y = handed_back(x, n)
    return np.sum(y * y) * np.sum(x * y[0])


def until(a, x):
    """The depth depends on values."""
    y = x - (x * x - a) / (2 * x)
    if abs(y - x) < 1e-3:
        return y
    return until(a, y)


def several(x, n):
    """Calls in a loop, at two places, with a number that is known."""
    s = 1.0
    for k in range(3):
        s = s + two_calls(x * (k + 1.0), k + n) * s + two_calls(s, 2)
    while s < 5.0:
        s = 1.5 * s + power(x, n)
    return s


PROGRAMS = [
    (power, 1.3, (5,)), (power, 1.3, (0,)), (two_calls, 0.7, (6,)), (of_pairs, 0.7, (4,)),
    (of_tree, V, (0,)), (of_tree, V, (-1,)), (even, 0.4, (5,)), (called_in_a_loop, 0.8, (4,)),
    (of_halves, np.arange(1.0, 8.0) / 5, (2,)), (made_arrays, V, (3,)), (own_memory, 0.8, (3,)),
    (put_back, V, (3,)), (of_structures, 0.8, (3,)), (of_handed_back, V, (3,)),
    (until, 2.0, (0.9,)), (several, 0.1, (0,)),
]  # fmt: skip


@pytest.mark.slow_cases("own_memory")
@pytest.mark.parametrize(("f", "x", "args"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_gradients(f, x, args):
    gradient = fwdad.grad(f)(x, *args)
    assert_allclose(gradient, fwdad.jacobian(f, x, args=args, mode="forward"), rtol=1e-12)
    v = np.ones_like(x)
    assert_allclose(np.sum(gradient * v), difference_along(lambda x: f(x, *args), x, v), rtol=1e-7)
    assert "tape" in fwdad.explain(fwdad.grad(f), x, *args)


@pytest.mark.parametrize(("f", "x", "args"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_pullbacks(f, x, args):
    """The same again, and for several cotangents."""
    y, pullback = fwdad.vjp(f, x, args=args)
    gradient = fwdad.grad(f)(x, *args)
    assert_allclose(y, f(x, *args), rtol=1e-14)
    for _ in range(2):
        assert_allclose(pullback(1.0), gradient, rtol=1e-13)
    assert_allclose(pullback(np.array([1.0, -2.0])), [gradient, -2 * gradient], rtol=1e-13)


def test_neither_code_nor_operations_grow_with_the_depth():
    gradient = fwdad.jit(fwdad.grad(power), backend="numpy")
    assert_allclose(gradient(1.001, 5), 5 * 1.001**4, rtol=1e-13)
    few = fwdad.explain(gradient)
    assert_allclose(gradient(1.001, 300), 300 * 1.001**299, rtol=1e-12)
    assert fwdad.explain(gradient) == few
    saved = [fwdad.memory_report(power, 1.001, n).saved for n in (50, 100)]
    assert saved[1] < 2.2 * saved[0]


def test_second_derivatives():
    for f, x, args in ((two_calls, 0.7, (5,)), (of_tree, V, (0,)), (made_arrays, V, (2,))):
        found = fwdad.jacobian(fwdad.grad(f), x, args=args)
        expected = fwdad.jacobian(fwdad.jacfwd(f), x, args=args, mode="forward")
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
        by_record = fwdad.grad(lambda x, f=f, args=args: np.sum(fwdad.grad(f)(x, *args) ** 2))(x)
        gradient = np.asarray(fwdad.grad(f)(x, *args))
        assert_allclose(by_record, 2 * np.asarray(expected) @ gradient if gradient.ndim else
                        2 * expected * gradient, rtol=1e-11, atol=1e-13)  # fmt: skip


def written_later(x, n):
    y = x * 1.0
    z = handed_back(y, n)
    z[0] = z[1] * z[2]  # into y, too
    return np.sum(y * y) + z[0]


def test_what_is_returned_may_be_an_argument_that_is_written():
    """Their cotangents would be one memory or two, by the way that the call takes."""
    expected = fwdad.jacobian(written_later, V, args=(2,), mode="forward")
    assert_allclose(fwdad.grad(written_later)(V, 2), expected, rtol=1e-13)
    with pytest.raises(fwdad.errors.UntraceableError, match="copy it"):
        fwdad.jit(fwdad.grad(written_later), backend="numpy")(V, 2)


def test_compiled(tmp_path, monkeypatch):
    """In one program; and once more as it is read from the disk."""
    pytest.importorskip("numba")
    monkeypatch.setenv("FWDAD_CACHE_DIR", str(tmp_path))

    def f(x, v):
        s = two_calls(x, 5) + of_pairs(x, 3) + even(x, 4) + called_in_a_loop(x, 3)
        return s * of_tree(v, 0) + made_arrays(v, 2) + own_memory(x, 2) + several(x, 1)

    expected = fwdad.grad(f, argnums=(0, 1))(0.3, V)
    for _ in range(2):
        gradient = fwdad.jit(fwdad.grad(f, argnums=(0, 1)))
        found = gradient(0.3, V)
        assert "Numba" in fwdad.explain(gradient)
        assert_allclose(found[0], expected[0], rtol=1e-12)
        assert_allclose(found[1], expected[1], rtol=1e-12)


def uneven(x):
    if len(x) == 1:
        return np.sin(x)
    h = len(x) // 3 + 1 if len(x) > 2 else 1
    a, b = uneven(x[:h]), uneven(x[h:])
    return np.concatenate([a * len(b), b * b + np.sum(a) / len(a)])


def of_uneven(x):
    return np.sum(uneven(x) ** 2)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_results_of_two_calls_have_lengths_of_their_own(n):
    """They were taken to be as long as one another, since one program makes them."""
    x = np.linspace(0.2, 1.1, n)
    assert_allclose(fwdad.jit(uneven, backend="numpy")(x), uneven(x), rtol=1e-14)
    forward = fwdad.jacobian(of_uneven, x, mode="forward")
    gradient = fwdad.jit(fwdad.grad(of_uneven), backend="numpy")
    assert_allclose(gradient(x), forward, rtol=1e-12)
    assert_allclose(fwdad.vjp(of_uneven, x)[1](1.0), forward, rtol=1e-12)
    assert_allclose(forward, central_differences(of_uneven, x), rtol=1e-7)


def views_summed(v):
    if len(v) == 1:
        return np.sin(v[0])
    h = len(v) // 2
    return views_summed(v[:h]) * 0.5 + np.cos(views_summed(v[h:]))


@pytest.mark.parametrize(("f", "x", "args"), [(views_summed, V, ()), (of_halves, V[:4], (2,))])
def test_gradients_of_gradients_of_recursion_on_arrays(f, x, args):
    """The reverse pass of a call adds to the cotangents of its arrays, and can be run backwards."""
    v = np.cos(np.arange(len(x)))

    def along(x):
        return np.sum(fwdad.grad(f)(x, *args) * v)

    expected = v @ fwdad.jacobian(fwdad.grad(f), x, args=args, mode="forward")
    assert_allclose(fwdad.grad(along)(x), expected, rtol=1e-12)
