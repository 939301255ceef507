"""Derivatives written into arrays that are given, `out=`, of functions that Python runs."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import NondeterministicFunctionError, OutError
from tests.differences import central_differences

X = np.linspace(0.3, 1.1, 7)
CHUNKS = [1, 2, 3, "auto"]


def field(x):
    return np.sin(x[1:]) * x[:-1] + np.sum(x) ** 2


def number(x):
    return np.sum(x * x[::-1])


def matrix(x):
    return np.outer(x, x[:2]) ** 2


def writing(x):
    x[0] = 2 * x[1]
    return x * x


def unwritten(shape, **options):
    return np.full(shape, np.nan, **options)


@pytest.mark.every(9)
@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
@pytest.mark.parametrize("f", [field, number, matrix, writing])
def test_jacobian(f, mode, chunk):
    """The Jacobian by differences, of f as it is and under jit."""
    wanted = central_differences(f, X)
    for g in (f, fwdad.jit(f), fwdad.jit(f, backend="numpy")):
        x, out = X.copy(), unwritten(wanted.shape)
        options = {"chunk": chunk, "mode": mode}
        assert fwdad.jacobian(g, x, out=out, **options) is out
        assert_allclose(out, wanted, rtol=1e-7, atol=1e-8)
        out[...] = np.nan
        y, J = fwdad.value_and_jacobian(g, x, out=out, **options)
        assert J is out
        assert_allclose(out, wanted, rtol=1e-7, atol=1e-8)
        assert_array_equal(y, f(X.copy()))
        assert_array_equal(x, X)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_orders_of_a_matrix(mode):
    """A vector by a vector may be written in Fortran order, which columns fill as they come."""
    out = unwritten((6, 7), order="F")
    assert fwdad.jacobian(field, X, out=out, mode=mode, chunk=3) is out
    assert_allclose(out, central_differences(field, X), rtol=1e-7, atol=1e-8)
    with pytest.raises(OutError, match="Fortran order"):
        fwdad.jacobian(matrix, X, out=np.empty((7, 2, 7), order="F"))


def test_matrix_argument():
    x, out = X[:6].reshape(2, 3), unwritten((3, 2, 2, 3))
    f = lambda a: a.T**2 * np.sum(a)  # noqa: E731
    for mode in ("forward", "reverse"):
        assert fwdad.jacobian(f, x, out=out, mode=mode, chunk=4) is out
        assert_array_equal(out, fwdad.jacobian(f, x, mode=mode, chunk=4))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_stacked(mode):
    """Of composites it is the matrix of all, in the order that `stack=True` has."""
    x = {"b": X[:2], "a": X[2:].reshape(1, 5)}
    f = lambda x: (np.sum(x["a"]) * x["b"], {"v": x["a"][0, :3] ** 2})  # noqa: E731
    out = unwritten((5, 7))
    assert fwdad.jacobian(f, x, out=out, stack=True, mode=mode, chunk=2) is out
    assert_array_equal(out, fwdad.jacobian(f, x, stack=True, mode=mode, chunk=2))
    with pytest.raises(OutError, match="stack=True"):
        fwdad.jacobian(f, x, out=out, mode=mode)
    with pytest.raises(OutError, match="stack=True"):
        fwdad.jacobian(lambda x: (x, 2 * x), X, out=out, mode=mode)


def test_complex():
    z, out = X + 0.5j * X[::-1], unwritten((7, 7), dtype=complex)
    f = lambda z: z**2 * np.roll(z, 1)  # noqa: E731
    assert fwdad.jacobian(f, z, out=out, holomorphic=True, chunk=3) is out
    assert_allclose(out, fwdad.jacobian(f, z, holomorphic=True), rtol=1e-14)
    g = lambda x: np.exp(1j * x) * np.sum(x)  # noqa: E731
    for mode in ("forward", "reverse"):
        out[...] = np.nan
        fwdad.jacobian(g, X, out=out, mode=mode, chunk=2)
        assert_allclose(out, fwdad.jacobian(g, X, mode=mode), rtol=1e-13)


def test_single_precision_and_numbers():
    x, out = X.astype(np.float32), unwritten((6, 7), dtype=np.float32)
    for mode in ("forward", "reverse"):
        fwdad.jacobian(field, x, out=out, mode=mode, chunk=2)
        assert_array_equal(out, fwdad.jacobian(field, x, mode=mode, chunk=2))
    out = np.empty(())
    assert fwdad.jacobian(lambda x: x * x, 3.0, out=out) is out
    assert out == 6.0


def test_has_aux_and_what_takes_functions():
    out = unwritten((6, 7))
    f = lambda x: (field(x), "aux")  # noqa: E731
    assert fwdad.jacobian(f, X, out=out, has_aux=True)[0] is out
    for J in (fwdad.jacobian(field), fwdad.jacfwd(field), fwdad.jacrev(field, chunk=2)):
        out[...] = np.nan
        assert J(X, out=out) is out
        assert_allclose(out, central_differences(field, X), rtol=1e-7, atol=1e-8)


def test_hessian():
    out = unwritten((7, 7))
    for hessian in (fwdad.hessian(number), fwdad.hessian(fwdad.jit(number))):
        out[...] = np.nan
        assert hessian(X, out=out) is out
        assert_array_equal(out, 2 * np.eye(7)[::-1])
    assert fwdad.hessian(number, X, out=out, chunk=2) is out


def test_memmap_and_memory(tmp_path):
    """A file is filled, and no memory of J's size is taken, by columns or rows."""
    n, chunk = 1500, 10
    x = np.linspace(0.0, 1.0, n)
    f = lambda x: np.sin(x) * x[::-1]  # noqa: E731
    wanted = np.diag(np.cos(x) * x[::-1]) + np.diag(np.sin(x))[:, ::-1]
    out = np.memmap(tmp_path / "J", float, "w+", shape=(n, n))
    for g, mode in [(f, "forward"), (f, "reverse"), (fwdad.jit(f), "forward")]:
        fwdad.jacobian(g, x, out=out, mode=mode, chunk=chunk)
        out[...] = np.nan
        tracemalloc.start()
        assert fwdad.jacobian(g, x, out=out, mode=mode, chunk=chunk) is out
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < out.nbytes / 6
        assert_allclose(out, wanted, atol=1e-15)
    read = np.memmap(tmp_path / "J", float, "r", shape=(n, n))
    with pytest.raises(OutError, match="memmap is opened with"):
        fwdad.jacobian(f, x, out=read)


@pytest.mark.every(3, first=1)
@pytest.mark.parametrize("chunk", [None, 1, 2, 3])
def test_jvp(chunk):
    v, J = np.cos(np.arange(35.0)).reshape(5, 7), central_differences(field, X)
    for g in (field, fwdad.jit(field)):
        out = unwritten((5, 6))
        y, y_dot = fwdad.jvp(g, X, v, out=out, chunk=chunk)
        assert y_dot is out
        assert_allclose(out, v @ J.T, rtol=1e-7)
        assert_array_equal(y, field(X))
        one = unwritten(6)
        assert fwdad.jvp(g, X, v[0], out=one, chunk=chunk)[1] is one
        assert_allclose(one, J @ v[0], rtol=1e-7)


def test_jvp_of_composites():
    f = lambda x: {"s": np.sum(x), "v": x**2}  # noqa: E731
    out = {"s": np.empty(()), "v": np.empty(7)}
    assert fwdad.jvp(f, X, X[::-1], out=out)[1] is out
    assert_allclose(out["s"], np.sum(X))
    assert_allclose(out["v"], 2 * X * X[::-1])
    with pytest.raises(OutError, match="structure"):
        fwdad.jvp(f, X, X, out={"s": np.empty(())})


@pytest.mark.every(2, of="compiled")
@pytest.mark.parametrize("given", [lambda f: f, fwdad.jit], ids=["plain", "compiled"])
@pytest.mark.parametrize("transform", [fwdad.grad, fwdad.value_and_grad])
def test_gradient(transform, given):
    of = lambda f, *argnums: transform(given(f), *argnums)  # noqa: E731
    out, wanted = unwritten(7), central_differences(number, X)
    gradient = of(number)
    for _ in range(2):
        out[:] = np.nan
        result = gradient(X, out=out)
        assert (result if transform is fwdad.grad else result[1]) is out
        assert_allclose(out, wanted, rtol=1e-7)
    x = {"a": X[:3], "b": [X[3:]]}
    f = lambda x: np.sum(x["a"]) * np.sum(x["b"][0] ** 2)  # noqa: E731
    tree = {"a": unwritten(3), "b": [unwritten(4)]}
    of(f)(x, out=tree)
    plain = fwdad.grad(f)(x)
    assert_array_equal(tree["a"], plain["a"])
    assert_array_equal(tree["b"][0], plain["b"][0])
    pair = unwritten(7), unwritten(7)
    of(lambda a, b: np.sum(a * b**2), (0, 1))(X, X[::-1].copy(), out=pair)
    assert_allclose(pair[1], 2 * X * X[::-1])
    recorded = lambda x: number(x) * float(str(2.0))  # noqa: E731
    of(recorded)(X, out=out)
    assert_allclose(out, 2 * wanted, rtol=1e-7)


def test_an_out_of_f_s_own():
    """It goes to f, as ever, and so does what f takes as `**kwargs`."""

    def f(x, out=2.0):
        return out * np.sum(x)

    assert_array_equal(fwdad.grad(f)(X, out=3.0), np.full(7, 3.0))
    assert_array_equal(fwdad.grad(lambda x, **k: k["out"] * np.sum(x))(X, out=3.0), np.full(7, 3.0))


BAD = {
    "shape": (lambda s: np.empty((*s, 1)), "of shape"),
    "dtype": (lambda s: np.empty(s, np.float32), "float32"),
    "list": (lambda s: [0.0] * s[0], "is a list|is a float"),
    "gaps": (lambda s: np.empty((*s[:-1], 2 * s[-1]))[..., ::2], "has gaps"),
    "read-only": (lambda s: np.broadcast_to(np.zeros(s), s), "read-only"),
    "matrix": (lambda s: np.ma.zeros(s), "MaskedArray"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_does_not_fit(kind):
    """Raises an error that names it, and nothing is written."""
    make, match = BAD[kind]
    takers = [
        ((6, 7), lambda out: fwdad.jacobian(field, X, out=out, chunk=2)),
        ((6,), lambda out: fwdad.jvp(field, X, X, out=out)),
        ((7,), lambda out: fwdad.grad(number)(X, out=out)),
        ((7,), lambda out: fwdad.grad(fwdad.jit(number))(X, out=out)),
    ]
    for shape, take in takers:
        out = make(shape)
        before = np.array(out)
        with pytest.raises(OutError, match=match):
            take(out)
        assert_array_equal(np.array(out), before)


def test_shared_memory():
    x = X.copy()
    whole = np.concatenate([x, x])
    for take in (
        lambda: fwdad.grad(number)(x, out=x),
        lambda: fwdad.grad(fwdad.jit(number))(x, out=x),
        lambda: fwdad.grad(number)(whole[:7], out=whole[3:10]),
        lambda: fwdad.jvp(number, x, whole[:7], out=whole[:1].reshape(())),
        lambda: fwdad.jacobian(lambda x, a: a @ x, x, args=(whole[:7],), out=whole[:7]),
    ):
        with pytest.raises(OutError, match="shares memory"):
            take()
    assert_array_equal(x, X)
    with pytest.raises(OutError, match="at a point"):
        fwdad.jacobian(field, out=np.empty((6, 7)))
    with pytest.raises(OutError, match="sparse"):
        fwdad.jacobian(field, X, out=np.empty((6, 7)), sparse=np.ones((6, 7), bool))


def test_what_f_reads_may_not_be_overwritten():
    """An array from outside that is `out` changes between two chunks: that raises."""
    out = np.full((7, 7), 2.0)
    with pytest.raises(NondeterministicFunctionError):
        fwdad.jacobian(lambda x: x * out[0], X, out=out, chunk=2)


def test_nested():
    """Written inside of another derivative, the array carries tangents."""

    def f(x):
        out = np.empty(7)
        fwdad.grad(number)(x, out=out)
        return out * out

    def g(x):
        out = np.empty((6, 7))
        fwdad.jacobian(field, x, out=out, mode="forward", chunk=3)
        return np.sum(out**2)

    def overwritten(x):
        out = np.zeros((6, 7))
        out[...] = x  # tangents, which end where a constant is written
        fwdad.jacobian(field, X, out=out, mode="forward", chunk=3)
        one = np.empty(7)
        one[...] = 3 * x
        fwdad.grad(number)(X, out=one)
        return out @ one * x[:6]

    wanted = central_differences(lambda x: np.sum(fwdad.jacobian(field, x) ** 2), X)
    for mode in ("forward", "reverse"):
        J = fwdad.jacobian(f, X, mode=mode, chunk=2)
        assert_allclose(J, central_differences(f, X), rtol=1e-7, atol=1e-8)
        assert_allclose(fwdad.jacobian(g, X, mode=mode), wanted, rtol=1e-6)
    with pytest.raises(OutError, match="carries a derivative"):
        fwdad.jacfwd(lambda x: fwdad.grad(number)(X, out=3 * x))(X)
    J = fwdad.jacfwd(overwritten, chunk=2)(X)
    assert_allclose(J, central_differences(overwritten, X), rtol=1e-6, atol=1e-6)


def test_what_does_not_fit_inside_of_a_traced_function():
    """It raises the error, and calls that fit are as before."""

    def f(x, out):
        fwdad.grad(number)(x, out=out)
        return out * x

    compiled = fwdad.jit(f, backend="numpy")
    for _ in range(2):
        with pytest.raises(OutError):
            fwdad.jvp(compiled, X, X, args=(np.empty(7, np.float32),))
        y, y_dot = fwdad.jvp(compiled, X, X, args=(np.empty(7),))
        assert_allclose(y, 2 * X[::-1] * X)
        assert_allclose(y_dot, 4 * X[::-1] * X)
