"""New arrays and access to elements in compiled programs, against NumPy."""

import gc
import itertools
import math
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.frontend.trace import trace

numba = pytest.importorskip("numba")

from numba.core import event  # noqa: E402
from numba.core.registry import cpu_target  # noqa: E402

from fwdad.codegen import call_entry  # noqa: E402
from fwdad.codegen.call_entry import compile_program  # noqa: E402
from fwdad.codegen.llvm import optimisation  # noqa: E402
from fwdad.codegen.llvm.allocation import grown  # noqa: E402
from fwdad.codegen.llvm.pipeline import ProgramCompiler  # noqa: E402

njit = numba.njit(pipeline_class=ProgramCompiler, boundscheck=True)


def new(n, m):
    return (
        np.zeros((n, m), np.float64), np.zeros((), np.int64), np.zeros((2, n, m), np.complex128),
        np.ones((m,), np.float32), np.ones((n, n), np.bool_), np.full((n, m), 7, np.float64),
        np.full((m,), 1 - 2j, np.complex64), np.full((), True, np.bool_),
        np.empty((n, 3), np.int32), np.empty((n, m), np.float32),
    )  # fmt: skip


@pytest.mark.every(2)
@pytest.mark.parametrize("lengths", [(3, 4), (1, 1), (0, 5), (2, 0)])
def test_new_arrays(lengths):
    for k, (a, b) in enumerate(zip(njit(new)(*lengths), new(*lengths), strict=True)):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert all(a.flags[name] for name in ("C", "W", "A"))
        if k < 8:  # the others are empty: what stands in them is nobody's promise
            assert_array_equal(a, b)
        a[...] = 1


@pytest.mark.every(2)
@pytest.mark.parametrize("lengths", [(-1, 2), (2, -1), (2**40, 2**40), (2**62, 8)])
def test_impossible_lengths(lengths):
    with pytest.raises(ValueError, match="lengths"):
        njit(new)(*lengths)


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="the system has none"
)
def test_long_arrays_ask_for_large_pages():
    a = njit(lambda n: np.empty((n,), np.float64))(2**23)
    inside, flags = False, ""
    for line in Path("/proc/self/smaps").read_text(encoding="ascii").splitlines():
        first = line.split(" ", 1)[0]
        if "-" in first and not first.endswith(":"):
            low, high = (int(x, 16) for x in first.split("-"))
            inside = low <= a.ctypes.data + a.nbytes // 2 < high
        elif inside and first == "VmFlags:":
            flags = line
    assert "hg" in flags.split()


def at(i, j):
    @njit
    def stored(x):
        a = np.zeros((2, 3), np.float64)
        a[i, j] = x
        return a[i, j], a

    return stored


@pytest.mark.parametrize("place", [(0, 0), (-2, 2), (1, -3)])
def test_constant_places_inside(place):
    item, a = at(*place)(2.5)
    expected = np.zeros((2, 3))
    expected[place] = 2.5
    assert item == 2.5
    assert_array_equal(a, expected)


@pytest.mark.parametrize("place", [(2, 0), (-3, 0), (0, 3), (0, -4)])
def test_constant_places_outside(place):
    with pytest.raises(IndexError):
        at(*place)(2.5)


def test_numba_is_asked_once_whatever_constants_say_where(monkeypatch):
    asked = []
    context = type(cpu_target.typing_context)

    def count(name):
        real = getattr(context, name)

        def counted(*args, **kwargs):
            asked.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(context, name, counted)

    for name in ("resolve_setitem", "resolve_static_setitem", "resolve_static_getitem"):
        count(name)

    @njit
    def stored(x):
        a = np.zeros((4, 4, 2), np.float32)  # of a kind that no other test has
        a[0, 0, 1] = x
        a[1, 2, 0] = x
        a[3, -1, 1] = x + x
        return a[0, 0, 1] + a[1, 2, 0] + a[3, -1, 1], a[3]

    total, row = stored(np.float32(1.5))
    assert total == 6
    assert_array_equal(row, np.float32([[0, 0], [0, 0], [0, 0], [0, 3]]))
    # reading by several constants, and by one
    assert sorted(asked) == ["resolve_setitem", *["resolve_static_getitem"] * 2,
                             "resolve_static_setitem"]  # fmt: skip


def test_too_much_memory():
    with pytest.raises(MemoryError):
        njit(lambda n: np.empty((n, n), np.float64))(2**29)


@pytest.mark.fast_code
@pytest.mark.parametrize("dtype", [np.float64, np.bool_, np.complex64])
def test_grown(dtype):
    @njit
    def filled(a, n, most):
        for k in range(n):
            if k >= a.size:
                a = grown(a, most)
            a[k] = k % 5
        return a

    for start, n, most, length in [(0, 1, 1, 1), (3, 100, 1, 192), (3, 7, 9, 9)]:
        found = filled(np.zeros(start, dtype), n, most)
        assert found.dtype == dtype
        assert found.size == length
        assert_array_equal(found[:n], (np.arange(n) % 5).astype(dtype))


def views(v, m, n):
    return (
        np.broadcast_to(v, (n, v.shape[0])), np.broadcast_to(m, (2, n, m.shape[0], m.shape[1])),
        np.broadcast_to(v[:1], (n,)), np.broadcast_to(m[:, :1], (m.shape[0], n)),
    )  # fmt: skip


@pytest.mark.every(3)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_broadcast_to(n, rng):
    v, m = rng.standard_normal(3), rng.standard_normal((2, 3))
    compiled = njit(views)
    for a, b in ((v, m), (v[::-1], m.T)):
        for found, wanted in zip(compiled(a, b, n), views(a, b, n), strict=True):
            assert_array_equal(found, wanted)
            assert not found.flags.writeable
            assert found.size == 0 or np.may_share_memory(found, a) or np.may_share_memory(found, b)


def new_axes(m, i):
    return m[:, None], m[None], m[None, 1:, None, :i], m[i, None], m[..., None]


def test_new_axes(rng):
    m = rng.standard_normal((3, 4))
    for given in (m, m.T, np.asfortranarray(m), m[:, ::2]):
        for found, wanted in zip(njit(new_axes)(given, 1), new_axes(given, 1), strict=True):
            assert_array_equal(found, wanted)
            assert np.shares_memory(found, given)


def test_a_view_keeps_its_array_alive():
    @njit
    def made(n):
        return np.broadcast_to(np.full((n,), 2.5, np.float64), (3, n))

    found = [made(1000) for _ in range(20)]
    assert all((a == 2.5).all() for a in found)


@pytest.mark.parametrize("lengths", [(2,), (3, 2), (-1, 3), (0,)])
def test_broadcast_to_refuses(lengths):
    f = lambda v, n: np.broadcast_to(v, n)  # noqa: E731
    with pytest.raises(ValueError, match="broadcast"):
        njit(f)(np.ones(3), lengths)
    with pytest.raises(ValueError, match=r"broadcast|negative|remapped|shape"):
        f(np.ones(3), lengths)


def moved(m, i, j):
    m[i, j] = m[j, i] + 1
    return m[i, j]


@pytest.mark.parametrize("index", [int, np.int32, np.uint8, np.uint64])
def test_elements(index):
    compiled = njit(moved)
    whole = np.arange(60.0).reshape(6, 10)
    for view in (lambda a: a[:4, :4], lambda a: a[:4, :4].T, lambda a: a[4:0:-1, 8::-2][:, :4],
                 lambda a: np.asfortranarray(a[:4, :4])):  # fmt: skip
        for i in range(4):
            for j in range(4):
                a, b = view(whole.copy()), view(whole.copy())
                assert compiled(a, index(i), index(j)) == moved(b, i, j)
                assert_array_equal(a, b)


def test_places_from_the_end():
    compiled = njit(moved)
    for i in range(-3, 3):
        a, b = np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3)
        assert compiled(a, i, -1) == moved(b, i, -1)
        assert_array_equal(a, b)


def constants(v):
    v[-3], v[1] = v[2], v[-1] * 2
    return v[0]


def test_known_places():
    compiled = njit(constants)
    a, b = np.arange(3.0), np.arange(3.0)
    assert compiled(a) == constants(b)
    assert_array_equal(a, b)
    for short in (np.ones(2), np.ones(0)):
        with pytest.raises(IndexError):
            compiled(short)
        with pytest.raises(IndexError):
            constants(short)


FAR = 2**62  # times the size of an element it is no address any more


@pytest.mark.parametrize("place", [(3, 0), (-4, 0), (0, 4), (0, -5), (FAR, 0), (0, -FAR), (3, -5)])
def test_no_foreign_memory(place):
    outer = np.zeros((9, 12))
    inner = outer[3:6, 4:8]
    with pytest.raises(IndexError):
        njit(moved)(inner, *place)
    assert not outer.any()


def test_the_index_that_wraps_around():
    with pytest.raises(IndexError):
        njit(moved)(np.zeros((2, 2)), np.uint64(2**64 - 1), np.uint64(0))


def test_read_only_arrays_are_read():
    a = np.arange(4.0)
    a.flags.writeable = False
    assert njit(lambda v, i: v[i])(a, 3) == 3.0
    with pytest.raises(numba.TypingError):
        njit(constants)(a)


def axes(m):
    return m.transpose((2, 0, 1)), m.transpose((0, 2, 1)), m.transpose((1, 2, 0))


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 0, 2), (1, 1, 1)])
def test_transposed(shape, rng):
    compiled, m = njit(axes), rng.standard_normal(shape)
    for given in (m, np.asfortranarray(m), m[:, ::-1]):
        for found, wanted in zip(compiled(given), axes(given), strict=True):
            assert_array_equal(found, wanted)
            assert found.strides == wanted.strides or not m.size
            assert np.shares_memory(found, given) or not m.size


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [
        ((2, 6), (3, 4)), ((2, 6), (-1, 3)), ((2, 6), (4, -1, 1)), ((0, 3), (3, 0)),
        ((0, 3), (-1, 3)), ((2, 6), (12,)), ((), (1, 1)), ((1,), ()), ((2, 6), (5, -1)),
        ((2, 6), (3, 5)), ((2, 6), (-1, -1)), ((0, 3), (0, -1)), ((2, 6), (0, -1)),
    ],
)  # fmt: skip
def test_reshaped(shape, lengths):
    f = lambda a, n: a.reshape(n)  # noqa: E731
    a = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    try:
        wanted = f(a, lengths)
    except ValueError:
        with pytest.raises(ValueError, match="reshaped"):
            njit(f)(a, lengths)
        return
    found = njit(f)(a, lengths)
    assert_array_equal(found, wanted)
    assert found.strides == wanted.strides or not a.size
    assert np.shares_memory(found, a) or not a.size


def test_a_whole_array_as_one_row():
    a = np.arange(6.0).reshape(2, 3)
    assert_array_equal(njit(lambda a: a.reshape(-1))(a), a.reshape(-1))


def test_arrays_that_are_c_contiguous(rng):
    compiled = njit(lambda a: np.ascontiguousarray(a))
    m = rng.standard_normal((4, 6))
    loose = np.lib.stride_tricks.as_strided  # of a type whose layout is open
    same = [m, m[:2], loose(m, (4, 6), m.strides), loose(m, (1, 6), (8, 8)), m[0], m[0][:3]]
    others = [m.T, m[:, :3], m[::2], m[::-1], m[:, 0], m[0, ::2], m.reshape(2, 2, 6).swapaxes(0, 1)]
    for a in same:
        found = compiled(a)
        assert_array_equal(found, a)
        assert np.shares_memory(found, a)
    for a in others:
        found = compiled(a)
        assert_array_equal(found, a)
        assert found.flags.c_contiguous
        assert not np.shares_memory(found, a)
    assert compiled(m[:0].T).shape == (6, 0)


RANGES = [(0, 5, 1), (5, 0, -1), (5, 0, 1), (0, 7, 3), (7, 0, -3), (-4, 4, 2), (3, 3, 1),
          (-(2**63), 2**63 - 1, 2**62), (2**63 - 1, -(2**63), -(2**62))]  # fmt: skip


def test_ranges():
    compiled = njit(lambda a, b, c: np.arange(a, b, c))
    for given in RANGES:
        found = compiled(*given)
        assert found.dtype == np.int64
        assert found.tolist() == list(range(*given))
    assert njit(lambda n: np.arange(0, n, 1))(3).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="zero"):
        compiled(0, 3, 0)


def nothing_else(x, m, n):
    """Allocation, elements, broadcasting, a loop and a check of lengths; arrays of other shapes."""
    y = np.zeros((3, 3))
    y[0, 0] = x[0] * x[1]
    for k in range(len(x)):
        y[1, 2] += x[k] * np.sin(x[k])
    y[2] = x[1:] * np.ones(3) + np.broadcast_to(y[0, :1], (3,))
    z = m.transpose((1, 0, 2)).reshape(len(x), -1)
    z = z[:, :3] @ y + np.diagonal(y) @ y[:, 1:2] + np.eye(n, 3) @ y
    t = math.sqrt(x[1]) + math.exp(x[2]) + float(x[3]) ** n + n // 3 + n % 5 + n // n + max(n, 2)
    return y.T, z * t, np.arange(n) % n


def test_one_function_is_compiled():
    """Each further one costs Numba tens of milliseconds."""
    given = np.arange(4.0), np.arange(24.0).reshape(2, 4, 3), 4
    program = trace(nothing_else, *given).program
    made = compile_program(program)
    with event.install_recorder("numba:compile") as recorder:
        found = made.call(*given)
    assert made.backend == "numba"
    assert sum(e.is_start for _, e in recorder.buffer) == 1
    for a, b in zip(found, nothing_else(*given), strict=True):
        assert_allclose(a, b, rtol=1e-14)


ORDERS = (np.ascontiguousarray, np.asfortranarray)
LENGTHS = [(3, 4, 5), (1, 4, 5), (3, 4, 1), (1, 4, 1), (3, 0, 2), (0, 3, 2), (3, 1, 2)]


@pytest.mark.slow_cases("complex64")
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_products(dtype, rng):
    def made(*shape):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)

    product = njit(lambda a, b: np.dot(a, b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # float64 has no imaginary part; Numba's about layouts
        for m, k, n in LENGTHS:
            for left, right in itertools.product(
                [np.ascontiguousarray, np.asfortranarray], repeat=2
            ):
                a, b, v, u = left(made(m, k)), right(made(k, n)), made(k), made(m)
                for x, y in ((a, b), (a, v), (u, a)):
                    found = product(x, y)
                    assert found.dtype == dtype
                    assert found.flags.c_contiguous
                    assert_allclose(found, x @ y, rtol=1e-4, atol=1e-5)
        a, v = made(6, 8), made(4)
        assert_allclose(product(v, v), v @ v, rtol=1e-4)  # what Numba multiplies
        part, u = a[::2, ::2], made(8)[::-2]
        for x, y in ((part, v), (part.T, made(6)[::2]), (u, part.T), (part, part.T), (a[:3], a.T)):
            found = product(x, y)
            assert found.flags.c_contiguous
            assert_allclose(found, x @ y, rtol=1e-4, atol=1e-5)
        with pytest.raises(ValueError, match="incompatible"):
            product(a, a)


def test_products_of_different_layouts_are_one_function(rng):
    program = trace(
        lambda a, b: (a @ b, a.T @ b, a @ b.T, a.T @ b.T), *rng.random((2, 3, 3))
    ).program
    made = compile_program(program)
    a, b = rng.standard_normal((2, 3, 3))
    for found, wanted in zip(made.call(a, b), (a @ b, a.T @ b, a @ b.T, a.T @ b.T), strict=True):
        assert_allclose(found, wanted, rtol=1e-13, atol=1e-14)
    (code,) = made.kernel.inspect_llvm().values()
    assert len(set(re.findall(r"define .*@(fwdad_product\w*)", code))) == 1


@pytest.mark.every(3, first=1)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_a_product_into_an_array(lengths, rng):
    into = njit(lambda a, b, out: np.dot(a, b, out))
    m, k, n = lengths
    a, b = rng.standard_normal((m, k)), rng.standard_normal((n, k)).T
    wide = rng.standard_normal((m, 2 * k))[:, ::2]
    for x, y in ((a, b), (wide, b), (a, b[:, 0]), (a[:1].sum(0), b), (wide, b[:, 0])):
        out = np.full((x @ y).shape, np.nan)
        found = into(x, y, out)
        assert found.ctypes.data == out.ctypes.data
        assert_allclose(out, x @ y, rtol=1e-13, atol=1e-13)
    for out in (np.zeros((m, n + 1)), np.zeros((m + 1, n))):
        with pytest.raises(ValueError, match="does not fit"):
            into(a, b, out)


def add_in_place(z, k):
    z += k
    return z


def test_operators_in_place_of_types_that_nobody_has_met():
    given = np.complex128(1 + 2j), np.uint16(3)  # the types are told to `+=`, and `+` is written
    assert njit(add_in_place)(*given) == 4 + 2j


def test_the_collector_of_garbage_rests_until_there_is_compiled_code(monkeypatch):
    monkeypatch.setenv("FWDAD_CACHE_DIR", "")
    seen = []
    make = call_entry._Entry._compile

    def seen_in(*args):
        seen.append(gc.isenabled())
        make(*args)
        seen.append(gc.isenabled())

    monkeypatch.setattr(call_entry._Entry, "_compile", seen_in)
    gc.enable()
    assert fwdad.jit(lambda x: x * 3.0 + 1.0)(2.0) == 7.0
    assert seen == [False, False]
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_what_would_end_the_process_is_tried_in_a_child(capfd):
    long = bytes(range(256)) * 4096  # more than a pipe holds at once
    assert optimisation._in_child(lambda: long) == long
    assert optimisation._in_child(os.abort) is None
    assert optimisation._in_child(lambda: 1 / 0) is None
    assert capfd.readouterr().err == ""


def test_elements_in_reverse_where_no_child_can_be_made(monkeypatch):
    """Without vectors of loops, then: LLVM 22 aborts on some of these (AMD, 512 bits)."""

    def f(x):
        out = np.zeros(40)
        out[::2] = x[::-1] + x
        return out

    def no_room():
        raise OSError

    monkeypatch.setattr(os, "fork", no_room, raising=False)
    x = np.arange(20.0)
    assert_array_equal(fwdad.jit(f, static_shapes=True)(x), f(x))
