# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a tape to microseconds
#
# In the first notebook the function was run by Python, on numbers that carry derivatives: every
# operation was looked up again, each time. That works for every program, and costs a microsecond
# or two an operation. A solver that wants a hundred thousand small Jacobians waits for it.
#
# Here the function is *written down* first, once. What was written down is then differentiated,
# tidied up, printed as a program that you can read, and compiled.
#
# 1. What a tape is.
# 2. A loop that is traced once and replayed.
# 3. The generated source.
# 4. Forward mode on a tape.
# 5. From a Python function to a Jacobian in microseconds.
#
# Every number that is claimed here is asserted, times apart: those depend on the machine.

# %%
import importlib.util
import time
import timeit

import matplotlib.pyplot as plt
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp
from scipy.optimize import approx_fprime

import fwdad
from fwdad.examples.pollu import T_END, Y_END, Y_START, pollu

plt.style.use("tableau-colorblind10")

NUMBA = importlib.util.find_spec("numba") is not None
JAX = importlib.util.find_spec("jax") is not None  # a peer in one plot, where it is there
BACKEND = "numba" if NUMBA else "numpy"
if JAX:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
print("Numba is installed" if NUMBA else "without Numba: NumPy runs everything below")

# %% [markdown]
# ## 1. What a tape is
#
# Ten lines, with everything that makes programs hard to write down: a loop, a branch that depends
# on a value, a scratch array, assignment in place through views of it.


# %%
def march(u, rate, steps):
    """Diffusion in a rod; the flux is limited while the left end is hot."""
    u = u.copy()
    for _ in range(steps):
        flux = rate * (u[1:] - u[:-1])
        if u[0] > 1.0:
            flux = flux / u[0]
        u[:-1] += flux
        u[1:] -= flux
    return u


hot = np.linspace(2, 0, 41)
tape = fwdad.trace(march, hot, 0.1, 3)
tape

# %% [markdown]
# `trace` evaluated the *source* of `march` with symbols in the place of numbers. It knows that `u`
# is a vector of doubles, and not how long it is (the `?`). The loop is there once, whatever `steps`
# is, and so are both ways of the branch. Beside each line stand the type of what it makes and the
# line of yours that it comes from; `print(tape)` gives the same as plain text.
#
# Nothing here is text: a tape is a list of operations, some of which contain lists of their own.

# %%
from fwdad.ir.ops import Apply, Branch, Load, Loop, Update

kinds = {kind.__name__: tape.count(kind) for kind in (Apply, Load, Loop, Branch, Update)}
print(tape.count(), "operations:", kinds)
assert tape.count(Loop) == tape.count(Branch) == 1
assert tape.count(Update) == 2
assert sum(kinds.values()) == tape.count()

# %% [markdown]
# ## 2. Traced once, replayed
#
# A tape is called like the function. Another number of steps, no step at all, the other side of
# the branch, another length of the rod: the same tape, and the same numbers to the last bit.

# %%
cool = np.linspace(0.5, 0, 81)
for u, steps in ((hot, 3), (hot, 50), (hot, 0), (cool, 7), (cool, 1000)):
    assert_array_equal(tape(u, 0.1, steps), march(u, 0.1, steps))

# %% [markdown]
# What it cannot serve are other *types*. Lengths 0 and 1 are types of their own, because arrays of
# length one broadcast. The tape says so:

# %%
try:
    tape(hot.astype(complex), 0.1, 3)
except TypeError as error:
    print(error)
else:
    raise AssertionError("a complex rod is another program")

# %% [markdown]
# `fwdad.jit` keeps a tape for each kind of arguments, and finds the right one when it is called.
# (Arrays of a few elements may have a tape for each length, which keeps them in registers.)

# %%
fast_march = fwdad.jit(march, backend=BACKEND)
for u, steps in ((hot, 3), (hot, 50), (hot, 0), (cool, 7), (cool, 1000)):
    assert_allclose(fast_march(u, 0.1, steps), march(u, 0.1, steps), rtol=1e-14)
print(fwdad.cache_info(fast_march))
assert fwdad.cache_info(fast_march) == (1, 4)  # traces, hits

fast_march(hot.astype(np.float32), 0.1, 3)
assert fwdad.cache_info(fast_march) == (2, 4)
fast_march

# %% [markdown]
# ## 3. The generated source
#
# Before it is run, a tape is tidied up: what is computed twice is computed once, what no iteration
# changes moves out of the loop, what nobody needs goes. Then it is written as Python again. The
# names are the user's where there is one, and a comment says which of the user's lines the next
# ones come from. This is what NumPy runs; compare it with `march`:

# %%
source = fwdad.show(fast_march, hot, 0.1, 3)
code = "\n".join(line.partition("#")[0] for line in source.splitlines())
assert code.count("for ") == code.count("if ") == 1
assert code.index("u_2[1:]") < code.index("for ")  # the view is made once, not in each step
source

# %% [markdown]
# A tape can also be drawn, where Graphviz is installed. Each box is a line, each arrow a value;
# loops and branches are frames, and boxes with a border write into an array. A dashed arrow goes
# into the next iteration.

# %%
from fwdad.transforms.passes import optimise

optimise(tape.program)  # the tidying up; `fwdad.jit` does it by itself
assert tape.count() < sum(kinds.values())
assert_array_equal(tape(hot, 0.1, 50), march(hot, 0.1, 50))
tape.draw()

# %% [markdown]
# And this is what Numba compiles, where it is installed. Array expressions have become loops over
# elements, and lengths are checked before they start.

# %%
fwdad.show(fast_march, hot, 0.1, 3, backend="numba") if NUMBA else None

# %% [markdown]
# ## 4. Forward mode on a tape
#
# The rules of notebook 1 (one formula for one tangent) are applied to the operations of the tape.
# The result is a tape again, with the lanes of every value beside it. Take a chain of elementwise
# functions:


# %%
def wave(x, a):
    s = np.sin(a * x)
    c = np.cos(a * x)
    y = np.exp(-0.5 * s) * c
    z = y * y + s
    return z * np.tanh(x)


def push(x, x_dot):
    return fwdad.jvp(wave, x, x_dot, args=(2.0,))


x = np.linspace(-1, 1, 6)
x_dot = np.random.default_rng(0).normal(size=(3, 6))  # three directions
fast_push = fwdad.jit(push, backend=BACKEND)
source = fwdad.show(fast_push, x, x_dot)
source

# %% [markdown]
# Look at the last line. Every operation has been differentiated, but the lanes, `x_dot`, are
# touched *once*: the factors of the whole chain were multiplied first, one number for each
# element, because the rules said "times this partial" and nobody had asked for the product yet.
# With N directions the chain costs N products, not N times all of its operations.

# %%
code = "\n".join(line.partition("#")[0] for line in source.splitlines())
assert code.count("x_dot") == 2  # the parameter, and one use
y, y_dot = fast_push(x, x_dot)
expected, expected_dot = push(x, x_dot)
assert_allclose(y, expected, rtol=1e-14)
assert_allclose(y_dot, expected_dot, rtol=1e-12)

# %% [markdown]
# Loops, branches and stores are pushed forward as what they are: the loop stays a loop, an array
# that is assigned to gets an array of lanes that is assigned to. `jacfwd` inside `jit` makes one
# program of it all.

# %%
jacobian_of_march = fwdad.jit(fwdad.jacfwd(march), backend=BACKEND)
for u, steps in ((hot, 3), (hot, 0), (np.linspace(0.5, 0, 41), 20)):
    assert_allclose(
        jacobian_of_march(u, 0.1, steps),
        fwdad.jacobian(march, u, args=(0.1, steps)),
        rtol=1e-12,
        atol=1e-15,
    )
assert fwdad.cache_info(jacobian_of_march).traces == 1
fwdad.show(jacobian_of_march)

# %% [markdown]
# ## 5. Microseconds
#
# POLLU again: 20 species, 25 reactions, a Jacobian of 20 × 20 that an implicit solver asks for
# again and again. One line makes it a compiled function with the signature of `pollu`.

# %%
jac = fwdad.jit(fwdad.jacfwd(pollu, argnums=1), backend=BACKEND)
start = time.perf_counter()
J = jac(0.0, Y_END)
print(f"first call, with tracing and compiling: {time.perf_counter() - start:.1f} s")

h = 1e-30  # the complex step: exact here, and independent of all of this
reference = np.stack([pollu(0.0, Y_END + 1j * h * e).imag / h for e in np.eye(20)], axis=1)
assert_allclose(J, reference, rtol=1e-13, atol=1e-300)
print(fwdad.explain(jac))

# %% [markdown]
# Its source has no lanes at all: of 20 directions a product of two concentrations meets two, and
# the tape knows which. What is left are the partial derivatives themselves, stored in their places.

# %%
for line in fwdad.show(jac).splitlines()[:12]:
    print(line[:88])

# %% [markdown]
# And it is what the solver takes.

# %%
solution = solve_ivp(pollu, (0, T_END), Y_START, "BDF", rtol=1e-8, atol=1e-22, jac=jac)
off = np.abs(solution.y[:, -1] / Y_END - 1).max()
print(f"{solution.njev} Jacobians; off the published solution by {off:.0e}")
assert off < 1e-6

# %% [markdown]
# For a second system, of any size: Lorenz's model of 1996, $n$ places on a circle of latitude,
# each a step of an ordinary loop.
#
# $$ \dot x_i = (x_{i+1} - x_{i-2})\, x_{i-1} - x_i + 8 $$


# %%
def lorenz96(x):
    rate = np.empty_like(x)
    n = x.size
    for i in range(n):
        rate[i] = (x[(i + 1) % n] - x[(i - 2) % n]) * x[(i - 1) % n] - x[i] + 8.0
    return rate


def by_hand(x):
    """Its Jacobian: four entries in each row."""
    n = x.size
    i = np.arange(n)
    J = np.zeros((n, n))
    J[i, (i + 1) % n] += x[i - 1]
    J[i, (i - 2) % n] -= x[i - 1]
    J[i, (i - 1) % n] += x[(i + 1) % n] - x[i - 2]
    J[i, i] -= 1.0
    return J


def microseconds(work):
    """Per call, the best of three, after a first call."""
    work()
    number = 1
    while (spent := timeit.timeit(work, number=number)) < 0.01:
        number *= 4
    return 1e6 * min(spent, *timeit.repeat(work, number=number, repeat=2)) / number


def contestants(f, args):
    """Functions that return the Jacobian of f in its last argument."""
    *before, x = args
    at = len(before)
    yield "SciPy's differences", lambda: approx_fprime(x, lambda v: f(*before, v))
    yield "fwdad, run by Python", lambda: fwdad.jacfwd(f, argnums=at)(*args)
    for backend in ("numpy", "numba") if NUMBA else ("numpy",):
        made = fwdad.jit(fwdad.jacfwd(f, argnums=at), backend=backend)
        name = {"numpy": "NumPy", "numba": "Numba"}[backend]
        yield f"fwdad.jit, {name}", lambda made=made: made(*args)


def with_jax():
    """Make the Jacobian in JAX, which takes no assignment to elements: the model is said anew."""

    def rate(x):
        return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8.0

    made = jax.jit(jax.jacfwd(rate))
    return lambda x: np.asarray(made(x))


# %% [markdown]
# Every contestant has to give the right matrix before its time counts (SciPy's to six digits).

# %%
sizes = [4, 8, 16, 32, 64]
spent = {}
jax_jacobian = with_jax() if JAX else None
for n in sizes:
    x = 8 + np.sin(np.arange(n))
    rivals = [("JAX jit", lambda x=x: jax_jacobian(x))] if JAX else []
    for name, work in (*contestants(lorenz96, (x,)), *rivals):
        exact = name != "SciPy's differences"
        assert_allclose(work(), by_hand(x), rtol=1e-13 if exact else 0, atol=0 if exact else 1e-5)
        spent.setdefault(name, []).append(microseconds(work))

of_pollu = {}
for name, work in contestants(pollu, (0.0, Y_END)):
    if name != "SciPy's differences":
        assert_allclose(work(), reference, rtol=1e-13, atol=1e-300)
    of_pollu[name] = microseconds(work)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
colors = dict(zip(of_pollu, ("C1", "C4", "C0", "C3"), strict=False)) | {"JAX jit": "C2"}
marks = dict(zip(colors, "os^Dv", strict=False))
left.barh(list(of_pollu), list(of_pollu.values()), color=[colors[name] for name in of_pollu])
left.set(xscale="log", xlabel="microseconds a call", title="POLLU: Jacobian 20 × 20")
left.invert_yaxis()
for k, value in enumerate(of_pollu.values()):
    left.annotate(f" {value:,.0f}" if value >= 100 else f" {value:.2g}", (value, k), va="center")
left.set_xlim(right=10 * max(of_pollu.values()))
for name, times in spent.items():
    right.loglog(sizes, times, marker=marks[name], ms=5, color=colors[name], label=name)
right.set(xlabel="$n$", ylabel="microseconds a call", title="Lorenz 96: Jacobian $n$ × $n$")
right.set(xticks=sizes, xticklabels=sizes)
right.minorticks_off()
right.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1))
plt.show()
assert len(of_pollu) == len(spent) - JAX == 3 + NUMBA

# %% [markdown]
# Read it from the top. Differences run the function once for every column. The evaluator that runs
# at once runs it once, in Python, and pays for every operation. On NumPy's backend the looking up
# is gone and Python's arithmetic is left. Under Numba that is gone, too; of what remains most is
# the way into a compiled function and out of it. JAX, where it is installed, compiles array
# operations; its call takes longer than the work.
#
# ## What to remember
#
# - A tape is the program as data: loops, branches and stores are operations on it. It is written
#   once for each kind of arguments, and replayed at other numbers, trip counts, lengths.
# - `fwdad.jit(f)` runs it; `fwdad.jit(fwdad.jacfwd(f))` runs its derivative, as one program.
# - `fwdad.show` prints what is run, `fwdad.explain` what runs it, and `cache_info` how often it was
#   traced.
# - What cannot be traced says so, with line and reason
#   ([the list](../fwdad/frontend/limits.md)). The evaluator of notebook 1 takes it.
