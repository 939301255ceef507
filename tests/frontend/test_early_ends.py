"""`any`, `all`, `in`, unpacking and `np.fromiter` ask for no more items than in Python."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Branch
from tests.differences import central_differences


def witness(x):
    if any((w := v) > 1.5 for v in x):
        return w**2 + x[0]
    return w + x[0]


def counterexample(x):
    if not all((w := v) < 1.5 for v in x):
        return w**2 + x[0]
    return w + x[0]


def witness_in_a_generator(x):
    def own():
        if any((w := v) > 1.5 for v in x):
            yield w**2
        yield x[0]

    return own


def found_in_a_loop(x):
    for k in range(3):
        if any((w := v * k) > 1.5 for v in x):
            break
    return w * x[0]


class Counted:
    def __init__(self, limit):
        self.limit, self.count = limit, 0

    def __call__(self, v):
        self.count += 1
        return v > self.limit


def counted(x):
    test = Counted(1.5)
    met = any(test(v) for v in x), all(map(test, x)), True in map(test, x)
    return 10.0 * test.count + x[0] + sum(met)


def in_a_generator(x):
    test = Counted(1.5)
    return float(2.0 in (v for v in x if not test(v) or v < 9)) + 10 * test.count + x[0]


def of_lists(x):
    n = [0]

    def test(v):
        n[0] += 1
        return v > 1.5

    return sum(any(test(v) for v in row) for row in [x, x + 1]) + 10.0 * n[0] + x[0]


def stored(x):
    y = np.zeros(len(x))

    def test(k):
        y[k] = x[k]
        return y[k] > 1.5

    any(test(k) for k in range(len(x)))
    return y.sum()


def divides(x):
    found = any(1 / (float(v) - 2.5) > 0.1 for v in [*x, 2.5]) if x[-1] > 2.6 else False
    return x[0] * (2.0 if found else 3.0)


def raises_later(x):
    def test(v):
        if v > 2.9:
            raise KeyError
        return v > 1.5

    try:
        return x[0] * (2.0 if any(map(test, x)) else 3.0)
    except KeyError:
        return x[0] * 4


def known(x):
    test = Counted(3)
    first = any(map(test, itertools.count()))
    return x[0] * test.count + first + (4 in itertools.count())


def among_maps(x):
    met = [True in map(lambda v: v > 1.1, x), x[0] in reversed(x), (x[0], x[0]) in zip(x, x)]
    return x[0] * sum(met)


def too_many(x):
    test = Counted(1.5)
    for values in (lambda: (test(v) for v in [*x, 1.0, 2.0]), lambda: map(test, [*x, *x, *x])):
        try:
            a, b = values()
        except ValueError:
            continue
    return x[0] * test.count


def rest_of_an_iterator(x):
    it = iter([*x, x[0], x[0], x[0]])
    try:
        a, b = it
    except ValueError:
        return sum(it) + x[0]
    return a + b


def from_an_iterator(x):
    test = Counted(1.5)
    a = np.fromiter((v * test(v) for v in x), float, count=1)
    b = np.fromiter((test(v) for v in x), float)
    return a[0] + b.sum() + x[0] * test.count


PROGRAMS = [
    witness, counterexample, found_in_a_loop, counted, in_a_generator, of_lists, stored, divides,
    raises_later, known, among_maps, too_many, rest_of_an_iterator, from_an_iterator,
]  # fmt: skip
POINTS = [[1.0], [2.0], [1.0, 2.0], [1.0, 1.2], [1.0, 2.0, 3.0], [1.7, 1.0, 2.8], [0.6, 1.0, 3.0]]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_as_in_python(program, point):
    x = np.array(point)
    fast = fwdad.jit(program, backend="numpy")
    dx = central_differences(program, x)
    for _ in range(2):
        assert_allclose(fast(x), program(x), rtol=1e-14)
    for derivative in (fwdad.grad(program), fwdad.grad(fast)):
        assert_allclose(derivative(x), dx, rtol=1e-6, atol=1e-8)
    for run in (program, fast):
        tangent = fwdad.jvp(run, x, np.ones(len(x)))[1]
        assert_allclose(tangent, np.sum(dx), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("program", [witness, counted, stored])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_one_tape_for_all_values(program, length):
    tape = trace(program, np.linspace(1.0, 2.0, length))
    compiled = fwdad.jit(program)
    for point in POINTS:
        if len(point) == length:
            x = np.array(point)
            assert_allclose(tape(x), program(x), rtol=1e-14)
            assert_allclose(compiled(x), program(x), rtol=1e-14)


def test_output(capsys):
    def f(x):
        def test(v):
            print(v > 1.5)
            return v > 1.5

        return x[0] if any(map(test, x)) else x[-1]

    fast = fwdad.jit(f, backend="numpy")
    for point in POINTS:
        f(np.array(point))
        expected = capsys.readouterr().out
        fast(np.array(point))
        assert capsys.readouterr().out == expected


def test_tests_that_only_compute_are_no_branches():
    def f(x):
        return x[0] * any(v > 1.5 for v in x) + all(a < b for a, b in itertools.pairwise(x))

    x = np.linspace(1.0, 2.0, 200)
    tape = trace(f, x)
    assert not any(isinstance(op, Branch) for op in tape.program.walk())
    assert tape(x) == f(x)


def test_where_an_iterator_is_afterwards_depends_on_values():
    def f(x):
        it = iter(x)
        if any(v > 1.5 for v in it):
            return sum(it)
        return x[0]

    with pytest.raises(UntraceableError, match="its position would depend on values"):
        fwdad.jit(f, backend="numpy")(np.array([1.0, 2.0, 3.0]))
    assert_allclose(fwdad.grad(f)(np.array([1.0, 2.0, 3.0])), [0.0, 0.0, 1.0])


def test_too_many_tests_that_bind_names():
    with pytest.raises(UntraceableError, match="more than 64 tests"):
        fwdad.jit(witness, backend="numpy")(np.ones(70))


def test_the_witness_of_a_generator():
    def f(x):
        return sum(witness_in_a_generator(x)())

    for point in POINTS:
        x = np.array(point)
        assert_allclose(fwdad.jit(f, backend="numpy")(x), f(x), rtol=1e-14)
        assert_allclose(fwdad.grad(f)(x), central_differences(f, x), rtol=1e-6)
