import jax.numpy as np
from jax.experimental.ode import odeint

TIMES = np.linspace(0.0, 15.0, 31)


def population(y, t, rates):
    prey, predators = y
    return np.array(
        [
            rates[0] * prey - rates[1] * prey * predators,
            rates[2] * prey * predators - rates[3] * predators,
        ]
    )


def loss(rates):
    run = odeint(population, np.array([10.0, 5.0]), TIMES, rates, rtol=1e-8, atol=1e-8)
    return np.sum((run[:, 0] - 20.0) ** 2)
