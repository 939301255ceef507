"""Lists that grow, in many forms: what is put on them, where, how often, and how they are read."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import difference_along
from tests.written_programs import defined

X = np.array([0.5, 1.25, 2.0, 3.5, -0.75, 0.3])

pytestmark = pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")

ITEMS = {
    "number": ("v * v", "p"),
    "array": ("x * v", "np.sum(p**2)"),
    "pair": ("(k, v * x[0])", "p[1] ** 2 * (p[0] + 1)"),
    "nested": ("((v, k), x * v)", "p[0][0] ** 2 * (p[0][1] + 1) + np.sum(p[1] ** 2)"),
    "two arrays": ("(x * v, x[:2] + v)", "np.sum(p[0]) * np.prod(p[1])"),
}
PUT = {"append": "out.append({})", "insert": "out.insert(0, {})", "add": "out += [{}]"}
HEADS = {"empty": "[]", "begun": "[{}, {}]"}
LOOPS = {
    "all": "for k, v in enumerate(x):\n        {}",
    "none": "for k, v in enumerate(x):\n        if v > 99:\n            {}",
    "some": "for k, v in enumerate(x):\n        if v > 0.4:\n            {}",
    "break": "for k, v in enumerate(x):\n        if v > 3:\n            break\n        {}",
    "nested": "for w in x:\n        for k in range(3):\n            v = w * x[k]\n"
    "            if v > 0.1:\n                {}",
    "while": "k, v = 0, x[0]\n    while v < 9:\n        k, v = k + 1, v * 1.7 + 0.1\n        {}",
    "while it grows": "k, v = 0, x[1]\n    while len(out) < 5:\n        k, v = k + 1, v * x[2] - 0.2\n"
    "        {}",
    "twice": "for k, v in enumerate(x):\n        if v > 0.4:\n            {}\n        {}",
}
READ = {
    "in turn": "for p in out:\n        s = s * 0.9 + {}",
    "with places": "for j, p in enumerate(out):\n        s += (j + 1) * {}",
    "from behind": "for p in reversed(out):\n        s = s * 0.8 + {}",
    "beside": "for w, p in zip(x, out):\n        s += w * {}",
    "slices": "for p in out[1:]:\n        s = s * 0.9 + {0}\n    for p in out[:2]:\n        s += {0}",
    "every second": "for p in out[::2]:\n        s = s * 0.9 + {}",
    "by index": "for j in range(len(out)):\n        p = out[j]\n        s += (j + 1) * {}",
    "ends": "if out:\n        p = out[0]\n        s += {0}\n        p = out[-1]\n        s += 3 * {0}",
    "a copy": "for p in list(out):\n        s = s * 0.9 + {}",
}
FORMS = list(itertools.product(ITEMS, PUT, HEADS, LOOPS, READ))


def written(item, put, head, loop, read):
    value, number = ITEMS[item]
    begun = HEADS[head].format(*[value.replace("v", "x[3]").replace("k", "2")] * 2)
    lines = [
        "def f(x):",
        f"    out = {begun}",
        f"    {LOOPS[loop].format(*[PUT[put].format(value)] * 2)}",
        "    s = x[0]",
        f"    {READ[read].format(number)}",
        "    return s + len(out) * x[1]",
    ]
    return "\n".join(lines)


def check(form, folder):
    source = written(*form)
    f = defined(source, folder)
    expected = fwdad.jacobian(f, X)
    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X), rtol=1e-12)
    for derivative in (fwdad.grad, fwdad.jacfwd):
        found = fwdad.jit(derivative(f), backend="numpy")(X)
        assert_allclose(found, expected, rtol=1e-10, atol=1e-10, err_msg=source)
    v = np.cos(np.arange(6.0))
    assert_allclose(expected @ v, difference_along(f, X, v), rtol=1e-5, atol=1e-6, err_msg=source)


SAMPLE = [FORMS[k] for k in np.random.default_rng(5).choice(len(FORMS), 20, replace=False)]


@pytest.mark.every(2)
@pytest.mark.parametrize("form", SAMPLE, ids="-".join)
def test_some(form, tmp_path):
    check(form, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("item", "put"), list(itertools.product(ITEMS, PUT)))
def test_all(item, put, tmp_path):
    for k, form in enumerate(f for f in FORMS if f[:2] == (item, put)):
        folder = tmp_path / str(k)
        folder.mkdir()
        check(form, folder)
