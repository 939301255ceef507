"""Lists that grow while the program runs: values, derivatives, returns and exceptions."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from tests.differences import central_differences
from tests.frontend.growing_lists import PROGRAMS as OF_NUMBERS
from tests.frontend.growing_tuples import PROGRAMS as OF_TUPLES
from tests.tiers import every

X = np.array([0.5, 1.25, 2.0, 3.5, -0.75, 0.3])
V = np.arange(6.0) - 2.0
PROGRAMS = OF_NUMBERS + OF_TUPLES

pytestmark = pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")  # where lengths are known


@pytest.mark.every(2)
@pytest.mark.parametrize("f", every(2, PROGRAMS))
def test_values_and_derivatives(f):
    expected = central_differences(f, X)
    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X), rtol=1e-13)
    for derivative in (fwdad.grad, fwdad.jacfwd):
        found = fwdad.jit(derivative(f), backend="numpy")(X)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    y, pullback = fwdad.vjp(f, X)
    assert_allclose(y, f(X), rtol=1e-13)
    assert_allclose(pullback(1.0), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.every(2)
@pytest.mark.slow_cases(
    "snapshots", "arrays_inserted_before_others", "arrays_copied_before_they_are_written"
)
@pytest.mark.parametrize("f", every(3, PROGRAMS))
def test_second_derivatives(f):
    expected = central_differences(lambda x: fwdad.jacobian(f, x), X)
    scale = 1 + np.max(np.abs(expected))
    over = fwdad.jit(fwdad.jacfwd(fwdad.grad(f)), backend="numpy")(X)
    assert_allclose(over, expected, rtol=1e-5, atol=1e-6 * scale)
    twice = fwdad.jit(fwdad.grad(lambda x: fwdad.grad(f)(x) @ V), backend="numpy")(X)
    assert_allclose(twice, expected @ V, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.slow_cases("types_that_widen", "extremes_by_a_key")
@pytest.mark.parametrize("f", every(8, PROGRAMS))
def test_compiled(f):
    """Values and both modes: one function for each program."""

    def all_of(x):
        return f(x), fwdad.grad(f)(x), fwdad.jacobian(f, x)

    y, backward, forward = fwdad.jit(all_of, backend="numba")(X)
    assert_allclose(y, f(X), rtol=1e-12)
    expected = central_differences(f, X)
    assert_allclose(backward, expected, rtol=1e-6, atol=1e-6)
    assert_allclose(forward, expected, rtol=1e-6, atol=1e-6)


def numbers(x, n):
    out = [1.0]
    for k in range(n):
        out.append(out[-1] * float(x[0]) + k)
    return out


def arrays(x, n):
    out = []
    for k in range(n):
        out.append(x * k)
    return {"a": out, "b": (out, 3)}


class Step(NamedTuple):
    time: float
    place: object


def tuples(x, n):
    pairs, steps = [], [Step(0.0, (x, 1))]
    for k in range(n):
        pairs.insert(0, (k, x[0] * k))
        steps.append(Step(0.5 * k, (x * k, k)))
    return {"a": (pairs, pairs), "b": steps}


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_results_of_tuples(backend):
    found = fwdad.jit(tuples, backend=backend)
    for n in (0, 1, 7):
        answer, wanted = found(X, n), tuples(X, n)
        assert answer["a"][0] is answer["a"][1]
        assert answer["a"][0] == wanted["a"][0]
        assert all(type(p) is tuple and type(p[0]) is int for p in answer["a"][0])
        assert len(answer["b"]) == n + 1
        for p, q in zip(answer["b"], wanted["b"], strict=True):
            assert type(p) is Step
            assert type(p.place) is tuple
            assert (p.time, p.place[1]) == (q.time, q.place[1])
            assert_array_equal(p.place[0], q.place[0])


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_results(backend):
    found = fwdad.jit(numbers, backend=backend)
    for n in (0, 1, 7):
        assert found(X, n) == numbers(X, n)
        assert all(type(v) is float for v in found(X, n))
    found = fwdad.jit(arrays, backend=backend)
    for n in (0, 1, 7):
        answer, wanted = found(X, n), arrays(X, n)
        assert answer["b"] == (answer["a"], 3)
        assert answer["b"][0] is answer["a"]
        assert len(answer["a"]) == n
        assert all(a.base is None for a in answer["a"])
        if n:
            assert_array_equal(answer["a"], wanted["a"])


def item(x, k):
    out = []
    for v in x:
        out.append(v)
    return out[k]


def last_of_none(x):
    out = []
    for v in x:
        if v > 1000:
            out.append(v)
    return out[-1]


def stack_of_none(x):
    out = []
    for v in x:
        if v > 1000:
            out.append(x)
    return np.sum(np.stack(out))


def last_pair_of_none(x):
    out = []
    for k, v in enumerate(x):
        if v > 1000:
            out.append((k, v))
    return out[-1][1]


def first_of_none(x):
    out = []
    for v in x:
        if v > 1000:
            out.insert(0, v)
    return out[0]


def greatest_of_none(x):
    out = []
    for v in x:
        if v > 1000:
            out.append(v)
    return max(out)


@pytest.mark.every(3, of="numba", first=1)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (item, (6,)),
        (item, (-7,)),
        (last_of_none, ()),
        (last_pair_of_none, ()),
        (first_of_none, ()),
        (stack_of_none, ()),
        (greatest_of_none, ()),
    ],
)
def test_exceptions(f, args, backend):
    with pytest.raises((IndexError, ValueError)) as wanted:
        f(X, *args)
    with pytest.raises(type(wanted.value)) as caught:
        fwdad.jit(f, backend=backend)(X, *args)
    if not str(wanted.value).startswith("max()"):  # whose words differ between Pythons
        assert str(caught.value) == str(wanted.value)
    for k in (0, 5, -6):
        assert fwdad.jit(item, backend=backend)(X, k) == item(X, k)


def written_in_place(x):
    y = x * 1.0
    out = []
    for _ in range(len(x)):
        y *= 0.5
        out.append(y)  # here: written afterwards
    return np.sum(np.array(out))


def written_in_the_next_iteration(x):
    u = x * 1.0
    out = []
    for k in range(len(x)):
        u[0] = x[k]
        u = u * 2
        out.append(u)  # here: written afterwards
    return np.sum(np.array(out) ** 2)


def written_behind_the_loop(x):
    u = x * 1.0
    out = []
    for _ in range(len(x)):
        u = u * 2
        out.append(u)  # here: written afterwards
    u[0] = 7.0
    return np.sum(np.array(out) ** 2)


def written_through_a_view(x):
    m = np.outer(x, x)
    out = []
    for k in range(len(x)):
        out.append(m[k])  # here: written afterwards
        m[0, 0] = x[k]
    return np.sum(np.array(out) ** 2)


def first_is_written(x):
    u = x * 1.0
    out = [u]  # here: written afterwards
    for v in x:
        u[0] *= v
        out.append(u.copy())
    return np.sum(np.array(out) ** 2)


def item_is_written(x):
    out = []
    for v in x:
        out.append(x * v)
    out[0][1] = 7.0  # here: an item of a list
    return np.sum(np.array(out))


def last_is_written(x):
    out = []
    for v in x:
        out.append(x * v)  # here: written afterwards
        out[-1][0] = 2.0
    return np.sum(np.array(out))


def written_in_a_loop_over_it(x):
    out = []
    for v in x:
        out.append(x * v)
    for row in out:
        row *= 2.0  # here: an item of a list
    return np.sum(np.array(out))


def written_in_a_tuple(x):
    y = x * 1.0
    out = []
    for k in range(len(x)):
        y *= 0.5
        out.append((k, y))  # here: written afterwards
    return sum(np.sum(v) * k for k, v in out)


def written_before_the_others(x):
    u = x * 1.0
    out = []
    for v in x:
        out.insert(0, (u, (v, u)))  # here: written afterwards
        u[0] = u[0] * v
    return sum(np.sum(u) * np.sum(w) for u, (_, w) in out)


def part_is_written(x):
    out = [(0.0, x * 2.0)]
    for v in x:
        out.append((v, x * v))
    for t, y in out:
        y *= t  # here: an item of a list
    return sum(np.sum(y) for _, y in out)


def latest_part_is_written(x):
    out = []
    for v in x:
        out.insert(0, (v, x * v))  # here: written afterwards
        out[0][1][0] = 2.0
    return sum(np.sum(y) for _, y in out)


WRITTEN = [written_in_a_tuple, written_before_the_others, part_is_written, latest_part_is_written,
           written_in_place, first_is_written, written_in_the_next_iteration, written_behind_the_loop, item_is_written,
           written_through_a_view, last_is_written, written_in_a_loop_over_it]  # fmt: skip


@pytest.mark.parametrize("f", WRITTEN)
def test_arrays_on_a_list_that_are_written_are_refused(f):
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    first = f.__code__.co_firstlineno
    here = next(k for k in range(first, len(lines)) if "# here: " in lines[k])
    for call in (f, fwdad.grad(f)):
        with pytest.raises(UntraceableError, match=lines[here].partition("# here: ")[2]) as caught:
            fwdad.jit(call, backend="numpy")(X)
        assert caught.value.lineno == here + 1
    assert_allclose(fwdad.grad(f)(X), central_differences(f, X), rtol=1e-6, atol=1e-6)


def test_a_tape_serves_other_lengths():
    f = next(f for f in PROGRAMS if f.__name__ == "appended_in_a_loop")
    g = fwdad.jit(fwdad.grad(f), backend="numpy")
    for n in (3, 6, 40):
        x = np.linspace(0.1, 2.0, n)
        assert_allclose(g(x), fwdad.jacobian(f, x), rtol=1e-12)
    assert fwdad.cache_info(g).traces == 1
