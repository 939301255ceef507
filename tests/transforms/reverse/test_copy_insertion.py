"""Programs that reverse mode can run with copies that nobody can tell from their originals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.3, 0.9, 0.7, 1.2, 0.5])


def boundary_values(x):
    """A new array in each step, whose ends are set: loops in loops."""
    u = np.cos(x)
    for _ in range(3):
        for _ in range(2):
            u = np.sin(u) * x
            u[0] = 0.0
            u[-1] = x[1]
    return np.sum(u)


def then_a_step(x):
    u = np.cos(x)
    for _ in range(3):
        for _ in range(2):
            u = np.sin(x) * x
            u[1:] = u[:-1] * np.sin(x[1:])
        x = u * x
    return np.sum(u * x)


def sometimes_a_loop(x):
    u = np.cos(x)
    for _ in range(8):
        u = u * x
        u[0] = 0.5
        if np.sum(u) > 0.5:
            for _ in range(2):
                u = np.sin(u) * x
                u[-1] = 0.1
    return np.sum(u)


def two_fields(x):
    u, v = np.cos(x), np.sin(x)
    for _ in range(4):
        k = 0
        while k < 3:
            new = u + 0.1 * v
            new[0] = new[-1]
            v = v - 0.1 * new
            u = new
            k += 1
        v[0] = 0.0
    return np.sum(u * v)


def the_best(x):
    u = np.cos(x)
    best = u
    for _ in range(4):
        for _ in range(3):
            u = np.sin(u) * x
            u[0] += 0.1
            if np.sum(u) > np.sum(best):
                best = u
    return np.sum(best * x)


def one_after_the_other(x):
    u, kept = np.cos(x), []
    for _ in range(4):
        for _ in range(3):
            u = np.sin(u) * x
            u[0] += 0.1
        kept.append(u)
    return np.sum(np.array(kept) ** 2)


def scaled_if_large(x):
    u = x * 1.0
    for _ in range(3):
        if np.sum(u) > 2.0:
            u = u * x
        u[1:] = u[:-1] * np.sin(x[1:])
        u = u - 0.1 * np.cos(u * u[0])
    return np.sum(u)


def one_or_a_new_one(x):
    u = x * 1.0
    for k in range(3):
        new = u if k % 2 else np.sin(u)
        new[0] *= 0.5
        u = new * x
    return np.sum(u)


def written_on_either_side(x):
    u = x * 1.0
    for k in range(4):
        if k % 2:
            u = np.sin(u)
            for j in range(2):
                u[j] *= 0.5
        else:
            u[0] = u[1] * 2.0
        u *= x
        u = u + 1.0
    return np.sum(u)


def written_by_two_names(x):
    """What is written by either name is seen by the other, as long as both are there."""
    best = x * 2
    for k in range(4):
        t = best * 0.7
        if best[k] > 0.8:
            best = t
        t[0] = best[1] * 3
        best[2] += 0.1
    return np.sum(best**3)


def begun_as_one(x):
    """The first iteration writes what ``v`` is, too."""
    u = x * 1.0
    v = u
    w = np.ones(x.size)
    for k in range(3):
        u[1] = np.cos(w[2])
        u = np.sin(v)
        if k % 2 == 0:
            v = w
            w = v + 0.5 * x
        u[1] = w[1] * u[1]
    return np.sum(u * u) + np.sum(np.sin(v)) + np.sum(w * x)


def returned_twice(x):
    """A branch returns one array by two names."""
    v = np.cos(x)
    u = x
    if np.sum(v) > 0.5:
        v = v * x
        u = v
        v[0] = 0.3
    return np.sum(u * u) + np.sum(np.sin(v))


def returned_twice_in_a_loop(x):
    v, w = np.cos(x), x * x
    u = v
    for k in range(3):
        u = v
        if k % 2 == 0:
            u = v * x
            w = u
            w[0] = 0.3
    return np.sum(u * u) + np.sum(np.sin(v)) + np.sum(w * x)


def copied_as_another(x):
    v = np.cos(x)
    v[:-1] *= v[0]
    u = x
    if np.sum(v) > 0.5:
        v = v.copy()
        u = v
    return np.sum(u * u) + np.sum(np.sin(v))


def on_one_side_of_a_side(x):
    u = x * 1.0
    if np.sum(x) > 0.1:
        if u[1] > 0.2:
            if u[2] > 5.0:
                u = u * x
            u[1] = 0.3 * u[0]
        u[2] = x[0]
    u[0] = np.sin(u[1]) * 0.3
    return np.sum(u * u)


def looped_on_one_side(x):
    u = x * 1.0
    if np.sum(x) > 0.1:
        if u[1] > 0.2:
            for k in range(3):
                u = u * x
                part = u[1:]
                part[k % 2] = 0.4 * u[1]
        u[2] = x[0]
    else:
        u = np.cos(x)
    u[0] = np.sin(u[1]) * 0.3
    return np.sum(u * u)


def looped_in_a_loop_on_one_side(x):
    u, s = x * 1.0, 0.0
    for _ in range(3):
        w = u * x
        if x[0] > 0.1:
            for k in range(3):
                w = w * x
                w[k % 2] = 0.4 * u[1]
            w[2] = x[0]
        w[0] = np.sin(u[1]) * 0.3
        s = s + w[0]
        u = w
    return np.sum(u * u) + s


def returned_from_the_loop(x):
    """A fixed point, as SciPy's ``fixed_point`` writes it: the last array is returned or kept."""
    u = np.zeros(5)
    for _ in range(50):
        new = np.cos(0.5 * x * u)
        new[0] = 0.5 * np.sin(x[1] * u[0])
        if np.max(np.abs(new - u)) < 1e-3:
            return np.sum(new * new) + new[0] * u[1]
        u = new
    raise RuntimeError("it does not converge")


def left_with_another_name(x):
    u, w = x * 1.0, np.zeros(5)
    for k in range(6):
        new = u * x + 0.1
        new[k % 5] = np.sin(u[0])
        if np.sum(new) < 1.5:
            w = new
            break
        u, w = new, u
    return np.sum(u * w) + np.sum(w * w)


def kept_and_written_later(x):
    """What is kept is written by its other name in the next step, and read after that."""
    u = x * 1.0
    kept = u
    for k in range(4):
        new = u * x + 0.2
        new[1] = u[0]
        if k % 2 == 0:
            kept = new
        else:
            kept = u
        u = new
        u[2] = np.sin(kept[0])
    return np.sum(kept * x) + np.sum(u * kept)


PROGRAMS = [
    boundary_values, then_a_step, sometimes_a_loop, two_fields, the_best, one_after_the_other,
    scaled_if_large, one_or_a_new_one, written_on_either_side, written_by_two_names,
    returned_twice, returned_twice_in_a_loop, copied_as_another,
    on_one_side_of_a_side, looped_on_one_side, looped_in_a_loop_on_one_side,
    returned_from_the_loop, left_with_another_name, kept_and_written_later,
]  # fmt: skip


def check(f, backend):
    expected = fwdad.jacobian(f, X, mode="forward")
    assert_allclose(expected, central_differences(f, X), rtol=1e-6, atol=1e-7)
    y, gradient = fwdad.jit(fwdad.value_and_grad(f), backend=backend)(X)
    assert_allclose(y, f(X), rtol=1e-13)
    assert_allclose(gradient, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
def test_gradients(f):
    check(f, "numpy")


@pytest.mark.every(6, first=3)
@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
def test_compiled(f):
    pytest.importorskip("numba")
    check(f, "numba")


@pytest.mark.parametrize("f", [boundary_values, two_fields, scaled_if_large, returned_twice])
def test_second_derivatives(f):
    expected = fwdad.jacobian(fwdad.jacfwd(f), X, mode="forward")
    found = fwdad.jit(fwdad.hessian(f), backend="numpy")(X)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    twice = fwdad.jit(fwdad.grad(lambda x: np.sum(fwdad.grad(f)(x))), backend="numpy")(X)
    assert_allclose(twice, np.sum(expected, axis=0), rtol=1e-10, atol=1e-12)


def settled(x):
    """What is returned does not exist before the last iteration."""
    before = x * 1.0
    for _ in range(60):
        new = np.cos(before) * x * 0.5
        new[1] = before[0] * 0.5
        if np.all(np.abs(new - before) < 1e-10):
            return new
        before = new
    raise RuntimeError("it does not converge")


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_an_array_that_there_is_not_yet(backend):
    J = central_differences(settled, X)
    fast = fwdad.jit(settled, backend=backend)
    for f in (settled, fast):
        assert_allclose(fwdad.vjp(f, X)[1](np.eye(5)), J, rtol=1e-6, atol=1e-8)
        assert_allclose(fwdad.vjp(f, X)[1](np.ones(5)), np.sum(J, axis=0), rtol=1e-6, atol=1e-8)


def written_after_the_loop(x):
    """``b`` may be ``v``, which is written when the loop is over."""
    v, kept, b = x * 2.0, x * x, np.sin(x)
    for k in range(3):
        if k % 2 == 0:
            b = kept
            kept = v
        else:
            b = np.tanh(kept)
    v[2] = x[1]
    return np.sum(np.sin(v)) + np.sum(np.cos(b))


def written_as_another(x):
    """What ``last`` is in the first iteration is written in the second, and read after it."""
    first = x * 1.0
    last, product = first * 0.5, first
    for k in range(4):
        if k % 2 == 0:
            last = product
        else:
            last[2] = 0.3
            last = np.sin(x)
        product = first * last
    return np.sum(first * x) + np.sum(last * product)


def written_as_the_latest(x):
    """``u`` is what an even iteration made, as long as no odd one follows."""
    u, q = x * 1.0, x + 1.0
    for k in range(3):
        q = np.where(x > 0.6, q * x, x)
        if k % 2 == 0:
            u = q
    q[2] = x[1]
    return np.sum(u * u) + np.sum(q * x)


@pytest.mark.parametrize(
    "f",
    [begun_as_one, written_after_the_loop, written_as_another, written_as_the_latest],
)
def test_what_could_be_told(f):
    """No copy where a write by one name is read by the other: right, or refused."""
    expected = fwdad.jacobian(f, X, mode="forward")
    assert_allclose(expected, central_differences(f, X), rtol=1e-6, atol=1e-7)
    assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-11)
    with pytest.raises(fwdad.errors.UntraceableError, match=r"changes places.*`a = b.copy\(\)`"):
        fwdad.jit(fwdad.grad(f), backend="numpy")(X)
