"""``tree_map`` and ``ravel``, of every structure and in every mode."""

import itertools
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import fwdad
from fwdad import NoTangent
from fwdad.errors import SeedError, UnsupportedTypeError, UntraceableError
from tests.cases.plain_classes import Node, Pair, Rod, Slotted
from tests.differences import complex_step


@dataclass
class Layer:
    weights: np.ndarray
    bias: float
    name: str = "layer"


def parameters():
    return {
        "layer": Layer(np.array([[1.0, 2.0], [3.0, 5.0]]), 0.5),
        "rod": Rod(2.0, np.array([0.25, 1.5]), profile=np.square),
        "slots": Slotted(3.0, 0.75),
        "pair": (Pair(1.5), [4.0, 7]),
        "count": 3,
    }


VECTOR = [1.0, 2.0, 3.0, 5.0, 0.5, 2.0, 0.25, 1.5, 3.0, 0.75, 3.0, 1.5, 3.0, 4.0]


def loss(p):
    hidden = np.tanh(p["layer"].weights @ p["rod"].places + p["layer"].bias)
    slots = p["slots"].a * p["slots"].b * p["slots"].hidden()
    return np.sum(hidden**2) * slots + p["rod"].bend() * p["pair"][0].a * p["pair"][1][0]


def test_ravel():
    tree = parameters()
    vector, unravel = fwdad.ravel(tree)
    # slots come in the order of their names in the class
    assert sorted(vector) == sorted(VECTOR)
    assert_array_equal(vector[:8], VECTOR[:8])
    assert vector.dtype == float
    made = unravel(2.0 * vector)
    assert_array_equal(made["layer"].weights, 2.0 * tree["layer"].weights)
    assert (made["layer"].name, made["count"], made["pair"][1][1]) == ("layer", 3, 7)
    assert type(made["pair"][0]) is Pair
    assert made["slots"].hidden() == 6.0
    assert_array_equal(fwdad.ravel(made)[0], 2.0 * vector)
    assert repr(unravel) == "<unravel: (14,) to a dict>"
    assert_array_equal(pickle.loads(pickle.dumps(fwdad.ravel([1.0, VECTOR])[1]))(range_of(15))[1],
                       range_of(15)[1:])  # fmt: skip


def range_of(n):
    return np.arange(float(n))


def test_unravelled_parts_have_memory_of_their_own():
    tree = {"a": np.ones(2), "b": np.ones((2, 2))}
    vector, unravel = fwdad.ravel(tree)
    made = unravel(vector)
    made["a"][0] = made["b"][0, 0] = 5.0
    vector[1] = 7.0
    assert_array_equal(tree["a"], 1.0)
    assert_array_equal(vector, [1, 7, 1, 1, 1, 1])
    assert_array_equal(made["a"], [5, 1])


WAYS = {
    "grad": fwdad.grad,
    "columns": lambda f: lambda v: fwdad.jacobian(f, v, mode="forward"),
    "one column": lambda f: lambda v: fwdad.jacobian(f, v, chunk=1, mode="forward"),
    "two columns": lambda f: lambda v: fwdad.jacobian(f, v, chunk=2, mode="forward"),
    "ragged columns": lambda f: lambda v: fwdad.jacobian(f, v, chunk=3, mode="forward"),
    "rows": lambda f: lambda v: fwdad.jacobian(f, v, mode="reverse"),
    "compiled gradient": lambda f: fwdad.jit(fwdad.grad(f), backend="numpy"),
    "compiled columns": lambda f: fwdad.jit(fwdad.jacfwd(f), backend="numpy"),
    "nested": lambda f: lambda v: fwdad.jvp(lambda t: fwdad.grad(lambda v: t * f(v))(v), 1.0, 1)[1],
}


@pytest.mark.parametrize("way", WAYS)
def test_derivative_of_unravel(way):
    vector, unravel = fwdad.ravel(parameters())
    expected = complex_step(lambda v: loss(unravel(v)), vector)
    assert_allclose(WAYS[way](lambda v: loss(unravel(v)))(vector), expected, rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_derivative_of_ravel(way):
    weights = np.arange(1.0, 15.0)

    def f(p):
        return np.sum(weights * fwdad.ravel(p)[0] ** 3)

    vector, unravel = fwdad.ravel(parameters())
    found = WAYS[way](f)(parameters())
    assert_allclose(fwdad.ravel(found)[0], 3.0 * weights * vector**2, rtol=1e-12)
    assert found["count"] is NoTangent
    # and back, inside
    g = lambda v: np.sum(weights * fwdad.ravel(unravel(v))[0] ** 3)  # noqa: E731
    assert_allclose(WAYS[way](g)(vector), 3.0 * weights * vector**2, rtol=1e-12)


@pytest.mark.every(2)
@pytest.mark.parametrize("jit", [False, True])
def test_second_derivative_of_unravel(jit):
    vector, unravel = fwdad.ravel(parameters())
    f = lambda v: loss(unravel(v))  # noqa: E731
    product = lambda v, p: fwdad.hvp(f, v, p)  # noqa: E731
    product = fwdad.jit(product, backend="numpy") if jit else product
    expected = complex_step(
        lambda v: fwdad.grad(f)(v.real) if np.isrealobj(v) else slope(v), vector
    )
    assert_allclose(product(vector, vector), expected @ vector, rtol=1e-8, atol=1e-8)


def slope(v):
    """The gradient at a complex vector, by differences of the loss that are exact to rounding."""
    _, unravel = fwdad.ravel(parameters())
    found = []
    for k in range(len(v)):
        steps = [1e-3 * 2.0**-level for level in range(4)]
        row = []
        for h in steps:
            up, down = v.copy(), v.copy()
            up[k] += h
            down[k] -= h
            row.append((loss(unravel(up)) - loss(unravel(down))) / (2 * h))
        for order in (1, 2, 3):
            row = [b + (b - a) / (4.0**order - 1) for a, b in itertools.pairwise(row)]
        found.append(row[0])
    return np.array(found)


DTYPES = [
    # as jax.flatten_util.ravel_pytree, with 64 bits enabled
    ([np.ones(2, np.float32), np.ones(1, np.float32)], np.float32),
    ([np.ones(2, np.float32), np.ones(1)], np.float64),
    ([np.ones(2, np.float32), np.ones(1, np.complex64)], np.complex64),
    ([np.ones(2), np.ones(1, np.complex64)], np.complex128),
    ([np.float32(1), 1.0], np.float64),
    ([], np.float64),
]


@pytest.mark.parametrize(("tree", "dtype"), DTYPES, ids=lambda x: str(x)[:40])
def test_dtypes(tree, dtype):
    vector, unravel = fwdad.ravel(tree)
    assert vector.dtype == dtype
    for x, y in zip(tree, unravel(vector), strict=True):
        assert np.asarray(y).dtype == np.asarray(x).dtype
        assert_array_equal(x, y)


def test_parts_of_one_dtype_take_that_of_the_vector():
    _, unravel = fwdad.ravel({"a": np.ones(2), "b": 1.0})
    made = unravel(np.array([1j, 2.0, 3.0]))
    assert made["a"].dtype == complex
    assert made["b"] == 3.0
    _, mixed = fwdad.ravel({"a": np.ones(2), "b": np.float32(1)})
    with pytest.raises(SeedError, match="dtype float64; got dtype complex128"):
        mixed(np.array([1j, 2.0, 3.0]))


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (np.ones(3), r"shape \(2,\); got the shape \(3,\)"),
        (np.ones(1), r"shape \(2,\); got the shape \(1,\)"),
        (np.ones((2, 1)), "shape"),
        (3.0, r"got the shape \(\)"),
        (np.arange(2), "got dtype int64"),
        (np.ones(2, bool), "got dtype bool"),
    ],
)
def test_a_vector_that_does_not_fit(vector, message, jit):
    _, unravel = fwdad.ravel([1.0, np.ones(1)])
    f = lambda v: unravel(v)[0] * 2.0  # noqa: E731
    with pytest.raises(SeedError, match=message):
        (fwdad.jit(f, backend="numpy") if jit else f)(vector)


def test_a_length_that_is_known_at_run_time_only():
    _, unravel = fwdad.ravel([1.0, np.ones(2)])
    f = fwdad.jit(lambda x: np.sum(unravel(x[x > 0.0])[1]), backend="numpy")
    try:
        assert f(np.array([1.0, -2.0, 3.0, 5.0])) == 8.0
    except UntraceableError:
        pytest.skip("a selection by a mask cannot be traced")
    with pytest.raises(SeedError, match="shape"):
        f(np.array([1.0, -2.0, 3.0, -5.0]))


def test_a_shared_array_is_in_the_vector_once():
    a = np.array([1.0, 2.0])
    vector, unravel = fwdad.ravel([a, {"again": a}])
    assert_array_equal(vector, a)
    made = unravel(vector)
    assert made[0] is made[1]["again"]
    f = lambda v: np.sum(unravel(v)[0] * unravel(v)[1]["again"])  # noqa: E731
    for way in WAYS.values():
        assert_allclose(way(f)(vector), 2.0 * a)


def test_a_cycle():
    node = Node(3.0, Node(2.0))
    vector, unravel = fwdad.ravel(node)
    assert_array_equal(vector, [3.0, 2.0])
    made = unravel(vector)
    assert made.children[0].parent is made
    for way in WAYS.values():
        # (a² + b² a)' = (2a + b², 2ab)
        assert_allclose(way(lambda v: unravel(v).total())(vector), [10.0, 12.0])


def test_a_sparse_array():
    matrix = sp.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
    vector, unravel = fwdad.ravel({"A": matrix})
    assert_array_equal(vector, [1.0, 2.0, 3.0])
    f = lambda v: np.sum(unravel(v)["A"] @ np.array([1.0, 10.0]))  # noqa: E731
    assert_allclose(fwdad.grad(f)(vector), [1.0, 1.0, 10.0])
    with pytest.raises(UntraceableError, match="sparse array"):
        fwdad.jit(f, backend="numpy")(vector)
    doubled = fwdad.tree_map(lambda x: 2.0 * x, {"A": matrix})
    assert_array_equal(doubled["A"].toarray(), 2.0 * matrix.toarray())


def test_in_an_optimiser():
    target = np.array([[1.0, 2.0], [3.0, 4.0]])

    def misfit(p):
        return np.sum((p["w"] - target) ** 2) + (p["b"] - 3.0) ** 2

    vector, unravel = fwdad.ravel({"w": np.zeros((2, 2)), "b": 0.0})
    fun = fwdad.value_and_grad(lambda v: misfit(unravel(v)))
    found = unravel(minimize(fun, vector, jac=True, method="BFGS").x)
    assert_allclose(found["w"], target, atol=1e-6)
    assert_allclose(found["b"], 3.0, atol=1e-6)


@pytest.mark.parametrize(
    "x", [np.ma.ones(2), {"a": np.ones((1, 1)).view(np.matrix)}], ids=["masked", "matrix"]
)
def test_what_has_no_vector(x):
    with pytest.raises(UnsupportedTypeError, match=r"[wW]rite"):
        fwdad.ravel(x)


# -- tree_map


def test_a_step_of_gradient_descent():
    tree = parameters()
    slopes = fwdad.grad(loss)(tree)
    step = lambda p, g: fwdad.tree_map(lambda p, g: p - 0.1 * g, p, g)  # noqa: E731
    vector, slope = fwdad.ravel(tree)[0], fwdad.ravel(slopes)[0]
    for call in (step, fwdad.jit(step, backend="numpy")):
        moved = call(tree, slopes)
        assert_allclose(fwdad.ravel(moved)[0], vector - 0.1 * slope)
        assert (moved["count"], moved["rod"].name) == (3, "rod")
        assert type(moved["slots"]) is Slotted
    assert_array_equal(fwdad.ravel(tree)[0], vector)


@pytest.mark.every(4, first=1)
@pytest.mark.parametrize("way", WAYS)
def test_derivative_of_tree_map(way):
    """Through a step of gradient descent, that is through a gradient."""
    vector, unravel = fwdad.ravel(parameters())

    def after(v):
        p = unravel(v)
        return loss(fwdad.tree_map(lambda p, g: p - 0.01 * np.sin(g), p, fwdad.grad(loss)(p)))

    def plainly(v):
        return loss(unravel(v - 0.01 * np.sin(slope(v))))

    assert_allclose(WAYS[way](after)(vector), complex_step(plainly, vector), rtol=1e-8, atol=1e-9)


def test_three_trees():
    x = {"a": 1.0, "b": [np.ones(2), 3]}
    for call in (fwdad.tree_map, fwdad.jit(fwdad.tree_map, backend="numpy")):
        made = call(_fma, x, {"b": [2.0 * np.ones(2), None], "a": 5.0}, {"a": 7.0, "b": (9.0, 0)[:0]
                    or [np.zeros(2), 0]})  # fmt: skip
        assert made["a"] == 12.0
        assert_array_equal(made["b"][0], 2.0)
        assert made["b"][1] == 3


def _fma(a, b, c):
    return a * b + c


def test_a_shared_array_is_mapped_once():
    calls = []
    a = np.ones(2)
    made = fwdad.tree_map(lambda x: calls.append(x) or 2 * x, [a, (a, a)])
    assert len(calls) == 1
    assert made[0] is made[1][1]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ([{"a": 1.0}], "keys"),
        ([{"a": 1.0, "b": (1.0, 2.0)}], "list"),
        ([{"a": 1.0, "b": [1.0]}], "list"),
        ([{"a": 1.0, "b": [1.0, 2.0]}, {"a": 1.0, "c": 1.0}], "third tree"),
        ([3.0], "dict"),
    ],
)
def test_trees_that_do_not_match(rest, message, jit):
    call = fwdad.jit(fwdad.tree_map, backend="numpy") if jit else fwdad.tree_map
    with pytest.raises(SeedError, match=message):
        call(lambda *x: x[0], {"a": 1.0, "b": [2.0, 3.0]}, *rest)


def test_the_function_comes_first():
    with pytest.raises(UnsupportedTypeError, match="function first"):
        fwdad.tree_map({"a": 1.0}, np.sin)
