"""Programs that no peer can run: they write into arrays, take and return structures."""

import numpy as np


def burgers(u, rate=0.1):
    """A step in place."""
    u = u.copy()
    u[1:-1] -= rate * u[1:-1] * (u[2:] - u[:-2])
    return u


def burgers_jacobian(u, rate=0.1):
    """The Jacobian of a step, by hand."""
    J = np.eye(len(u))
    for k in range(1, len(u) - 1):
        J[k, k] -= rate * (u[k + 1] - u[k - 1])
        J[k, k + 1] -= rate * u[k]
        J[k, k - 1] += rate * u[k]
    return J


def model(params, power, places):
    """Structures in, structures out, ints on both sides."""
    wave = params["w"] * np.sin(params["b"]) ** power
    return {"wave": wave, "n": power, "sums": (np.sum(wave[places] ** 2), "text"), "at": places + 1}


def loss(params, power, places):
    """One number of a model."""
    y = model(params, power, places)
    return y["sums"][0] * np.sum(y["wave"])


def loss_gradient(params, power, places):
    """The gradient of the loss, by hand."""
    w, b = params["w"], params["b"]
    s = np.sin(b) ** power
    mask = np.zeros(len(w))
    mask[places] = 1.0
    squares, total = np.sum(mask * w**2), np.sum(w)
    slope = 3 * squares * total * np.sin(b) ** (3 * power - 1) * power * np.cos(b)
    return {"w": s**3 * (2 * mask * w * total + squares), "b": slope}


def twice(u):
    """One array at two places."""
    squares = u**2
    return squares, [squares]


U = np.linspace(0.0, 1.0, 6) ** 2
W = np.array([1.0, 2.0, 3.0])
B = 0.7
PLACES = np.array([0, 2])
