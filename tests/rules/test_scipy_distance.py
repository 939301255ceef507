"""Distances between rows, and what they are at equal rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import distance

import fwdad
from fwdad.errors import MissingRuleError, UnsupportedTypeError
from fwdad.testing import check_frule
from tests.rules.case import Case, Draw

draw = Draw(32)
W = np.array([0.5, 2.0, 1.25])
METRICS = (
    ("euclidean", {}),
    ("euclidean", {"w": W}),
    ("sqeuclidean", {}),
    ("sqeuclidean", {"w": W}),
    ("cityblock", {}),
    ("cityblock", {"w": W}),
    ("chebyshev", {}),
    ("minkowski", {"p": 3}),
    ("minkowski", {"p": 1.5, "w": W}),
    ("minkowski", {"p": 1}),
    ("minkowski", {"p": np.inf}),
)
CASES = [
    *(Case(distance.cdist, draw.real(4, 3), draw.real(2, 3), m, **o) for m, o in METRICS),
    *(Case(distance.pdist, draw.real(4, 3), m, **o) for m, o in METRICS),
    Case(distance.cdist, draw.real(1, 2), draw.real(3, 2)),
    Case(distance.pdist, draw.real(2, 1)),
    Case(distance.pdist, draw.real(1, 2)),
    *(Case(distance.squareform, draw.real(n)) for n in (1, 3, 6)),
    Case(distance.squareform, draw.real(6), force="tomatrix", checks=False),
    Case(distance.squareform, draw.real(4, 4), checks=False),
    Case(distance.squareform, draw.real(1, 1), checks=False),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


def by_hand(a, b, metric, p=2, w=1.0):
    """The same distances in NumPy's own functions, away from equal rows."""
    u = a[:, None, :] - b[None, :, :]
    if metric == "sqeuclidean":
        return np.sum(w * u**2, axis=-1)
    if metric == "chebyshev" or p == np.inf:
        return np.max(np.abs(u), axis=-1)
    if metric == "cityblock" or p == 1:
        return np.sum(w * np.abs(u), axis=-1)
    return np.sum(w * np.abs(u) ** p, axis=-1) ** (1 / p)


@pytest.mark.parametrize(("metric", "options"), METRICS)
def test_every_way_agrees_with_the_formula(metric, options):
    a, b, weights = draw.real(3, 3), draw.real(2, 3), draw.real(3, 2)
    first, second = np.triu_indices(5, 1)

    def given(x):
        return distance.cdist(x[:3], x[3:], metric, **options)

    def same(x):
        return by_hand(x[:3], x[3:], metric, **options)

    def pairs(x):
        return distance.pdist(x, metric, **options)

    def same_pairs(x):
        rows = [by_hand(x[i : i + 1], x[j : j + 1], metric, **options) for i, j in places]
        return np.concatenate(rows).ravel()

    places = list(zip(first.tolist(), second.tolist(), strict=True))
    x = np.concatenate([a, b])
    for f, g in ((given, same), (pairs, same_pairs)):
        want = fwdad.jacobian(g, x)
        for chunk in (1, 2, 3):
            assert_allclose(fwdad.jacobian(f, x, chunk=chunk), want, rtol=1e-12, atol=1e-14)
        assert_allclose(fwdad.jacobian(f, x, mode="reverse"), want, rtol=1e-12, atol=1e-14)
        traced = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
        assert_allclose(traced(x), want, rtol=1e-12, atol=1e-14)
    assert_allclose(
        fwdad.hessian(lambda x: np.sum(weights * given(x) ** 2), x),
        fwdad.hessian(lambda x: np.sum(weights * same(x) ** 2), x),
        rtol=1e-10,
        atol=1e-11,
    )


@pytest.mark.parametrize("n", [1, 2, 4])
def test_squareform_agrees_with_indexing(n):
    first, second = np.triu_indices(n, 1)
    table = np.zeros((n, n), int)
    table[first, second] = table[second, first] = np.arange(first.size)
    weights, x = draw.real(n, n), draw.real(first.size + 1)

    def given(x):
        square = distance.squareform(x[1:])
        return distance.squareform(weights * np.exp(square) * x[0], checks=False), square

    def same(x):
        square = x[1:][table] * (1.0 - np.eye(n)) if n > 1 else np.zeros((1, 1)) * x[0]
        return (weights * np.exp(square) * x[0])[first, second], square

    for part in (0, 1):
        want = fwdad.jacobian(lambda x, k=part: same(x)[k], x)
        for mode in ("forward", "reverse"):

            def found(x, k=part, mode=mode):
                return fwdad.jacobian(lambda x: given(x)[k], x, mode=mode)

            assert_allclose(found(x), want, rtol=1e-12, atol=1e-14)
            assert_allclose(fwdad.jit(found, backend="numpy")(x), want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("metric", "options"), METRICS)
def test_equal_rows_have_slope_zero(metric, options):
    x = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.0, 2.0, 5.0]])
    for f, equal in (
        (lambda x: distance.cdist(x, x, metric, **options), ([0, 1, 0, 1], [0, 1, 1, 0])),
        (lambda x: distance.pdist(x, metric, **options), ([0],)),
    ):
        for run in (fwdad.jacobian, lambda f, x: fwdad.jacobian(f, x, mode="reverse")):
            found = run(f, x)
            assert np.all(np.isfinite(found))
            assert_array_equal(found[equal], 0.0)
            # the second coordinate is equal everywhere: |u| has the slope 0 there
            assert_array_equal(found[..., 1], 0.0)


def test_the_largest_difference_is_the_first_of_equal_ones():
    found = fwdad.jacobian(
        lambda a: distance.cdist(a, [[0.0, 0.0]], "chebyshev"), np.array([[2.0, -2.0]])
    )
    assert_array_equal(found.ravel(), [1.0, 0.0])


def test_one_matrix_may_be_a_constant_or_a_list():
    x, y = draw.real(3, 2), [[0.0, 1.0], [2.0, 3.0]]
    both = fwdad.jacobian(lambda x, y: distance.cdist(x, y), x, args=(np.array(y),))
    assert_array_equal(fwdad.jacobian(lambda x: distance.cdist(x, y), x), both)
    turned = fwdad.jacobian(lambda x: distance.cdist(y, x), x)
    assert_array_equal(turned, np.swapaxes(both, 0, 1))


def test_single_precision_is_read_as_scipy_reads_it():
    x = draw.real(3, 2).astype(np.float32)
    y, y_dot = fwdad.jvp(distance.pdist, x, np.ones_like(x) * x)
    assert y.dtype == y_dot.dtype == np.float64
    assert_array_equal(y, distance.pdist(x))
    assert_allclose(y_dot, y, rtol=1e-12)  # distances are homogeneous of degree one
    assert fwdad.grad(lambda x: np.sum(distance.pdist(x)))(x).dtype == np.float32


def test_results_are_written_where_out_says():
    x = draw.real(3, 2)

    def f(x):
        held = np.zeros((3, 3))
        distance.cdist(x, x, "sqeuclidean", out=held)
        return held * 2.0

    want = fwdad.jacobian(lambda x: 2.0 * distance.cdist(x, x, "sqeuclidean"), x)
    assert_allclose(fwdad.jacobian(f, x), want, rtol=1e-14)
    assert_allclose(fwdad.jacobian(f, x, mode="reverse"), want, rtol=1e-14)


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("cosine", {}),
        ("canberra", {}),
        ("seuclidean", {"V": W}),
        ("minkowski", {"p": 0.5}),
        ("chebyshev", {"w": W}),
        (distance.euclidean, {}),
        (lambda u, v: np.sum((u - v) ** 2), {}),
    ],
)
def test_other_distances_raise(metric, options):
    x = draw.real(3, 3)
    with pytest.raises(MissingRuleError, match=r"metric|distance"):
        fwdad.jacobian(lambda x: distance.cdist(x, x, metric, **options), x)
    with pytest.raises(MissingRuleError, match=r"metric|distance"):
        fwdad.grad(lambda x: np.sum(distance.pdist(x, metric, **options)))(x)


def test_active_options_and_complex_rows_raise():
    x = draw.real(3, 3)
    with pytest.raises(MissingRuleError, match="takes `w` as an option"):
        fwdad.jacobian(lambda x: distance.cdist(x, x, w=x[0] ** 2), x)
    with pytest.raises(MissingRuleError, match="takes `p` as an option"):
        fwdad.jacobian(lambda x: distance.pdist(x, "minkowski", p=1.0 + x[0, 0] ** 2), x)
    with pytest.raises((UnsupportedTypeError, np.exceptions.ComplexWarning, ValueError)):
        fwdad.jacobian(lambda x: distance.pdist(x * 1j), x)
