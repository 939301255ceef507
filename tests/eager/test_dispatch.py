"""Calls: whatever they go through, the user's code that they reach is lifted."""

# ruff: noqa: B023, B905, FURB192, PLC3002, RUF015 - programs as users write them

import contextlib
import functools
import itertools
import math
import operator
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.core.lifted_code import LIFTED
from fwdad.eager.activity import is_active, is_inert
from tests.cases.check import check_jacobian, programs, with_widths
from tests.differences import central_differences

CALLS, calls = programs()

X = np.array([0.7, 1.3, 0.4])
WORK = np.zeros(3)
CALLED = [0]


@contextlib.contextmanager
def total_of_work():
    yield WORK.sum() * 2


@calls(X)
def context_manager_without_arguments(x):
    WORK[:] = x
    with total_of_work() as s:
        return np.array([s])


def counted(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        CALLED[0] += 1
        wrapper.last = args[0]
        return f(*args, **kwargs) * CALLED[0]

    return wrapper


@counted
def square(v):
    return math.pow(v, 2)


@calls(X)
def decorator_with_a_state(x):
    CALLED[0] = 0
    return np.array([square(x[0]) + square(square.last * 2 + x[1])])


@functools.singledispatch
def measure(v):
    return v * 2


@measure.register
def _(v: float):
    return math.sin(v)


@measure.register
def _(v: np.ndarray):
    return np.cos(v)


@measure.register
def _(v: list):
    return sum(measure(i) for i in v)


@calls(X)
def single_dispatch(x):
    return measure(x) + measure(x[0]) + measure([x[0], float(x[1])])


@calls(X)
def partials(x):
    p = functools.partial(np.multiply, x)
    q = functools.partial(lambda a, b, *, c: a * b + c, x[0], c=x[1])
    return p(2) + q(x[2])


@calls(X)
def cached_functions(x):
    seen = []

    @functools.lru_cache
    def cube(v):
        seen.append(v)
        return math.pow(v, 3)

    @functools.cache
    def level(k):
        return x[k] * 2

    total = cube(x[0]) + cube(x[0]) + cube(x[1]) + level(2) * level(2)
    return np.array([total, float(len(seen))])


@calls(X)
def every_kind_of_parameter(x):
    def g(a, /, b=x[1], *rest, k=1.0, **more):
        return a * b * k + sum(rest) + sum(more.values())

    return np.array([
        g(x[0]), g(*x), g(x[0], k=x[2]), g(x[0], b=x[2], z=x[1]),
        g(*x, *x[:1], k=x[0], **dict(zip("uv", x))),
    ])  # fmt: skip


@calls(X)
def recursion_and_fixed_points(x):
    def fib(n):
        return x[n] if n < 2 else fib(n - 1) * fib(n - 2) + math.sin(x[2])

    fix = (lambda f: (lambda g: g(g))(lambda g: f(lambda n: g(g)(n))))(
        lambda s: lambda n: x[2] if n == 0 else x[0] * s(n - 1)
    )
    return np.array([fib(5), fix(3)])


@calls(X)
def functions_bound_late(x):
    late = [lambda v: v * i * x[i] for i in range(3)]
    early = [lambda v, i=i: v * i * x[i] for i in range(3)]
    return np.array([f(x[0]) for f in late] + [g(x[1]) for g in early])


@calls(X)
def shared_variables(x):
    total = 0.0

    def add(v):
        nonlocal total
        total += v * total + v

        def scale():
            nonlocal total
            total = total * x[0]

        scale()

    for v in x:
        add(v)
    return np.array([total])


@calls(X)
def classes_made_inside(x):
    class First:
        k = x[0] * 2

        def get(self):
            return self.k * x[1] + __class__.k

        @property
        def p(self):
            return math.sin(x[2])

    class Second(First):
        def get(self):
            return super().get() * super().p

    return np.array([First().get(), Second().get(), First.k])


@calls(X)
def bound_methods_as_callbacks(x):
    y = np.zeros(3)
    y[:] = x
    out = []
    list(map(out.append, y))
    return np.array([*out, *map(y.item, range(3)), *np.vectorize(y.item)(np.arange(3))]) * x[0]


@calls(X)
def functions_of_the_operator_module(x):
    y = x * 1
    operator.setitem(y, 0, x[2])
    operator.iadd(y, x)
    return np.array(
        [
            operator.mul(x[0], x[1]),
            operator.neg(y[0]),
            operator.getitem(y, 1),
            operator.pow(x[0], 2),
        ]
    )


@calls(X)
def functions_of_numpy_that_call_back(x):
    return np.concatenate([
        np.vectorize(lambda a, b: a * b if a > b else math.sin(a))(x, x[::-1]),
        np.piecewise(x, [x < 0.5, x > 1], [lambda v: v**2, np.sin, lambda v: 3 * v]),
        np.fromfunction(lambda i, j: x[i] * x[j], (3, 3), dtype=int).ravel(),
        np.apply_along_axis(lambda r: np.cumsum(r * r[0]), 0, np.outer(x, x)).ravel(),
    ])  # fmt: skip


@calls(X)
def generators_that_receive(x):
    def steps():
        total = 0.0
        for v in x:
            got = yield v * 2
            total = total + math.sin(got) * v
        return total

    def outer():
        held = yield from steps()
        yield held

    g = outer()
    made = [next(g)]
    with contextlib.suppress(StopIteration):
        while True:
            made.append(g.send(made[-1]))
    return np.array(made)


@calls(X)
def threads(x):
    out = np.zeros(3)
    workers = [threading.Thread(target=out.__setitem__, args=(i, math.sin(x[i]))) for i in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    WORK[:] = x
    with ThreadPoolExecutor(2) as pool:
        return np.array(
            [pool.submit(read_work).result(), *pool.map(lambda i: out[i] * 2, range(3))]
        )


def read_work():
    return WORK.sum()


@pytest.mark.parametrize(("program", "chunk"), with_widths(CALLS))
def test_call(program, chunk):
    check_jacobian(program, chunk)


@pytest.mark.parametrize("program", CALLS, ids=str)
def test_no_code_of_this_file_runs_unlifted(program):
    """Arrays carry their tangents in memory, which code that is not lifted would not see."""
    unlifted = set()

    def profile(frame, event, _arg):
        code = frame.f_code
        if event == "call" and code.co_filename == __file__ and id(code) not in LIFTED:
            unlifted.add(code.co_qualname)

    sys.setprofile(profile)
    try:
        fwdad.jacobian(program.function, program.x, chunk=None)
    finally:
        sys.setprofile(None)
    assert unlifted <= {"test_no_code_of_this_file_runs_unlifted"}


def generator_over_work():
    while True:
        yield WORK.sum() * 2


def integrand_of_work(t):
    return WORK[0] * t * t


def residuals_of_work(t):
    return t - WORK


OUTSIDE = generator_over_work()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * next(OUTSIDE),
        lambda x: scipy.optimize.leastsq(residuals_of_work, np.zeros(3))[0],
        lambda x: scipy.optimize.leastsq(lambda t: t - x, np.zeros(3))[0],
        lambda x: scipy.optimize.leastsq(lambda t, a: t - a, np.zeros(3), args=(x,))[0],
    ],
    ids=["generator", "callback", "closure", "argument"],
)
def test_c_and_unlifted_code_are_refused(function):
    def f(x):
        WORK[:] = x
        return function(x)

    f(X)  # the plain program is fine
    with pytest.raises(fwdad.errors.FwdadError):
        fwdad.jacobian(f, X)


def test_c_code_with_a_handler_sees_what_is_written_outside():
    def f(x):
        WORK[:] = x
        return x * scipy.integrate.quad(integrand_of_work, 0, 1)[0]

    expected = fwdad.jacobian(lambda x: x * x[0] / 3, X)
    assert_allclose(fwdad.jacobian(f, X), expected, rtol=1e-12)
    assert_allclose(fwdad.jacrev(f)(X), expected, rtol=1e-12)


def test_plain_call_in_between_keeps_its_cache():
    @functools.lru_cache
    def cube(v):
        return v**3

    assert cube(2.0) == 8.0
    assert fwdad.derivative(cube, 2.0) == 12.0
    assert cube(2.0) == 8.0
    assert cube.cache_info().currsize == 1


def test_inert_values():
    assert is_inert((1, 2.0, "a", None, np.ones(2), [1, (2,)], {"a": {1, 2}}, np.float64, range(3)))
    assert not is_inert((lambda: 1,))
    assert not is_inert(([object()],))
    assert not is_inert((np.array([object()]),))
    assert not is_active((1.0, np.ones(2), [np.ones(2)]))


@pytest.mark.parametrize(
    "f",
    [
        lambda v: list(itertools.takewhile(lambda t: t < 1, v))[0] * 2,
        lambda v: sum(itertools.compress(v, [1, 0, 1])),
        lambda v: functools.reduce(operator.mul, v, 1.0),
        lambda v: sorted(v, key=lambda t: -t)[0],
        lambda v: max(v, key=lambda t: -t),
    ],
)
def test_callbacks_of_builtins(f):
    x = np.array([0.7, 1.3, 0.4])
    differences = central_differences(lambda x: f(list(x)), x)
    assert_allclose(fwdad.jacobian(f, x), differences, rtol=1e-8, atol=1e-8)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_error_in_a_thread_reaches_the_caller():
    def f(x):
        out = np.zeros(3, int)
        worker = threading.Thread(target=out.__setitem__, args=(0, x[0]))
        worker.start()
        worker.join()
        return out * x

    with pytest.raises(fwdad.errors.DualLeakError):
        fwdad.jacobian(f, X)


def test_work_is_as_a_plain_call_leaves_it():
    WORK[:] = [1.0, 2.0, 3.0]
    context_manager_without_arguments(X)
    after = WORK.copy()
    WORK[:] = [1.0, 2.0, 3.0]
    fwdad.jacobian(context_manager_without_arguments, X)
    assert_array_equal(WORK, after)
