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
# # From a dual number to the Jacobian of a real model
#
# You have a function written with NumPy, and you want its derivatives: exact ones, without
# changing a line of it. This notebook starts from nothing and gets there in four steps.
#
# 1. A number that carries its derivative along.
# 2. A number that carries N derivatives along, and why N is yours to choose.
# 3. The same for arrays, and the trap that waits there.
# 4. Two real models: the chemistry of polluted air, and a reaction that spreads.
#
# Every number that is claimed here is asserted in the cell below the claim.

# %%
import math
import time
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp
from scipy.optimize import approx_fprime

import fwdad
from fwdad.examples.pollu import SPECIES, T_END, Y_END, Y_START, pollu

plt.style.use("tableau-colorblind10")

# %% [markdown]
# ## 1. A number that carries its derivative along
#
# Take a pair: a value $x$ and its rate of change $\dot x$. Arithmetic on the values is what it
# always was. Arithmetic on the rates is what you learned in the first weeks of calculus:
#
# $$ (x + y)^{\boldsymbol\cdot} = \dot x + \dot y, \qquad
#    (x y)^{\boldsymbol\cdot} = \dot x\, y + x\, \dot y, \qquad
#    (\sin x)^{\boldsymbol\cdot} = \cos(x)\, \dot x . $$
#
# Such a pair is called a *dual number*. Twelve lines are enough to try it.


# %%
class Dual:
    """A value and its rate of change."""

    def __init__(self, value, rate):
        self.value, self.rate = value, rate

    def __add__(self, other):
        return Dual(self.value + other.value, self.rate + other.rate)

    def __mul__(self, other):
        return Dual(self.value * other.value, self.rate * other.value + self.value * other.rate)


def sin(x):
    return Dual(math.sin(x.value), math.cos(x.value) * x.rate)


def f(x):
    return x * sin(x) + sin(x * x)


# %% [markdown]
# Start with $x = 1.3$ and $\dot x = 1$, run the function, and read the derivative off the result.
# Nothing was approximated: each step applied an exact rule, so the result has the accuracy of the
# arithmetic itself.

# %%
at = 1.3
by_hand = math.sin(at) + at * math.cos(at) + 2 * at * math.cos(at**2)
answer = f(Dual(at, 1.0))
print(f"dual number  {answer.rate:.16f}")
print(f"by hand      {by_hand:.16f}")
assert abs(answer.rate - by_hand) < 1e-15

# %% [markdown]
# Compare that with the usual way out, the difference quotient $(f(x+h) - f(x))/h$. A large $h$
# has a large error because the function is not straight; a small one because two nearly equal
# numbers are subtracted. There is a best $h$, it is different for every function, and even there
# half of the digits are gone.


# %%
def plain(x):
    return x * math.sin(x) + math.sin(x * x)


steps = 10.0 ** np.arange(-15, 0.5, 0.5)
errors = np.array([abs((plain(at + h) - plain(at)) / h - by_hand) for h in steps])

figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axes.loglog(steps, errors, "o-", ms=4)
axes.axhline(1e-16, color="C1", ls="--")
axes.annotate("difference quotient", (1e-8, 1e-5), ha="center")
axes.annotate("dual number: below 10⁻¹⁵", (1e-8, 2e-16), ha="center", va="bottom")
axes.set(xlabel="step $h$", ylabel="error of the derivative", ylim=(1e-17, 10))
plt.show()
assert 1e-11 < errors.min() < 1e-7  # at best; with a careless step it is far worse

# %% [markdown]
# ## 2. N derivatives at once
#
# A function of $n$ variables has $n$ derivatives. One run of a dual number gives one: the
# derivative in the *direction* $\dot x$. For all of them, $n$ runs? Not quite. Look at the rules
# again: they are *linear* in the rates. So the rate may as well be a vector of N rates, one for
# each direction, and the very same class works: NumPy multiplies all of them by $\cos x$ at once.
# A rate of this kind is a **chunk**, and each of its entries is a **lane**.


# %%
def area(width, height):
    return width * height + sin(width)


width = Dual(2.0, np.array([1.0, 0.0]))  # lane 0 moves the width
height = Dual(5.0, np.array([0.0, 1.0]))  # lane 1 moves the height
gradient = area(width, height).rate
print(gradient)
assert_allclose(gradient, [5 + math.cos(2), 2], rtol=1e-15)

# %% [markdown]
# The value, the sine and the cosine were computed once and shared by both lanes. That is the
# whole point of chunks: *work that does not depend on the direction is done once*.
#
# Why then not always carry all $n$ directions? Because every intermediate result now drags $n$
# numbers behind it. With a million variables and a thousand intermediate results that is more
# memory than anybody has. N is the dial between the two: the function is run $n/N$ times, and
# each run needs N times the memory of the function itself. We will turn that dial in section 4.
#
# ## 3. Arrays, and a trap
#
# For arrays the lanes go in front: an array of shape `(3,)` has tangents of shape `(N, 3)`. The
# rule of the product says $\dot z = \dot x\, y + x\, \dot y$. Watch what NumPy makes of the first
# term when $y$ is a table of two rows and $N$ happens to be two, too.

# %%
x = np.array([1.0, 2.0, 3.0])
y = np.array([[1.0, 10.0, 100.0], [-1.0, -2.0, -3.0]])
lanes = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # N = 2 directions for x

careless = lanes * y
print("x * y has the shape", (x * y).shape, "and two tangents of it", (2, *(x * y).shape))
print("NumPy returns", careless.shape, "without a word:")
print(careless)
assert careless.shape == (2, 3)

# %% [markdown]
# It multiplied lane 0 with row 0 and lane 1 with row 1: no error, no warning, and a wrong number
# as soon as somebody sums it up. fwdad therefore hides the lane axis in a container that knows
# which axis is which, takes part in linear operations only, and refuses everything else.

# %%
x_dot = fwdad.Chunk(lanes)
z_dot = x_dot * y
assert z_dot.lanes.shape == (2, 2, 3)
for k in range(2):
    assert_array_equal(z_dot.lanes[k], lanes[k] * y)

z_dot

# %% [markdown]
# A product of two tangents is no tangent, so it is refused:

# %%
try:
    x_dot * x_dot
except fwdad.errors.NonlinearTangentError as error:
    print(type(error).__name__, "·", error.msg)

# %% [markdown]
# With this container a rule is the textbook's formula for *one* tangent, and works for any number
# of lanes. What is left is to apply the rules to a function that somebody else wrote: one that
# calls `np.sin`, makes scratch arrays with `np.zeros` and assigns into them. fwdad reads the
# source of the function and runs it on dual numbers.


# %%
def heat(u, steps=5):
    """Diffusion in a rod, written as one writes it: scratch arrays, slices, assignment in place."""
    u = u.copy()
    flux = np.zeros(u.size - 1)
    for _ in range(steps):
        flux[:] = 0.2 * (u[1:] - u[:-1])
        u[:-1] += flux
        u[1:] -= flux
    return np.exp(-u)


u = np.linspace(0, 1, 6) ** 2
value, slope = fwdad.jvp(heat, u, np.ones(6))  # one direction: warm the whole rod evenly
assert_allclose(slope, -value, rtol=1e-14)  # which is a shift: d exp(−u) = −exp(−u) du
J = fwdad.jacobian(heat, u)
assert_array_equal(value, heat(u))
assert_allclose(J.sum(axis=1), slope, rtol=1e-14)
print(J.round(3))

# %% [markdown]
# `jvp` takes one direction, or K of them stacked in front; `jacobian` takes the unit directions
# and puts the results in columns. Both have the dial: `chunk=N`. It changes time and memory, and
# not the result.

# %%
for chunk in (1, 2, 3, 4, 5, 6, None):  # None: all at once; with 4 or 5 the last chunk is ragged
    assert_array_equal(fwdad.jacobian(heat, u, chunk=chunk), J)

# %% [markdown]
# ## 4. Real models
#
# ### The chemistry of polluted air
#
# [POLLU](../fwdad/examples/pollu.py) follows 20 species through 25 reactions. Its time scales
# differ by ten orders of magnitude, so a solver must be implicit, and an implicit solver wants
# the Jacobian. The model is in scalar form: `r2 = 26.6 * y[1] * y[3]` and so on. For a reference
# we differentiate it by a third method, the complex step $\operatorname{Im} f(y + i h e_k)/h$,
# which is exact for a polynomial but needs a function that can be fed complex numbers.

# %%
J = fwdad.jacobian(lambda y: pollu(0.0, y), Y_END)
h = 1e-30
reference = np.stack([pollu(0.0, Y_END + 1j * h * e).imag / h for e in np.eye(20)], axis=1)
assert_allclose(J, reference, rtol=1e-13, atol=1e-300)
print(f"{np.count_nonzero(J)} of {J.size} entries; the largest is {abs(J).max():.2g} per minute")
assert np.count_nonzero(J) == np.count_nonzero(reference)

# %% [markdown]
# Forward differences, SciPy's way, do well here, because the model is a polynomial of degree two.
# Even so, an entry that is small beside the rest of its row keeps half of its digits: the others
# drown in the rounding of that row.

# %%
approximate = approx_fprime(Y_END, lambda y: pollu(0.0, y))
present = reference != 0
relative = np.abs(approximate / np.where(present, reference, 1) - 1)[present]
print(f"differences: median error {np.median(relative):.0e}, worst {relative.max():.0e}")
exact = np.abs(J / np.where(present, reference, 1) - 1)[present]
print(f"fwdad:       median error {np.median(exact):.0e}, worst {exact.max():.0e}")
assert exact.max() < 1e-13
assert relative.max() > 1e5 * exact.max()

# %% [markdown]
# And the purpose of it all: `jacfwd` turns a function into one that returns its Jacobian, with
# the same signature, which is just what SciPy's solver takes.

# %%
solution = solve_ivp(
    pollu, (0, T_END), Y_START, "BDF", rtol=1e-8, atol=1e-22, jac=fwdad.jacfwd(pollu, argnums=1)
)
off = np.abs(solution.y[:, -1] / Y_END - 1)
print(
    f"after {solution.t.size - 1} steps and {solution.njev} Jacobians, the worst of the 20 species"
)
print(f"({SPECIES[off.argmax()]}) is off the published solution by {off.max():.0e}")
assert off.max() < 1e-6

# %% [markdown]
# ### A reaction that spreads
#
# The Brusselator is a chemical clock. On a line of $n$ points its two species react where they
# are and diffuse to their neighbours:
#
# $$ \dot u_i = a + u_i^2 v_i - (b + 1) u_i + \alpha\,(u_{i-1} - 2 u_i + u_{i+1}), \qquad
#    \dot v_i = b u_i - u_i^2 v_i + \alpha\,(v_{i-1} - 2 v_i + v_{i+1}). $$
#
# With $n = 256$ there are 512 unknowns and a Jacobian of a quarter of a million entries: enough
# to turn the dial and see.


# %%
POINTS, A, B, ALPHA = 256, 1.0, 3.0, 0.02 * 257**2


def brusselator(state):
    u, v = state[:POINTS], state[POINTS:]
    rate = np.empty_like(state)
    u_rate, v_rate = rate[:POINTS], rate[POINTS:]
    reaction = u**2 * v
    u_rate[:] = A + reaction - (B + 1) * u
    v_rate[:] = B * u - reaction
    for c, c_rate, edge in ((u, u_rate, A), (v, v_rate, B / A)):
        padded = np.empty(POINTS + 2)
        padded[0] = padded[-1] = edge
        padded[1:-1] = c
        c_rate += ALPHA * (padded[:-2] - 2 * c + padded[2:])
    return rate


place = np.arange(1, POINTS + 1) / (POINTS + 1)
state = np.concatenate([1 + 0.5 * np.sin(2 * np.pi * place), 3 + 0.2 * np.cos(np.pi * place)])

# %% [markdown]
# Its Jacobian can be written down by hand, which is how it is checked: four blocks, each with at
# most three diagonals.

# %%
u, v = state[:POINTS], state[POINTS:]
diffusion = ALPHA * (np.eye(POINTS, k=1) - 2 * np.eye(POINTS) + np.eye(POINTS, k=-1))
written_down = np.block(
    [
        [np.diag(2 * u * v - (B + 1)) + diffusion, np.diag(u**2)],
        [np.diag(B - 2 * u * v), np.diag(-(u**2)) + diffusion],
    ]
)
J = fwdad.jacobian(brusselator, state)
assert_allclose(J, written_down, rtol=1e-12)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
left.spy(reference, markersize=4)
left.set_title("POLLU: 20 × 20")
right.spy(J, markersize=0.4)
right.set_title("Brusselator: 512 × 512")
for each in (left, right):
    each.set(xlabel="with respect to unknown", ylabel="rate of unknown")
    each.xaxis.tick_bottom()
figure.suptitle("Which entries of the Jacobian are not zero")
plt.show()
assert np.count_nonzero(J) == 2 * (3 * POINTS - 2) + 2 * POINTS

# %% [markdown]
# Now the dial. For each chunk size: the time of one Jacobian (the best of three), and the most
# memory that was held at once, without the function itself or the result.


# %%
def best_time(work, repeat=3):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_memory(work):
    tracemalloc.start()
    kept = work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - kept.nbytes


widths = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
seconds, memory = [], []
for width in widths:

    def one(width=width):
        return fwdad.jacobian(brusselator, state, chunk=width)

    assert_array_equal(one(), J)  # the same to the last bit, whatever the width
    seconds.append(best_time(one))
    memory.append(peak_memory(one))

by_differences = best_time(lambda: approx_fprime(state, brusselator))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.loglog(widths, 1e3 * np.array(seconds), "o-", label="fwdad")
left.axhline(1e3 * by_differences, color="C1", ls="--", label="SciPy's differences")
left.set(title="Time of one Jacobian", xlabel="chunk size N", ylabel="milliseconds")
left.set(xticks=widths, xticklabels=widths)
left.set(yticks=[10, 30, 100, 300, 1000], yticklabels=[10, 30, 100, 300, 1000])
left.legend()
right.loglog(widths[3:], np.array(memory[3:]) / 2**20, "o-", label="working memory")
right.axhline(J.nbytes / 2**20, color="C3", ls=":", label="the Jacobian itself")
right.set(title="Memory besides the result", xlabel="chunk size N", ylabel="MiB")
right.set(xticks=widths[3:], xticklabels=widths[3:])
right.set(yticks=[0.3, 1, 3, 10], yticklabels=[0.3, 1, 3, 10])
right.legend()
for each in (left, right):
    each.minorticks_off()
    each.tick_params(axis="x", labelsize=8)
plt.show()

# %% [markdown]
# Two things to read off.
#
# - *Time falls, then flattens.* With N = 1 the function is run 512 times, and Python's overhead is
#   paid 512 times. With N = 64 it is paid 8 times. Beyond that the time goes into the arithmetic of
#   the lanes, which there is no way around without knowing the pattern.
# - *Memory grows with N*, in proportion, and does not depend on how many columns there are in all.
#   (Below N = 8 it is next to nothing: bookkeeping.)
#
# So the sweet spot is broad, and `chunk="auto"`, the default, sits in it.

# %%
time_of, memory_of = dict(zip(widths, seconds, strict=True)), dict(zip(widths, memory, strict=True))
print(f"N = 1: {1e3 * time_of[1]:.0f} ms, N = 32: {1e3 * time_of[32]:.0f} ms")
print(f"N = 8: {memory_of[8] / 2**20:.2f} MiB, N = 512: {memory_of[512] / 2**20:.2f} MiB")
assert time_of[1] > 3 * time_of[32]
assert memory_of[512] > 8 * memory_of[8]
assert_array_equal(fwdad.jacobian(brusselator, state, chunk="auto"), J)

# %% [markdown]
# ## What to remember
#
# - A derivative can be carried through a program, exactly, by rules that each take a line.
# - The rules are linear in what is carried, so N derivatives travel together for the price of one
#   run plus the arithmetic of N lanes.
# - N is a dial for time and memory. It never changes the result.
# - The function stays as it is.
#
# Where to go from here: `fwdad.jvp` for a few directions instead of all, `fwdad.grad` and
# `fwdad.hessian` for functions with one value, and `fwdad/rules/core/define.py` for a rule of your
# own in four lines.
