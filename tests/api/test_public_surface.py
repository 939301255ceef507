"""The public surface: every option of every evaluator and transformer, layouts, pickles."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad import NoTangent
from tests.smooth import MATRIX, X, cubes, energy, product


class Point(NamedTuple):
    a: float
    w: np.ndarray


@dataclasses.dataclass
class Model:
    gain: float
    weights: np.ndarray
    name: str = "model"
    order: int = 2


# -- layouts


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 6, 7, 100, None, "auto", np.int64(2)])
def test_layouts_of_jvp_and_jacobian(chunk):
    """Directions in front, columns behind: f(x)[i, j, k] = x[i, j] * x[i, k]."""

    def f(x):
        return x[:, :, None] * x[:, None, :]

    n, m = MATRIX.shape
    expected = np.zeros((n, m, m, n, m))
    for i in range(n):
        for j in range(m):
            expected[i, j, :, i, j] += MATRIX[i]
            expected[i, :, j, i, j] += MATRIX[i]
    y, J = fwdad.value_and_jacobian(f, MATRIX, chunk=chunk)
    assert_array_equal(y, f(MATRIX))
    assert_allclose(J, expected, rtol=1e-15)
    y, y_dot = fwdad.jvp(f, MATRIX, chunk=chunk)  # v=None is every basis direction
    assert y_dot.shape == (6, n, m, m)
    assert_allclose(np.moveaxis(y_dot, 0, -1).reshape(J.shape), expected, rtol=1e-15)
    v = np.arange(24.0).reshape(4, n, m)
    y, y_dot = fwdad.jvp(f, MATRIX, v, chunk=chunk)
    assert_allclose(y_dot, np.einsum("ijkab,vab->vijk", expected, v), rtol=1e-14)
    y, y_dot = fwdad.jvp(f, MATRIX, v[3], chunk=chunk)
    assert y_dot.shape == y.shape


def test_scalars_in_and_out():
    assert fwdad.jvp(math.sin, 0.5, 2.0) == (math.sin(0.5), 2 * math.cos(0.5))
    assert type(fwdad.jvp(math.sin, 0.5, 1.0)[1]) is float
    assert fwdad.derivative(math.sin, 0.5) == math.cos(0.5)
    assert type(fwdad.derivative(math.sin, 0.5)) is float
    assert fwdad.jacobian(cubes, 2.0) == 12.0
    _, y_dot = fwdad.jvp(cubes, 2.0, np.array([1.0, 0.5]))
    assert_array_equal(y_dot, [12.0, 6.0])
    assert fwdad.derivative(lambda t: np.array([t, t**2]), 3.0).tolist() == [1.0, 6.0]
    assert fwdad.derivative(lambda t: {"a": t**2, "n": 1}, 3.0) == {"a": 6.0, "n": NoTangent}
    x = np.array(2.0)
    assert fwdad.jacobian(cubes, x).shape == ()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_short_arguments(n):
    x = np.linspace(1.0, 2.0, n)
    assert_array_equal(fwdad.jacobian(cubes, x), np.diag(3 * x**2))
    assert fwdad.jvp(cubes, x)[1].shape == (n, n)
    assert_array_equal(fwdad.grad(np.sum)(x), np.ones(n))
    assert fwdad.hessian(lambda x: np.sum(x**2), x).shape == (n, n)


def test_constant_functions():
    assert_array_equal(fwdad.jacobian(lambda _: np.ones(2), X), np.zeros((2, 3)))
    assert_array_equal(fwdad.grad(lambda _: 3)(X), np.zeros(3))
    assert fwdad.derivative(lambda _: 7, 1.0) == 0.0


# -- argnums, args and kwargs


@pytest.mark.parametrize(("argnums", "expected"), [(0, 0), (1, 1), (-1, 1), (-2, 0)])
def test_argnums(argnums, expected):
    x, y = X[:2], X
    blocks = (np.einsum("ik,j->ijk", np.eye(2), y), np.einsum("i,jk->ijk", x, np.eye(3)))
    J = fwdad.jacobian(product, x, args=(y,), argnums=argnums)
    assert_array_equal(J, blocks[expected])
    assert_array_equal(fwdad.jacfwd(product, argnums=argnums)(x, y), blocks[expected])
    v = np.ones((2, len((x, y)[expected])))
    y_dot = fwdad.jvp(product, x, v, args=(y,), argnums=argnums)[1]
    assert_array_equal(y_dot, np.moveaxis(blocks[expected] @ v.T, -1, 0))


@pytest.mark.parametrize("argnums", [(0, 1), (1, 0), [1], (-1, 0)])
def test_several_argnums(argnums):
    x, y = X[:2], X
    single = {k: fwdad.jacobian(product, x, args=(y,), argnums=k) for k in (0, 1)}
    J = fwdad.jacobian(product, x, args=(y,), argnums=argnums, chunk=2)
    assert type(J) is tuple
    for block, k in zip(J, argnums, strict=True):
        assert_array_equal(block, single[k % 2])
    stacked = fwdad.jacobian(product, x, args=(y,), argnums=argnums, stack=True)
    assert_array_equal(stacked, np.hstack([single[k % 2].reshape(6, -1) for k in argnums]))
    v = tuple(np.full((x, y)[k % 2].shape, 1.0 + k) for k in argnums)
    y_dot = fwdad.jvp(product, x, v, args=(y,), argnums=argnums)[1]
    assert_allclose(y_dot, sum(single[k % 2] @ w for k, w in zip(argnums, v, strict=True)))


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_argnums_out_of_range(argnums):
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="argnums"):
        fwdad.jacobian(product, X, args=(X,), argnums=argnums)


def test_kwargs_and_a_single_args():
    def f(x, a, *, b=1.0, c=2.0):
        return x * a + b * c

    assert fwdad.jvp(f, 2.0, 1.0, args=(3.0,), kwargs={"b": 5.0}) == (16.0, 3.0)
    assert fwdad.derivative(f, 2.0, args=(3.0,), kwargs={"c": 0.0}) == 3.0
    assert fwdad.jvp(f, 2.0, 1.0, args=3.0) == (8.0, 3.0)
    assert fwdad.jacfwd(f)(2.0, 3.0, b=4.0) == 3.0
    assert fwdad.grad(f, 1)(2.0, 3.0, c=4.0) == 2.0
    assert fwdad.grad(f, argnums=(0, 1))(2.0, 3.0) == (3.0, 2.0)


# -- aux, outputs


def test_has_aux():
    def f(x):
        return np.sum(x**2), {"norm": np.sqrt(np.sum(x**2)), "x": x, "name": "f"}

    y, y_dot, aux = fwdad.jvp(f, X, np.ones(3), has_aux=True)
    assert_allclose(y_dot, 2 * X.sum())
    for value in (
        aux,
        fwdad.jacobian(f, X, has_aux=True, chunk=2)[1],
        fwdad.value_and_jacobian(f, X, has_aux=True)[2],
        fwdad.grad(f, has_aux=True)(X)[1],
        fwdad.value_and_grad(f, has_aux=True)(X)[0][1],
        fwdad.jacfwd(f, has_aux=True)(X)[1],
    ):
        assert type(value["norm"]) is np.float64
        assert value["norm"] == np.sqrt(np.sum(X**2))
        assert type(value["x"]) is np.ndarray
        assert not np.shares_memory(value["x"], X)
        assert value["name"] == "f"
    assert_array_equal(fwdad.grad(f, has_aux=True)(X)[0], 2 * X)
    assert fwdad.value_and_grad(f, has_aux=True)(X)[0][0] == y


def test_has_aux_without_aux():
    with pytest.raises(fwdad.errors.NoOutputError, match="aux"):
        fwdad.jvp(cubes, X, X, has_aux=True)


def test_outputs():
    def step(u, v):
        u += v
        v *= 2.0
        return np.sum(u)

    u, v = X.copy(), X**2
    y, y_dot = fwdad.jvp(step, u, np.ones(3), args=(v,))
    assert (y, y_dot) == (np.sum(X + X**2), 3.0)
    (new_u, new_v), (u_dot, v_dot) = fwdad.jvp(step, u, np.ones(3), args=(v,), outputs="mutated")
    assert_array_equal(new_u, X + X**2)
    assert_array_equal(new_v, 2 * X**2)
    assert_array_equal(u_dot, np.ones(3))
    assert_array_equal(v_dot, np.zeros(3))
    (y, written), _ = fwdad.jvp(step, u, np.ones(3), args=(v,), outputs="both")
    assert y == np.sum(X + X**2)
    assert len(written) == 2
    J = fwdad.jacfwd(lambda u: u.__imul__(u), outputs="mutated")(u)
    assert_array_equal(J, np.diag(2 * X))
    assert_array_equal(u, X)
    assert_array_equal(v, X**2)
    with pytest.raises(ValueError, match="outputs"):
        fwdad.jvp(step, u, u, args=(v,), outputs="all")
    with pytest.raises(fwdad.errors.NoOutputError, match="none of its arguments"):
        fwdad.jvp(cubes, u, u, outputs="mutated")


# -- composites


def test_composites_in_and_out():
    p = {"point": Point(2.0, X), "list": [1.0, (3.0,)], "n": 4}

    def f(p):
        w = p["point"].w * p["point"].a
        return {"w": w, "s": (np.sum(w) * p["list"][1][0], p["n"])}

    y, J = fwdad.value_and_jacobian(f, p, chunk=2)
    assert y["s"] == (np.sum(2.0 * X) * 3.0, 4)
    assert type(J["w"]["point"]) is Point
    assert_array_equal(J["w"]["point"].a, X)
    assert_array_equal(J["w"]["point"].w, 2.0 * np.eye(3))
    assert_array_equal(J["w"]["list"][1][0], np.zeros(3))
    assert J["w"]["n"] is NoTangent
    assert J["s"][1] is NoTangent
    assert_allclose(J["s"][0]["list"][1][0], np.sum(2.0 * X))
    stacked = fwdad.jacobian(f, p, stack=True)
    assert stacked.shape == (4, 6)
    v = {"point": Point(1.0, np.zeros(3)), "list": [0.0, (1.0,)], "n": NoTangent}
    _, y_dot = fwdad.jvp(f, p, v)
    assert_array_equal(y_dot["w"], X)
    assert_allclose(y_dot["s"][0], np.sum(X) * 3.0 + np.sum(2.0 * X))


def test_dataclass_argument_and_value():
    def f(m):
        return Model(m.gain**2, m.weights * m.gain, m.name, m.order)

    m = Model(3.0, X)
    _, y_dot = fwdad.jvp(f, m, Model(1.0, np.ones(3), NoTangent, NoTangent))
    assert type(y_dot) is Model
    assert y_dot.gain == 6.0
    assert_allclose(y_dot.weights, X + 3.0)
    assert y_dot.order is NoTangent
    gradient = fwdad.grad(lambda m: m.gain * np.sum(m.weights))(m)
    assert_allclose(gradient.gain, X.sum())
    assert_array_equal(gradient.weights, np.full(3, 3.0))
    assert m.gain == 3.0


def test_stack_of_a_list():
    J = fwdad.jacobian(lambda x: [x[1], -x[0] * x[2]], X, stack=True)
    assert_array_equal(J, [[0.0, 1.0, 0.0], [-X[2], 0.0, -X[0]]])


# -- complex and single precision


def test_holomorphic():
    z = np.array([0.5 + 1j, 2.0 - 0.3j])
    J = fwdad.jacobian(lambda z: z**2 * np.exp(z), z, holomorphic=True)
    assert_allclose(J, np.diag((2 * z + z**2) * np.exp(z)))
    assert fwdad.derivative(lambda z: z**3, 1j, holomorphic=True) == -3.0
    _, y_dot = fwdad.jvp(lambda z: z * z, z, 1j * z, holomorphic=True)
    assert_allclose(y_dot, 2j * z * z)
    with pytest.raises(fwdad.errors.NotHolomorphicError, match="holomorphic=True"):
        fwdad.jacobian(np.exp, z)
    for f in (np.conj, np.abs, lambda z: z.real * z, lambda z: z * np.abs(z) ** 2):
        with pytest.raises(fwdad.errors.NotHolomorphicError, match="J\\(iv\\)"):
            fwdad.jacobian(f, z, holomorphic=True)


def test_real_through_complex():
    J = fwdad.jacobian(lambda x: np.abs(np.exp(1j * x) * x) ** 2, X)
    assert_allclose(J, np.diag(2 * X), atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_dtype_of_the_argument_is_kept(dtype):
    x = X.astype(dtype)
    y, J = fwdad.value_and_jacobian(lambda x: x * x, x)
    assert y.dtype == J.dtype == dtype
    assert_array_equal(J, np.diag(2 * x))
    _, y_dot = fwdad.jvp(lambda x: x * np.ones(3), x, [1, 2, 3])
    assert y_dot.dtype == np.result_type(dtype, np.float64)


# -- arguments that make no sense


@pytest.mark.parametrize("chunk", [0, -1, 2.0, True, "all"])
def test_bad_chunk(chunk):
    with pytest.raises(fwdad.errors.SeedError, match="chunk"):
        fwdad.jacobian(cubes, X, chunk=chunk)


@pytest.mark.parametrize(
    "v",
    [np.ones(2), np.ones((2, 2)), np.ones((1, 1, 3)), 1.0, 1j * X, [X, X, X, 1.0], {"a": X}, "a"],
)
def test_bad_seed(v):
    with pytest.raises((fwdad.errors.SeedError, ValueError)):
        fwdad.jvp(cubes, X, v)


@pytest.mark.parametrize("x", [2, np.arange(3), True, "a", None, [1, 2], {}])
def test_nothing_to_differentiate(x):
    with pytest.raises(fwdad.errors.UnsupportedTypeError):
        fwdad.jvp(cubes, x)


def test_unusable_functions_and_modes():
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="function"):
        fwdad.jacobian(X, X)
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="function"):
        fwdad.grad(3.0)
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="None"):
        fwdad.jacobian(cubes, None)
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="positional"):
        fwdad.grad(energy)(x=X)
    assert_array_equal(fwdad.jacobian(cubes, X, mode="reverse"), np.diag(3 * X**2))
    with pytest.raises(ValueError, match="mode"):
        fwdad.jacobian(cubes, X, mode="sideways")
    assert_array_equal(fwdad.jacobian(cubes, X, mode="forward"), np.diag(3 * X**2))


# -- runs


@pytest.mark.parametrize(("chunk", "expected"), [(1, 7), (2, 4), (3, 3), (7, 1), (9, 1), (None, 1)])
def test_function_is_run_once_per_chunk(capsys, chunk, expected):
    runs = []

    def doubled(x):
        raise AssertionError  # the rule computes the value, too

    @fwdad.frule(doubled)
    def doubled_frule(primals, tangents):
        runs.append(1)
        return 2 * primals[0], 2 * tangents[0]

    def f(x):
        print("tick")
        return doubled(x)

    assert_array_equal(fwdad.jacobian(f, np.ones(7), chunk=chunk), 2 * np.eye(7))
    assert len(runs) == expected
    assert capsys.readouterr().out == "tick\n"


# -- supported


@pytest.mark.parametrize("f", [np.sin, np.sum, np.mean, cubes, energy, np.linspace, np.array, sum])
def test_supported(f):
    assert fwdad.supported(f)
    assert fwdad.supported(f).reason


def test_not_supported():
    answer = fwdad.supported(np.frombuffer)
    assert isinstance(answer, fwdad.Support)
    assert not fwdad.supported(compile)
    assert "no rule" in fwdad.supported(compile).reason
    assert fwdad.supported(np.sum).reverse
    assert fwdad.supported(np.floor).argnums == ()


def test_public_names():
    for name in (
        "jvp", "jacobian", "value_and_jacobian", "derivative", "hessian", "jacfwd", "grad",
        "value_and_grad", "hvp", "linearize", "stop_gradient", "supported", "frule", "elementwise",
        "linear", "multilinear", "call_rule", "undefined", "no_derivative", "Chunk", "map_lanes",
        "ZERO", "NoTangent", "transpose",
    ):  # fmt: skip
        assert hasattr(fwdad, name), name
    for name in ("jvp", "jacobian", "derivative", "hessian", "jacfwd", "grad", "hvp", "linearize"):
        assert "Parameters" in getattr(fwdad, name).__doc__


@pytest.mark.parametrize("chunk", [1, None])
def test_constants_that_are_returned_outlive_the_call(chunk):
    """What f made and wrote is restored for the next chunk, and not in what it returned."""

    class Plain:
        pass

    def f(x):
        places, names, box = np.zeros(3, int), set(), Plain()
        places[0] = 7
        names.add("a")
        box.value = 5
        return x * 2, places, names, box

    y, _ = fwdad.jvp(f, np.ones(2), chunk=chunk)
    assert y[1].tolist() == [7, 0, 0]
    assert y[2] == {"a"}
    assert y[3].value == 5


def test_lists_beside_arrays():
    x = np.ones(2)
    assert fwdad.jacobian(lambda x: x * [1.0, 2.0] + (3.0, 4.0), x).tolist() == [[1, 0], [0, 2]]
    assert fwdad.jacobian(lambda x: [1.0, 2.0] * x, x).tolist() == [[1, 0], [0, 2]]
