import autograd.numpy as np

SEEN = np.exp(-(np.linspace(-3, 3, 200) ** 2))


def burgers(u, steps):
    for _ in range(steps):
        change = 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) - 0.05 * u[1:-1] * (u[2:] - u[:-2])
        inner = u[1:-1] + change
        u = np.concatenate([inner[:1], inner, inner[-1:]])
    return u


def loss(u):
    return np.sum((burgers(u, 500) - SEEN) ** 2)
