import numpy as np

SEEN = np.exp(-(np.linspace(-3, 3, 200) ** 2))


def burgers(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) - 0.05 * u[1:-1] * (u[2:] - u[:-2])
        u[0] = u[1]
        u[-1] = u[-2]
    return u


def loss(u):
    return np.sum((burgers(u, 500) - SEEN) ** 2)
