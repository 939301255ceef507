"""The SIMD lane type against NumPy arrays."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.codegen.numpy_lanes import numpy_lanes

numba = pytest.importorskip("numba")

from fwdad.codegen.llvm.simd import compiled_lanes  # noqa: E402  (needs Numba)

WIDTHS = [1, 2, 3, 5, 6, 7, 8, 20, 32]


def arithmetic(load, store, zeros, splat, scale, unit, *_):
    def f(a, x, out):
        u, v = load(a, 0), load(a, 1)
        w = 2.5 * u - v * x + (-u) / 3.0 + splat(x) + zeros() + unit(1)
        w += scale(x, v)
        store(out, w, 0)
        store(out, +w, -1)
        return x

    return f


def both(program, n, *args):
    """What a program writes into a copy of its last argument: compiled and in NumPy."""
    written = []
    for functions, wrap in ((compiled_lanes(n), numba.njit), (numpy_lanes(n), lambda f: f)):
        out = args[-1].copy(order="K")
        wrap(program(*functions))(*args[:-1], out)
        written.append(out)
    return written


@pytest.mark.parametrize("n", WIDTHS)
def test_arithmetic(n, rng):
    a = rng.standard_normal((2, n)).T  # lanes are neighbours, Fortran order
    found, wanted = both(arithmetic, n, a, 0.7, np.zeros((n, 3), order="F"))
    # the compiler may not contract: the same operations give the same bits
    assert_array_equal(found, wanted)
    u, v = a[:, 0], a[:, 1]
    unit = np.arange(n) == 1
    assert_array_equal(found[:, 0], 2.5 * u - v * 0.7 + (-u) / 3.0 + 0.7 + 0.0 + unit + 0.7 * v)
    assert_array_equal(found[:, 2], found[:, 0])
    assert_array_equal(found[:, 1], 0)


@pytest.mark.every(3)
@pytest.mark.parametrize("n", [1, 3, 6, 20])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
def test_layouts(n, layout, rng):
    def program(load, store, *_):
        def f(a, out):
            for i in range(a.shape[1]):
                store(out, 2.0 * load(a, i), i)

        return f

    a, out = rng.standard_normal((n, 4)), np.zeros((n, 4))
    if layout == "F":
        a, out = np.asfortranarray(a), np.asfortranarray(out)
    elif layout == "strided":
        a = np.repeat(a, 2, axis=0)[::2]
    elif layout == "reversed":
        a = a[::-1, ::-1]
    found, wanted = both(program, n, a, out)
    assert_array_equal(found, wanted)
    assert_array_equal(found, 2 * a)


@pytest.mark.parametrize("ndim", [1, 3])
def test_ranks(ndim, rng):
    def one(load, store, *_):
        return lambda a, out: store(out, -load(a))

    def three(load, store, *_):
        return lambda a, out: store(out, -load(a, 1, 2), 0, 1)

    a = rng.standard_normal((5, 2, 3)[:ndim])
    found, wanted = both(one if ndim == 1 else three, 5, a, np.zeros_like(a))
    assert_array_equal(found, wanted)
    assert np.count_nonzero(found) == 5


@pytest.mark.every(3)
@pytest.mark.parametrize("n", WIDTHS)
def test_zero_lanes_stay_zero(n):
    def program(load, store, _zeros, _splat, scale, *_):
        return lambda a, d, out: store(out, scale(d, load(a)))

    for d in (np.inf, -np.inf, np.nan, 2.0):
        a = np.where(np.arange(n) % 2 == 0, 0.0, -3.0)
        found, wanted = both(program, n, a, d, np.ones(n))
        assert_array_equal(found, wanted)
        assert_array_equal(found[::2], 0.0)
        assert_array_equal(found[1::2], np.full(n // 2, -3.0 * d))


@pytest.mark.parametrize("n", [1, 2, 3, 6, 8])
def test_built_of_numbers(n):
    names = [f"x{k}" for k in range(n)]
    items = ", ".join([*names[:-1], "7"])  # an int among floats
    text = f"lambda {', '.join(names)}, a, out: store(out, build({items}) + load(a))"

    def program(load, store, *others):
        return eval(text, {"load": load, "store": store, "build": others[-1]})

    x = np.linspace(0.5, 2.0, n)
    found, wanted = both(program, n, *x, np.arange(n) / 3, np.zeros(n))
    assert_array_equal(found, wanted)
    assert_array_equal(found, [*x[:-1], 7.0] + np.arange(n) / 3)


def test_building_wants_one_number_for_each_lane():
    build = compiled_lanes(3).build
    with pytest.raises(numba.TypingError, match="3 numbers"):
        numba.njit(lambda x: build(x, x))(1.0)
    with pytest.raises(TypeError, match="lanes"):
        numpy_lanes(3).build(1.0, 2.0)


def test_nan_lanes_are_kept():
    def program(load, store, _zeros, _splat, scale, *_):
        return lambda a, d, out: store(out, scale(d, load(a)))

    found, wanted = both(program, 2, np.array([np.nan, 1.0]), 0.0, np.ones(2))
    assert_array_equal(found, wanted)
    assert_array_equal(found, [np.nan, 0.0])


@pytest.mark.every(3)
@pytest.mark.parametrize("n", WIDTHS)
def test_in_tuples_lists_and_calls(n, rng):
    functions = compiled_lanes(n)
    load, store, zeros = functions.load, functions.store, functions.zeros

    @numba.njit
    def pair(a, i):
        return load(a, i), 1.5, load(a, i + 1)

    @numba.njit
    def f(a, out):
        u, x, v = pair(a, 0)
        held = [u]
        held.append(v)
        held.append(zeros())
        nested = ((held[0], x), (held[1], held[2]))
        total = zeros()
        for lanes in held:
            total = total + lanes
        state = (total, total)
        for _ in range(3):
            state = (state[1], state[0] + state[1])
        store(out, nested[0][0] * nested[0][1] + nested[1][0] + nested[1][1], 0)
        store(out, state[1], 1)

    a, out = np.asfortranarray(rng.standard_normal((n, 2))), np.zeros((n, 2))
    f(a, out)
    u, v = a.T
    assert_array_equal(out[:, 0], u * 1.5 + v)
    state = (u + v, u + v)
    for _ in range(3):
        state = (state[1], state[0] + state[1])
    assert_array_equal(out[:, 1], state[1])


def test_branches_unify():
    functions = compiled_lanes(3)
    load, store, zeros = functions.load, functions.store, functions.zeros

    @numba.njit
    def f(a, x, out):
        v = load(a) if x > 0 else zeros()
        store(out, v)

    out = np.ones(3)
    f(np.arange(3.0), -1.0, out)
    assert_array_equal(out, 0)
    f(np.arange(3.0), 1.0, out)
    assert_array_equal(out, [0, 1, 2])


@pytest.mark.parametrize("at", [2, -3, 10**9])
def test_index_out_of_bounds(at):
    def program(load, store, *_):
        return lambda a, i, out: store(out, load(a, i))

    for functions, wrap in ((compiled_lanes(3), numba.njit), (numpy_lanes(3), lambda f: f)):
        f = wrap(program(*functions))
        with pytest.raises(IndexError):
            f(np.zeros((3, 2)), at, np.zeros(3))
        with pytest.raises(IndexError, match="lanes"):
            f(np.zeros((2, 2)), 0, np.zeros(3))


@pytest.mark.parametrize("n", [3, 5, 6, 7])
@pytest.mark.parametrize("order", ["C", "F"])
def test_no_memory_beside_the_lanes_is_touched(n, order):
    def program(load, store, _zeros, splat, *_):
        return lambda a, out: store(out, load(a, 0) / 2.0 + splat(1.0), 0)

    a = np.full((n + 8, 2), np.nan, order=order)
    a[4 : 4 + n] = np.arange(2.0 * n).reshape(n, 2)
    for functions, wrap in ((compiled_lanes(n), numba.njit), (numpy_lanes(n), lambda f: f)):
        out = np.full((n + 8, 2), -5.0, order=order)
        wrap(program(*functions))(a[4 : 4 + n], out[4 : 4 + n])
        assert_array_equal(out[4 : 4 + n, 0], np.arange(0.0, 2 * n, 2) / 2 + 1)
        out[4 : 4 + n, 0] = -5.0
        assert_array_equal(out, -5.0)


def test_stores_want_writable_memory():
    functions = compiled_lanes(3)
    store, zeros = functions.store, functions.zeros
    a = np.ones(3)
    a.flags.writeable = False
    with pytest.raises(numba.core.errors.TypingError, match="writable"):
        numba.njit(lambda out: store(out, zeros()))(a)
    with pytest.raises(numba.core.errors.TypingError, match="float64"):
        numba.njit(lambda out: store(out, zeros()))(np.ones(3, np.float32))
