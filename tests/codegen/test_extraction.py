"""Loops that are cut out of a source mean what Python means."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

numba = pytest.importorskip("numba")

from fwdad.codegen.llvm.nests.extraction import without_nests  # noqa: E402
from fwdad.codegen.numba_compile import Machine  # noqa: E402
from fwdad.codegen.numpy_backend.source import Source, defined  # noqa: E402
from fwdad.codegen.runtime import arithmetic  # noqa: E402

HELPERS = {name: getattr(arithmetic, name) for name in ("divide", "in_domain", "summed", "grown")}
PLAIN = {"divide": lambda a, b: a / b, "in_domain": lambda r, x: r, "summed": lambda a, b: a + b}


def source(code, inner=()):
    lines = code.strip().splitlines()
    namespace = {"np": np, "math": math, **HELPERS}
    return Source("f", "\n".join(lines) + "\n", namespace, [None] * len(lines), inner=list(inner))


def cut_out(made):
    """The nests of a source, and how often each is called."""
    left, nests = without_nests(made, {}, lambda nest: nest)
    assert len(left.code.splitlines()) == len(made.code.splitlines())
    return {name: left.code.count(f"{name}(") for name in nests}


def both(code, *args, inner=()):
    """Compare what is compiled with what Python returns, also in the arguments."""
    made = source(code, inner)
    assert cut_out(made)
    plain = source(code)
    plain.namespace = {"np": np, "math": math, **PLAIN}
    own, given = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
    wanted = defined(plain)(*own)
    machine = Machine(made, None, {})
    found = machine.kernel(*given)
    assert not any(nest.is_refused for nest in machine.nests)
    for a, b in [*zip(found, wanted, strict=True), *zip(given, own, strict=True)]:
        assert_allclose(a, b, rtol=1e-14)


def test_ranges_and_names(rng):
    code = """
def f(a, n, step):
    total = 0.0
    last = -1
    many = 0
    for i in range(n):
        total = total + a[i]
        last = i
    for i in range(n - 1, -1, -2):
        many += i * last
        for j in range(0, i, 3):
            many -= j
    for k in range(n, -n, step):
        many = 2 * many + k
    return (total, last, many)
"""
    for n in (0, 1, 7):
        both(code, rng.standard_normal(7), n, -3)
        both(code, rng.standard_normal(7), n, 2)


def test_a_step_of_zero():
    code = (
        "def f(n, step):\n    m = 0\n    for i in range(n, 5, step):\n        m += i\n    return m"
    )
    with pytest.raises(ValueError, match="zero"):
        Machine(source(code), None, {}).kernel(1, 0)


def test_views(rng):
    code = """
def f(a, out, lo, hi):
    for k in range(a.shape[0]):
        row = a[k, lo:hi]
        column = a[:, k][1:]
        block = a[:-1, lo:]
        n = row.shape[0] * 100 + column.size * 10 + block.shape[1]
        out[k, 0] = n
        for i in range(row.shape[0]):
            out[k, 1] += row[i] * row[-1]
        for i in range(block.shape[1]):
            out[-1, k] = block[0, i] - column[-1]
        whole = a[k]
        out[k, 2] = whole[0] + whole[-1]
    return (out,)
"""
    a = rng.standard_normal((4, 4))
    for given in (a, a.T, np.asfortranarray(a), a[::-1, ::-1]):
        for lo, hi in ((0, 4), (1, -1), (-3, 2), (3, 1), (-9, 9), (4, 4)):
            both(code, given, rng.standard_normal((4, 4)), lo, hi)


def test_expressions(rng):
    code = """
def f(a, c, flags):
    for i in range(a.size):
        x = a[i]
        y = x**2 - (x + 1.0)**3 if x > 0 and not (i == 2 or x > 1.5) else abs(-x)
        if flags[i]:
            c[i] = complex(y, x).real + math.sin(x) * float(np.float32(0.1)) + float(i)
        elif i > 3:
            c[i] = np.nan if x < -0.5 else min(x, y) + (i & 3) + math.pi
        else:
            flags[i] = x > 0.25 or i == 0
            c[i] -= i // 2 + i % 3 + a.shape[0] + np.sqrt(x * x)
    return (a, c, flags)
"""
    both(code, rng.standard_normal(9), np.zeros(9), rng.standard_normal(9) > 0)


@pytest.mark.parametrize(("text", "wrong"), [("a[i]", 5), ("a[-i - 1]", 5), ("a[1:][i]", 4)])
def test_indices_are_checked(text, wrong):
    code = f"def f(a, n):\n    t = 0.0\n    for i in range(n):\n        t += {text}\n    return t"
    kernel = Machine(source(code), None, {}).kernel
    kernel(np.ones(5), wrong)
    with pytest.raises(IndexError, match="out of bounds"):
        kernel(np.ones(5), wrong + 1)


def test_helpers_raise_from_within():
    code = (
        "def f(a):\n    for i in range(a.size):\n        a[i] = in_domain(math.sqrt(a[i]), a[i])\n"
        "    return (a,)"
    )
    kernel = Machine(source(code), None, {}).kernel
    assert_array_equal(kernel(np.array([4.0, 9.0]))[0], [2, 3])
    with pytest.raises(ValueError, match="domain"):
        kernel(np.array([4.0, -9.0]))


@pytest.mark.fast_code
def test_the_same_loop_is_one_function():
    code = """
def f(a, b, n):
    for i in range(n):
        a[i] = b[i] + 1.0
    for j in range(n):
        b[j] = a[j] + 1.0
    for j in range(n):
        b[j] = a[j] - 1.0
    return (a, b)
"""
    assert sorted(cut_out(source(code)).values()) == [1, 2]
    assert len(cut_out(source(code, inner=["i"]))) == 3  # what is checked is another function
    both(code, np.arange(3.0), np.ones(4), 3)


def test_what_prepares_a_loop_goes_with_it(rng):
    code = """
def f(a, b, k):
    n = k + 1
    row = a[k]
    other = a[n]
    made = np.empty((row.shape[0],), np.float64)
    total = 0.0
    part = b[1:]
    for i in range(part.shape[0]):
        made[i] = part[i] * other[i]
        total += made[i]
    made[-1] = n
    row[0] = total
    k = 2
    part = b[:-1]
    last = part[k]
    b[2] = 7.0
    for i in range(part.shape[0]):
        part[i] -= last + row[i]
    return (made, total, a, b, last)
"""
    (first, second) = cut_out(source(code))
    left = without_nests(source(code), {}, lambda nest: nest)[0].code
    assert "part = b[1:]" not in left  # its own
    assert "total = 0.0" not in left
    assert "other" not in left
    assert "row = a[k]" in left  # read later
    assert "last = part[k]" in left  # read before the store
    assert f"total = {first}(" in left
    assert f"{second}(" in left
    both(code, rng.standard_normal((3, 4)), rng.standard_normal(5), 1)


def test_many_loops_stay_apart(rng):
    loops = "".join(
        f"    for i in range(a.size):\n        a[i] = a[i] * {k}.0 + b[i]\n" for k in range(10)
    )
    code = f"def f(a, b):\n{loops}    return (a,)\n"
    assert len(cut_out(source(code))) == 10
    both(code, rng.standard_normal(4), rng.standard_normal(4))


def test_what_is_left_to_numba():
    grows = """
def f(a, n):
    top = 0
    for i in range(n):
        if top == a.size:
            a = grown(a, top + 1)
        a[top] = i
        top += 1
    return a
"""
    refused = """
def f(a, n):
    for i in range(n):
        t = 0
        a[i] = t
        t = 0.5
        a[i] += t
    return a
"""
    assert not cut_out(source(grows))
    assert_array_equal(Machine(source(grows), None, {}).kernel(np.zeros(1), 9)[:9], np.arange(9))
    machine = Machine(source(refused), None, {})
    signature = (numba.typeof(np.zeros(3)), numba.int64)
    machine.compile(signature)  # a name of two types: seen when the types are known
    assert any(nest.is_refused for nest in machine.nests)
    assert_array_equal(machine.kernel(np.zeros(3), 3), [0.5, 0.5, 0.5])
