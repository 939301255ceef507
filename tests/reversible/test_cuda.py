"""Kernels, in processes of their own: Numba chooses its simulator when it is imported."""

import os
import subprocess
import sys

import pytest

from tests.tiers import every

pytest.importorskip("numba")

PROGRAM = """
import numpy as np
import fwdad
from fwdad.reversible import ancilla, compute, copy_out, cuda_kernel, reversible


@reversible
def push(v, x, h):
    with compute():
        f = ancilla(0.0)
        f += np.sin(x) * np.exp(-0.1 * x)
        with copy_out():
            v -= h * f


@reversible
def step(x, v, h, n):
    for _ in range(n):
        push(v, x, h)
        x += h * v


@reversible
def norm(y, a):
    with compute():
        s = ancilla(0.0)
        for k in range(len(a)):
            s += a[k] ** 2
        with copy_out():
            y += np.sqrt(s)


rng = np.random.default_rng(0)
for count in (1, 5, 300):
    x, v = rng.normal(size=count), rng.normal(size=count)
    kernel = cuda_kernel(step)
    new = kernel(x, v, 0.1, 4)
    alone = [step(a, b, 0.1, 4) for a, b in zip(x, v)]
    np.testing.assert_allclose(new[0], [r[0] for r in alone], rtol=1e-13)
    np.testing.assert_allclose(new[1], [r[1] for r in alone], rtol=1e-13)
    back = kernel.inverse(*new)
    np.testing.assert_allclose(back[0], x, rtol=1e-12, atol=1e-13)
    assert np.array_equal(cuda_kernel(~step)(*new)[0], back[0])

    x_bar, v_bar, h_bar, none = kernel.adjoint(new, (np.cos(x), np.ones(count), None, None))
    assert none is None

    def weighted(x, v, h):
        total = 0.0
        for k in range(count):
            a, b, _, _ = step(x[k], v[k], h, 4)
            total = total + weights[k] * a + b
        return total

    weights = np.cos(x)
    if count < 10:
        found = fwdad.jacfwd(weighted, argnums=(0, 1, 2))(x, v, 0.1)
        for mine, forward in zip((x_bar, v_bar, h_bar), found):
            np.testing.assert_allclose(mine, forward, rtol=1e-11)

a = rng.normal(size=(7, 3))
y, same = cuda_kernel(norm)(np.zeros(7), a)
np.testing.assert_allclose(y, np.linalg.norm(a, axis=1), rtol=1e-14)
_, a_bar = cuda_kernel(norm).adjoint((y, a), (np.ones(7), None))
np.testing.assert_allclose(a_bar, a / y[:, None], rtol=1e-13)


@reversible
def cyclic(y, x):
    with compute():
        t = ancilla(np.zeros(3))
        for i in range(3):
            t[i] += x[i] * x[(i + 1) % 3]
        with copy_out():
            for i in range(3):
                y += np.sin(t[i])


y, same = cuda_kernel(cyclic)(np.zeros(7), a)
by_hand = a * np.roll(a, -1, axis=1)
np.testing.assert_allclose(y, np.sin(by_hand).sum(axis=1), rtol=1e-13)
_, a_bar = cuda_kernel(cyclic).adjoint((y, a), (np.ones(7), None))
slopes = np.cos(by_hand)
expected = slopes * np.roll(a, -1, axis=1) + np.roll(slopes * a, 1, axis=1)
np.testing.assert_allclose(a_bar, expected, rtol=1e-12)


@reversible
def unknown(y, x, n):
    with compute():
        t = ancilla(np.zeros(n))
        t[0] += x[0]
        with copy_out():
            y += t[0]


try:
    cuda_kernel(unknown)(np.zeros(7), a, 3)
except fwdad.errors.UnsupportedTypeError as error:
    assert "'zeros': the length of an array in a kernel is a number" in str(error)
else:
    raise AssertionError


@reversible
def whole(y, x):
    with compute():
        t = ancilla(np.zeros(len(x)))
        t += np.sin(x) * 2.0
        t[1:] -= x[:-1]
        with copy_out():
            y += np.sum(t * x)


for length in (3, 40):
    b = rng.normal(size=(7, length))
    y, same = cuda_kernel(whole)(np.zeros(7), b)
    by_hand = 2.0 * np.sin(b) * b
    by_hand[:, 1:] -= b[:, :-1] * b[:, 1:]
    np.testing.assert_allclose(y, by_hand.sum(axis=1), rtol=1e-12)
    _, b_bar = cuda_kernel(whole).adjoint((y, b), (np.ones(7), None))
    slopes = 2.0 * np.cos(b) * b + 2.0 * np.sin(b)
    slopes[:, 1:] -= b[:, :-1]
    slopes[:, :-1] -= b[:, 1:]
    np.testing.assert_allclose(b_bar, slopes, rtol=1e-12, atol=1e-13)
try:
    cuda_kernel(step)(0.5, v, 0.1, 4)
except fwdad.errors.UnsupportedTypeError as error:
    assert "give an array" in str(error)
else:
    raise AssertionError

# a function with a rule, and a number from outside
scale = 0.5


def swish(x):
    return scale * x / (1.0 + np.exp(-x))


@fwdad.frule(swish)
def swish_rule(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    s = 1.0 / (1.0 + np.exp(-x))
    return scale * x * s, scale * s * (1.0 + x * (1.0 - s)) * x_dot


@reversible
def activated(y, x):
    y += swish(x)


x = rng.normal(size=5)
y, _ = cuda_kernel(activated)(np.zeros(5), x)
np.testing.assert_allclose(y, swish(x), rtol=1e-14)
_, x_bar = cuda_kernel(activated).adjoint((y, x), (np.ones(5), None))
np.testing.assert_allclose(x_bar, fwdad.grad(lambda x: np.sum(swish(x)))(x), rtol=1e-13)

# arrays on the device stay there
from numba import cuda

x, v = rng.normal(size=9), rng.normal(size=9)
kernel = cuda_kernel(step)
there = cuda.to_device(x), cuda.to_device(v)
new = kernel(*there, 0.1, 4)
assert hasattr(new[0], "copy_to_host") and hasattr(new[1], "copy_to_host")
for mine, other in zip(new, kernel(x, v, 0.1, 4)):
    mine = mine.copy_to_host() if hasattr(mine, "copy_to_host") else mine
    assert np.array_equal(mine, other)
assert np.array_equal(there[0].copy_to_host(), x) and np.array_equal(there[1].copy_to_host(), v)
bars = cuda.to_device(np.cos(x)), np.ones(9), None, None
x_bar, v_bar, h_bar, _ = kernel.adjoint(new, bars)
expected = kernel.adjoint(kernel(x, v, 0.1, 4), (np.cos(x), np.ones(9), None, None))
assert np.array_equal(x_bar.copy_to_host(), expected[0])
assert np.array_equal(v_bar.copy_to_host(), expected[1]) and h_bar == expected[2]
try:
    kernel.adjoint(new, (cuda.to_device(np.ones(3)), None, None, None))
except fwdad.errors.UnsupportedTypeError as error:
    assert "shape" in str(error)
else:
    raise AssertionError
reversed_columns = cuda.to_device(np.asfortranarray(a))
y, _ = cuda_kernel(norm)(np.zeros(7), reversed_columns)
np.testing.assert_allclose(y.copy_to_host(), np.linalg.norm(a, axis=1), rtol=1e-14)
empty = kernel(np.zeros(0), np.zeros(0), 0.1, 4)
assert empty[0].shape == (0,)
print("all kernels agree")
"""


# what a kernel may say of numbers, and what its derivative says beside it
EXPRESSIONS = """
np.sqrt(x)  np.exp(-x)  np.log(x)  np.tan(x)  np.tanh(x)  np.sinh(x)  np.arctan2(x, z)
np.hypot(x, z)  abs(x - 1)  np.abs(z - x)  np.maximum(x, z)  np.minimum(x, 1.0)  max(x, z)
min(x, z)  x**2  x**-1.5  x**z  2.0**x  x % z  z // x  np.floor(3 * x) * x  np.ceil(x) * z
np.sign(x - z) * x  np.log1p(x)  np.expm1(x)  np.log2(x)  np.exp2(x)  np.cbrt(x)
np.square(x) * z  np.reciprocal(x)  np.arcsin(x / 9)  np.arctan(x)  np.arcsinh(x)
np.arctanh(x / 9)  np.arccosh(x + 1)  math.sin(x)  math.erf(x)  math.hypot(x, z)  math.pow(x, z)
(x if x > z else z * x)  np.where(x > z, x, z * x)  np.where(x > 0, x * 2, 0.0)
np.clip(x, 0.6, 1.8)  np.fabs(z - x)  np.copysign(x, z - x)  np.power(x, z)  np.logaddexp(x, z)
np.sinc(x)  np.deg2rad(x)  np.float_power(x, 1.5)  np.heaviside(x - z, 0.5) * x  helper(x, z)
np.rint(3 * x) * z  np.trunc(-2 * x) * z
"""


def elementwise():
    """A program that compares each expression and its partials with NumPy and differences."""
    lines = ["import math", "import numpy as np", "import fwdad"]
    lines += ["from fwdad.reversible import cuda_kernel, reversible"]
    lines += ["def helper(a, b):", "    return np.exp(-a) * b + np.square(b)"]
    expressions = [e for line in EXPRESSIONS.split("\n") for e in line.split("  ") if e.strip()]
    assert len(expressions) > 50
    for k, e in enumerate(expressions):
        lines += ["@reversible", f"def f{k}(y, x, z):", f"    y += {e}"]
        lines += [f"def g{k}(x, z):", f"    return {e}"]
    lines += [
        "x, z = np.array([0.52, 1.31, 2.12, 3.03]), np.array([0.7, 1.1, 2.9, 0.4])",
        f"for f, g in [{', '.join(f'(f{k}, g{k})' for k in range(len(expressions)))}]:",
        "    kernel = cuda_kernel(f)",
        "    y = kernel(np.zeros(4), x, z)[0]",
        "    name = g.__code__.co_firstlineno",
        "    value = [g(a, b) for a, b in zip(x, z)]",
        "    np.testing.assert_allclose(y, value, rtol=1e-13, err_msg=str(name))",
        "    _, x_bar, z_bar = kernel.adjoint((y, x, z), (np.ones(4), None, None))",
        "    h = 1e-6",
        "    by_x = [(g(a + h, b) - g(a - h, b)) / (2 * h) for a, b in zip(x, z)]",
        "    by_z = [(g(a, b + h) - g(a, b - h)) / (2 * h) for a, b in zip(x, z)]",
        "    np.testing.assert_allclose(x_bar, by_x, rtol=1e-7, atol=1e-8, err_msg=str(name))",
        "    np.testing.assert_allclose(z_bar, by_z, rtol=1e-7, atol=1e-8, err_msg=str(name))",
        "@reversible",
        "def f(y, x):",
        "    y += math.gamma(x)",
        "try:",
        "    kernel = cuda_kernel(f)",
        "    kernel.adjoint((kernel(x, x)[0], x), (x, None))",
        "except fwdad.errors.UnsupportedTypeError as error:",
        "    assert 'psi has no form for a GPU' in str(error), error",
        "else:",
        "    raise AssertionError",
        "print('all expressions agree')",
    ]
    return "\n".join(lines) + "\n"


def compiled():
    """A program that compiles each expression, and its partials, to a GPU's assembly language."""
    lines = elementwise().split("\n")
    names = next(line for line in lines if line.startswith("for f, g in"))
    lines = lines[: lines.index(names) - 1]
    lines += [
        "import types",
        "from numba import cuda, types as of_numba, typeof",
        "from numba.cuda import dispatcher",
        "from numba.cuda.cudadrv.error import NvvmSupportError",
        "from fwdad.reversible.arguments.kinds import Numeric",
        "# device functions are compiled for the device that is there",
        "dispatcher.get_current_device = lambda: types.SimpleNamespace(compute_capability=(8, 0))",
        "x, real = np.ones(2), Numeric('float64')",
        "try:",
        f"    {names.removesuffix(':')}[::4]:",
        "        for adjoint in (False, True):",
        "            values = [x] * (6 if adjoint else 3)",
        "            kernel = cuda_kernel(f)",
        "            made = kernel._kernel((real,) * 3, values, False, adjoint, cuda)",
        "            signature = of_numba.void(*map(typeof, values))",
        "            assembly = cuda.compile_ptx(made.py_func, signature, cc=(8, 0))[0]",
        "            assert '.visible .entry' in assembly",
        "except NvvmSupportError:",
        "    print('no compiler')",
        "print('all expressions compile')",
    ]
    return "\n".join(lines) + "\n"


def run(tmp_path, program, **environment):
    path = tmp_path / "kernels.py"
    path.write_text(program, encoding="utf-8")
    outer = {k: v for k, v in os.environ.items() if k != "NUMBA_ENABLE_CUDASIM"}
    return subprocess.run(
        [sys.executable, str(path)],
        env={**outer, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


PROGRAMS = pytest.mark.parametrize(
    ("program", "says"),
    every(2, [(PROGRAM, "all kernels agree"), (elementwise(), "all expressions agree")]),
    ids=["kernels", "expressions"],
)


@PROGRAMS
def test_in_the_simulator(tmp_path, program, says):
    done = run(tmp_path, program, NUMBA_ENABLE_CUDASIM="1")
    assert says in done.stdout, done.stderr


@PROGRAMS
def test_on_a_device(tmp_path, program, says):
    asked = run(tmp_path, "from numba import cuda\nprint(cuda.is_available())")
    if "True" not in asked.stdout:
        pytest.skip("no device of CUDA's")
    done = run(tmp_path, program)
    assert says in done.stdout, done.stderr


@pytest.mark.slow
def test_compiles_for_a_device(tmp_path):
    done = run(tmp_path, compiled())
    if "no compiler" in done.stdout:
        pytest.skip("no NVVM")
    assert "all expressions compile" in done.stdout, done.stderr
