"""Derivatives of programs in which a value decides whether something is raised and caught."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from fwdad.ir.ops import Loop
from tests.differences import central_differences, difference_along
from tests.frontend.agreement import traced
from tests.frontend.catching import (
    MADE,
    CountedError,
    StepError,
    WorseError,
    advanced,
    positive,
    searched,
    staged,
)
from tests.tiers import every

POINTS = np.array(
    [[0.5, -1.25, 2.0], [-2.5, 0.5, 0.25], [1.7, 0.4, -0.6], [-0.5, -3.0, 6.0], [0.2, 0.3, 0.6]]
)


def by_classes(x):
    a = x * x
    total = 0.0
    for k in range(3):
        try:
            a[k] *= x[0]
            y = staged(x[k]) * a[2]
            a[k] += 1.0
        except WorseError as e:
            y = e.step * x[1] + a[k]
        except StepError as e:
            y = e.step * a[k]
            a[0] = y
        except ValueError as e:
            y = e.args[0] * 2
        else:
            y = y * x[2]
        finally:
            a[1] += x[k]
        total += y
    return total * a[1] + a[0]


def out_of_a_loop(x):
    a = np.sin(x)
    n = 0.0
    try:
        for k in range(len(x)):
            a[k] *= x[1]
            n = n + a[k] * x[k]
            if n > 0.5:
                raise StepError("large", n * x[0])
            a[k] += x[2]
        y = searched(x, 1.9)
    except StepError as e:
        y = e.step * a[0] + n
    return y * a[1] + a[2]


def passed_on(x):
    y = 1.0
    try:
        try:
            y = staged(x[0]) * positive(x[1])
        except StepError as e:
            y = e.step * x[2]
            if x[2] < 0.3:
                raise ValueError("passed", y) from e
        finally:
            y = y * x[2]
        y += staged(x[2])
    except ValueError as e:
        y = y + e.args[-1] * x[1]
    except StepError as e:
        y = e.step**2
    return y * x[0]


@pytest.mark.parametrize("f", [by_classes, out_of_a_loop, passed_on], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", every(2, ["numpy", "numba"]))
def test_derivatives(f, backend):
    if backend == "numba":
        pytest.importorskip("numba")
    gradient = fwdad.jit(fwdad.grad(f), backend=backend)
    columns = [fwdad.jit(fwdad.jacfwd(f, chunk=n), backend=backend) for n in (1, 2, 3)]
    value = fwdad.jit(f, backend=backend)
    for x in POINTS:
        expected = central_differences(f, x)
        assert_allclose(value(x), f(x), rtol=1e-13)
        for g in (gradient, *columns):
            assert_allclose(g(x), expected, rtol=1e-6, atol=1e-7)
    assert all(g.last.tape is not None for g in (gradient, *columns))


@pytest.mark.parametrize("f", [by_classes, out_of_a_loop, passed_on], ids=lambda f: f.__name__)
def test_second_derivatives(f):
    h = fwdad.jit(lambda x: fwdad.hessian(f, x), backend="numpy")
    gradient = fwdad.grad(f)
    for x in POINTS:
        expected = central_differences(gradient, x)
        assert_allclose(h(x), expected, rtol=1e-5, atol=1e-5)


def test_a_loop_stays_one_body():
    tape = traced(out_of_a_loop, (POINTS[0],))
    loops = [op for op in tape.program.walk() if isinstance(op, Loop)]
    assert len(loops) == 2
    for n in (3, 5, 40):
        x = np.linspace(-0.5, 0.4, n)
        assert_allclose(tape(x), out_of_a_loop(x), rtol=1e-13)


def made_before(x):
    error = StepError("created before", x * x)
    try:
        if x > 1:
            y = x * x
            if y > 4:
                raise error
    except StepError as e:
        return e.step
    return x


def through_a_manager(x):
    try:
        with np.errstate(all="ignore"):
            y = positive(x)
    except ValueError as e:
        y = e.args[1]
    return y


def test_what_does_nothing_when_it_is_left_lets_pass():
    f = fwdad.jit(through_a_manager, backend="numpy")
    assert [f(x) for x in (1.0, -1.0)] == [through_a_manager(x) for x in (1.0, -1.0)]


class Manager:
    def __init__(self, a):
        self.a = a

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.a[0] = 1.0 if error[0] is None else 2.0


def through_a_manager_that_writes(x):
    a = np.zeros(2)
    try:
        with Manager(a):
            y = positive(x)
    except ValueError as e:
        y = e.args[1]
    return y * a[0]


@pytest.mark.parametrize("f", [made_before, through_a_manager_that_writes])
def test_refused_by_one_tape(f):
    with pytest.raises(UntraceableError):
        fwdad.trace(f, 3.0)
    fast = fwdad.jit(f, backend="numpy")
    slope = fwdad.jit(fwdad.grad(f), backend="numpy")
    for x in (3.0, -1.5, 1.0):
        expected = difference_along(f, x)
        assert fast(x) == f(x)
        assert_allclose(slope(x), expected, rtol=1e-8)
        assert_allclose(fwdad.grad(f)(x), expected, rtol=1e-8)  # recorded as it runs


@pytest.mark.parametrize(("x", "times"), [(-2.0, 1), (2.0, 0), (4.0, 1)])
def test_an_exception_of_the_users_is_made_once_in_each_run(x, times):
    def f(x):
        try:
            return advanced(x)
        except CountedError:
            return x

    for run in (fwdad.grad(f), fwdad.jit(f, backend="numpy")):
        for _ in range(2):
            MADE.clear()
            run(x)
            assert len(MADE) == times


def test_the_class_of_an_exception_may_change():
    class LocalError(Exception):
        def __init__(self, step):
            self.step = step

    def f(x):
        try:
            if x > 0:
                raise LocalError(x)
        except LocalError as e:
            return e.step
        return -x

    jitted = fwdad.jit(f, backend="numpy")
    assert jitted(2.0) == 2.0
    LocalError.__init__ = lambda self, step: setattr(self, "step", step * 3)
    assert jitted(2.0) == 6.0


def test_the_cause_of_an_exception_is_refused():
    def f(x):
        try:
            try:
                raise StepError("inner", x)
            except StepError as e:
                raise ValueError("outer") from e
        except ValueError as e:
            return e.__cause__.step * x

    with pytest.raises(UntraceableError, match="in an attribute of your own"):
        fwdad.jit(f)(3.0)
    assert fwdad.grad(f)(3.0) == 6.0
