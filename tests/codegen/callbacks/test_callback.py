"""Functions of Python's that compiled code calls: what they get and return, and what they raise."""

import gc
import math
import sys
import threading
import weakref

import numpy as np
import pytest
import scipy.fft
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

numba = pytest.importorskip("numba")

X = np.linspace(0.1, 1.3, 7)


def compiled(f, *args):
    """The function under ``jit``, which has called something of Python's."""
    g = fwdad.jit(f)
    g(*args)
    assert "run by Numba, which calls NumPy for" in fwdad.explain(g)
    return g


def called(function, returns="new"):
    """A function of the user's with a rule, which is an operation for a tape."""

    @fwdad.frule(function, returns=returns)
    def rule(primals, tangents):
        raise AssertionError("nothing is differentiated here")

    return function


# -- arguments and results


SEEN = []


@called
def looked_at(a, b, n, flag, z):
    SEEN.append((a, b, n, flag, z))
    return np.cos(a) * b, b + n, z * 2


def test_arguments_are_what_they_are_under_numpy():
    def f(x, n):
        s = 0.0
        for i in range(3):
            s += np.sin(x[i]) * x[i + 1]
        y, b, z = looked_at(x * 2, x[1], n, n > 2, s * 1j)
        return y.sum() + b + np.abs(z) + s

    g = compiled(f, X, 3)
    SEEN.clear()
    found = g(X, 4)
    (ours,), wanted = list(SEEN), f(X, 4)
    theirs = SEEN[-1]
    assert_allclose(found, wanted, rtol=1e-14)
    assert [type(x) for x in ours] == [type(x) for x in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert_allclose(a, b, rtol=1e-14)


def halves(x):
    return x[: len(x) // 2], x[len(x) // 2 :]


called(halves, returns="view")


def test_arrays_are_passed_on_the_same_memory():
    def f(x):
        y = np.sin(x)
        a, b = halves(y)
        for i in range(len(a)):
            a[i] += 10.0
        for i in range(len(b)):
            b[i] *= 2.0
        return y, a, b

    found, wanted = compiled(f, X)(X), f(X)
    for one, other in zip(found, wanted, strict=True):
        assert_allclose(one, other, rtol=1e-14)
    assert np.shares_memory(found[0], found[1])


@called
def overwrites_nothing(x):
    KEPT.append(x)
    return x.sum()


KEPT = []


def test_what_a_function_keeps_is_not_written_again():
    """Memory of an array that a loop makes anew is used again only if nobody can have kept it."""

    def f(x):
        s = 0.0
        for k in range(4):
            y = np.sin(x * k) + 1
            s += overwrites_nothing(y) + y[0] * np.exp(-y[1])
        return s

    g = compiled(f, X)
    KEPT.clear()
    g(X)
    assert_allclose(KEPT, [np.sin(X * k) + 1 for k in range(4)], rtol=1e-14)


def test_references_are_given_back():
    """After a call nothing of compiled code holds an array that was passed or returned."""

    def f(x):
        s = np.zeros_like(x)
        for k in range(3):
            s += scipy.fft.ifft(scipy.fft.fft(x * k)).real * np.exp(-x)
        return s

    g = compiled(f, X)
    own = X.copy()
    count = sys.getrefcount(own)
    made = [weakref.ref(g(own)) for _ in range(10)]
    gc.collect()
    assert sys.getrefcount(own) == count
    assert not any(ref() is not None for ref in made)


VALUES = {
    "a number for an array": 1.5,
    "another type": np.ones(7, np.float32),
    "another rank": np.ones((7, 1)),
    "another length": np.ones(6),
    "complex numbers": np.ones(7) * 1j,
}


@pytest.mark.parametrize("what", VALUES)
def test_result_of_another_kind_is_that_of_numpy(what):
    """A function that returns something else later: compiled code does not take it for a float."""
    returned = None

    @called
    def moody(x):
        return x * 2 if returned is None else returned

    def f(x):
        for i in range(1, len(x)):
            x[i] += 0.5 * x[i - 1]
        return np.sin(moody(x)) + 1

    def g(x):
        return f(x.copy())

    fast = compiled(g, X)
    assert_allclose(fast(X), g(X), rtol=1e-14)
    returned = VALUES[what]
    assert_array_equal(fast(X), g(X))


# -- exceptions and effects


class OwnError(Exception):
    """An exception with something to tell."""

    def __init__(self, x):
        super().__init__(x)
        self.x = x


COUNT = []


@called
def raises(x):
    COUNT.append(None)
    if x[0] > 1:
        raise OwnError(x)
    return x + 1


@pytest.mark.parametrize("threads", [False, True])
def test_exception_is_the_function_s_own(threads):
    def f(x):
        for i in range(1, len(x)):
            x[i] += 0.5 * x[i - 1] + np.sin(x[i])
        return raises(x) * 2

    g = compiled(lambda x: f(x.copy()), X)
    COUNT.clear()
    caught = []

    def run():
        try:
            g(X + 2)
        except OwnError as error:
            caught.append(error)

    if threads:
        workers = [threading.Thread(target=run) for _ in range(4)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    else:
        run()
    assert len(caught) == len(COUNT) == (4 if threads else 1)  # it is not run again
    given = X + 2
    with pytest.raises(OwnError):
        f(given)
    for error in caught:
        assert_allclose(error.x, given, rtol=1e-14)
    assert_allclose(g(X), f(X.copy()), rtol=1e-14)


def test_interrupt_passes(monkeypatch):
    @called
    def stops(x):
        raise KeyboardInterrupt

    @called
    def goes(x):
        return x * 1.0

    which = [goes]

    @called
    def either(x):
        return which[0](x)

    def f(x):
        y = np.sin(x) * np.cos(x) + np.exp(-x * x) + x * x + np.sqrt(x)
        return either(y) + y

    g = compiled(f, X)
    which[0] = stops
    with pytest.raises(KeyboardInterrupt):
        g(X)
    which[0] = goes
    assert_allclose(g(X), f(X), rtol=1e-14)


def printed(x, n):
    s = 0.0
    for i in range(n):
        s += np.sin(x[i]) * np.exp(-s)
        print("step", i, f"{s:.3f}")
    return s + x[n]


def test_output_is_put_out_once_and_in_order(capsys):
    g = fwdad.jit(printed)
    for n in (2, 4):
        found, said = g(X, n), capsys.readouterr().out
        assert_allclose(found, printed(X, n), rtol=1e-14)
        assert said == capsys.readouterr().out
    assert "output by print" in fwdad.explain(g)
    with pytest.raises(IndexError):
        g(X, 7)
    assert capsys.readouterr().out.count("step 6") == 1


def test_values_that_are_missing_on_one_way(capsys):
    """A branch that is called as a whole leaves names unbound on one side."""

    def f(x, n):
        s, t = x[0], x * 0.5
        if n > 2:
            print("more", n)
            a, v = math.tanh(s), scipy.fft.fft(x).real
            print(f"{a:.3f}")
        for i in range(1, len(x)):
            s = math.tanh(s + 0.3 * x[i]) * np.exp(-s)
            t[i] += t[i - 1] * s
        if n > 2:
            s += a * 0.5
            t = t + v
        return s, t

    g = compiled(f, X, 4)
    capsys.readouterr()
    for n in (0, 1, 2, 5):
        found, said = g(X, n), capsys.readouterr().out
        for one, other in zip(found, f(X, n), strict=True):
            assert_allclose(one, other, rtol=1e-13)
        assert said == capsys.readouterr().out


# -- recursion and derivatives


def smoothed(x, n):
    if n == 0:
        return scipy.fft.fft(x).real
    y = np.sin(x) * n
    for i in range(1, len(y)):
        y[i] += 0.5 * y[i - 1]
    return smoothed(y, n - 1) + y * np.exp(-y)


def descending(x, least):
    if x[0] < least:
        return scipy.fft.fft(x).real
    y = np.sin(x) + x * 0.5
    for i in range(1, len(y)):
        y[i] += 0.5 * y[i - 1]
    return descending(x - 0.3, least) + y


@pytest.mark.slow_cases("smoothed-3")
@pytest.mark.parametrize(("f", "k"), [(smoothed, 3), (descending, 0.45)])
def test_in_recursion(f, k):
    given = X + 1
    assert_allclose(compiled(f, given, k)(given, k), f(given, k), rtol=1e-13)

    def total(x):
        return f(x, k).sum()

    g = compiled(fwdad.grad(total), given)
    assert_allclose(g(given), fwdad.jacobian(total, given, mode="forward"), rtol=1e-12)
    v = np.cos(given)
    h = 1e-6
    change = (total(given + h * v) - total(given - h * v)) / (2 * h)
    assert_allclose(g(given) @ v, change, rtol=1e-7)


@pytest.mark.every(2)
@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_lanes_through_a_call(chunk):
    def f(x):
        s = x.copy()
        for i in range(1, len(x)):
            s[i] += np.sin(s[i - 1]) * x[i]
        return scipy.fft.irfft(scipy.fft.rfft(s) * 0.5, len(x)) * s

    def g(x):
        return fwdad.jacobian(f, x, chunk=chunk, mode="forward")

    step = 1e-6
    differences = np.stack(
        [(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(7)], axis=1
    )
    assert_allclose(compiled(g, X)(X), differences, rtol=1e-7, atol=1e-9)


def test_the_reverse_pass_of_a_transform_is_a_transform():
    """Its transpose is recorded, so that nothing is run whole, whatever the length."""

    def f(x):
        return np.sum(np.abs(scipy.fft.fft(np.sin(x)) * scipy.fft.ifft(x)) ** 2)

    g = compiled(fwdad.grad(f), X)
    assert "pull_" not in fwdad.explain(g)
    for x in (X, np.linspace(-1.0, 1.7, 8)):
        v, h = np.cos(x), 1e-6
        change = (f(x + h * v) - f(x - h * v)) / (2 * h)
        assert_allclose(g(x) @ v, change, rtol=1e-7)
    assert fwdad.cache_info(g).traces == 1


def test_second_derivatives():
    def f(x):
        s = 0.0
        for i in range(1, len(x)):
            s += np.sin(x[i - 1]) * x[i] ** 2
        return s * np.sum(np.abs(scipy.fft.rfft(x)) ** 2)

    g = compiled(fwdad.hessian(f), X)
    gradient = fwdad.grad(f)
    step = 1e-6
    rows = [(gradient(X + step * e) - gradient(X - step * e)) / (2 * step) for e in np.eye(7)]
    assert_allclose(g(X), rows, rtol=1e-6, atol=1e-5)


# -- callers


def test_from_several_threads():
    def f(x):
        s = x.copy()
        for k in range(20):
            s = s + scipy.fft.fft(np.sin(s) * k).real * 1e-3
            for i in range(1, len(s)):
                s[i] += 0.1 * s[i - 1]
        return s

    g, found = compiled(f, X), []
    points = [X + k for k in range(4)]

    def run(x):
        found.extend((x, g(x)) for _ in range(20))

    workers = [threading.Thread(target=run, args=(x,)) for x in points]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(found) == 80
    for x, y in found:
        assert_allclose(y, f(x), rtol=1e-13)


def test_the_same_text_with_another_function():
    """Two programs that differ only in what they call: each calls its own."""

    def made(factor):
        @called
        def scaled(x):
            return x * factor

        def f(x):
            s = x.copy()
            for i in range(1, len(x)):
                s[i] += np.sin(s[i - 1])
            return scaled(s)

        return f

    both = [made(k) for k in (2.0, 3.0)]
    fast = [compiled(f, X) for f in both]
    for f, g in zip(both, fast, strict=True):
        assert_allclose(g(X), f(X), rtol=1e-14)
        assert_allclose(g(X.astype(np.float32)), f(X.astype(np.float32)), rtol=1e-6)


def test_a_caller_under_njit_is_told():
    def f(x):
        for i in range(1, len(x)):
            x[i] += np.sin(x[i - 1])
        return np.sum(np.abs(scipy.fft.fft(x)))

    g = compiled(f, X.copy())

    @numba.njit
    def caller(x):
        return g(x)

    with pytest.raises(numba.core.errors.TypingError, match="the function fft"):
        caller(X)


# -- code from disk


def scaled(k):
    """A program that calls a function of its own; all are written alike."""

    def f(x):
        return k * np.array([float(str(v)) for v in x.tolist()])

    fwdad.pure(f)

    @fwdad.frule(f)
    def rule(primals, tangents):
        return f(primals[0]), k * tangents[0]

    def program(x):
        total = 0.0
        for i in range(len(x)):
            for j in range(10):  # compiling pays; of `exp`, the code has a function to hide
                total = total + np.exp(1j * x[i]).real * j
        return total + np.sum(x * f(x))

    return program


def test_code_that_is_loaded_twice_calls_functions_of_its_own(folder, count):
    """It called those of the code that was loaded first, also after they were gone."""
    x = np.array([1.0, 2.0])
    programs = [scaled(float(k)) for k in range(4)]
    kept = [fwdad.jit(program) for program in programs]
    for functions in (kept, [fwdad.jit(program) for program in programs]):
        for k, f in enumerate(functions):
            assert_allclose(f(x), k * np.sum(x**2) + 45 * np.sum(np.cos(x)), rtol=1e-13)
    assert count == {"saved": 1, "loaded": 7}
    for again in range(2):
        for k, program in enumerate(programs):
            wanted = 2 * k * x - 45 * np.sin(x)
            assert_allclose(fwdad.jit(fwdad.grad(program))(x), wanted, rtol=1e-13)
            assert_allclose(fwdad.grad(fwdad.jit(program))(x), wanted, rtol=1e-13)
            assert_allclose(fwdad.jit(fwdad.jacfwd(program))(x), wanted, rtol=1e-13)
        gc.collect()
        assert again or count["loaded"] > 7
