"""Loops that several nests have are one function, whatever they work on."""

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

numba = pytest.importorskip("numba")

from fwdad.codegen.numba_compile import Machine  # noqa: E402
from fwdad.codegen.numpy_backend.source import Source, defined  # noqa: E402
from fwdad.codegen.runtime import arithmetic  # noqa: E402


def machine(code, inner=("i", "j")):
    lines = code.strip().splitlines()
    namespace = {"np": np, "math": math, "check_shape": arithmetic.check_shape}
    made = Source("f", "\n".join(lines) + "\n", namespace, [None] * len(lines), inner=list(inner))
    return Machine(made, None, {})


def functions(made):
    """How many loops stand apart in what was compiled."""
    (code,) = made.kernel.inspect_llvm().values()
    return len(set(re.findall(r"define internal [^\n]*@(loop_\w+)", code)))


def same_as_python(code, *args, inner=("i", "j")):
    """Compare arguments and results with Python's; returns how many functions the loops are."""
    made = machine(code, inner)
    plain = made.source
    own, given = (
        [np.array(a, order="K") if isinstance(a, np.ndarray) else a for a in args] for _ in range(2)
    )
    plain.namespace["check_shape"] = lambda a, shape: None
    wanted = defined(plain)(*own)
    found = made.kernel(*given)
    assert not any(nest.is_refused for nest in made.nests)
    for a, b in [*zip(found, wanted, strict=True), *zip(given, own, strict=True)]:
        assert_array_equal(a, b)
    return functions(made)


def adding(*views, into="a", of="t"):
    """Adds to views one after the other; a statement between them keeps them apart."""
    lines = [f"def f({into}, {of}):", "    last = 0"]
    for k, view in enumerate(views):
        lines += [
            f"    w{k} = {into}[{view}]",
            f"    for i in range(w{k}.shape[0]):",
            f"        for j in range(w{k}.shape[1]):",
            f"            w{k}[i, j] = w{k}[i, j] + {of}[i, j]",
            f"    last = np.zeros(({k} + 1,), np.float64).size",
        ]
    return "\n".join([*lines, "    return (last,)"])


VIEWS = ["1:, 1:", "1:, :-1", ":-1, 1:", ":-1, :-1"]


@pytest.mark.fast_code
def test_loops_over_views_are_one_function(rng):
    a, t = rng.normal(size=(6, 20)), rng.normal(size=(5, 19))
    assert same_as_python(adding(*VIEWS), a, t) == 1


@pytest.mark.parametrize("kind", ["C", "F", "strided", "float32", "complex128", "empty"])
def test_kinds_of_arrays(rng, kind):
    a, t = rng.normal(size=(6, 20)), rng.normal(size=(5, 19))
    if kind == "F":
        a, t = np.asfortranarray(a), np.asfortranarray(t)
    elif kind == "strided":
        t = rng.normal(size=(10, 38))[::2, ::2]
    elif kind == "empty":
        a, t = a[:1], t[:0]
    elif kind != "C":
        a, t = a.astype(kind), t.astype(kind)
    same_as_python(adding(*VIEWS[:2]), a, t)


@pytest.mark.fast_code
def test_arrays_of_other_kinds_are_other_functions(rng):
    code = """
def f(a, b, c):
    n = 0
    v = a[1:]
    for i in range(v.shape[0]):
        v[i] = v[i] * c[i]
    n = np.zeros((1,), np.float64).size
    w = b[:-1]
    for i in range(w.shape[0]):
        w[i] = w[i] * c[i]
    return (n,)
"""
    a, b, c = rng.normal(size=7), rng.normal(size=7).astype(np.float32), rng.normal(size=7)
    assert same_as_python(code, a, b, c) == 2


@pytest.mark.fast_code
def test_numbers_and_lengths_are_given(rng):
    code = """
def f(a, b, x, y):
    n = 0
    v = a[1:]
    for i in range(v.shape[0]):
        t = v[i] * x
        v[i] = t + y * i
    n = np.zeros((1,), np.float64).size
    w = b[:-1]
    for i in range(w.shape[0]):
        t = w[i] * y
        w[i] = t + x * i
    return (n, x, y)
"""
    assert same_as_python(code, rng.normal(size=4), rng.normal(size=9), 2.5, -0.5) == 1


def test_what_a_loop_returns_stays_in_it(rng):
    code = """
def f(a, b):
    s = 0.0
    n = 0
    for i in range(a.shape[0]):
        s = s + a[i]
    n = np.zeros((1,), np.float64).size
    w = b[1:]
    for i in range(w.shape[0]):
        s = s + w[i]
    last = 0.0
    n = np.zeros((2,), np.float64).size
    for i in range(a.shape[0]):
        last = a[i]
    n = np.zeros((3,), np.float64).size
    w = b[:-1]
    for i in range(w.shape[0]):
        last = w[i]
    return (s, last, n)
"""
    assert same_as_python(code, rng.normal(size=4), rng.normal(size=9)) == 0


def test_indices_that_may_be_outside_are_checked(rng):
    code = """
def f(a, b, n):
    m = 0
    v = a[:4]
    for i in range(n):
        v[i] = v[i] + 1.0
    m = np.zeros((1,), np.float64).size
    w = b[:3]
    for i in range(n):
        w[i] = w[i] + 1.0
    return (m,)
"""
    assert same_as_python(code, rng.normal(size=4), rng.normal(size=4), 3, inner=()) == 0
    with pytest.raises(IndexError, match="out of bounds"):
        machine(code, ()).kernel(np.zeros(4), np.zeros(3), 4)
