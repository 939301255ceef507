import autograd.numpy as np
from autograd.builtins import tuple as boxed_tuple
from autograd.scipy.integrate import odeint

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
    run = odeint(
        population, np.array([10.0, 5.0]), TIMES, boxed_tuple((rates,)), rtol=1e-8, atol=1e-8
    )
    return np.sum((run[:, 0] - 20.0) ** 2)
