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
# # Reverse mode: from a transpose to a loop run backwards
#
# Forward mode tells what one input does to all outputs. A gradient asks the opposite: what do all
# inputs do to one output? With a million inputs that would be a million directions. Run backwards,
# the program answers for all of them at once.
#
# 1. A linear function and its transpose.
# 2. A small program, and the same program backwards.
# 3. Loops that update arrays in place: what has to be saved.
# 4. What saving costs, measured.
# 5. Is it right? A check that needs no reference.
#
# Every number that is claimed here is asserted.

# %%
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
from numpy.testing import assert_allclose

import fwdad

plt.style.use("tableau-colorblind10")

# %% [markdown]
# ## 1. A linear function and its transpose
#
# `np.diff` is linear: there is a matrix A with `np.diff(x) = A x`. Nobody writes that matrix down.
# Its transpose needs no matrix either: each difference gives its *cotangent* to the element it
# added, and takes it from the one it subtracted.


# %%
def diff_transposed(y_bar):
    x_bar = np.zeros(len(y_bar) + 1)
    x_bar[1:] += y_bar
    x_bar[:-1] -= y_bar
    return x_bar


x = np.array([1.0, 4.0, 9.0, 16.0])
A = fwdad.jacobian(np.diff, x)
y, pullback = fwdad.vjp(np.diff, x)
print(A, pullback(np.array([1.0, 10.0, 100.0])))
assert_allclose(pullback(np.array([1.0, 10.0, 100.0])), A.T @ [1.0, 10.0, 100.0])
assert_allclose(pullback(np.eye(3)), A)  # three cotangents at once: the rows
assert_allclose(diff_transposed(np.array([1.0, 10.0, 100.0])), A.T @ [1.0, 10.0, 100.0])

# %% [markdown]
# Every program is a chain of steps. Near a point each step is linear, $y = C B A x$, and the
# transpose of a chain is the chain of transposes in the opposite order:
# $\bar x = A^T B^T C^T \bar y$. That is all of reverse mode. What makes it hard is that $B$ was
# made at values that the program had *then*.
#
# ## 2. A small program, and the same program backwards


# %%
def loss(x):
    y = np.sin(x) * x
    return np.sum(y**2)


gradient = fwdad.jit(fwdad.value_and_grad(loss), backend="numpy")
value, slope = gradient(x)
assert_allclose(slope, 2 * np.sin(x) * x * (np.cos(x) * x + np.sin(x)))
fwdad.show(gradient)

# %% [markdown]
# First the program, then its steps from the last to the first (`scale_lanes` is a product). What
# the reverse pass needs, `np.sin(x)`, has a name and is used twice; it is not computed again. No
# list of operations is kept at run time: this source is all there is, and `jit` compiles it as it
# stands.
#
# ## 3. Loops that update arrays in place
#
# A loop runs backwards as a loop, as often as it ran. If it overwrites an element that the reverse
# pass reads, the old content has to come from somewhere. Copying all arrays in every step would do,
# and costs memory as steps times size. fwdad asks *which* elements are read again.
#
# In a recurrence each element is written once, and read afterwards. Nothing is lost, so nothing is
# saved: there is no `push` in the tape.


# %%
def recurrence(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1] + np.sin(y[i - 1])
    return np.sum(y)


def heat(x, steps):
    """Linear: the reverse pass through the steps reads no values of u."""
    u = x.copy()
    for _ in range(steps):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def burgers(x, steps):
    """Not linear: the reverse pass reads the u of each step."""
    u = x.copy()
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return np.sum(u**2)


long = np.linspace(0.1, 0.9, 50)
tapes = {
    "recurrence": fwdad.trace(fwdad.grad(recurrence), long),
    "heat": fwdad.trace(fwdad.grad(heat), long, 5),
    "burgers": fwdad.trace(fwdad.grad(burgers), long, 5),
}
pushes = {name: str(tape).count("push(") for name, tape in tapes.items()}
print(pushes)
assert pushes["recurrence"] == pushes["heat"] == 0 < pushes["burgers"]
tapes["burgers"]

# %% [markdown]
# The same as a picture. The forward pass, in blue, runs down; beside it the reverse pass, in
# orange, runs up, from the value to the gradient. Dashed arrows go into the next iteration; dotted
# ones lead from what is kept to where the reverse pass uses it.

# %%
tapes["burgers"].draw()

# %% [markdown]
# ## 4. What saving costs, measured
#
# A stepper that touches four elements of a large array in each step. Whoever saves the array before
# each step needs `steps * n` numbers. What the reverse pass needs of a step is a few numbers,
# whatever n is: they go on a stack in the forward pass, and come back from it in the reverse pass.


# %%
STEPS = 200


def local(x):
    """Each step changes a view of four elements."""
    u = x.copy()
    for k in range(STEPS):
        u[k : k + 4] *= 1.0 - 0.1 * u[k : k + 4]
    return np.sum(u**2)


def local_by_copies(x):
    """Value and gradient by hand, with a copy of the whole array for each step."""
    u, saved = x.copy(), []
    for k in range(STEPS):
        saved.append(u.copy())
        u[k : k + 4] *= 1.0 - 0.1 * u[k : k + 4]
    u_bar = 2 * u
    for k in reversed(range(STEPS)):
        u_bar[k : k + 4] *= 1.0 - 0.2 * saved[k][k : k + 4]
    return np.sum(u**2), u_bar


def peak(f, x):
    """The largest number of bytes that a call holds beside its argument."""
    f(x)  # traced and warm
    tracemalloc.start()
    f(x)
    bytes_ = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return bytes_


sizes = [300, 1000, 3000, 10000, 30000]
restoring = fwdad.value_and_grad(local)
by_us, by_copies = [], []
for n in sizes:
    z = np.linspace(0.1, 0.9, n)
    assert_allclose(restoring(z)[1], local_by_copies(z)[1], rtol=1e-13)
    by_us.append(peak(restoring, z))
    by_copies.append(peak(local_by_copies, z))
print(by_us, by_copies)

fig, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.loglog(sizes, by_copies, "o-", label="a copy of the array for each step")
ax.loglog(sizes, by_us, "s-", label="fwdad: what is read again")
ax.loglog(sizes, [8 * n for n in sizes], "k:", label="one array")
ax.set(xlabel="length of the array", ylabel="peak memory, bytes")
ax.set_title(f"Gradient of {STEPS} local steps")
ax.legend()
plt.show()

assert by_copies[-1] > STEPS * 8 * sizes[-1]
assert by_us[-1] < 10 * 8 * sizes[-1]  # a few arrays, and 200 times four numbers

# %% [markdown]
# Which lines are they that need memory? `memory_report` runs the gradient once and measures it.

# %%
report = fwdad.memory_report(local, np.linspace(0.1, 0.9, 1000))
assert report.saved < 20 * STEPS * 8
report

# %% [markdown]
# ## 5. Is it right?
#
# Two derivatives that were made in different ways must agree. For any direction $v$ and any
# cotangent $w$, the number $w \cdot J v$ can be computed by pushing $v$ forward or by pulling $w$
# back. That needs no reference and no step size. For a gradient, central differences are a second
# witness.


# %%
def march(x):
    u = x.copy()
    for _ in range(60):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
        if u[5] > 0.4:
            u *= 0.99
    return u


rng = np.random.default_rng(0)
v, w = rng.normal(size=(2, 50))
y, y_dot = fwdad.jvp(march, long, v)
y, pullback = fwdad.vjp(march, long)
print(w @ y_dot, pullback(w) @ v)
assert_allclose(w @ y_dot, pullback(w) @ v, rtol=1e-11)

h = 1e-6
slope = fwdad.grad(burgers)(long, 5)
difference = (burgers(long + h * v, 5) - burgers(long - h * v, 5)) / (2 * h)
print(slope @ v, difference)
assert_allclose(slope @ v, difference, rtol=1e-7)

# %% [markdown]
# Second derivatives are forward over reverse: `hvp` pushes a direction through the gradient's tape,
# both ways of it. A Hessian is symmetric, which nobody told the program.

# %%
H = fwdad.hessian(burgers, long, args=(5,))
assert_allclose(H, H.T, atol=1e-13)
assert_allclose(fwdad.hvp(burgers, long, v, args=(5,)), H @ v, atol=1e-12)
print(np.abs(H - H.T).max())
