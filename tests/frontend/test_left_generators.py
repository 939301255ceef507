"""Generators that are left before their end: what `finally` and `with` do then, as in Python."""

import contextlib

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from fwdad.frontend.trace import trace


class Noting:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.log.append(raised[0])


def items(x, log):
    try:
        yield x
        log.append(2 * x)
        yield 3 * x
    finally:
        log.append(x)


def done(log, v=0.0):
    return 10 * sum(log) + 100 * len(log) + v


def by_break(x, log):
    for v in items(x, log):
        break
    return done(log, v)


def at_the_second(x, log):
    n = 0
    for v in items(x, log):
        n += 1
        if n == 2:
            break
    return done(log, v)


def in_a_loop_with_one_body(x, log):
    total, n = 0.0, 0.0

    def own():
        nonlocal n
        try:
            yield x
            yield 2 * x
        finally:
            n += x

    for _ in range(100):
        for v in own():
            total += v
            break
    return total + 10 * n


def by_return(x, log):
    def first():
        for v in items(x, log):
            return done(log, v)

    return 1000 * first() + done(log)


def by_a_value(x, log):
    for v in items(x, log):
        if v > 1.5:
            break
    else:
        v = -v
    return done(log, v)


def by_a_value_or_another(x, log):
    for v in items(x, log):
        if v > 4:
            return 7 * x
        if v > 1.5:
            break
    return done(log, v)


def by_raise(x, log):
    try:
        for _ in items(x, log):
            raise KeyError
    except KeyError:
        return done(log)


def by_yield_from(x, log):
    def outer():
        try:
            yield from items(x, log)
        finally:
            log.append(5 * x)

    for v in outer():
        break
    return done(log[:1]) + done(log, v)


def by_an_outer_loop(x, log):
    def outer():
        for v in items(x, log):
            yield 2 * v

    for v in outer():
        break
    return done(log, v)


class Held:
    def __init__(self, x, log):
        self.x, self.log = x, log

    def __iter__(self):
        yield from items(self.x, self.log)


def of_an_iterable(x, log):
    for v in Held(x, log):
        break
    return done(log, v)


def by_a_value_at_the_end(x, log):
    def own():
        try:
            yield x
        finally:
            if x > 1.5:
                log.append(2 * x)
            else:
                log.append(3 * x)

    for v in own():
        break
    return done(log, v)


def with_a_manager(x, log):
    def own():
        with Noting(log):
            yield x
            yield 2 * x

    for v in own():
        break
    return len(log) * v + (1.0 if log[0] is GeneratorExit else 2.0)


def with_a_contextmanager(x, log):
    @contextlib.contextmanager
    def manager():
        try:
            yield
        finally:
            log.append(x)

    def own():
        with manager():
            yield x
            yield 2 * x

    for v in own():
        break
    return done(log, v)


def without_an_end(x, log):
    def own():
        with np.errstate(all="ignore"):
            yield x
            yield 2 * x

    return next(own())


def closed_by_hand(x, log):
    left = items(x, log)
    v = next(left)
    left.close()
    left.close()
    return done(log, v)


def run_to_the_end(x, log):
    left = items(x, log)
    v = next(left)
    return done(log, v + sum(left))


def finally_returns(x, log):
    def own():
        try:
            yield x
        finally:
            log.append(x)
            return

    for v in own():
        break
    return done(log, v)


FOLLOWED = [by_a_value, by_a_value_or_another]
PROGRAMS = [
    by_break, at_the_second, in_a_loop_with_one_body, by_return, *FOLLOWED, by_raise,
    by_yield_from, by_an_outer_loop, of_an_iterable, by_a_value_at_the_end, with_a_manager, with_a_contextmanager,
    without_an_end, closed_by_hand, run_to_the_end, finally_returns,
]  # fmt: skip
POINTS = (1.0, 2.0, 3.0, 5.0)


def started(program):
    def f(x):
        return program(x, [])

    return f


@pytest.mark.parametrize("program", PROGRAMS)
def test_its_end_is_run_where_it_is_left(program):
    f = started(program)
    fast = fwdad.jit(f, backend="numpy")
    for x in POINTS:
        dx = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
        assert_allclose(fast(x), f(x), rtol=1e-14)
        for derivative in (fwdad.grad(f), fwdad.grad(fast), fwdad.jit(fwdad.grad(f))):
            assert_allclose(derivative(x), dx, rtol=1e-6)
        assert_allclose(fwdad.jvp(f, x, 1.0)[1], dx, rtol=1e-6)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p not in FOLLOWED])
def test_one_tape_has_it(program):
    f = started(program)
    tape = trace(f, 2.0)
    for x in POINTS:
        assert_allclose(tape(x), f(x), rtol=1e-14)


@pytest.mark.parametrize("program", [by_break, with_a_manager])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_compiled(program, length):
    f = started(program)
    x = np.linspace(0.5, 2.0, length)
    assert_allclose(fwdad.jit(f)(x), f(x), rtol=1e-14)


def test_output_is_where_python_has_it(capsys):
    def f(x):
        def own():
            try:
                yield x
                yield 2 * x
            finally:
                print("closed")

        for v in own():
            break
        print("after")
        return v

    f(1.0)
    expected = capsys.readouterr().out
    for run in (fwdad.jit(f, backend="numpy"), fwdad.grad(f)):
        run(1.0)
        assert capsys.readouterr().out == expected


# -- left otherwise: it is not known when Python would close it


def dropped(x, log):
    v = next(items(x, log))
    return done(log, v)


def unbound(x, log):
    left = items(x, log)
    v = next(left)
    del left
    return done(log, v)


def rebound(x, log):
    left = items(x, log)
    v = next(left)
    left = None
    return done(log, v)


def in_a_zip(x, log):
    for _, v in zip([1], items(x, log)):
        pass
    return done(log, v)


def enumerated(x, log):
    for _, v in enumerate(items(x, log)):
        break
    return done(log, v)


def mapped(x, log):
    for v in map(abs, items(x, log)):
        break
    return done(log, v)


def in_a_generator_expression(x, log):
    for v in (2 * v for v in items(x, log)):
        break
    return done(log, v)


def in_a_call(x, log):
    def same(o):
        return o

    for v in same(items(x, log)):
        break
    return done(log, v)


def on_one_path(x, log):
    left = items(x, log)
    v = next(left)
    if x > 1:
        left.close()
    return done(log, v)


def by_a_caught_value(x, log):
    try:
        for v in items(x, log):
            if v > 4:
                raise KeyError
    except KeyError:
        return done(log)
    return x


def in_each_iteration(x, log):
    v = 0.0
    for _ in range(100):
        v += next(items(x, log))
    return done(log, v)


def by_any(x, log):
    met = any(v > 1.5 for v in items(x, log))
    return done(log, float(met))


OTHERS = [
    dropped, unbound, rebound, in_a_zip, enumerated, mapped, in_a_generator_expression, in_a_call,
    on_one_path, by_a_caught_value, in_each_iteration, by_any,
]  # fmt: skip


@pytest.mark.parametrize("program", OTHERS)
def test_otherwise_it_is_refused(program):
    f = started(program)
    with pytest.raises(UntraceableError, match="generator is left") as caught:
        fwdad.jit(f, backend="numpy")(2.0)
    assert caught.value.filename == __file__
    dx = (f(2.0 + 1e-6) - f(2.0 - 1e-6)) / 2e-6
    assert_allclose(fwdad.grad(f)(2.0), dx, rtol=1e-6)


# -- what its end raises is reported by Python, and not raised


def always_raises(x):
    def own():
        try:
            yield x
        finally:
            raise KeyError

    for v in own():
        break
    return v


def raises_by_a_value(x):
    def own():
        try:
            yield x
        finally:
            if x > 1.5:
                raise KeyError

    for v in own():
        break
    return v


def goes_on(x):
    def own():
        try:
            yield x
        finally:
            yield 2 * x

    for v in own():
        break
    return v


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("f", [always_raises, raises_by_a_value, goes_on])
def test_an_end_that_raises_is_refused(f):
    with pytest.raises(UntraceableError, match="may raise an exception"):
        fwdad.jit(f, backend="numpy")(2.0)
    assert fwdad.grad(f)(2.0) == 1.0
