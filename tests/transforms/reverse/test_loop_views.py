"""Loops that carry views of arrays that they write: copies of them, where nobody can tell."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.transforms.reverse.structure import NotReversibleError

W = np.array([0.3, 0.4, 0.5])
S = np.linspace(0.2, 1.1, 12).reshape(4, 3)


def layers(w, s):
    """Each layer reads what the layer before it has written."""
    s = s.copy()
    total = 0.0
    for _ in range(3):
        x = w * 2.0
        for k in range(len(s)):
            s[k] = np.sin(x * s[k])
            x = s[k]
        total += np.sum(x)
    return total


def from_a_view(w, s):
    """The first one is a view, too; views of it are read."""
    s = s * w
    x = s[0]
    total = 0.0
    for k in range(1, len(s)):
        total += x[1:] @ x[:-1]
        x = s[k]
        s[k] *= w
    return total + np.sum(x)


def overwritten(w, s):
    """What is read is what was written through another name, after the iteration ended."""
    s = s * w
    x = w * 1.0
    total = 0.0
    for k in range(len(s)):
        s[k - 1] = s[k - 1] * w
        total += np.sum(x)
        x = s[k]
    return total


def overwritten_later(w, s):
    s = s * w
    x = w * 1.0
    for k in range(len(s)):
        x = s[k]
    s[3] = s[3] ** 2
    return np.sum(x)


def overwritten_in_a_loop(w, s):
    s = s * w
    x = w * 1.0
    total = 0.0
    for k in range(len(s)):
        for _ in range(2):
            total += np.sum(x)
            s[k - 1] = s[k - 1] ** 2
        x = s[k]
    return total


def written_through(w, s):
    s = s * w
    x = w * 1.0
    for k in range(len(s)):
        x[1] = 2.0 * x[0]
        x = s[k]
    return np.sum(s)


@pytest.mark.parametrize("f", [layers, from_a_view])
def test_copies(f):
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")  # on a tape: `jit` records nothing
    expected = fwdad.jacobian(f, W, args=(S,), mode="forward")
    assert_allclose(gradient(W, S), expected, rtol=1e-13)
    assert_allclose(gradient(W, S[:1]), fwdad.jacobian(f, W, args=(S[:1],), mode="forward"))


def begins_outside(w, v):
    m = np.outer(w, w)
    m[0, 1] *= 2.0
    total = 0.0
    for row in m:
        total += np.sum(v * row**2)
        v = row
    return total


def test_a_name_that_begins_with_an_array_from_outside():
    gradient = fwdad.jit(fwdad.grad(begins_outside), backend="numpy")
    expected = fwdad.jacobian(begins_outside, W, args=(W**2,), mode="forward")
    assert_allclose(gradient(W, W**2), expected, rtol=1e-13)


@pytest.mark.parametrize(
    "f", [overwritten, overwritten_later, overwritten_in_a_loop, written_through]
)
def test_views_are_views(f):
    expected = fwdad.jacobian(f, W, args=(S,), mode="forward")
    assert_allclose(fwdad.grad(f)(W, S), expected, rtol=1e-13)  # recorded as it runs
    with pytest.raises(NotReversibleError, match="changes places"):
        fwdad.jit(fwdad.grad(f), backend="numpy")(W, S)
