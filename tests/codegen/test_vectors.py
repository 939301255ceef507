"""Vectors of elements: memory, operators, and the C library's functions against mpmath."""

import ctypes
import mmap

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_array_equal

numba = pytest.importorskip("numba")

import fwdad  # noqa: E402
from fwdad.codegen.llvm.vector_functions import FUNCTIONS  # noqa: E402
from fwdad.codegen.runtime import libmvec  # noqa: E402  (needs Numba)
from tests.tiers import every  # noqa: E402

LIBRARY = libmvec.register_bits() > 0
needs_library = pytest.mark.skipif(not LIBRARY, reason="no vector functions here")
read, write = FUNCTIONS["vector_read"], FUNCTIONS["vector_write"]
LENGTHS = [0, 1, 7, 8, 9, 1000]

IN_NUMPY = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
            "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2,
            "pow": np.power}  # fmt: skip
IN_MPMATH = {"exp2": lambda x: mpmath.power(2, x), "log2": lambda x: mpmath.log(x, 2),
             "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
             "pow": mpmath.power}  # fmt: skip


def compiled(name, width):
    f, arity = FUNCTIONS[f"vector_{name}"], libmvec.ARGUMENTS.get(name, 1)
    if arity == 1:

        @numba.njit
        def loop(x, y):
            n = x.shape[0]
            for i in range(0, n, width):
                write(f(read(width, n, x, i)), n, y, i)

    else:

        @numba.njit
        def loop(x, z, y):
            n = x.shape[0]
            for i in range(0, n, width):
                write(f(read(width, n, x, i), read(width, n, z, i)), n, y, i)

    return loop


def points(dtype, arity):
    """Special values, the ends of ranges, and numbers of all sizes."""
    info, rng = np.finfo(dtype), np.random.default_rng(5)
    ends = [0.0, 1.0, 0.5, 2.0, np.inf, info.tiny, info.smallest_subnormal, info.tiny / 3, info.max,
            1e5, 1e10, 1e22, 1e-20, 88.9, 104, 700, 708.5, 710, 740, 745, 1023.9, 1030, 1074,
            1 + info.eps, 1 - info.epsneg]  # fmt: skip
    special = np.array([*ends, *(-x for x in ends), np.nan], dtype)
    sizes = np.exp(rng.uniform(-30, 30, 60)) * rng.choice([-1, 1], 60)
    drawn = np.concatenate([rng.uniform(-1, 1, 60), rng.uniform(-20, 20, 60), sizes]).astype(dtype)
    if arity == 1:
        return (np.concatenate([special, drawn]),)
    few = special[[0, 1, 2, 4, 5, 8, 9, 25, 26, 27, 29, 33, 50]]
    a, b = (x.ravel() for x in np.meshgrid(few, few))
    return np.concatenate([a, drawn]), np.concatenate([b, drawn[::-1]])


def exact(name, args):
    """The value at 60 digits, or None where that is no real number."""
    f = IN_MPMATH.get(name) or getattr(mpmath, name)
    with mpmath.workdps(60):
        made = f(*[mpmath.mpf(float(x)) for x in args])
    return made if isinstance(made, mpmath.mpf) else None


def unit(value, dtype):
    """The distance of neighbours where a number is; there is one beyond the largest, too."""
    info = np.finfo(dtype)
    _, exponent = mpmath.frexp(mpmath.mpf(float(value)) if isinstance(value, float) else value)
    return mpmath.mpf(2) ** max(exponent - 1 - info.nmant, info.minexp - info.nmant)


@needs_library
@pytest.mark.parametrize("name", every(2, sorted(libmvec.ARGUMENTS)))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_function_of_the_library(name, dtype):
    """Within 4 units in the last place; special values, and the sign of zero, as NumPy has them."""
    width = libmvec.register_bits() // (8 * np.dtype(dtype).itemsize)
    if libmvec.symbol(name, np.dtype(dtype).itemsize, width) is None:
        pytest.skip("not in this library")
    args = points(dtype, libmvec.ARGUMENTS[name])
    found = np.empty_like(args[0])
    compiled(name, width)(*args, found)
    with np.errstate(all="ignore"):
        wanted = (IN_NUMPY.get(name) or getattr(np, name))(*args)
    assert_array_equal(np.isnan(found), np.isnan(wanted))
    plain = np.isfinite(wanted) & (wanted != 0)
    assert_array_equal(found[~plain], wanted[~plain])
    zero = wanted == 0
    assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))
    checked = 0
    for k in np.flatnonzero(plain):
        given = [x[k] for x in args]
        if not np.isfinite(given).all() or (name == "atan2" and 0 in given):  # no signed zero there
            assert abs(found[k] - wanted[k]) <= 4 * unit(float(wanted[k]), dtype)
            continue
        value = exact(name, given)
        assert value is not None
        assert abs(mpmath.mpf(float(found[k])) - value) <= 4 * unit(value, dtype)
        checked += 1
    assert checked > 30


@needs_library
def test_place_in_an_array_does_not_matter(rng):
    """An element has the same bits wherever it stands, and in whatever company."""
    x = rng.standard_normal(100)
    loop = compiled("sin", 8 if libmvec.register_bits() == 512 else 2)
    whole = np.empty(100)
    loop(x, whole)
    for start in (1, 5, 99):
        part = np.empty(100 - start)
        loop(x[start:], part)
        assert_array_equal(part, whole[start:])


@numba.njit
def doubled(x, y):
    n = x.shape[0]
    for i in range(0, n, 8):
        v = read(8, n, x, i)
        write(v + v, n, y, i)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lengths(n, dtype, rng):
    """Nothing is written beyond the last element, nor used of what stands there."""
    memory, out = np.full(n + 20, np.nan, dtype), np.full(n + 20, 7, dtype)
    memory[:n] = rng.standard_normal(n)
    doubled(memory[:n], out[:n])
    assert_array_equal(out[:n], 2 * memory[:n])
    assert (out[n:] == 7).all()


@pytest.mark.parametrize("layout", ["strided", "reversed", "column", "read-only", "unaligned"])
def test_layouts(layout, rng):
    base = rng.standard_normal((21, 3))
    x = {"strided": base.ravel()[::3], "reversed": base.ravel()[::-1], "column": base[:, 1],
         "read-only": base.ravel()}.get(layout)  # fmt: skip
    if layout == "unaligned":
        x = np.frombuffer(b"." + base.tobytes(), float, offset=1)
    elif layout == "read-only":
        x.flags.writeable = False
    out = np.full((x.size, 2), 7.0)
    doubled(x, out[:, 0])
    assert_array_equal(out[:, 0], 2 * x)
    assert (out[:, 1] == 7).all()


def test_the_end_of_a_page_is_not_crossed():
    """Memory behind the last element may belong to nobody."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "mprotect"):
        pytest.skip("no mprotect here")
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(address + page), page, 0) == 0
    inside = (ctypes.c_double * 5).from_address(address + page - 40)
    x = np.ctypeslib.as_array(inside)
    x[:] = [1, 2, 3, 4, 5]
    doubled(x, x)
    assert_array_equal(x, [2, 4, 6, 8, 10])
    libc.mprotect(ctypes.c_void_p(address + page), page, 3)


SPECIAL = [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 5e-324, 0.5]


@needs_library
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x ** np.arange(len(x)),
        lambda x: np.power(2.0, x) * np.arange(len(x)),
        lambda x: (x + 1) ** (x > 0.2),
    ],
)
def test_integers_beside_single_precision(f):
    """The last elements of a row are read by a mask, of one function for each type."""
    for n in (3, 8, 19):
        x = np.linspace(0.1, 0.9, n, dtype=np.float32)
        found = fwdad.jit(f, backend="numba")(x)
        assert found.dtype == f(x).dtype
        np.testing.assert_allclose(found, f(x), rtol=1e-6)


def test_exact_functions():
    """What no library is needed for has NumPy's bits."""
    a, b = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL))
    names = ["maximum", "minimum", "fmax", "fmin", "copysign"]
    ones = ["abs", "sqrt", "floor", "ceil", "trunc", "rint", "sign"]
    lines = ["def f(a, b, y):", " n = a.shape[0]", " for i in range(0, n, 4):",
             "  u, v = vector_read(4, n, a, i), vector_read(4, n, b, i)"]  # fmt: skip
    expressions = ["u + v", "u - v", "u * v", "u / v", "-u", "3 * u", "u / 2.5", "1.0 - u"]
    calls = [f"vector_{f}(u, v)" for f in names] + [f"vector_{f}(u)" for f in ones]
    masks = ["u < v", "u <= v", "u > v", "u >= v", "u == v", "u != v", "~(u < v)",
             "(u < v) & (v < 1.0)", "(u < v) | (v < 1.0)", "(u < v) ^ (v < 1.0)",
             "vector_isnan(u)", "vector_isinf(u)", "vector_isfinite(u)"]  # fmt: skip
    texts = [*expressions, *calls, *(f"vector_where({m}, u, 0.25)" for m in masks)]
    lines += [f"  vector_write({t}, n, y, {k}, i)" for k, t in enumerate(texts)]
    space = dict(FUNCTIONS)
    exec("\n".join(lines), space)
    found = np.empty((len(texts), a.size))
    numba.njit(space["f"])(a, b, found)
    plain = {"vector_where": np.where, "u": a, "v": b}
    plain |= {f"vector_{f}": getattr(np, f) for f in [*names, *ones, "isnan", "isinf", "isfinite"]}
    for text, row in zip(texts, found, strict=True):
        with np.errstate(all="ignore"):
            wanted = eval(text, plain)
        assert_array_equal(row, wanted, err_msg=text)
        if "max" not in text and "min" not in text:  # of two zeros NumPy too takes either
            assert_array_equal(np.signbit(row[wanted == 0]), np.signbit(wanted[wanted == 0]), text)


def test_a_zero_tangent_stays_zero():
    scale = FUNCTIONS["vector_scale"]

    @numba.njit
    def scaled(d, x, y):
        n = x.shape[0]
        for i in range(0, n, 4):
            write(scale(read(4, n, d, i), read(4, n, x, i)), n, y, i)

    d = np.array([np.inf, np.nan, -np.inf, np.inf, 2.0, np.nan])
    x = np.array([0.0, -0.0, 0.0, 3.0, 4.0, 1.0])
    y = np.empty(6)
    scaled(d, x, y)
    assert_array_equal(y, [0, 0, 0, np.inf, 8, np.nan])


def test_conversions():
    """Ints and bools become floats as NumPy converts them; masks are stored as bools."""
    to64, to32 = FUNCTIONS["vector_float64"], FUNCTIONS["vector_float32"]

    @numba.njit
    def converted(x, y, z, mask):
        n = x.shape[0]
        for i in range(0, n, 8):
            v = read(8, n, x, i)
            write(to64(v), n, y, i)
            write(to32(v), n, z, i)
            write(to64(v) > 1.0, n, mask, i)

    for dtype in (bool, np.int8, np.uint8, np.int64, np.uint64, np.float32):
        x = np.array([0, 1, 2, 3, 127, 1, 0, 5, 77, 100], dtype)
        if np.dtype(dtype).kind == "i":
            x[3] = -7
        y, z, mask = np.empty(10), np.empty(10, np.float32), np.empty(10, bool)
        converted(x, y, z, mask)
        assert_array_equal(y, x.astype(float))
        assert_array_equal(z, x.astype(np.float32))
        assert_array_equal(mask, x.astype(float) > 1)


def test_switch(monkeypatch):
    monkeypatch.setenv("FWDAD_VECTOR_MATH", "0")
    assert libmvec.register_bits() == 0
    assert libmvec.symbol("sin", 8, 2) is None
    assert libmvec.description() == "no vector functions"
    monkeypatch.setenv("FWDAD_VECTOR_MATH", "1")
    assert (libmvec.register_bits() > 0) == LIBRARY
    assert not LIBRARY or "_sin " in libmvec.description()
