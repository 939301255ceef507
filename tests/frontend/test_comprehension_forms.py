"""Comprehensions in many forms: what their items are, what is taken, and how the list is used."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.frontend.syntax.growing_lists import filled
from tests.differences import central_differences
from tests.written_programs import defined

POINTS = [np.array([0.31, -0.22, 0.53, 0.74]), np.array([-0.41, 0.26, 0.12, -0.7])]

pytestmark = pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")

ITEMS = {
    "number": "v * v",
    "array": "np.sin(v) * x",
    "pair": "(v, v * k)",
    "list": "[v, v * x[0]]",
    "mixed list": "[k, v]",
    "array without axes": "np.array(v * v)",
    "truth": "v > 0.2",
    "place": "k",
    "inner": "[v * w for w in x]",
    "inner, chosen": "[w * v for w in x if w > v]",
    "array in a pair": "(k, x * v)",
    "view": "x[k % 3 : k % 3 + 2]",
    "by condition": "v if v > 0.2 else -2.0 * v",
    "text": "(str(k), v)",
    "or None": "None if k == 1 else v",
}
CLAUSES = {
    "all": "for k, v in enumerate(x)",
    "chosen": "for k, v in enumerate(x) if v > 0.2",
    "two": "for k in range(3) for v in [x[k], x[k + 1] * 2.0]",
    "zip": "for k, v in zip(range(9), x[::-1])",
    "known": "for k, v in enumerate(x) if k % 2",
    "two, chosen": "for k, v in enumerate(x) for u in x if u > v + 0.1",
    "generator": "for k, v in enumerate(w * w for w in x)",
    "list": "for k, v in enumerate([x[0], x[1] * 2.0, x[2]])",
    "of chosen": "for k, v in enumerate([w for w in x if w > 0.2])",
}
USES = {
    "loop": "s = weight(out)",
    "ends": "if len(out) > 1:\n        s = weight(out[0]) * weight(out[-1], 2)",
    "slices": "s = weight(out[1:]) * len(out[::-1])",
    "set": "if len(out) > 0:\n        out[0] = x[1] * 2.0\n    s = weight(out)",
    "append": "out.append(x[2] * 3.0)\n    s = weight(out)",
    "pop": "while len(out) > 2:\n        s = s * 0.8 + weight(out.pop())",
    "copy": "other = list(out)\n    other.reverse()\n    s = weight(other)",
    "later": "x = x * 2.0\n    s = weight(out) * x[0]",
}
PROGRAM = """
def weight(p, j=0):
    if p is None:
        return 1.5
    if isinstance(p, str):
        return len(p) * 1.0
    if isinstance(p, (list, tuple)):
        total = 0.0
        for i, q in enumerate(p):
            total = total * 0.9 + weight(q, j + i)
        return total
    return np.sum(p) * (j + 1.0)


def f(x):
    s = 0.0 * x[0]
    out = [{item} {clause}]
    {use}
    return s
"""
FORMS = list(itertools.product(ITEMS, CLAUSES, USES))


def check(form, folder):
    item, clause, use = form
    source = PROGRAM.format(item=ITEMS[item], clause=CLAUSES[clause], use=USES[use])
    f = defined(source, folder)
    value, slope = fwdad.jit(f, backend="numpy"), fwdad.jit(fwdad.grad(f), backend="numpy")
    for x in POINTS:
        assert_allclose(value(x.copy()), f(x.copy()), rtol=1e-12, err_msg=source)
        expected = central_differences(f, x)
        assert_allclose(slope(x.copy()), expected, rtol=1e-5, atol=1e-6, err_msg=source)


@pytest.fixture(params=["as it is", "short ones, too"])
def filled_by_loops(request, monkeypatch):
    if request.param == "short ones, too":
        monkeypatch.setattr(filled, "_FEW", 2)
        monkeypatch.setattr(filled, "_MANY", 0)


SAMPLE = [FORMS[k] for k in np.random.default_rng(5).choice(len(FORMS), 20, replace=False)]


@pytest.mark.usefixtures("filled_by_loops")
@pytest.mark.every(2)
@pytest.mark.parametrize("form", SAMPLE, ids="-".join)
def test_some(form, tmp_path):
    check(form, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("filled_by_loops")
@pytest.mark.parametrize(("item", "clause"), list(itertools.product(ITEMS, CLAUSES)))
def test_all(item, clause, tmp_path):
    for k, form in enumerate(f for f in FORMS if f[:2] == (item, clause)):
        folder = tmp_path / str(k)
        folder.mkdir()
        check(form, folder)
