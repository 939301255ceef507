"""What the example decides is found by running each recorded operation once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

import fwdad
from fwdad.frontend import example_run
from tests.differences import central_differences

pytestmark = pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")

X = np.array([0.7, -0.4, 1.3, -0.2, 0.9, 0.1])


def many_ways(x):
    """A list or a tuple by each value, in memory that is written on the way."""
    table, total = np.zeros(3), 0.0
    for k, v in enumerate(x.tolist()):
        table[k % 3] += v * v
        parts = [v, table[0]] if table[k % 3] > 0.5 else (v, table[1], 1.0)
        total = total + parts[0] * parts[1] * len(parts)
    return total + table.sum()


def searched(x):
    return optimize.toms748(lambda t: t**3 + x[0] * t - 1.0 - x[1] ** 2, 0, 5)


def written_on_a_way(x):
    a = x * 1.0
    if x[0] > 0:
        a[1] = 5.0 * x[2]
    kinds = [a[1]] if a[1] > 3 else {"a": a[0]}
    return kinds[0] * x[3] if isinstance(kinds, list) else kinds["a"]


@pytest.mark.parametrize(
    ("f", "most"),
    [
        (many_ways, 1 << 26),
        (many_ways, 0),  # too large to keep: found anew for each value
        (written_on_a_way, 1 << 26),
        (written_on_a_way, 0),
        (searched, 1 << 26),
    ],
)
def test_values_and_gradients(f, most, monkeypatch):
    monkeypatch.setattr(example_run, "_MOST", most)
    for x in (X, X[::-1].copy(), np.abs(X) + 0.3):
        assert_allclose(fwdad.jit(f, backend="numpy")(x), f(x))
        found = fwdad.jit(fwdad.grad(f), backend="numpy")(x)
        assert_allclose(found, central_differences(f, x), rtol=1e-5, atol=1e-7)


def test_each_operation_is_run_once(monkeypatch):
    """Finding what the example decides takes time that grows with the program's length."""
    plain, counts = example_run._results, []

    def counted(block, given):
        counts.append(len(block.ops))
        return plain(block, given)

    monkeypatch.setattr(example_run, "_results", counted)
    runs = []
    for n in (10, 40):
        counts.clear()
        x = np.linspace(-1.0, 1.3, n)
        assert_allclose(fwdad.jit(many_ways, backend="numpy")(x), many_ways(x))
        assert len(counts) > n // 2
        runs.append(sum(counts))
    assert runs[1] < 6 * runs[0]
