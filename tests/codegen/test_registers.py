"""Programs of tangents under Numba: lanes in registers, the same results as under NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("numba")

import fwdad
from fwdad.codegen.call_entry import compile_program
from fwdad.codegen.loops.source import numba_source
from fwdad.frontend.trace import trace
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.forward import push_forward
from tests.differences import central_differences, difference_along


def pushed(f, example, seeds, n):
    program, constants = push_forward(trace(f, *example).program, n, seeds)
    assert not constants
    return program


def differences(f, args, directions):
    """Differences of f's only result along each lane."""

    def moved(t, k):
        return f(*(x + t * directions[i][k] if i in directions else x for i, x in enumerate(args)))

    lanes = range(next(iter(directions.values())).shape[0])
    return np.stack([difference_along(lambda t, k=k: moved(t, k), 0.0) for k in lanes])


def iterated(x, n):
    for _ in range(n):
        x = 0.3 * np.sin(x) * x + np.sqrt(x) / 3.0 + 1.0
    return x


def lorenz(s, n, dt):
    x, y, z = s[0], s[1], s[2]
    for _ in range(n):
        dx, dy, dz = 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z
        x, y, z = x + dt * dx, y + dt * dy, z + dt * dz
    return np.array([x, y, z])


def recurrence(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] * x[i] + np.sin(x[i])
    return y


def accumulated(x):
    y = np.zeros(3)
    for i in range(len(x)):
        y[i % 3] += x[i] * x[0]
        y[0] -= x[i]
    return y


def either(x, flag):
    y = x * x if flag else 3.0 * x
    if y > 100.0:
        y = -y
    return y * x


@pytest.mark.slow_cases(
    "either-args5-seeds5-1",
    "lorenz-args1-seeds1-8",
    "recurrence-args2-seeds2-3",
    "recurrence-args2-seeds2-8",
    "accumulated-args3-seeds3-3",
)
@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize(
    ("f", "args", "seeds"),
    [
        (iterated, (np.float64(1.5), 3), [True, False]),
        (lorenz, (np.array([1.0, 1.1, 0.9]), 4, 0.01), [True, False, False]),
        (recurrence, (np.array([0.5, 1.5, -0.5, 2.0]),), [True]),
        (accumulated, (np.array([0.5, 1.5, -0.5, 2.0]),), [True]),
        (either, (np.float64(1.5), True), [True, False]),
        (either, (np.float64(11.0), True), [True, False]),
    ],
)
def test_tangents(f, args, seeds, n, rng):
    program = pushed(f, args, seeds, n)
    lanes = rng.standard_normal((n, *np.shape(args[0])))
    compiled, plain = compile_program(program), compile_program(program, "numpy")
    for given in (lanes, np.asfortranarray(lanes)):
        found, wanted = compiled.call(*args, given), plain.call(*args, given)
        assert compiled.backend == "numba", compiled.left
        for a, b in zip(found, wanted, strict=True):
            assert_allclose(a, b, rtol=1e-14, atol=1e-14)
    assert_allclose(found[0], f(*args), rtol=1e-14)
    assert_allclose(found[1], differences(f, args, {0: lanes}), rtol=1e-6, atol=1e-7)


def test_lanes_are_in_registers():
    source, _ = numba_source(pushed(lorenz, (np.ones(3), 4, 0.01), [True, False, False], 3))
    assert source.code.count("load_3(") == 3
    assert source.code.count("store_3(") == 3
    loop = source.code.split("for ")[1].split("np.empty")[0]
    assert "scale_3(" in loop
    assert "load_3(" not in loop


def test_zero_lanes_stay_zero_under_infinite_partials():
    def f(x):
        return np.sqrt(x) + np.log(x)

    program = pushed(f, (np.float64(1.0),), [True], 3)
    compiled = compile_program(program)
    with np.errstate(all="ignore"):
        y, lanes = compiled.call(np.float64(0.0), np.array([0.0, 1.0, -1.0]))
    assert compiled.backend == "numba"
    assert y == -np.inf
    assert_array_equal(lanes, [0.0, np.inf, -np.inf])


def test_lanes_of_arrays():
    def f(x):
        return np.sqrt(x) * x.sum()

    program = pushed(f, (np.ones(4),), [True], 2)
    compiled = compile_program(program)
    x = np.array([1.0, 4.0, 9.0, 0.25])
    lanes = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 2.0, 0.5]])
    y, y_dot = compiled.call(x, lanes)
    assert compiled.backend == "numba", compiled.left
    assert_allclose(y, f(x))
    assert_allclose(y_dot, differences(f, (x,), {0: lanes}), rtol=1e-6, atol=1e-7)


def along(p, v, steps):
    return fwdad.jvp(lorenz, p, v, args=(steps, 0.01))


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_given_directions(n, rng):
    p, lanes = np.array([1.0, 1.1, 0.9]), rng.standard_normal((n, 3))
    tape = trace(along, p, lanes, 3)
    compiled, plain = compile_program(tape.program), compile_program(tape.program, "numpy")
    leaves = tape.leaves([p, lanes, 4])
    (y, y_dot), (wanted, wanted_dot) = compiled.call(*leaves), plain.call(*leaves)
    assert compiled.backend == "numba", compiled.left
    assert_allclose(y, wanted, rtol=1e-15)
    assert_allclose(y_dot, wanted_dot, rtol=1e-14, atol=1e-15)
    assert_allclose(y_dot, differences(lorenz, (p, 4, 0.01), {0: lanes}), rtol=1e-6, atol=1e-7)
    if n > 1:
        assert f"store_{n}(" in compiled.source.text
        with pytest.raises(ValueError, match="broadcast"):
            compiled.call(*tape.leaves([p, lanes[:, :2], 4]))


def coupled(p, steps):
    x, y = p[0], 0.5 * p[-1]
    for _ in range(steps):
        x, y = x + 0.1 * (p[-1] * y - x), y - 0.1 * x * p[0]
    return np.array([x, y])


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_lanes_that_are_known_one_by_one(n):
    p = np.linspace(0.5, 1.5, n)
    tape = trace(fwdad.jacfwd(coupled), p, 2)
    compiled, plain = compile_program(tape.program), compile_program(tape.program, "numpy")
    leaves = tape.leaves([p, 3])
    (found,), (wanted,) = compiled.call(*leaves), plain.call(*leaves)
    assert compiled.backend == "numba", compiled.left
    assert_allclose(found, wanted, rtol=1e-15, atol=1e-16)
    expected = differences(coupled, (p, 3), {0: np.eye(n)}).T
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    source = numba_source(tape.program)[0].text
    body = [line for line in source.splitlines() if line.startswith(" " * 8)]
    assert (f"build_{n}(" in source) == (n > 1)  # a single lane is a number
    assert not any("np.empty" in line for line in body)


def given_numbers(x, y, k):
    a = np.array([x, 3, y * k])
    b = np.array([1.0, y, 0.0])
    for _ in range(k):
        b = scale_lanes(x, b) - a
    if y < 0:
        b = a
    return b, b / 3.0


def given_and_kept(x, y, k):
    a = np.array([x, 3, y * k])
    b = scale_lanes(y, a) + a  # in registers, and in an array that is returned
    a_2 = np.array([y, 2.0, x])
    b = b + a_2
    a_2[1] = b[0]
    return a, b, a_2


@pytest.mark.parametrize(("f", "built"), [(given_numbers, 2), (given_and_kept, 0)])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_numbers_as_lanes_and_as_an_array(f, built, k):
    program = trace(f, np.float64(1.5), 2.0, 2).program
    assert numba_source(program)[0].text.count("build_3(") == built
    compiled, plain = compile_program(program), compile_program(program, "numpy")
    args = (np.float64(0.25), np.inf, k) if k else (np.float64(2.5), -0.5, k)
    with np.errstate(all="ignore"):
        found, wanted, own = compiled.call(*args), plain.call(*args), f(*args)
    assert compiled.backend == "numba", compiled.left
    for a, b, c in zip(found, wanted, own, strict=True):
        assert_allclose(a, b, rtol=1e-15)
        assert_allclose(a, c, rtol=1e-15)


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize("points", [8, 5])
def test_lanes_that_get_another_shape_in_a_loop(points, rng):
    def f(mu, x):
        s = 0.0
        a = mu.T @ mu + 2.0 * np.eye(2)
        for j in range(2):
            s = s + np.sum(np.linalg.solve(a, (x - mu[j]).T)[:, 0] * mu[0])
        return s

    mu, x = rng.standard_normal((2, 2)), rng.standard_normal((points, 2))
    wanted = central_differences(lambda mu: f(mu, x), mu)
    compiled = fwdad.jit(fwdad.jacfwd(f))
    assert_allclose(compiled(mu, x), wanted, rtol=1e-8)
    assert "run by Numba" in fwdad.explain(compiled)


def test_lanes_are_stored_once_for_a_loop():
    def f(x, y, c):
        a = np.array([x, 3.0, y])
        b = scale_lanes(x, a) + a
        return scale_lanes(y, b), np.sum(b * np.arctan2(c, b))

    args = 1.5, 2.0, np.array([0.5, -1.0, 2.0])
    program = trace(f, *args).program
    assert numba_source(program)[0].text.count("store_3(") == 2  # the loop's, and the result
    compiled = compile_program(program)
    for found, wanted in zip(compiled.call(*args), f(*args), strict=True):
        assert_allclose(found, wanted, rtol=1e-15)
