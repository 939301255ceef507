"""Small models, as people have them: filters, fits, solvers, SciPy's own Python."""

import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.optimize

from tests.cases.check import programs
from tests.differences import difference_along

MODELS, model = programs()


OBSERVED = np.array([0.3, 0.9, 1.1, 1.9, 2.2, 3.1, 3.3])


@model(np.array([-1.0, -0.5, 0.2]), products=True, rtol=1e-7)
def kalman_filter(parameters):
    """Negative log-likelihood of a local linear trend, with the last state."""
    log_q, log_r, drift = parameters
    f = np.array([[1.0, 1.0], [0.0, 1.0]])
    h = np.array([[1.0, 0.0]])
    q = np.exp(log_q) * np.array([[0.3, 0.1], [0.1, 0.2]])
    r = np.array([[np.exp(log_r)]])
    state, p = np.array([0.0, drift]), np.eye(2)
    loss = 0.0
    for observed in OBSERVED:
        state = f @ state
        p = f @ p @ f.T + q
        innovation = observed - h @ state
        s = h @ p @ h.T + r
        gain = np.linalg.solve(s, h @ p).T
        state = state + gain @ innovation
        p -= gain @ s @ gain.T
        loss += 0.5 * (np.linalg.slogdet(s)[1] + (innovation @ np.linalg.solve(s, innovation)))
    return np.array([loss, *state])


@model(np.array([1.3, 0.2]), products=True)
def newton_on_a_residual(parameters):
    """Bratu's problem u'' + lambda exp(u) = 0 on 15 points, by Newton with a dense Jacobian."""
    rate, left = parameters
    n, h = 15, 1 / 16
    u = np.zeros(n)
    lower = np.eye(n, k=-1) + np.eye(n, k=1) - 2 * np.eye(n)
    for _ in range(30):
        padded = np.concatenate(([left], u, [0.0]))
        residual = (padded[2:] - 2 * padded[1:-1] + padded[:-2]) / h**2 + rate * np.exp(u)
        if np.linalg.norm(residual) < 1e-9:
            break
        u = u - np.linalg.solve(lower / h**2 + np.diag(rate * np.exp(u)), residual)
    # one step beyond the test, so that the derivative has converged too
    padded = np.concatenate(([left], u, [0.0]))
    residual = (padded[2:] - 2 * padded[1:-1] + padded[:-2]) / h**2 + rate * np.exp(u)
    return u - np.linalg.solve(lower / h**2 + np.diag(rate * np.exp(u)), residual)


TIMES = np.linspace(0.0, 2.0, 9)


@model(np.array([2.0, 1.1, 0.4, 2.5]), products=True, rtol=1e-6)
def fit_with_bounds(truth):
    """Projected Gauss-Newton for a exp(-b t) + c, c at its bound; a function of the data."""
    data = truth[0] * np.exp(-truth[1] * TIMES) + truth[2] + 0.05 * np.cos(truth[3] * TIMES)
    low, high = np.array([0.0, 0.0, 0.0]), np.array([5.0, 5.0, 0.3])
    p = np.array([1.0, 1.0, 0.1])
    for _ in range(40):
        decay = np.exp(-p[1] * TIMES)
        residual = p[0] * decay + p[2] - data
        jacobian = np.column_stack((decay, -p[0] * TIMES * decay, np.ones_like(TIMES)))
        gradient = jacobian.T @ residual
        free = ~(((p <= low) & (gradient > 0)) | ((p >= high) & (gradient < 0)))
        step = np.zeros(3)
        step[free] = np.linalg.lstsq(jacobian[:, free], -residual, rcond=None)[0]
        p = np.clip(p + step, low, high)
    return p


CONFIG = {
    "layers": [
        {"kind": "dense", "shape": (3, 2), "activation": "tanh"},
        {"kind": "scale", "by": 0.5},
        {"kind": "dense", "shape": (1, 3), "activation": "identity", "bias": True},
    ],
    "loss": {"name": "squared", "weight": 1e-1, "on": ("dense",)},
}
ACTIVATIONS = {"tanh": np.tanh, "identity": lambda v: v}


@model(np.array([0.5, -0.3, 0.8, 0.1, 0.7, -1.1, 0.2, 0.4, -0.6, 0.9]), products=True)
def model_configured_by_a_dict(weights):
    at, penalty = 0, 0.0
    v = np.array([[0.3, -0.5], [1.0, 0.7]])
    for layer in CONFIG["layers"]:
        options = {key: value for key, value in layer.items() if key != "kind"}
        if layer["kind"] == "scale":
            v = v * options["by"]
            continue
        rows, columns = options["shape"]
        w = weights[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns
        v = w @ v
        if options.get("bias"):
            v = v + weights[at]
            at += 1
        v = ACTIVATIONS[options["activation"]](v)
        if layer["kind"] in CONFIG["loss"]["on"]:
            penalty += CONFIG["loss"]["weight"] * np.sum(w**2)
    return np.sum(v**2) + penalty


@model(np.array([0.7, 0.2, 1.4]), products=True)
def implicit_heat(parameters):
    """Ten implicit Euler steps of a banded system, written into one work array."""
    diffusivity, source, width = parameters
    n = 8
    grid = np.linspace(0.0, 1.0, n)
    u = np.exp(-(((grid - 0.5) / (0.2 * width)) ** 2))
    bands = np.empty((3, n))
    bands[0], bands[2] = -diffusivity, -diffusivity
    bands[1] = 1 + 2 * diffusivity
    history = np.empty((11, n))
    history[0] = u
    for step in range(10):
        u = scipy.linalg.solve_banded((1, 1), bands, u + 0.01 * source * grid)
        history[step + 1] = u
    return history[::5].ravel()


@model(np.array([0.2, 0.5, 0.3, 0.4]), products=True)
def markov_chain(rates):
    p = np.array([[1 - rates[0], rates[0]], [rates[1], 1 - rates[1]]])
    steady = np.linalg.matrix_power(p, 5)[0]
    cached = {}

    def expected(state, left):
        if left == 0:
            return rates[2 + state]
        if (state, left) not in cached:
            row = p[state]
            cached[state, left] = sum(row[j] * expected(j, left - 1) for j in range(2)) * 0.9
        return cached[state, left]

    return np.array([*steady, expected(0, 6), expected(1, 4)])


@model(np.array([0.9, -0.4, 0.3, 0.9]), products=True)
def two_body_leapfrog(initial):
    position, velocity = initial[:2].copy(), initial[2:].copy()
    trajectory = []
    dt = 0.05
    for _ in range(40):
        velocity -= 0.5 * dt * position / np.sqrt(np.sum(position**2)) ** 3
        position += dt * velocity
        velocity -= 0.5 * dt * position / np.sqrt(np.sum(position**2)) ** 3
        trajectory.append(position.copy())
    energy = 0.5 * np.sum(velocity**2) - 1 / np.linalg.norm(position)
    return np.array([energy, *trajectory[9], *trajectory[-1]])


# -- SciPy's own Python


@model(2.0, rtol=1e-10, jacobian=lambda x: 1 / (2 * np.sqrt(x)))
def newton_with_fprime(x):
    return scipy.optimize.newton(lambda z: z * z - x, 1.5, fprime=lambda z: 2 * z, tol=1e-14)


@model(2.0, rtol=1e-8, jacobian=lambda x: 1 / (3 * np.cbrt(x) ** 2))
def newton_by_secants(x):
    return scipy.optimize.newton(lambda z: z**3 - x, 1.2, tol=1e-13)


def quadrature_exact(x):
    """Integral of exp(-x t) sin(t) over (0, 2), and its derivative by differences."""

    def exact(x):
        return (1 - np.exp(-2 * x) * (x * np.sin(2.0) + np.cos(2.0))) / (x * x + 1)

    return difference_along(exact, x)


@model(0.7, rtol=1e-8, jacobian=quadrature_exact)
def quadrature(x):
    return scipy.integrate.quad_vec(lambda t: np.exp(-x * t) * np.sin(t), 0.0, 2.0, epsrel=1e-12)[0]
