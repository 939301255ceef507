"""What a store of a whole array restores is not restored by the stores that follow it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad


def work_space(x, w):
    """The work space is filled anew in each iteration: its updates need not be undone."""
    q = np.empty(len(x))
    total = 0.0
    for i in range(4):
        q[:] = x * i
        for c in range(2):
            q[c + 1 :] += w[c] * x[0]
        total = total + np.sum(np.sin(q))
    return total


def read_between(x, w):
    """What an update overwrites is read before the work space is filled again."""
    q = np.empty(len(x))
    total = 0.0
    for i in range(4):
        q[:] = x * i
        for c in range(2):
            total = total + np.sum(np.sin(q))
            q[c + 1 :] += w[c] * x[0]
        total = total + np.sum(np.cos(q))
    return total


def read_after_one(x, w):
    q = np.empty(len(x))
    total = 0.0
    for i in range(3):
        q[...] = x + i
        q[1:] *= w[0]
        total = total + np.sum(q**3)
        q[:2] += w[1] * x[1]
        total = total + np.sum(q**2)
    return total


def only_part(x, w):
    """The first store leaves an element that the second one overwrites."""
    q = np.ones(3)
    total = 0.0
    for i in range(3):
        total = total + np.sum(q**3)
        q[1:] = x[1:] * i
        q[0] += w[0]
    return total


def in_a_branch(x, w):
    q = np.ones(3)
    total = 0.0
    for i in range(4):
        total = total + np.sum(q**3)
        if i % 2:
            q[:] = x * i
        q[0] = w[0] * i
    return total


def two_names(x, w):
    """The array that is filled may be another one than that which is updated."""
    q, r = np.ones(3), np.ones(3)
    total = 0.0
    for i in range(4):
        total = total + np.sum(q**3) + np.sum(r**2 * w)
        q[:] = x * i
        q, r = r, q
        q[1] += w[1]
    return total


PROGRAMS = [work_space, read_between, read_after_one, only_part, in_a_branch, two_names]


@pytest.mark.every(3)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_forward_mode(f):
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=3), rng.normal(size=3)
    for g in (fwdad.grad(f), fwdad.jit(fwdad.grad(f))):
        assert_allclose(g(x, w), fwdad.jacobian(lambda x: f(x, w), x, mode="forward"), rtol=1e-12)
    by_w = fwdad.grad(f, argnums=1)(x, w)
    assert_allclose(by_w, fwdad.jacobian(lambda w: f(x, w), w, mode="forward"), rtol=1e-12)


def test_updates_of_a_work_space_are_not_kept():
    x = np.ones(20)  # of few elements would be kept, not the array
    assert fwdad.show(fwdad.grad(work_space), x, x).count("push(saved_q_old") == 1
    assert fwdad.show(fwdad.grad(read_between), x, x).count("push(saved_q_old") == 2
