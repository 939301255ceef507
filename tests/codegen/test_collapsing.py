"""Loops over all elements of arrays run as one, where these follow one another in memory."""

import ast

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

numba = pytest.importorskip("numba")

import fwdad  # noqa: E402
from fwdad.codegen.llvm.nests.collapsing import chain_of  # noqa: E402
from tests.codegen.test_loop_merging import same_as_python  # noqa: E402

INNER = frozenset({"i", "j", "k"})


def chain(code, inner=INNER):
    (loop,) = ast.parse(code).body
    return chain_of(loop, inner)


def loops(*stops, body):
    """Loops over i, j and k around a statement."""
    lines = [f"{'    ' * n}for {'ijk'[n]} in range({stop}):" for n, stop in enumerate(stops)]
    return "\n".join([*lines, f"{'    ' * len(stops)}{body}"])


@pytest.mark.parametrize(
    ("stops", "body", "arrays"),
    [
        (("n", "m"), "a[i, j] = b[i, j] + t", {"a", "b"}),
        (("n", "m", "3"), "a[i, j, k] = -a[i, j, k]", {"a"}),
        (("n", "m"), "total = total + a[2, q, i, j]", {"a"}),
        (("n", "0, m, 8"), "vector_write(vector_read(8, m, a, i, j), m, b, i, j)", {"a", "b"}),
    ],
)
def test_loops_that_use_their_indices_for_whole_rows_are_a_chain(stops, body, arrays):
    found = chain(loops(*stops, body=body))
    assert len(found.loops) == len(stops)
    assert set(found.arrays) == arrays
    assert len(found.repeated) == body.count("vector_")


@pytest.mark.parametrize(
    ("stops", "body"),
    [
        (("n",), "a[i] = 1.0"),  # one loop is one
        (("n", "m"), "a[i, j] = b[j]"),  # broadcast
        (("n", "m"), "a[i, j] = b[j, i]"),
        (("n", "m"), "a[i, j] = b[i, 0]"),
        (("n", "m"), "a[i, j] = b[i, j + 1]"),
        (("n", "m"), "a[i, j] = i"),
        (("n", "m"), "a[i, j, k] = 0.0"),  # not the last axes
        (("n", "m", "p"), "a[k, i, j, k] = 0.0"),
        (("n", "i"), "a[i, j] = 1.0"),  # a triangle
        (("1, n", "m"), "a[i, j] = 1.0"),
        (("n", "0, m, 2, 3"), "a[i, j] = 1.0"),
        (("n", "check_length(n, m)"), "a[i, j] = 1.0"),
        (("n", "m"), "total = total + t"),
        (("n", "m"), "m = a[i, j]"),
        (("n", "0, m, 8"), "vector_write(vector_read(8, p, a, i, j), m, b, i, j)"),
        (("n", "0, 9, 8"), "vector_write(vector_read(8, 9, a, i, j), 9, b, i, j)"),
    ],
)
def test_other_loops_are_none(stops, body):
    assert chain(loops(*stops, body=body)) is None


def test_indices_that_are_checked_are_none():
    code = loops("n", "m", body="a[i, j] = 1.0")
    assert chain(code) is not None
    assert chain(code, INNER - {"j"}) is None


PLAIN = """
def f(a, b):
    total = 1.0
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            for k in range(b.shape[2]):
                total = total * 0.5 + b[i, j, k]
                a[i, j, k] = total
    return (total,)
"""

X = np.random.default_rng(3).normal(size=(7, 6, 9))


@pytest.mark.parametrize(
    "b",
    [
        X,
        X[:, :, :1].copy(),
        X[:, :2, :3],  # strides
        X[1:, :, :],
        X[:, ::-1],
        X.transpose(2, 0, 1),
        X.copy(order="F"),
        np.broadcast_to(X[0], (3, 6, 9)),
        np.broadcast_to(X[:, :1], (7, 4, 9)),
        X[:0],
        X[:, :0],
        X[:, :, :0],
        X[:, :, ::3].copy(),
    ],
)
@pytest.mark.parametrize("longer", [(0, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_layouts_and_longer_arrays(b, longer):
    """The loops of a shorter array touch no other elements of a longer one."""
    a = np.zeros(np.add(b.shape, longer))
    same_as_python(PLAIN, a, b, inner=("i", "j", "k"))
    same_as_python(PLAIN, np.zeros(a.shape, order="F"), b, inner=("i", "j", "k"))


def energy(x, y):
    d = x[:, np.newaxis] - y
    d -= np.round(0.3 * d)
    squares = np.exp(-d * d) * np.sqrt(1.0 + d * d)
    return np.sum(squares * d) + np.sum(np.where(d > 0.0, d, squares) ** 3)


@pytest.mark.parametrize("last", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("layout", ["C", "F", "A"])
def test_programs_on_points(last, layout):
    rng = np.random.default_rng(last)
    x, y = rng.normal(size=(4, last)), rng.normal(size=(5, last))
    if layout == "F":
        x = x.copy(order="F")
    elif layout == "A":
        x = np.repeat(x, 2, axis=1)[:, ::2]
    value, slopes = fwdad.jit(fwdad.value_and_grad(energy, argnums=(0, 1)))(x, y)
    assert_allclose(value, energy(x, y), rtol=1e-13)
    h = 1e-5
    for k, slope in enumerate(slopes):
        for at in np.ndindex(slope.shape):
            step = np.zeros(slope.shape)
            step[at] = h
            sides = [energy(*(z + s * step if n == k else z for n, z in enumerate((x, y))))
                     for s in (1, -1)]  # fmt: skip
            assert_allclose(slope[at], (sides[0] - sides[1]) / (2 * h), rtol=1e-7, atol=1e-7)
    _, along = fwdad.jit(lambda x, v: fwdad.jvp(lambda x: energy(x, y), x, v))(
        x, np.stack([x, 2 * x, -x])
    )
    assert_allclose(along, np.sum(slopes[0] * x) * np.array([1.0, 2.0, -1.0]), rtol=1e-10)


def test_sums_keep_their_order():
    """Where rounding shows the order, the compiled sum over rows is the one of single loops."""
    x = 10.0 ** np.random.default_rng(0).integers(-8, 8, size=(40, 3))

    def running(x):
        total = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                total = total + x[i, j]
        return total

    assert_array_equal(fwdad.jit(running)(x), running(x))
