"""Reversible dictionaries: data that values decide about."""

import numpy as np
import pytest

import fwdad
from fwdad.errors import InvertibilityError, IrreversibleError
from fwdad.reversible import (
    Dict,
    Stack,
    ancilla,
    check_gradient,
    cond,
    contains,
    delete,
    free,
    insert,
    pop,
    push,
    reversible,
)


@reversible
def histogram(d, x, bins, fresh):
    """Add x to the numbers under its bins; note which bins are new, to tell the reverse pass."""
    for i in range(len(x)):
        t = ancilla(0.0)
        if cond(contains(d, bins[i]), not fresh[i]):
            delete(d, bins[i], t)
        else:
            fresh[i] = not fresh[i]
        t += np.sin(x[i]) * x[i]
        insert(d, bins[i], t)
        free(t, 0.0)


@reversible
def gathered(y, x, keys):
    d = ancilla(Dict(6))
    for i in range(len(x)):
        t = ancilla(0.0)
        t += x[i] ** 2
        insert(d, keys[i], t)
        free(t, 0.0)
    scaled(d, 3.0)
    for j in range(d.count):
        y += (j + 1.0) * d.values[j]
    (~scaled)(d, 3.0)
    for i in reversed(range(len(x))):
        t = ancilla(0.0)
        (~insert)(d, keys[i], t)
        t -= x[i] ** 2
        free(t, 0.0)
    free(d, Dict(6))


@reversible
def scaled(d, c):
    for j in range(d.count):
        t = ancilla(0.0)
        t += c * d.keys[j]
        d.values[j] += t
        free(t, c * d.keys[j])


X = np.array([0.3, 1.2, -0.7, 0.4, 0.9])
BINS = np.array([5, -2, 5, 11, -2])
NEW = np.zeros(5, bool)


def bins_of(x):
    return [float(np.sum((x * np.sin(x))[b == BINS])) for b in (-2, 5, 11)]


def test_what_is_held_does_not_tell_the_order():
    d, x, _, fresh = histogram(Dict(4), X, BINS, NEW)
    assert (len(d), list(d.keys), list(fresh)) == (
        3,
        [-2, 5, 11, 0],
        [True, True, False, True, False],
    )
    np.testing.assert_allclose(d.values, [*bins_of(X), 0.0], rtol=1e-15)
    assert 5 in d
    assert 0 not in d
    assert d[11] == d.values[2]
    with pytest.raises(KeyError):
        d[4]
    assert repr(insert(Dict(2), 3, 0.5)[0]) == "<Dict of 1 among 2: {3: 0.5}>"
    back, _, _, fresh = (~histogram)(d, x, BINS, fresh)
    assert len(back) == 0
    assert not np.any(back.keys)
    np.testing.assert_allclose(back.values, 0.0, atol=1e-16)
    assert not np.any(fresh)


def total(x):
    d, *_ = histogram(Dict(4), x, BINS, NEW)
    return d.values[0] * d.values[1] + np.exp(d.values[2])


def plain_total(x):
    y = x * np.sin(x)
    return (y[1] + y[4]) * (y[0] + y[2]) + np.exp(y[3])


@pytest.mark.parametrize("backend", [None, "numpy", "numba"])
def test_gradient(backend):
    run = fwdad.grad(total)
    if backend is not None:
        run = fwdad.jit(run, backend=backend)
    np.testing.assert_allclose(run(X), fwdad.jacobian(plain_total, X), rtol=1e-12)


def test_ancillas_are_handed_on():
    keys = np.array([4, 1, 9, 7])
    x = X[:4]

    def plain(x):
        return sum((j + 1.0) * (x[i] ** 2 + 3.0 * keys[i]) for j, i in enumerate([1, 0, 3, 2]))

    y, *_ = gathered(0.0, x, keys)
    np.testing.assert_allclose(y, plain(x), rtol=1e-14)
    np.testing.assert_allclose((~gathered)(y, x, keys)[0], 0.0, atol=1e-13)
    gradient = fwdad.grad(gathered, argnums=1)(0.0, x, keys)
    np.testing.assert_allclose(gradient, fwdad.jacobian(plain, x), rtol=1e-13)
    assert check_gradient(gathered, 0.3, x, keys) < 1e-8
    text = fwdad.show(~gathered)
    assert "delete" in text or "(~insert)" in text


@reversible
def moves(d, key, v):
    insert(d, key, v)


@reversible
def takes(d, key, v):
    delete(d, key, v)


def held(*keys):
    d = Dict(2)
    for key in keys:
        d = insert(d, key, 1.5)[0]
    return d


@pytest.mark.parametrize(
    ("f", "args", "variable", "says"),
    [
        (moves, (held(3), 3, 1.0), "key", "one that 'd' does not have"),
        (moves, (held(3, 4), 5, 1.0), "d", "capacity"),
        (takes, (held(3), 4, 0.0), "key", "one that 'd' has"),
        (takes, (held(3), 3, 1.0), "v", "must be 0"),
        (~moves, (held(3), 4, 0.0), "key", "one that 'd' has"),
    ],
)
def test_what_breaks_a_dictionary_raises(f, args, variable, says):
    for run in (f, fwdad.jit(f, backend="numpy")):
        with pytest.raises(InvertibilityError, match=says) as caught:
            run(*args)
        assert caught.value.variable == variable
        assert caught.value.filename == __file__


@reversible
def fills(s, x):
    for i in range(len(x)):
        push(s, x[i])


def test_a_stack_that_is_an_ancilla_is_handed_on():
    @reversible
    def turned(y, x):
        s = ancilla(Stack(5))
        fills(s, x)
        y += s.values[s.count - 1] ** 2 * len(x)
        for i in range(len(x)):
            pop(s, x[i])
        free(s, Stack(5))

    y, x = turned(0.0, X)
    np.testing.assert_allclose(y, 5 * X[-1] ** 2, rtol=1e-15)
    np.testing.assert_array_equal(x, X[::-1])
    np.testing.assert_array_equal((~turned)(y, x)[1], X)
    gradient = fwdad.jit(fwdad.grad(turned, argnums=1), backend="numpy")(0.0, X)
    np.testing.assert_allclose(gradient, [0, 0, 0, 0, 10 * X[-1]], rtol=1e-14)
    with pytest.raises(InvertibilityError, match="does not grow beyond its capacity"):
        turned(0.0, np.ones(6))


def twice(x):
    s = ancilla(Stack(2))
    both(s, s)
    free(s, Stack(2))


@reversible
def both(a, b):
    push(a, b.values[0])


def freed(x):
    s = ancilla(Stack(2))
    free(s, Stack(2))
    fills(s, x)


def part(x):
    s = ancilla(Stack(2))
    push(s, s.values[1])
    free(s, Stack(2))


@pytest.mark.parametrize(("f", "says"), [(twice, "share memory"), (freed, "s"), (part, "s")])
def test_refused_when_defined_or_called(f, says):
    with pytest.raises((IrreversibleError, InvertibilityError), match=says):
        reversible(f)(np.ones(2))
