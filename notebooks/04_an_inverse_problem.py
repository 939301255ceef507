# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # An inverse problem: what conducts the heat?
#
# A plate is heated at its left half, then at its right half, and 36 thermometers write down how
# warm it becomes. How well does the plate conduct, at each place? The unknown is a field of 28 x 28
# numbers; a guess is judged by running the plate for 1000 time steps and comparing.
#
# `scipy.optimize.minimize` finds the field, if somebody tells it the gradient: 784 numbers. By
# differences that would be 784 more runs for each gradient. Here it comes from the time-stepper as
# it stands, with its loop and its updates in place, at the price of a few runs.
#
# 1. The plate, in NumPy.
# 2. The gradient, and whether it is right.
# 3. The fit.
# 4. What the thermometers do not tell.
#
# Every number that is claimed here is asserted.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import fwdad

# %% [markdown]
# ## 1. The plate, in NumPy
#
# The temperature u obeys u' = div(k grad u) + f. In each step, what flows through the edges between
# two cells is the difference of their temperatures times the mean of their conductivities; u is
# updated in place. The rim is kept at zero. Every 20 steps the thermometers are read.
#
# The unknown is the logarithm of k, so that k is positive whatever the optimiser tries.

# %%
N, STEPS, EVERY = 28, 1000, 20
DT = 0.1  # in units of (cell width)^2 / k, stable below 0.25 / max(k)
heating = np.zeros((2, N, N))
heating[0, 4:-4, 4:9] = 0.05
heating[1, 4:-4, -9:-4] = 0.05


def run(log_k, observe):
    """Run the plate; `observe(u, j)` is the j-th reading, and the readings are added up."""
    k = np.exp(log_k)
    down = DT * 0.5 * (k[1:, 1:-1] + k[:-1, 1:-1])
    right = DT * 0.5 * (k[1:-1, 1:] + k[1:-1, :-1])
    u = np.zeros((N, N))
    total = 0.0
    for t in range(STEPS):
        u[1:-1, 1:-1] += (
            down[1:] * (u[2:, 1:-1] - u[1:-1, 1:-1])
            - down[:-1] * (u[1:-1, 1:-1] - u[:-2, 1:-1])
            + right[:, 1:] * (u[1:-1, 2:] - u[1:-1, 1:-1])
            - right[:, :-1] * (u[1:-1, 1:-1] - u[1:-1, :-2])
            + DT * heating[2 * t // STEPS, 1:-1, 1:-1]
        )
        if t % EVERY == EVERY - 1:
            total += observe(u, t // EVERY)
    return total


# %% [markdown]
# The true plate has a good conductor in one corner and a bad one in the other. The readings have
# an error of 0.3 % of the largest.

# %%
y, x = np.mgrid[0:N, 0:N] / (N - 1)
truth = 0.8 * np.exp(-((x - 0.7) ** 2 + (y - 0.3) ** 2) / 0.03)
truth -= 1.0 * np.exp(-((x - 0.3) ** 2 + (y - 0.65) ** 2) / 0.04)

readings = np.zeros((STEPS // EVERY, 6, 6))


def write_down(u, j):
    readings[j] = u[2::5, 2::5]
    return 0.0


run(truth, write_down)
ERROR = 0.003 * readings.max()
data = readings + ERROR * np.random.default_rng(0).normal(size=readings.shape)


def show(ax, field, title, **options):
    image = ax.imshow(field, origin="lower", **options)
    ax.plot(*np.mgrid[2:N:5, 2:N:5].reshape(2, -1), "k.", ms=2)
    ax.set(title=title, xticks=[], yticks=[])
    plt.colorbar(image, ax=ax, shrink=0.7)


fig, (left, middle) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
show(left, np.exp(truth), "conductivity, and thermometers")
middle.plot(EVERY * np.arange(1, len(data) + 1), data[:, 2], lw=0.8)
middle.set(xlabel="step", ylabel="temperature", title="a row of thermometers")
plt.show()

# %% [markdown]
# ## 2. The gradient, and whether it is right
#
# The misfit counts in units of the error, so that for the true field each reading adds 1/2 on the
# average. A field that is rough where no thermometer can tell is not wanted: a small term asks for
# neighbours to be alike.

# %%
ROUGHNESS = 3.0


def loss(log_k, data, roughness=ROUGHNESS):
    def misfit(u, j):
        return 0.5 * np.sum(((u[2::5, 2::5] - data[j]) / ERROR) ** 2)

    rough = np.sum((log_k[1:] - log_k[:-1]) ** 2) + np.sum((log_k[:, 1:] - log_k[:, :-1]) ** 2)
    return run(log_k, misfit) + roughness * rough


objective = fwdad.value_and_grad(loss)

flat = np.zeros((N, N))
value, gradient = objective(flat, data)
assert_allclose(value, loss(flat, data))

rng = np.random.default_rng(1)
h = 1e-5
for point in (flat, truth):
    slope = objective(point, data)[1]
    v = rng.normal(size=(N, N))
    difference = (loss(point + h * v, data) - loss(point - h * v, data)) / (2 * h)
    print(np.vdot(slope, v), difference)
    assert_allclose(np.vdot(slope, v), difference, rtol=1e-6)


def seconds(f):
    start = time.process_time()
    f(flat, data)
    return time.process_time() - start


runs = min(seconds(objective) for _ in range(3)) / min(seconds(loss) for _ in range(3))
print(f"a gradient takes as long as {runs:.1f} runs; differences would take {N * N + 1}")
assert runs < 30  # busy machines included

# %% [markdown]
# ## 3. The fit

# %%
history = []


def flattened(x):
    value, gradient = objective(x.reshape(N, N), data)
    history.append(value)
    return value, gradient.reshape(-1)


found = minimize(flattened, flat.reshape(-1), jac=True, method="L-BFGS-B", options={"maxiter": 80})
field = found.x.reshape(N, N)
print(found.message, found.nfev, found.fun)

inside = (slice(3, -3), slice(3, -3))  # the rim is at zero, whatever it conducts
distance = np.linalg.norm((field - truth)[inside]) / np.linalg.norm(truth[inside])
likeness = np.corrcoef(field[inside].reshape(-1), truth[inside].reshape(-1))[0, 1]
print(f"relative distance {distance:.3f}, correlation {likeness:.3f}")

fig, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
limits = {"vmin": truth.min(), "vmax": truth.max()}
show(axes[0], truth, "log k, true", **limits)
show(axes[1], field, "log k, found", **limits)
axes[2].semilogy(np.minimum.accumulate(history))
axes[2].axhline(data.size / 2, color="k", ls=":", label="half the number of readings")
axes[2].set(xlabel="gradients", title="loss")
axes[2].legend()
plt.show()

assert found.fun < history[0] / 20
assert abs(found.fun / (data.size / 2) - 1) < 0.15  # as good as the readings allow, not better
assert distance < 0.35
assert likeness > 0.93

# %% [markdown]
# ## 4. What the thermometers do not tell
#
# Along a direction v the misfit rises by half of v' H v: where that is small, the readings say
# little. A product with the Hessian is `hvp`, forward mode over the gradient. It tells that a
# corner of the plate, far from the heat, is known less well than the middle: the smoothness
# decides there.

# %%
bumps = {"middle": (N // 2, N // 2), "corner": (N - 1, N - 1)}
curvature = {}
for name, (i, j) in bumps.items():
    v = np.exp(-((x - j / (N - 1)) ** 2 + (y - i / (N - 1)) ** 2) / 0.004)
    v /= np.linalg.norm(v)
    Hv = fwdad.hvp(loss, field, v, args=(data, 0.0))
    curvature[name] = np.vdot(v, Hv)
    slopes = [objective(field + s * 1e-4 * v, data, 0.0)[1] for s in (1, -1)]
    assert_allclose(Hv, (slopes[0] - slopes[1]) / 2e-4, atol=1e-4 * np.abs(Hv).max())
print(curvature)
assert curvature["corner"] < curvature["middle"] / 30
