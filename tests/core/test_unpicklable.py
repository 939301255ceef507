"""Pullbacks and the operators of ``linearize`` as things: copied, pickled, kept in objects."""

import copy
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.linspace(0.3, 1.1, 4)
opaque = eval("lambda x: x * 1.5")  # without source: what calls it is recorded as it runs


def traced(x):
    y = x * 2.0
    for k in range(1, 4):
        y[k] = y[k] * y[k - 1] + x[k]
    return y


def recorded(x):
    return opaque(traced(x)) * x


MADE = {
    "vjp(f, x)": lambda f: fwdad.vjp(f, X)[1],
    "linearize(f, x)": lambda f: fwdad.linearize(f, X)[1],
}


def pulled(made, bar):
    return made.rmatvec(bar) if hasattr(made, "rmatvec") else made(bar)


@pytest.mark.parametrize("made_by", MADE)
@pytest.mark.parametrize("f", [traced, recorded])
def test_copies_go_on(f, made_by):
    rows = fwdad.jacfwd(f)(X)
    made = MADE[made_by](f)
    held = {"map": made, "bar": np.ones(4)}
    for how in (copy.copy, copy.deepcopy):
        again = how(made)
        inside = how(held)
        assert_allclose(pulled(again, np.ones(4)), np.ones(4) @ rows, rtol=1e-12)
        assert_allclose(pulled(inside["map"], inside["bar"]), np.ones(4) @ rows, rtol=1e-12)
        assert_allclose(pulled(made, X), X @ rows, rtol=1e-12)
    if made_by != "vjp(f, x)":
        for wrapped in (copy.deepcopy(made.T), copy.deepcopy(2.0 * made).T * 0.5):
            assert_allclose(wrapped @ X, X @ rows, rtol=1e-12)


@pytest.mark.parametrize("made_by", MADE)
@pytest.mark.parametrize("f", [traced, recorded])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_says_what_to_do(f, made_by, protocol):
    made = MADE[made_by](f)
    with pytest.raises(TypeError, match=re.escape(f"call {made_by}")):
        pickle.dumps(made, protocol)
