import numpy as np
from scipy.integrate import solve_ivp

TIMES = np.linspace(0.0, 15.0, 31)


def population(t, y, rates):
    prey, predators = y
    return np.array(
        [
            rates[0] * prey - rates[1] * prey * predators,
            rates[2] * prey * predators - rates[3] * predators,
        ]
    )


def loss(rates):
    run = solve_ivp(
        population,
        (0.0, 15.0),
        np.array([10.0, 5.0]),
        t_eval=TIMES,
        args=(rates,),
        rtol=1e-8,
        atol=1e-8,
    )
    return np.sum((run.y[0] - 20.0) ** 2)
