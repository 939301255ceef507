"""Programs whose tapes are called, differentiated and pickled; other processes import them, too."""

import copy
from dataclasses import dataclass

import numpy as np

import fwdad
from fwdad.evaluation.trees import ravel
from fwdad.reversible import reversible

X = np.array([0.7, 1.2, 0.4])
SCALE = 2.0
TABLE = np.array([1.0, 0.5, 0.25])
PARAMETERS = [1.5, np.array([1.0, 2.0, 3.0])]
OPTIONS = {"k": 3.0, "mode": "sin"}


@dataclass
class Point:
    a: float
    b: np.ndarray
    name: str = "p"


class Model:
    def __init__(self):
        self.k = 2.5
        self.w = np.array([1.0, 2.0, 3.0])
        self.squared = True

    def __call__(self, x):
        return np.sum(self.w * x**2) * self.k if self.squared else x[0]

    def energy(self, x):
        return self.k * np.sum(np.cos(self.w * x))


MODEL = Model()


def helper(x):
    return np.sin(x) * SCALE


def from_outside(x):
    return np.sum(helper(x) * TABLE) + np.sum(x * PARAMETERS[1]) * PARAMETERS[0]


def by_option(x):
    return np.sum(np.sin(x)) * OPTIONS["k"] if OPTIONS["mode"] == "sin" else x[0]


def of_object(x):
    return MODEL(x) + MODEL.energy(x)


def of_point(p):
    return p.a * np.sum(p.b**2)


def of_dict(d):
    return d["a"] * np.sum(np.exp(d["b"]))


def of_list(parts):
    return parts[0] * np.sum(parts[1] * parts[2])


def loop(x):
    y = x.copy()
    for k in range(1, len(x)):
        y[k] = y[k - 1] * x[k] + np.sin(x[k])
    return np.sum(y)


def branch(x):
    if x[0] > 0:
        return np.sum(x**2)
    return np.sum(x**3)


def recursion(x):
    def product(v, k):
        return v if k < 1 else v * product(v + 1.0, k - 1.0)

    return product(x[0], x[1] * 0 + 3.0) + np.sum(x)


def writes(x, out):
    out[:] = np.sin(x)
    out[0] *= x[1]
    return np.sum(out**2)


def whole(x):
    return np.tanh(x) * 1.0


@fwdad.frule(whole)
def whole_frule(primals, tangents):
    return np.tanh(primals[0]), 7.0 * tangents[0]  # not the derivative, so that it is seen


def by_frule(x):
    return np.sum(whole(x))


def passed(x):
    return np.array(x)


@fwdad.rrule(passed)
def passed_rrule(primals):
    return np.array(primals[0]), lambda y_bar: (3.0 * y_bar,)


def by_rrule(x):
    return np.sum(passed(x) * x)


@reversible
def add_square(y, x):
    y += x * x


def undone(x):
    y, _ = add_square(0.0, x[0])
    return y * x[1]


def solved(x):
    return np.linalg.solve(np.outer(x, x) + np.eye(3), x) @ x


def put_together(x):
    return Point(np.sum(x), x * 2), {"s": [x[0], np.cos(x)], "t": (1.5, "n", None)}


def grows(x):
    squares = []
    for v in x:
        squares.append(v * v)
    return squares


SCALAR = {
    "from_outside": (X,),
    "by_option": (X,),
    "of_object": (X,),
    "of_point": (Point(2.0, X),),
    "of_dict": ({"a": 2.0, "b": X},),
    "of_list": ([2.0, X, X + 1.0],),
    "loop": (X,),
    "branch": (X,),
    "recursion": (X,),
    "writes": (X, np.zeros(3)),
    "by_frule": (X,),
    "by_rrule": (X,),
    "undone": (X,),
    "solved": (X,),
}
OTHERS = {"put_together": (X,), "grows": (X,)}


def untraceable(f):
    """The same inside a function that no tape holds."""

    def call(x, *args):
        eval("None")
        return f(x, *args)

    return call


def results(name, f):
    """Values and derivatives of one of the programs, or its tape, in every mode."""
    args = SCALAR.get(name) or OTHERS[name]

    def given():
        return copy.deepcopy(args)

    found = {
        "value": f(*given()),
        "jit": fwdad.jit(f)(*given()),
        "numpy": fwdad.jit(f, backend="numpy")(*given()),
    }
    if name not in SCALAR:
        (x,) = given()
        found["push"] = fwdad.jvp(f, x, np.ones(3))[1]
        return {key: list(map(float, ravel(y)[0])) for key, y in found.items()}
    x, *more = given()
    more = tuple(more)
    found["grad"] = fwdad.grad(f)(*given())
    found["compiled grad"] = fwdad.jit(fwdad.grad(f))(*given())
    found["grad of compiled"] = fwdad.grad(fwdad.jit(f))(*given())
    found["vjp"] = fwdad.vjp(f, x, args=more)[1](1.0)
    found["derivative of a part"] = fwdad.grad(untraceable(f))(*given())
    if isinstance(x, np.ndarray):
        found["jvp"] = fwdad.jvp(f, x, X, args=more)[1]
        found["K directions"] = fwdad.jvp(f, x, np.eye(3)[:2], args=more)[1]
        found["hessian"] = fwdad.hessian(f, x, args=more)
        found["compiled hessian"] = fwdad.hessian(fwdad.jit(f), x, args=more)
        found["columns of a part"] = fwdad.jacfwd(untraceable(f))(x, *more)
    return {key: list(map(float, ravel(y)[0])) for key, y in found.items()}
