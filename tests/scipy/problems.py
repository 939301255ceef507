"""Published problems, with the solutions that were published."""

import numpy as np

# -- NIST/ITL StRD, nonlinear regression: data, starting values, certified parameters and residual
# sums of squares (https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml)


def misra1a(x, b1, b2):
    return b1 * (1 - np.exp(-b2 * x))


def mgh09(x, b1, b2, b3, b4):
    return b1 * (x**2 + x * b2) / (x**2 + x * b3 + b4)


def thurber(x, b1, b2, b3, b4, b5, b6, b7):
    return (b1 + b2 * x + b3 * x**2 + b4 * x**3) / (1 + b5 * x + b6 * x**2 + b7 * x**3)


MISRA1A = (
    [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1,
     760.0],
    [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47,
     81.78],
)  # fmt: skip
MGH09 = (
    [4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625],
    [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246],
)
THURBER = (
    [-3.067, -2.981, -2.921, -2.912, -2.840, -2.797, -2.702, -2.699, -2.633, -2.481, -2.363,
     -2.322, -1.501, -1.460, -1.274, -1.212, -1.100, -1.046, -0.915, -0.714, -0.566, -0.545,
     -0.400, -0.309, -0.109, -0.103, 0.010, 0.119, 0.377, 0.790, 0.963, 1.006, 1.115, 1.572,
     1.841, 2.047, 2.200],
    [80.574, 84.248, 87.264, 87.195, 89.076, 89.608, 89.868, 90.101, 92.405, 95.854, 100.696,
     101.060, 401.672, 390.724, 567.534, 635.316, 733.054, 759.087, 894.206, 990.785, 1090.109,
     1080.914, 1122.643, 1178.351, 1260.531, 1273.514, 1288.339, 1327.543, 1353.863, 1414.509,
     1425.208, 1421.384, 1442.962, 1464.350, 1468.705, 1447.894, 1457.628],
)  # fmt: skip

# model, data, both starts, certified parameters, their standard deviations, residual sum of squares
STRD = {
    "Misra1a": (
        misra1a,
        MISRA1A,
        [(500, 0.0001), (250, 0.0005)],
        [2.3894212918e02, 5.5015643181e-04],
        [2.7070075241e00, 7.2668688436e-06],
        1.2455138894e-01,
    ),
    "MGH09": (
        mgh09,
        MGH09,
        [(25, 39, 41.5, 39), (0.25, 0.39, 0.415, 0.39)],
        [1.9280693458e-01, 1.9128232873e-01, 1.2305650693e-01, 1.3606233068e-01],
        [1.1435312227e-02, 1.9633220911e-01, 8.0842031232e-02, 9.0025542308e-02],
        3.0750560385e-04,
    ),
    "Thurber": (
        thurber,
        THURBER,
        [(1000, 1000, 400, 40, 0.7, 0.3, 0.03), (1300, 1500, 500, 75, 1, 0.4, 0.05)],
        [1.2881396800e03, 1.4910792535e03, 5.8323836877e02, 7.5416644291e01,
         9.6629502864e-01, 3.9797285797e-01, 4.9727297349e-02],
        [4.6647963344e00, 3.9571156086e01, 2.8698696102e01, 5.5675370270e00,
         3.1333340687e-02, 1.4984928198e-02, 6.5842344623e-03],
        5.6427082397e03,
    ),
}  # fmt: skip


# -- Hock and Schittkowski (1981), "Test Examples for Nonlinear Programming Codes"
# f, equalities, inequalities (>= 0), bounds, start, f at the solution

SQRT2 = np.sqrt(2.0)
HOCK_SCHITTKOWSKI = {
    6: (
        lambda x: (1 - x[0]) ** 2,
        lambda x: [10 * (x[1] - x[0] ** 2)],
        None,
        None,
        [-1.2, 1],
        0.0,
    ),
    39: (
        lambda x: -x[0],
        lambda x: [x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2],
        None,
        None,
        [2, 2, 2, 2],
        -1.0,
    ),
    40: (
        lambda x: -x[0] * x[1] * x[2] * x[3],
        lambda x: [x[0] ** 3 + x[1] ** 2 - 1, x[0] ** 2 * x[3] - x[2], x[3] ** 2 - x[1]],
        None,
        None,
        [0.8, 0.8, 0.8, 0.8],
        -0.25,
    ),
    71: (
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        lambda x: np.sum(x**2) - 40,
        lambda x: np.prod(x) - 25,
        [(1, 5)] * 4,
        [1, 5, 5, 1],
        17.0140173,
    ),
    77: (
        lambda x: (
            (x[0] - 1) ** 2
            + (x[0] - x[1]) ** 2
            + (x[2] - 1) ** 2
            + (x[3] - 1) ** 4
            + (x[4] - 1) ** 6
        ),
        lambda x: np.array(
            [
                x[0] ** 2 * x[3] + np.sin(x[3] - x[4]) - 2 * SQRT2,
                x[1] + x[2] ** 4 * x[3] ** 2 - 8 - SQRT2,
            ]
        ),
        None,
        None,
        [2, 2, 2, 2, 2],
        0.24150513,
    ),
    78: (
        lambda x: np.prod(x),
        lambda x: (
            np.sum(x**2) - 10,
            x[1] * x[2] - 5 * x[3] * x[4],
            x[0] ** 3 + x[1] ** 3 + 1,
        ),
        None,
        None,
        [-2, 1.5, 2, -1, -1],
        -2.91970041,
    ),
}


def powell_singular(x):
    """Its Jacobian is singular at the root, which is 0 (Powell 1962)."""
    return [
        x[0] + 10 * x[1],
        np.sqrt(5.0) * (x[2] - x[3]),
        (x[1] - 2 * x[2]) ** 2,
        np.sqrt(10.0) * (x[0] - x[3]) ** 2,
    ]


# -- Stiff equations: Hairer and Wanner (1996), "Solving Ordinary Differential Equations II", with
# the reference solutions of the Test Set for IVP Solvers


def robertson(t, y):
    made, burnt = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [-made, made - burnt, burnt]


def robertson_jac(t, y):
    return [
        [-0.04, 1e4 * y[2], 1e4 * y[1]],
        [0.04, -1e4 * y[2] - 6e7 * y[1], -1e4 * y[1]],
        [0, 6e7 * y[1], 0],
    ]


ROBERTSON_END = [0.2083340149701255e-07, 0.8333360770334713e-13, 0.9999999791665050e00]


def hires(t, y):
    """Morphogenesis of plants: eight reactions in which light takes part."""
    rate = 280 * y[5] * y[7]
    return np.array(
        [
            -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -rate + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
            rate - 1.81 * y[6],
            -rate + 1.81 * y[6],
        ]
    )


HIRES_START = [1, 0, 0, 0, 0, 0, 0, 0.0057]
HIRES_END = [
    0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
    0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2,
]  # fmt: skip


def counted(f):
    """f, and a list that grows by one at each of its runs, those for derivatives included."""
    runs = []

    def run(*args, **kwargs):
        runs.append(1)
        return f(*args, **kwargs)

    return run, runs
