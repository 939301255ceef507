"""The cases of loops, branches and updates in place, backwards on a tape: printed values.

The programs of the tables are compared with the same references as forwards; what a tape does not
take is named.
"""

import copy
import importlib.util
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from fwdad.ir.ops import Loop, Update, is_array
from tests.cases.aliasing import ALIASING
from tests.cases.check import call_on_copy
from tests.cases.models import MODELS
from tests.cases.mutation import MUTATIONS
from tests.cases.numerics import NUMERICS
from tests.cases.objects import OBJECTS
from tests.cases.programs import PROGRAMS
from tests.tiers import every

NO_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="no Numba")
BACKENDS = ["numpy", pytest.param("numba", marks=NO_NUMBA)]
ALL = MUTATIONS + ALIASING + PROGRAMS + OBJECTS + NUMERICS + MODELS
RECORDED = {  # by `fwdad/frontend/limits.md` and `fwdad/ir/limits.md`
    "classes_with_operators",
    "fortran_order", "functools_of_all_kinds",
    "structured_fields",
}  # fmt: skip


def gradient(f, x, backend="numpy"):
    return fwdad.jit(fwdad.grad(f), backend=backend)(x)


@pytest.mark.slow_cases(
    "numpy_written_in_python", "two_body_leapfrog", "fit_with_bounds", "quadrature"
)
@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
@pytest.mark.parametrize("program", ALL, ids=str)
def test_table(program):
    """A weighted sum of the value; what no tape takes is recorded, with the same result."""
    f, x = program.function, copy.deepcopy(program.x)
    y = np.asarray(call_on_copy(f, x))
    w = np.linspace(0.3, 1.7, y.size).reshape(y.shape)

    def total(x):
        return np.sum(w * f(x))

    forward = fwdad.jacobian(f, x, mode="forward")
    expected = np.tensordot(w, forward, y.ndim) if y.ndim else w * forward
    tolerance = {"rtol": 1e-9, "atol": 1e-10 * (1 + np.max(np.abs(expected), initial=0.0))}
    if str(program) in RECORDED:
        with pytest.raises((UntraceableError, fwdad.errors.MissingRuleError, TypeError)):
            gradient(total, copy.deepcopy(x))
    else:
        assert_allclose(gradient(total, copy.deepcopy(x)), expected, **tolerance)
    if str(program) not in RECORDED | {"strided_views"}:
        pushed = fwdad.jit(fwdad.jacfwd(f, chunk=3), backend="numpy")(copy.deepcopy(x))
        scale = 1 + np.max(np.abs(forward), initial=0.0)
        assert_allclose(pushed, forward, rtol=1e-9, atol=1e-10 * scale)
    found = fwdad.grad(total)(x)
    assert_allclose(found, expected, **tolerance)
    assert_array_equal(x, program.x)
    reference = program.reference()
    wanted = np.tensordot(w, reference, y.ndim) if y.ndim else w * reference
    rtol = max(program.rtol, 1e-8)
    assert_allclose(found, wanted, rtol=rtol, atol=rtol * (1 + np.max(np.abs(wanted), initial=0)))


COMPILED = [p for p in MUTATIONS + ALIASING if str(p) not in RECORDED]


@pytest.mark.slow_cases("48")
@NO_NUMBA
@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
@pytest.mark.parametrize("first", every(6, range(0, len(COMPILED), 8)))
def test_mutation_and_aliasing_compiled(first):
    """Eight programs are one function: compiling it takes the time."""
    group = COMPILED[first : first + 8]
    functions = tuple(p.function for p in group)
    arguments = tuple(copy.deepcopy(p.x) for p in group)
    shapes = [np.shape(call_on_copy(p.function, p.x)) for p in group]
    weights = tuple(np.linspace(0.3, 1.7, math.prod(s)).reshape(s) for s in shapes)

    def total(arguments):
        s = 0.0
        for f, x, w in zip(functions, arguments, weights, strict=True):
            s = s + np.sum(w * f(x))
        return s

    gradient = fwdad.jit(fwdad.grad(total))
    found = gradient(arguments)
    assert "run by Numba" in fwdad.explain(gradient)
    for program, x, w, x_bar in zip(group, arguments, weights, found, strict=True):
        forward = fwdad.jacobian(program.function, program.x, mode="forward")
        expected = np.tensordot(w, forward, w.ndim) if w.ndim else w * forward
        atol = 1e-10 * (1 + np.max(np.abs(expected), initial=0.0))
        assert_allclose(x_bar, expected, rtol=1e-9, atol=atol, err_msg=str(program))
        assert_array_equal(x, program.x)


@NO_NUMBA
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
@pytest.mark.parametrize("first", range(0, len(COMPILED), 8))
def test_mutation_and_aliasing_compiled_forward(first):
    # lanes of `.flat` are a view that Numba does not reshape: NumPy runs that program forwards
    left = {"strided_views", "store_through_flat"}
    group = [p for p in COMPILED[first : first + 8] if str(p) not in left]

    def jacobians(arguments):
        pairs = zip([p.function for p in group], arguments, strict=True)
        return [fwdad.jacobian(f, x, chunk=3, mode="forward") for f, x in pairs]

    pushed = fwdad.jit(jacobians)
    arguments = [copy.deepcopy(p.x) for p in group]
    for program, x, found in zip(group, arguments, pushed(arguments), strict=True):
        forward = fwdad.jacobian(program.function, program.x, mode="forward")
        atol = 1e-10 * (1 + np.max(np.abs(forward), initial=0.0))
        assert_allclose(found, forward, rtol=1e-9, atol=atol, err_msg=str(program))
        assert_array_equal(x, program.x)
    assert "run by Numba" in fwdad.explain(pushed)


# -- loops and branches on the tape


def multiplied(a, n):
    a = 2 * a
    for _ in range(n):
        a *= n
    return a


def doubled(x, n):
    for _ in range(n):
        x = 2 * x
    return x


def alternating(y, n):
    for i in range(n):
        y = 3 * y if i % 2 == 0 else -y
    return y


def doubled_within(x, n, m):
    for _ in range(n):
        for _ in range(m):
            x = 2 * x
    return x


def magnitude(x):
    return x if x > 0 else -x


def left_early(x):
    s, k = x, 0
    while True:
        k += 1
        if k % 2:
            continue
        s = s * x
        if k > 6:
            break
    for _ in range(3):
        s = s + x
    else:
        s = 2 * s
    return s


@pytest.mark.parametrize("backend", BACKENDS)
def test_loops_are_replayed(backend):
    def made(f, **options):
        return fwdad.jit(fwdad.value_and_grad(f, **options), backend=backend)

    f = made(multiplied)
    assert f(2.0, 3) == (4 * 27, 54.0)
    assert f(2.0, 4) == (1024.0, 512.0)
    f = made(doubled)
    assert [f(2.0, n) for n in (3, 4, 5)] == [(16.0, 8.0), (32.0, 16.0), (64.0, 32.0)]
    assert f(2.0, 0) == (2.0, 1.0)
    assert fwdad.cache_info(f).traces == 1
    assert made(alternating)(1.0, 3) == (-9.0, -9.0)
    f = made(doubled_within)
    assert f(2.0, 2, 3) == (128.0, 64.0)
    assert f(2.0, 3, 4) == (8192.0, 4096.0)
    assert fwdad.cache_info(f).traces == 1
    f = made(magnitude)
    assert f(3.0) == (3.0, 1.0)
    assert f(-3.0) == (3.0, -1.0)
    x = 1.1
    value, slope = made(left_early)(x)
    assert value == pytest.approx(left_early(x), rel=1e-15)
    assert slope == pytest.approx(2 * (5 * x**4 + 3), rel=1e-14)


def test_no_loop_at_the_trace():
    f = fwdad.jit(fwdad.value_and_grad(doubled), backend="numpy")
    assert f(2.0, 0) == (2.0, 1.0)
    assert f(2.0, 3) == (16.0, 8.0)


def test_operations_do_not_grow_with_the_trip_count():
    def count(n):
        return fwdad.trace(fwdad.grad(lambda x: doubled(x, n)), 2.0).program.count()

    assert count(10) == count(100_000)


def test_states_of_a_loop():
    """Case 3: no more is kept than what is carried, n times."""
    for n in (10, 1000):
        report = fwdad.memory_report(lambda a, n=n: multiplied(a, n), 1e-3)
        assert report.saved <= 8 * n


def test_loops_within_loops():
    """Case 6: the inner loop stands in the body of the outer one, both ways."""
    loops = fwdad.trace(fwdad.grad(doubled_within), 2.0, 2, 3).program.block.ops
    outer = [op for op in loops if isinstance(op, Loop)]
    assert all(any(isinstance(o, Loop) for o in op.body.ops) for op in outer)
    assert outer


def test_equal_expressions_are_one():
    def body(x):
        for _ in range(2):
            x = np.sin(x) * np.cos(x) + np.sin(x)
        return x

    forth, back = str(fwdad.trace(fwdad.grad(body), 0.7)).split("for _ in range(1, -1, -1)")
    assert forth.count("np.sin(") == 1
    assert "np.sin(" not in back  # the sine is kept, and so the slope of the cosine
    assert "np.cos(" not in back
    assert fwdad.grad(body)(0.7) == pytest.approx(fwdad.derivative(body, 0.7), rel=1e-15)


# -- in place, in reverse


def zeroed(x):
    x[0] = 0
    return x


def squared_if(x):
    if x[0] > 0:
        x[0] = x[0] ** 2
    return x


def replaced(x):
    y = x * 1.0
    y[1] = 2 * x[1]
    return y


def sum_within(f):
    f[1] = np.sum(f)
    return np.sum(2 * f)


def squares(x):
    for i in range(len(x)):
        x[i] = x[i] ** 2
    return x


def chained(x):
    for i in range(len(x) - 1):
        x[i + 1] = x[i] ** 2
    return x


def twice(x):
    y = x * 1.0
    w = y[1:]
    for i in range(len(x)):
        y[i] = np.sin(x[i])
        y[i] = x[i] ** 2
        if i:
            w[i - 1] *= x[0]
    return np.sum(y * y)


def raised(x, n):
    r = 1.0
    for _ in range(n):
        r *= x
    return r


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (zeroed, [1.0, 2.0, 3.0], np.diag([0.0, 1, 1])),
        (squared_if, [3.0, 2.0], np.diag([6.0, 1.0])),
        (squared_if, [-3.0, 2.0], np.eye(2)),
        (squares, [1.0, 2.0, 3.0], np.diag([2.0, 4.0, 6.0])),
    ],
)
def test_jacobians_by_rows(f, x, expected):
    x = np.array(x)
    kept = x.copy()
    y, pullback = fwdad.vjp(f, x)
    for _ in range(2):  # again, and many at once
        assert_array_equal(pullback(np.eye(len(x))), expected)
        assert_array_equal(pullback(np.ones(len(x))), expected.sum(axis=0))
        y[:] = np.nan
        x[:] = np.nan
    x[:] = kept
    for k in range(len(x)):
        assert_array_equal(gradient(lambda z, k=k: f(z)[k], x), expected[k])
    assert_array_equal(gradient(lambda z: np.sum(f(z)), x, "auto"), expected.sum(axis=0))
    assert_array_equal(x, kept)


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_in_place(backend):
    x = np.array([1.0, 2.0, 3.0])
    assert_array_equal(gradient(lambda x: np.sum(replaced(x)), x, backend), [1.0, 2.0, 1.0])
    assert_array_equal(gradient(sum_within, x, backend), [4.0, 2.0, 4.0])
    long = np.arange(1.0, 6.0)
    weights = 0.5 ** np.arange(5.0)
    expected = np.array([[1, 2, 4, 8, 16], [0, 0, 0, 0, 0]])  # x is overwritten but for x[0]
    found = gradient(lambda x: np.sum(weights * chained(x)), long, backend)
    assert_allclose(found, [weights @ expected[0], 0, 0, 0, 0], rtol=1e-15)
    assert_array_equal(long, np.arange(1.0, 6.0))
    found = gradient(twice, x, backend)
    y = np.concatenate([x[:1] ** 2, x[1:] ** 2 * x[0]])
    by_first = 2 * y[0] * 2 * x[0] + np.sum(2 * y[1:] * x[1:] ** 2)
    assert_allclose(found, [by_first, *(2 * y[1:] * 2 * x[1:] * x[0])], rtol=1e-14)
    f = fwdad.jit(fwdad.grad(raised), backend=backend)
    assert f(4.0, 3) == 48.0
    assert f(3.0, 9) == 59049.0


def test_power_of_a_million():
    f = fwdad.jit(fwdad.grad(fwdad.checkpoint(raised, snapshots=300)))
    assert f(1.0, 10**6) == pytest.approx(1e6, rel=1e-12)

    def unbounded(x, n):
        r, k = 1.0, 0
        while k < n:
            r *= x
            k += 1
        return r

    f = fwdad.jit(fwdad.grad(fwdad.checkpoint(unbounded, snapshots=300)))
    assert f(1.0, 10**6) == pytest.approx(1e6, rel=1e-12)


def test_value_that_was_read_before_it_changed():
    def f(x):
        y = np.array([x])
        s = np.sin(y[0])
        y[0] += x
        return s

    for found in (fwdad.grad(f)(0.7), gradient(f, 0.7), fwdad.vjp(f, 0.7)[1](1.0)):
        assert found == pytest.approx(math.cos(0.7), rel=1e-15)


def test_reads_of_elements():
    """Case 9: a read of one element is one addition backwards, and nothing is kept."""

    def f(a):
        s = 0.0
        for i in range(len(a)):
            s = s + a[i] * a[-1]
        return s

    a = np.linspace(0.1, 0.9, 7)
    loops = [op for op in fwdad.trace(fwdad.grad(f), a).program.block.ops if isinstance(op, Loop)]
    made = [o for op in loops[-1].body.ops for o in op.outputs if is_array(o)]
    updates = [op for op in loops[-1].body.ops if isinstance(op, Update)]
    assert len(updates) == 2
    assert not made  # no zeros, and no copy
    assert fwdad.memory_report(f, a).saved == 0
    assert_allclose(fwdad.grad(f)(a), fwdad.jacobian(f, a, mode="forward"), rtol=1e-13)


def test_matrix_that_is_updated_between_products():
    """What is kept are the elements that were overwritten."""

    def f(x):
        a = np.outer(x, x)
        s = 0.0
        for k in range(len(x)):
            y = a @ x
            s = s + y @ y
            a[k, 0] = x[k]
        return s

    x = np.linspace(0.2, 0.9, 6)
    text = str(fwdad.trace(fwdad.grad(f), x))
    assert "push(saved_a," not in text
    assert_allclose(gradient(f, x), fwdad.jacobian(f, x, mode="forward"), rtol=1e-13)


def lu(x, weights):
    a = x.copy()
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return np.sum(weights * a)


@pytest.mark.parametrize("backend", BACKENDS)
def test_lu_in_place(backend):
    rng = np.random.default_rng(3)
    x, weights = rng.normal(size=(5, 5)) + 5 * np.eye(5), rng.normal(size=(5, 5))
    found = gradient(lambda x: lu(x, weights), x, backend)
    assert_allclose(found, fwdad.jacobian(lu, x, args=(weights,), mode="forward"), rtol=1e-11)
