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
# # Reversible programs: from a swap to a trained network
#
# Reverse mode needs, in the reverse pass, what the program knew in the forward pass. Usually that
# is kept. A reversible program need not keep anything: every statement has an inverse, so the
# reverse pass can compute it again.
#
# 1. Statements that lose nothing.
# 2. Scratch space: ancillas, and blocks that are undone.
# 3. Loops and branches that know where they came from.
# 4. Gradients, and the memory that they need.
# 5. Irreversible steps: Bennett's scheme.
# 6. An invertible network, trained.
#
# Every number that is claimed here is asserted.

# %%
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import fwdad
from fwdad.examples.reversible.coupling import layers, negative_log_density, two_moons
from fwdad.examples.reversible.orbits import leapfrog
from fwdad.reversible import ancilla, bennett, compute, cond, copy_out, free, reversible

plt.style.use("tableau-colorblind10")

# %% [markdown]
# ## 1. Statements that lose nothing
#
# A swap undoes itself. Adding something to a variable is undone by taking it away again, if that
# something does not depend on the variable.


# %%
@reversible
def shuffle(a, b):
    a, b = b, a
    a += np.sin(b)


there = shuffle(1.0, 2.0)
back = (~shuffle)(*there)
print(there, back)
assert back == (1.0, 2.0)
shuffle


# %% [markdown]
# What loses information is refused when it is defined, with its line.


# %%
def loses(x, y):
    x -= x * y


try:
    reversible(loses)
except fwdad.errors.IrreversibleError as error:
    message = error.msg
print(message)
assert "'x'" in message

# %% [markdown]
# ## 2. Scratch space
#
# A local variable begins with a value, and must have a known value when it ends: else something was
# lost. A `compute` block is undone when it ends, all but what `copy_out` took out of it.


# %%
@reversible
def norm(y, x):
    with compute():
        square = ancilla(0.0)
        for i in range(len(x)):
            square += x[i] ** 2
        with copy_out():
            y += np.sqrt(square)


@reversible
def forgets(y, x):
    t = ancilla(0.0)
    t += x
    y += t
    free(t, 0.0)


x = np.array([1.0, 2.0, 3.0])
assert_allclose(norm(0.0, x)[0], np.sqrt(14.0))
assert_allclose(fwdad.grad(norm, argnums=1)(0.0, x), x / np.sqrt(14.0))
try:
    forgets(0.0, 3.0)
except fwdad.errors.InvertibilityError as error:
    message = error.msg
print(message)
assert "'t' is 3.0" in message

# %% [markdown]
# ## 3. Loops and branches
#
# Run backwards, an `if` cannot ask the question that it asked before. It has a second condition,
# which tells afterwards which way was taken; so does a `while`.


# %%
@reversible
def countdown(n, steps):
    while cond(n > 1, steps > 0):
        steps += 1
        n -= 1


assert countdown(7, 0) == (1, 6)
assert (~countdown)(1, 6) == (7, 0)

# %% [markdown]
# ## 4. Gradients, and their memory
#
# The reverse pass is the inverse, with cotangents. A simulation of planets by the leapfrog method
# is reversible as it is written, so its gradient needs the same memory for any number of steps. The
# same loop as an ordinary program keeps what the reverse pass reads.

# %%
x0 = np.array([[0.0, 0.0], [1.0, 0.0]])
v0 = np.array([[0.0, -0.001], [0.0, 1.0]])
m = np.array([1.0, 1e-3])


def reversible_loss(v, steps):
    return leapfrog(x0, v, m, 1e-3, steps)[0][1, 0]


def pull(x, m):
    a = np.zeros(x.shape)
    for i in range(len(m)):
        for j in range(len(m)):
            if i != j:
                away = x[j] - x[i]
                a[i] += m[j] * away / np.sum(away**2) ** 1.5
    return a


def ordinary_loss(v, steps):
    x, h = x0, 1e-3
    for _ in range(steps):
        v = v + h / 2 * pull(x, m)
        x = x + h * v
        v = v + h / 2 * pull(x, m)
    return x[1, 0]


def peak(f, *args):
    found = []
    for _ in range(3):  # the first calls fill caches
        tracemalloc.start()
        f(*args)
        found.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return min(found)


steps = [20, 60, 180]
gradients = [fwdad.grad(f) for f in (reversible_loss, ordinary_loss)]
assert_allclose(gradients[0](v0, 60), gradients[1](v0, 60), rtol=1e-9, atol=1e-12)
peaks = [[peak(g, v0, n) for n in steps] for g in gradients]
figure, axes = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
for name, row, mark in zip(("reversible", "ordinary"), peaks, "os", strict=True):
    axes.loglog(steps, np.array(row) / 1e3, marker=mark, label=f"{name} program")
axes.set(xlabel="time steps", ylabel="peak memory of the gradient, kB", ylim=(1, None))
axes.set(xticks=steps, xticklabels=steps)
axes.minorticks_off()
axes.legend()
plt.show()
assert max(peaks[0]) < 1.2 * min(peaks[0])
assert peaks[1][2] > 2 * peaks[1][0]

# %% [markdown]
# ## 5. Irreversible steps
#
# The logistic map forgets where it came from. Bennett's scheme iterates it reversibly all the same:
# a run is divided into parts whose results are kept only until the run is undone. `checkpoint` does
# the like for ordinary programs, by keeping states to begin again from.

# %%
logistic = bennett(lambda x: 3.6 * x * (1 - x), k=4)


def iterated(x, n):
    for _ in range(n):
        x = 3.6 * x * (1 - x)
    return x


slope = fwdad.grad(logistic, argnums=1)(0.0, 0.3, 40)
saved = fwdad.grad(iterated)(0.3, 40)
thinned = fwdad.grad(fwdad.checkpoint(iterated, snapshots=6))(0.3, 40)
print(slope, saved, thinned)
assert_allclose([slope, thinned], saved, rtol=1e-9)

# %% [markdown]
# ## 6. An invertible network
#
# An additive coupling layer moves one coordinate by a function of the other, so a network of them
# is a reversible program. Points are moved to where they shall be normally distributed; that gives
# the density where they came from.

# %%
rng = np.random.default_rng(1)
points = two_moons(300, rng)
hidden, depth = 12, 6
shape = (depth, hidden)


def unpack(p):
    size = depth * hidden
    parts = [p[k * size : (k + 1) * size].reshape(shape) for k in range(3)]
    return *parts, p[3 * size :]


def loss(p):
    return negative_log_density(0.0, points, *unpack(p))[0]


start = np.concatenate([rng.normal(0.0, 0.7, 3 * depth * hidden), np.zeros(2)])
objective = fwdad.value_and_grad(loss)
direction = rng.normal(size=start.size)
h = 1e-6
difference = (loss(start + h * direction) - loss(start - h * direction)) / (2 * h)
assert_allclose(objective(start)[1] @ direction, difference, rtol=1e-5)
found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 300})
print(f"loss {loss(start):.3f} at the start, {found.fun:.3f} after {found.nit} iterations")
assert found.fun < loss(np.concatenate([np.zeros(3 * depth * hidden), np.zeros(2)])) - 0.3

# %%
inner, offsets, outer, scales = unpack(found.x)
drawn = rng.normal(size=(600, 2)) * np.exp(-scales)
made = (~layers)(drawn, inner, offsets, outer)[0]
again = layers(made, inner, offsets, outer)[0]
assert_allclose(again, drawn, atol=1e-12)
shared = {"sharex": True, "sharey": True, "layout": "constrained"}
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3), **shared)
left.plot(*points.T, ".", ms=4)
left.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
left.set_title("300 points that it was trained on")
right.plot(*made.T, ".", ms=4, color="C1")
right.set(xlim=(-2.5, 2.5), ylim=(-1.5, 1.5), xlabel="$x_1$", aspect="equal")
right.set_title("600 normal points, sent through the inverse")
plt.show()
