"""Views by ``einsum``: stores through diagonals and axes in another order."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import complex_step
from tests.written_programs import defined

X = np.array([0.5, 1.25, 2.0, -0.75])

MADE = {
    "rows": "np.outer(x, x)",
    "columns": "np.outer(x, x * x).T",
    "strided": "np.outer(np.concatenate((x, x)), np.concatenate((x, x)))[::2, 1::2]",
    "reversed": "np.outer(x, x + 1.0)[::-1]",
}
VIEWS = {
    "diagonal": 'np.einsum("ii->i", m)',
    "turned": 'np.einsum("ij->ji", m)[1]',
    "of a view": 'np.einsum("ii->i", m[1:, 1:])',
    "of another": 'np.einsum("ii -> i", np.einsum("ij->ji", m))[::-1]',
    "of three axes": 'np.einsum("iji->ji", np.stack((m, m * m, x * m, m))[:, :, :])[2]',
}
DONE = {
    "filled": "d[...] = 2.0 * x[: len(d)] ** 2",
    "added": "d += x[-len(d):]",
    "multiplied": "d *= x[: len(d)]",
    "one by one": "for k in range(len(d)):\n        d[k] = d[k] * x[k] + m[0, k]",
    "on some ways": "for k in range(len(d)):\n        if x[k] > 1:\n            d[k] *= x[0]\n"
    "        m[k, 0] += d[k]",
    "under both names": "d[1:] = d[:-1] * x[0]\n    m[0] *= 3.0\n    d *= d",
    "base written": "m[1] = x**3\n    m *= x",
    "in a loop": "for k in range(3):\n        w = np.einsum('ii->i', m)\n        w *= x\n"
    "        m[k] += w * d[k]",
    "never": "for k in range(2):\n        if x[0] > 99:\n            d[k] = 0.0",
}
FORMS = list(itertools.product(MADE, VIEWS, DONE))


def written(made, view, done):
    lines = [
        "def f(x):",
        f"    m = {MADE[made]}",
        f"    d = {VIEWS[view]}",
        "    before = np.sum(d**2) * x[1]",
        f"    {DONE[done]}",
        "    return before + np.sum(m * m * np.arange(16.0).reshape(4, 4)) + np.sum(d**3)",
    ]
    return "\n".join(lines)


def check(form, folder):
    source = written(*form)
    f = defined(source, folder)
    expected = complex_step(f, X)
    assert_allclose(fwdad.jacobian(f, X), expected, rtol=1e-12, err_msg=source)
    assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-12, err_msg=source)
    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X), rtol=1e-13, err_msg=source)
    for derivative in (fwdad.grad, fwdad.jacfwd):
        found = fwdad.jit(derivative(f), backend="numpy")(X)
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=source)
    return f


SAMPLE = [FORMS[k] for k in np.random.default_rng(7).choice(len(FORMS), 20, replace=False)]


@pytest.mark.every(2)
@pytest.mark.parametrize("form", SAMPLE, ids="-".join)
def test_some(form, tmp_path):
    check(form, tmp_path)


def test_a_nest_hands_views_to_another_program(tmp_path):
    f = check(("strided", "of another", "never"), tmp_path)
    assert_allclose(fwdad.jit(fwdad.grad(f))(X), complex_step(f, X), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("made", "view"), list(itertools.product(MADE, VIEWS)))
def test_all(made, view, tmp_path):
    for k, done in enumerate(DONE):
        folder = tmp_path / str(k)
        folder.mkdir()
        f = check((made, view, done), folder)
        both = fwdad.jit(lambda x, f=f: (f(x), fwdad.grad(f)(x), fwdad.jacobian(f, x)))(X)
        expected = fwdad.jacobian(f, X)
        assert_allclose(both[0], f(X), rtol=1e-12)
        assert_allclose(both[1], expected, rtol=1e-11, atol=1e-12)
        assert_allclose(both[2], expected, rtol=1e-11, atol=1e-12)
