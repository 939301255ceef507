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
# # An inverse problem: what conducts the heat?
#
# A plate is heated at its left half, then at its right half, and 36 thermometers record how warm it
# becomes. How well does the plate conduct heat, at each place? The unknown is a field of 28 × 28
# numbers; a guess is judged by simulating the plate for 1000 time steps and comparing.
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

plt.style.use("tableau-colorblind10")

# %% [markdown]
# ## 1. The plate, in NumPy
#
# The temperature obeys $\dot u = \nabla \cdot (k \nabla u) + f$. In each step, what flows through
# the edge between two cells is the difference of their temperatures times the mean of their
# conductivities; `u` is updated in place. The rim is kept at zero. Every 20 steps the thermometers
# are read.
#
# The unknown is $\log k$, so that $k$ is positive whatever the optimiser tries.

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
    image = ax.imshow(field, origin="lower", cmap="viridis", **options)
    ax.plot(*np.mgrid[2:N:5, 2:N:5].reshape(2, -1), "o", color="white", mec="black", ms=3, mew=0.5)
    ax.set(title=title, xticks=[], yticks=[])
    plt.colorbar(image, ax=ax, shrink=0.85)


fig, (left, middle) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
show(left, np.exp(truth), "true conductivity, thermometers")
middle.plot(EVERY * np.arange(1, len(data) + 1), data[:, 2], lw=1)
middle.axvline(STEPS / 2, color="0.5", ls=":")
middle.text(STEPS / 2 + 10, 0.7, "heat moves to the right half", fontsize=8)
middle.set(xlabel="time step", ylabel="temperature", title="readings of one row of thermometers")
plt.show()

# %% [markdown]
# ## 2. The gradient, and whether it is right
#
# The misfit is counted in units of the error, so for the true field each reading adds ½ on average.
# Where no thermometer can tell, the field should at least be smooth: a small term asks neighbours
# to be alike.

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
    print(f"gradient {np.vdot(slope, v):.8g}, differences {difference:.8g}")
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
#
# With the gradient at hand, SciPy's L-BFGS-B does the rest. A good fit should end near half the
# number of readings: lower would mean that it has fitted the noise.

# %%
history = []


def flattened(x):
    value, gradient = objective(x.reshape(N, N), data)
    history.append(value)
    return value, gradient.reshape(-1)


found = minimize(flattened, flat.reshape(-1), jac=True, method="L-BFGS-B", options={"maxiter": 80})
field = found.x.reshape(N, N)
print(f"{found.message}: {found.nfev} gradients, loss {found.fun:.1f}")

inside = (slice(3, -3), slice(3, -3))  # the rim is at zero, whatever it conducts
distance = np.linalg.norm((field - truth)[inside]) / np.linalg.norm(truth[inside])
correlation = np.corrcoef(field[inside].reshape(-1), truth[inside].reshape(-1))[0, 1]
print(f"relative distance {distance:.3f}, correlation {correlation:.3f}")

fig, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
limits = {"vmin": truth.min(), "vmax": truth.max()}
show(axes[0], truth, "log k: true", **limits)
show(axes[1], field, "log k: found", **limits)
axes[2].semilogy(np.minimum.accumulate(history))
axes[2].axhline(data.size / 2, color="C1", ls="--", label="half the number of readings")
axes[2].set(xlabel="gradients computed", ylabel="loss, best so far", title="the fit")
axes[2].legend()
plt.show()

assert found.fun < history[0] / 20
assert abs(found.fun / (data.size / 2) - 1) < 0.15  # as good as the readings allow, not better
assert distance < 0.35
assert correlation > 0.93

# %% [markdown]
# ## 4. What the thermometers do not tell
#
# Along a direction $v$ the misfit rises by $\tfrac12 v^T H v$: where that is small, the readings
# say little. `hvp` multiplies by the Hessian $H$, by forward mode over the gradient. It shows that
# the corner of the plate, far from the heat, is known much less well than the middle: there, only
# the wish for smoothness decides.

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
print(", ".join(f"{name}: curvature {value:.3g}" for name, value in curvature.items()))
assert curvature["corner"] < curvature["middle"] / 30
