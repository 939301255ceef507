"""Arrays of a gradient that nothing reads any more are freed."""

import textwrap
import traceback
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.codegen.numpy_backend.liveness import free_dead_arrays


def written(code, arrays):
    code = textwrap.dedent(code).lstrip()
    count = len(code.splitlines())
    made, places = free_dead_arrays(code, list(range(count)), arrays)
    lines = made.splitlines()
    assert len(lines) == len(places)
    kept = [line for line, place in zip(lines, places, strict=True) if place is not None]
    assert kept == code.splitlines()
    assert [p for p in places if p is not None] == list(range(count))
    compile(made, "made", "exec")
    return [line for line in lines if line not in code.splitlines()], made


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        # behind the last statement that uses it, not where it is returned
        (
            """
            def f(x):
                a = x + 1
                b = a * 2
                c = a + b
                return (c,)
            """,
            ["    del a, b"],
        ),
        # what is given is the caller's
        (
            """
            def f(a):
                a = a + 1
                b = a * 2
                return (b,)
            """,
            [],
        ),
        # behind a loop that reads it, and inside it what each iteration makes
        (
            """
            def f(x):
                a = x + 1
                s = 0.0
                for k in range(3):
                    b = a * k
                    c = b + 1
                    s = s + np.sum(c)
                return (s,)
            """,
            ["        del b", "        del c", "    del a"],
        ),
        # what goes on to the next iteration, or is used behind the loop, stays
        (
            """
            def f(x):
                a = x + 1
                while True:
                    b = a * 2
                    a = b + 1
                    c = a * 3
                    if np.sum(c) > 9:
                        break
                return (a, c)
            """,
            ["        del b"],
        ),
        # made on one side of a branch only
        (
            """
            def f(x, t):
                if t:
                    a = x + 1
                else:
                    a = x * 2
                    b = a * a
                    a = b * 3
                c = a + 1
                return (c,)
            """,
            ["        del b"],
        ),
        # a name that is given anew
        (
            """
            def f(x):
                a = x + 1
                a = a * 2
                b = a * 3
                a[...] = 0.0
                c = b * 2
                return (c,)
            """,
            ["    del a", "    del b"],
        ),
    ],
)
def test_where_arrays_are_freed(code, lines):
    assert written(code, {"a", "b", "c"})[0] == lines


def test_numbers_are_left_alone():
    code = """
    def f(x):
        t = x.shape[0]
        a = np.full(t, 1.0)
        b = a + t
        return (b,)
    """
    assert written(code, {"a", "b"})[0] == ["    del a"]


def test_two_suites_that_end_together():
    code = """
    def f(x):
        a = x + 1
        for i in range(2):
            b = a * i
            for j in range(2):
                c = b * j
                x[0] += np.sum(c)
        return (x,)
    """
    lines, made = written(code, {"a", "b", "c"})
    assert lines == ["            del c", "        del b", "    del a"]
    namespace = {"np": np}
    exec(made, namespace)
    assert namespace["f"](np.zeros(2))[0][0] == 2.0


def chain(x):
    """Twenty arrays on the way, of which the reverse pass needs few."""
    for _ in range(20):
        x = x[1:] + x[:-1]
        x = x * 0.5
    return np.sum(x * x)


def unrolled(x):
    a = x * 2.0
    b = a + 1.0
    c = b[::-1] - a
    d = c + 3.0 * b
    e = d[::-1] + c
    return np.sum(e * e)


def stepping(x, steps):
    """Neighbours in place; temporary arrays in each step."""
    x = x.copy()
    for _ in range(steps):
        flux = x[1:] - x[:-1]
        twice = 0.1 * flux
        x[1:-1] += twice[1:] - twice[:-1]
    return np.sum(x * x)


def peak(call):
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("f", "args", "arrays"), [(unrolled, (), 6), (stepping, (5,), 7)])
def test_no_more_arrays_are_held_than_are_read(f, args, arrays):
    x = np.random.default_rng(0).normal(size=20_000)
    gradient = fwdad.value_and_grad(f)
    assert peak(lambda: gradient(x, *args)) < (arrays + 0.5) * x.nbytes


@pytest.mark.parametrize(("f", "args"), [(chain, ()), (unrolled, ()), (stepping, (5,))])
def test_gradients_stay_right_and_an_exception_names_its_line(f, args):
    x = np.random.default_rng(0).normal(size=50)
    expected = fwdad.jacobian(lambda x: f(x, *args), x, mode="forward")
    assert_allclose(fwdad.grad(f)(x, *args), expected, rtol=1e-12, atol=1e-12)


def raising(x, y):
    a = x * 2.0
    b = a + 1.0
    c = np.linalg.inv(y)
    return np.sum(b * b) + np.sum(c) * np.sum(a)


def test_the_line_of_an_exception_is_the_users():
    f = fwdad.jit(fwdad.value_and_grad(raising), backend="numpy")
    f(np.ones(3), np.eye(2))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        f(np.ones(3), np.zeros((2, 2)))
    (line,) = (e for e in traceback.extract_tb(caught.value.__traceback__) if e.name == "raising")
    assert line.line == "c = np.linalg.inv(y)"
