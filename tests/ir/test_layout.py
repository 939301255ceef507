"""How arrays lie: what compiled programs and derivatives return is what NumPy returns."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from fwdad.ir.analysis import layout
from fwdad.ir.ops import Apply
from fwdad.ops import Layout, functions_with
from fwdad.tangents.alike import alike
from tests.differences import central_differences
from tests.ir.orders_programs import LOOKERS, MAKERS, arguments
from tests.tiers import every

ARGUMENTS = arguments()
FEW = ("rows", "columns", "gaps", "permuted")


def composed(make, look):
    def f(x):
        return look(make(x))

    return f


def flat(y):
    return np.concatenate([np.ravel(t) for t in (y if isinstance(y, tuple) else (y,))])


def scalar(f):
    def g(x):
        y = f(x)
        y = y if isinstance(y, tuple) else (y,)
        return sum((np.cos(np.arange(1.0, t.size + 1)).reshape(t.shape) * t).sum() for t in y)

    return g


def differences(f, x):
    """The Jacobian of the flattened results, at arrays that are laid out as x."""

    def moved(z):
        own = alike(x)
        own[...] = z
        return flat(f(own))

    return central_differences(moved, x).reshape(-1, x.size)


def applicable(f, x):
    try:
        f(alike(x))
    except (ValueError, IndexError):  # of another rank
        return False
    return True


@pytest.mark.every(3)
@pytest.mark.parametrize("look", every(2, LOOKERS.values()), ids=LOOKERS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_tape_returns_what_numpy_returns(make, look):
    f = composed(make, look)
    found = fwdad.jit(f, backend="numpy")
    for x in ARGUMENTS.values():
        if applicable(f, x):
            mine, theirs = alike(x), alike(x)
            assert_allclose(flat(found(mine)), flat(f(theirs)))
            assert_allclose(mine, theirs)  # what it writes into its argument


@pytest.mark.every(3)
@pytest.mark.parametrize("look", LOOKERS.values(), ids=LOOKERS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_derivatives_at_once_are_those_of_numpy(make, look):
    f = composed(make, look)
    for name in FEW:
        x = ARGUMENTS[name]
        if applicable(f, x):
            J = fwdad.jacfwd(f)(alike(x))
            J = J if isinstance(J, tuple) else (J,)
            found = np.concatenate([t.reshape(-1, x.size) for t in J])
            size = max(1.0, np.abs(flat(f(alike(x)))).max())
            assert_allclose(found, differences(f, x), atol=1e-6 * size, rtol=1e-6)


SOME = [
    *itertools.product(("itself", "doubled", "turned"), LOOKERS),
    *itertools.product(MAKERS, ("stored_through_ravel", "in_order_of_memory", "stored_by_columns")),
]


@pytest.mark.parametrize(("make", "look"), every(3, dict.fromkeys(SOME)))
def test_derivatives_on_a_tape_are_those_of_numpy(make, look):
    f = composed(MAKERS[make], LOOKERS[look])
    forward = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    backward, grad = fwdad.jit(fwdad.grad(scalar(f)), backend="numpy"), fwdad.grad(scalar(f))
    for name in FEW:
        x = ARGUMENTS[name]
        if not applicable(f, x):
            continue
        y = f(alike(x))
        want, size = differences(f, x), max(1.0, np.abs(flat(y)).max())
        parts = y if isinstance(y, tuple) else (y,)
        w = np.concatenate([np.cos(np.arange(1.0, t.size + 1)) for t in parts])
        try:
            J = forward(alike(x))
        except (UntraceableError, ValueError) as error:  # said in the limits
            assert "view" in str(error) or "plain array" in str(error)  # noqa: PT017
        else:
            J = J if isinstance(J, tuple) else (J,)
            found = np.concatenate([t.reshape(-1, x.size) for t in J])
            assert_allclose(found, want, atol=1e-6 * size, rtol=1e-6)
        assert_allclose(grad(alike(x)).ravel(), w @ want, atol=1e-5 * size, rtol=1e-6)
        try:
            found = backward(alike(x)).ravel()
        except (UntraceableError, ValueError) as error:
            assert "view" in str(error) or "changes places" in str(error)  # noqa: PT017
        else:
            assert_allclose(found, w @ want, atol=1e-5 * size, rtol=1e-6)


COMPILED = [
    ("doubled", "stored_through_reshape"), ("turned", "stored_through_ravel"),
    ("turned", "in_order_of_memory"), ("in_a_loop", "updated_in_two_axes"),
    ("gathered_behind", "stored_in_a_loop"), ("itself", "stored_flat"),
]  # fmt: skip


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize(("make", "look"), COMPILED)
def test_compiled_code_returns_what_numpy_returns(make, look):
    pytest.importorskip("numba")
    f = composed(MAKERS[make], LOOKERS[look])
    found = fwdad.jit(f, backend="numba")
    for name in (*FEW, "rows", "columns"):  # once more: by the shortcut
        x = ARGUMENTS[name]
        mine, theirs = alike(x), alike(x)
        assert_allclose(flat(found(mine)), flat(f(theirs)))
        assert_allclose(mine, theirs)


def test_derivatives_of_what_is_c_contiguous_are_compiled_as_a_whole():
    pytest.importorskip("numba")

    def f(x):
        v = np.sin(x)
        w = v.reshape(-1)
        for i in range(1, w.shape[0]):
            w[i] = w[i] + w[i - 1] * 0.5
        return (v * v).sum()

    x = np.arange(6.0).reshape(2, 3)
    found = fwdad.jit(fwdad.grad(f), backend="numba")
    for a in (x, np.asfortranarray(x), x):
        assert_allclose(found(a), fwdad.grad(f)(a))
    assert "by NumPy" not in fwdad.explain(found, x)
    assert "C-contiguous" in fwdad.explain(found, np.asfortranarray(x))


@pytest.mark.parametrize("of", [fwdad.jacfwd, fwdad.jacrev])
def test_derivatives_of_what_is_read_in_the_order_of_memory(of):
    """The rule is run whole, and its primal nowhere else: what it is given lies as by NumPy."""
    pytest.importorskip("numba")

    def f(x):
        return np.concatenate([x.T * 2.0, x.T]).ravel(order="K")

    x = np.arange(6.0).reshape(2, 3)
    found = fwdad.jit(of(f), backend="numba")
    for a in (x, np.asfortranarray(x)):
        expected = np.stack([fwdad.jvp(f, a, e.reshape(2, 3))[1] for e in np.eye(6)], axis=-1)
        assert_allclose(found(a), expected.reshape(-1, 2, 3))


# -- what is said of NumPy's functions

A = np.arange(1.0, 241.0).reshape(4, 5, 12)
B = np.arange(1.0, 261.0).reshape(20, 13)
FALLING = [
    A, A[::2, ::2, ::3], A[::-1, :, ::-2], A[:, 1:2], A[:1], A[..., :1], B, B[::2, ::3], B[::-1],
    B[:, ::-1], B[:1], B[:, :1], B[3:4, ::2],
]  # fmt: skip
TURNED = [A.T, A.transpose(1, 0, 2), B.T, B[::2, ::3].T]


def name_of(f):
    return f.__name__


CALLS = {
    np.where: lambda x: np.where(x > 3, x, x[:1]),
    np.clip: lambda x: np.clip(x, 1, 2),
    np.full_like: lambda x: np.full_like(x, 2.0),
    np.ndarray.astype: lambda x: x.astype(int),
    np.concatenate: lambda x: np.concatenate([x, x], 1),
    np.stack: lambda x: np.stack([x, x], -1),
    np.hstack: lambda x: np.hstack([x, x]),
    np.vstack: lambda x: np.vstack([x, x]),
    np.matmul: lambda x: np.matmul(x, np.swapaxes(x, -1, -2).copy()),
    np.roll: lambda x: np.roll(x, 1, 0),
    np.tile: lambda x: np.tile(x, (2, 1)),
    np.diff: lambda x: np.diff(x, axis=1),
    np.linalg.inv: lambda x: np.linalg.inv(x[..., :1, :1] * np.eye(3)),
    np.linalg.solve: lambda x: np.linalg.solve(np.eye(x.shape[-2]), x),
    np.pad: lambda x: np.pad(x, 1),
    np.dot: lambda x: np.dot(x, np.ones((x.shape[-1], 3))),
    np.inner: lambda x: np.inner(x, np.ones((3, x.shape[-1]))),
    np.tensordot: lambda x: np.tensordot(x, x, ((0,), (0,))),
    np.outer: lambda x: np.outer(x, x),
    np.select: lambda x: np.select([x > 3], [x], 0.0),
    np.choose: lambda x: np.choose((x > 3).astype(int), [x, x * 2]),
    np.linalg.cholesky: lambda x: np.linalg.cholesky(np.eye(3) * x[..., :1, :1]),
    np.take_along_axis: lambda x: np.take_along_axis(x, np.zeros(x.shape, int), 0),
    np.repeat: lambda x: np.repeat(x, 2, 1),
    np.take: lambda x: np.take(x, [0, 0], 1),
}


KEEPING = sorted(functions_with(lambda record: record.layout is Layout.KEPT), key=name_of)
ALONG = {
    np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.any, np.all, np.nansum, np.argmax,
    np.argmin, np.cumsum, np.cumprod, np.sort, np.argsort,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("f", KEEPING, ids=name_of)
def test_functions_keep_the_order_of_what_falls(f):
    if f in (np.linalg.solve, np.linalg.inv, np.linalg.cholesky):
        sample = [x for x in FALLING if x.shape[-2] > 1]
    else:
        sample = FALLING
    call = CALLS.get(np.matmul if f.__name__ == "matmul" else f, f)
    made = (
        [call(x) for x in sample]
        if f not in ALONG
        else [f(x, axis=k) for x in sample for k in (0, 1)]
    )
    assert all(np.asarray(a).flags.c_contiguous for a in made)


def test_elementwise_functions_keep_the_order_of_what_is_spread():
    for x in FALLING:
        for y in (np.broadcast_to(x[..., :1], x.shape), np.broadcast_to(x[:1], x.shape)):
            made = (y * 2, np.sin(y), y + x, np.where(y > 2, y, 0), np.clip(y, 1, 2), abs(y))
            assert all(a.flags.c_contiguous for a in made)


@pytest.mark.parametrize("f", [np.ndarray.copy, np.ndarray.flatten, np.dot, np.inner, np.tensordot,
                               np.outer, np.repeat,
                               np.take], ids=name_of)  # fmt: skip
def test_functions_lay_row_by_row_whatever_comes(f):
    assert all(CALLS.get(f, f)(x).flags.c_contiguous for x in (*FALLING, *TURNED))


def test_gathering_in_front_lays_row_by_row():
    for x in FALLING:
        assert all(
            a.flags.c_contiguous for a in (x[[0, 0]], x[[0, 0], 0], x[[0, 0], ::2], x[x > 2])
        )


def test_only_what_is_looked_at_is_left_to_numpy():
    def f(x):
        v = x.T * 2
        w = np.exp(x) @ np.ones((3, 2))
        v.reshape(-1)[0] = 1.0
        return v, w

    program = fwdad.trace(f, np.ones((2, 3))).program
    left = {op.function.__name__ for op in layout.Orders(program).unlike() if isinstance(op, Apply)}
    assert {"reshape", "mul"} <= left
    assert not {"exp", "matmul"} & left
    program.rows = True  # the transposed argument is a view: it lies as under NumPy
    assert {op.function.__name__ for op in layout.Orders(program).unlike()} >= {"reshape", "mul"}


def test_copies_keep_the_layout():
    rng = np.random.default_rng(0)
    steps = [slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, None), slice(0, 1)]
    for axes in itertools.permutations(range(3)):
        for _ in range(20):
            x = A.transpose(axes)[tuple(rng.choice(steps) for _ in range(3))]
            c = alike(x)
            assert_allclose(c, x)
            assert not np.may_share_memory(c, x)
            for shape, order in itertools.product([-1, (x.shape[0], -1), (1, *x.shape)], "CF"):
                view = np.may_share_memory(x.reshape(shape, order=order), x)
                assert np.may_share_memory(c.reshape(shape, order=order), c) == view
            assert_allclose(c.ravel("K"), x.ravel("K"))
            many = [k for k, n in enumerate(x.shape) if n > 1]
            assert [(x * 2).strides[k] for k in many] == [(c * 2).strides[k] for k in many]


def test_copies_of_what_is_broadcast_have_elements_of_their_own():
    c = alike(np.broadcast_to(np.arange(3.0), (4, 3)))
    c[0, 0] = 7.0
    assert_allclose(c[1:, 0], 0.0)
