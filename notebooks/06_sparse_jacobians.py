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
# # Sparse Jacobians: from a spy plot to a million unknowns
#
# A Jacobian with a million columns has 10¹² entries, and nearly all of them are zero, for
# a reason: what happens at a point depends on its neighbours. That reason stands in the program.
#
# 1. A pattern, found from the program.
# 2. Colours: columns that are differentiated together.
# 3. What a pattern knows, and what it does not.
# 4. Hessians.
# 5. Newton's method with SciPy's sparse solver.
# 6. A million unknowns.
#
# Every number that is claimed here is asserted.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import LinearOperator, cg, splu

import fwdad
from fwdad.colouring import colour

plt.style.use("tableau-colorblind10")

# %% [markdown]
# ## 1. A pattern, found from the program
#
# Heat on a square plate that heats itself: Bratu's problem, $\nabla^2 u + \lambda e^u = 0$.


# %%
def bratu(u, source=6.0):
    wide = np.pad(u, 1)
    around = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
    return around - 4 * u + source / (len(u) + 1) ** 2 * np.exp(u)


u = np.zeros((8, 8))
pattern = fwdad.jacobian_sparsity(bratu, u)
pattern

# %% [markdown]
# A prompt draws it in Braille. Nothing was compared with zero, and `bratu` was not even run: its
# program is run on *sets of unknowns* in place of numbers. So the pattern holds for every `u` of
# this shape.

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2))
left.spy(pattern, markersize=4)
left.set_title("bratu, 8 × 8 points")
tangled = np.random.default_rng(0).permutation(64)


def in_another_order(u):
    out = np.empty(64)
    out[tangled] = bratu(u[tangled].reshape(8, 8)).ravel()
    return out


mixed = fwdad.jacobian_sparsity(in_another_order, np.zeros(64))
right.spy(mixed, markersize=4)
right.set_title("the same, its points in another order")
fig.tight_layout()
assert mixed.nnz == pattern.nnz == 5 * 64 - 4 * 8

# %% [markdown]
# ## 2. Colours: columns that are differentiated together
#
# Two columns without a common row can share a direction: in the product nothing is mixed up. A
# colouring finds groups of such columns; here five are enough, however many points there are.

# %%
colouring = colour(fwdad.jacobian_sparsity(bratu, np.zeros((6, 6))))
groups = colouring.column_colours.reshape(6, 6)
assert colouring.count == 5

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2))
axes[0].imshow(groups, cmap="Set2", vmin=0, vmax=7)
for (i, j), c in np.ndenumerate(groups):
    axes[0].text(j, i, c, ha="center", va="center")
axes[0].set_title("which direction moves a point")
axes[0].set_xticks([])
axes[0].set_yticks([])
seeds = colouring.column_seeds()
compressed = fwdad.jacobian(bratu, np.zeros((6, 6))).reshape(36, 36) @ seeds
axes[1].imshow(compressed, aspect="auto", cmap="RdBu", vmin=-4, vmax=4)
axes[1].set_title("36 columns in five products")
axes[1].set_xticks(range(5))
axes[1].set_xlabel("colour")
axes[1].set_ylabel("row")
fig.tight_layout()

# %% [markdown]
# `jacobian(..., sparse=True)` does all of this: pattern, colours, one run with five directions, and
# every entry read where it stands alone.

# %%
u = np.random.default_rng(1).random((12, 12))
J = fwdad.jacobian(bratu, u, sparse=True)
dense = fwdad.jacobian(bratu, u).reshape(144, 144)
assert np.array_equal(J.toarray(), dense)
print(repr(J))

# %% [markdown]
# ## 3. What a pattern knows, and what it does not
#
# Loops, branches, stores and gathers are followed. A branch has both ways; an index that depends on
# an unknown, all places; what cannot be followed depends on all that it is given, and `dense` names
# its line.


# %%
def with_a_branch(x):
    out = x**2
    if x[0] > 0:
        out[1] += x[2]
    else:
        out[1] += x[3]
    return out


x = np.ones(5)
both = fwdad.jacobian_sparsity(with_a_branch, x)
here = fwdad.jacobian_sparsity(with_a_branch, x, kind="local")
assert (both.nnz, here.nnz) == (7, 6)
np.stack([both.toarray().astype(int), here.toarray().astype(int)])

# %% [markdown]
# A pattern of one's own may be wrong, and a wrong one would give wrong derivatives without a word.
# So the first call compares a random product, and names the entry:

# %%
try:
    fwdad.jacobian(with_a_branch, x, sparse=np.eye(5))
except fwdad.errors.PatternError as error:
    print(str(error).partition("\n")[0])

# %% [markdown]
# ## 4. Hessians
#
# The Hessian of an energy is symmetric, so that each entry may be read in its own place or in
# its mirror image: a star colouring takes fewer colours, one by substitution fewer still.


# %%
def energy(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) + x[0] * x[-1]


x = np.random.default_rng(2).random(400)
ring = fwdad.hessian_sparsity(energy, x)
counts = {kind: colour(ring, kind).count for kind in ("columns", "star", "acyclic")}
H = fwdad.hessian(energy, x, sparse=True)
assert np.allclose(H.toarray(), fwdad.hessian(energy, x))
assert counts["acyclic"] <= counts["star"] <= counts["columns"]
counts

# %% [markdown]
# ## 5. Newton's method with SciPy's sparse solver
#
# Compiled, a Jacobian is one function: derivative, and each entry written where `splu` wants it.

# %%
jacobian = fwdad.jit(fwdad.jacobian(bratu, sparse=True, format="csc"))


def newton(u):
    sizes = []
    for _ in range(8):
        r = bratu(u)
        sizes.append(np.linalg.norm(r))
        if sizes[-1] < 1e-12:
            break
        u = u - splu(jacobian(u)).solve(r.ravel()).reshape(u.shape)
    return u, sizes


u, sizes = newton(np.zeros((100, 100)))
assert sizes[-1] < 1e-12

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
image = left.imshow(u, extent=(0, 1, 0, 1), origin="lower")
fig.colorbar(image, ax=left, label="u")
left.set_title("10 000 unknowns")
right.semilogy(sizes, "o-")
right.set_xlabel("step of Newton's method")
right.set_ylabel("size of the residual")
right.grid(alpha=0.3)
fig.tight_layout()

# %% [markdown]
# ## 6. A million unknowns
#
# 1000 × 1000 points: as a dense matrix 8 TB. The pattern is found once, in seconds; then a Jacobian
# costs a handful of runs of `bratu`.

# %%
wide = np.random.default_rng(3).random((1000, 1000))
begin = time.perf_counter()
pattern = fwdad.jacobian_sparsity(bratu, wide)
finding = time.perf_counter() - begin
assert pattern.nnz == 5 * 10**6 - 4 * 1000

begin = time.perf_counter()
five = colour(pattern)
colouring = time.perf_counter() - begin
assert five.count == 5

jacobian = fwdad.jit(fwdad.jacobian(bratu, sparse=five))
compiled = fwdad.jit(bratu)
jacobian(wide), compiled(wide)


def seconds(f):
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        f(wide)
        times.append(time.perf_counter() - begin)
    return min(times)


print(f"pattern {finding:.1f} s, colours {colouring:.1f} s, then each Jacobian takes as long as")
print(f"{seconds(jacobian) / seconds(compiled):.0f} runs of the compiled function")

# %% [markdown]
# A random product shows that it is right, and it solves a system: one step of Newton's method for a
# million unknowns, by conjugate gradients.

# %%
J = jacobian(wide)
v = np.random.default_rng(4).standard_normal(wide.shape)
exact = fwdad.jvp(bratu, wide, v)[1].ravel()
assert np.max(np.abs(J @ v.ravel() - exact)) < 1e-12 * np.max(np.abs(exact)) * 10

M = LinearOperator(J.shape, lambda r: r / J.diagonal(), dtype=float)
step, info = cg(-J, bratu(wide).ravel(), M=-M, maxiter=40)
before = np.linalg.norm(bratu(wide))
after = np.linalg.norm(bratu(wide + step.reshape(wide.shape)))
print(f"residual {before:.0f} before, {after:.0f} after 40 products with the Jacobian")
assert after < before / 5

# %% [markdown]
# **Where to go on**: the guide's page on sparse Jacobians, and the how-to page with one argument
# for each of SciPy's solvers.
