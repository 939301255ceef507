"""A long function that is cut into parts means what it means whole."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

numba = pytest.importorskip("numba")
from numba.core.runtime import _nrt_python as nrt  # noqa: E402
from numba.core.runtime import rtsys  # noqa: E402

import fwdad  # noqa: E402
from fwdad.codegen.llvm.nests import partition  # noqa: E402
from fwdad.codegen.numba_compile import Machine  # noqa: E402
from fwdad.codegen.numpy_backend.source import Source, defined  # noqa: E402


def source(code):
    lines = code.strip().splitlines()
    return Source("f", "\n".join(lines) + "\n", {"np": np}, list(range(len(lines))))


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(partition, "LINES", 4)


LINE = """
def f(x):
    a = x + 1.0
    if a > 2.0:
        b = a * a
    else:
        b = 3.0
    c = a + b
    d = c * x
    if d > 10.0:
        b = d
    if d < -2.0:
        raise ValueError("too low")
    e = b + d
    g = e * c
    h = g + a
    return (h, b)
"""
LOOP = """
def f(x):
    k = 0
    s = 0.0
    while k < 20:
        k = k + 1
        t = s + x
        u = t * 0.5
        v = u + t
        w = v * v
        s = s + w * 0.001
        t = s + x
        u = t * 0.25
        if u > 3.0:
            break
        v = u - t
        w = v * s
        s = s + w * 0.01
        s = s + u * 0.001
        s = s + v * 0.002
    return (s, k)
"""


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("code", [LINE, LOOP])
def test_parts_return_what_is_read_after_them(code):
    whole = source(code)
    made = partition.in_parts(whole)
    assert len(made.parts) >= 2
    assert len(made.places) == len(made.code.splitlines())
    machine = Machine(whole, None, {})
    assert machine.source.parts == made.parts
    for x in (-0.5, 0.5, 1.5, 4.0):
        wanted = defined(whole)(x)
        assert defined(made)(x) == wanted
        assert_allclose(machine.kernel(x), wanted, rtol=1e-15)


@pytest.mark.usefixtures("short")
def test_parts_raise_what_the_whole_raises():
    made = source(LINE)
    with pytest.raises(ValueError, match="too low"):
        Machine(made, None, {}).kernel(-2.0)


@pytest.mark.usefixtures("short")
def test_lines_keep_their_places():
    whole = source(LINE)
    made = partition.in_parts(whole)
    lines, old = made.code.splitlines(), whole.code.splitlines()
    for line, place in zip(lines, made.places, strict=True):
        if place is not None and "_part_" not in line:
            assert line.strip() == old[place].strip()


ARRAYS = """
def f(x, n):
    a = x + 1.0
    b = a[1:]
    c = a
    whole = n > 1
    for k in range(n):
        d = a * 0.5
        a = d + x
        c = d
        d = d[::-1]
        if k == 2:
            a = a[::-1]
            c = x
        b = d[1:] + b
        d = b * 1.0
    e = np.zeros((3,), np.complex128)
    e[0] = 1j * a[0]
    x = x * 2.0
    if c[0] > 100.0:
        raise ValueError("too large")
    g = e[:2]
    u = x[1:]
    v = c
    w = (u, v)
    h = w[0]
    return (a, b, c, d, g, x, h, v, whole)
"""


BRANCH = """
def f(x, n):
    a = x + 1.0
    if n > 2:
        b = a * 2.0
        c = b + x
        d = c * a
        e = d - b
        g = e[1:]
        h = g * 2.0
        k = h + g
        a = a + k[0]
        m = k * k
        o = m + h
        if o[0] > 100.0:
            raise ValueError("too large")
        p = o - m
        a = a + p[1]
    q = a * 0.5
    r = q + x
    s = r * q
    t = s - r
    u = t + a
    return (u, r)
"""


@pytest.mark.usefixtures("short")
def test_what_only_one_side_of_a_branch_assigns():
    """It is dropped once where it was assigned, and not where it was not."""
    whole = source(BRANCH)
    kernel = Machine(whole, None, {}).kernel
    x = np.array([1.0, 0.5, 0.25])
    nrt.memsys_enable_stats()
    try:
        for n in (4, 1, 4, 1):
            before = rtsys.get_allocation_stats()
            made, wanted = kernel(x, n), defined(whole)(x, n)
            for a, b in zip(made, wanted, strict=True):
                assert_array_equal(a, b)
            del made, a
            after = rtsys.get_allocation_stats()
            assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0
    finally:
        nrt.memsys_disable_stats()


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("n", [1, 4])
def test_parts_share_arrays(n):
    """They keep what they return, and drop the rest; views, and the caller's own, too."""
    whole = source(ARRAYS)
    machine = Machine(whole, None, {})
    assert len(machine.source.parts) >= 4
    nrt.memsys_enable_stats()
    try:
        for factor in (1.0, 1.0, 1000.0):
            x = np.array([1.0, -2.0, 3.0, 0.5]) * factor
            before = rtsys.get_allocation_stats()
            if factor > 1:
                with pytest.raises(ValueError, match="too large"):
                    machine.kernel(x, n)
            else:
                wanted, made = defined(whole)(x, n), machine.kernel(x, n)
                for a, b in zip(made, wanted, strict=True):
                    assert_array_equal(a, b)
                    assert np.asarray(a).dtype == np.asarray(b).dtype
                    del a, b
                del made
            after = rtsys.get_allocation_stats()
            assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0
    finally:
        nrt.memsys_disable_stats()


def test_many_arguments(monkeypatch):
    """Python packs more than thirty of them into a tuple, for nests as for parts."""
    n = 40
    names = [f"a{k}" for k in range(n)]
    lines = [f"    {name} = x * {k + 1}.0" for k, name in enumerate(names)]
    lines += ["    total = 0.0", "    for i in range(3):"]
    lines += [f"        total += {' + '.join(f'{name}[i]' for name in names)}"]
    lines += [f"    b{k} = {name} + total" for k, name in enumerate(names)]
    results = ", ".join(f"b{k}" for k in range(n))
    whole = source("\n".join(["def f(x):", *lines, f"    return ({results},)"]))
    monkeypatch.setattr(partition, "LINES", 20)
    machine = Machine(whole, None, {})
    x = np.array([1.0, 2.0, 0.25])
    for made, wanted in zip(machine.kernel(x), defined(whole)(x), strict=True):
        assert_allclose(made, wanted, rtol=1e-14)
    assert machine.nests
    assert not any(nest.is_refused for nest in machine.nests)


def test_short_functions_stay_whole():
    whole = source(LINE)
    assert partition.in_parts(whole) is whole


def program(x):
    a = np.zeros(8)
    s = x[0]
    for k in range(3):
        a[1:4] = a[2:5] * x[:3] + 0.5
        b = np.sin(a[:3]) * x[1:4]
        a[4:7] += 0.1 * b
        s = s * x[1] + b[k] if s > 0.4 else np.sin(s) + a[5]
        a[k] = s
    return np.sum(a) + s


@pytest.mark.usefixtures("short")
def test_gradients_in_parts_are_compiled_once(tmp_path, monkeypatch):
    monkeypatch.setenv("FWDAD_CACHE_DIR", str(tmp_path))
    x = np.linspace(0.2, 0.9, 7)
    wanted = fwdad.jacobian(program, x, mode="forward")
    for _ in range(2):  # the second is found on the disk
        g = fwdad.jit(fwdad.value_and_grad(program), backend="numba")
        value, gradient = g(x)
        assert_allclose(value, program(x), rtol=1e-14)
        assert_allclose(gradient, wanted, rtol=1e-12)
        assert len(list(tmp_path.rglob("*.fwdad"))) == 1
