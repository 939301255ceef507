"""What type checkers must find: the types of what the public functions return."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import fwdad
from fwdad.reversible import reversible

Vector = NDArray[np.float64]
Float1D = np.ndarray[tuple[int], np.dtype[np.float64]]
Float2D = np.ndarray[tuple[int, int], np.dtype[np.float64]]

x: Float1D = np.ones(3)
square: Float2D = np.ones((3, 3))


def loss(w: Vector, scale: float, *, power: int = 2) -> float:
    return float(scale * np.sum(w**power))


def with_aux(w: Vector) -> tuple[float, str]:
    return float(w[0]), "said"


def field(w: Vector, k: float = 1.0) -> Vector:
    return k * w


def line(t: float) -> float:
    return t * t


class Model:
    def energy(self, w: Vector, k: int = 1) -> float:
        return float(k * w[0])

    @fwdad.jit
    def step(self, w: Vector, k: int = 1) -> Vector:
        return w * k


# -- gradients have the type of the argument, and take f's other arguments

assert_type(fwdad.grad(loss)(x, 2.0), Float1D)
assert_type(fwdad.grad(loss)(x, 2.0, power=3), Float1D)
assert_type(fwdad.grad(loss, 1)(x, 2.0), float)
assert_type(fwdad.grad(loss, argnums=(0, 1))(x, 2.0), tuple[Float1D, float])
assert_type(fwdad.grad(with_aux, has_aux=True)(x), tuple[Float1D, str])
assert_type(fwdad.grad(line)(2.0), float)
assert_type(fwdad.grad(fwdad.grad(line))(2.0), float)
assert_type(fwdad.grad(Model().energy)(x, 3), Float1D)
assert_type(fwdad.grad(lambda w: np.sum(w))(x), Float1D)
assert_type(fwdad.value_and_grad(loss)(x, 2.0), tuple[float, Float1D])
assert_type(fwdad.value_and_grad(loss, 1)(x, 2.0), tuple[float, float])
assert_type(fwdad.value_and_grad(loss, (0, 1))(x, 2.0), tuple[float, tuple[Float1D, float]])
assert_type(fwdad.value_and_grad(with_aux, has_aux=True)(x), tuple[tuple[float, str], Float1D])

# -- jit keeps f's signature, and has what a function under jit has

assert_type(fwdad.jit(loss)(x, 2.0, power=3), float)
assert_type(fwdad.jit(backend="numpy")(loss)(x, 2.0), float)
assert_type(fwdad.jit(fwdad.grad(loss))(x, 2.0), Float1D)
assert_type(fwdad.jit(loss).traces, int)
assert_type(fwdad.jit(loss).backend, str)
assert_type(fwdad.cache_info(fwdad.jit(loss)).hits, int)
assert_type(Model().step(x, 2), Vector)

# -- Jacobians

Matrix = np.ndarray[Any, np.dtype[Any]]
assert_type(fwdad.jacobian(field, x), Matrix)
assert_type(fwdad.jacobian(field, x, args=(2.0,), mode="reverse", chunk=3), Matrix)
assert_type(fwdad.jacobian(field)(x, 2.0), Matrix)
assert_type(fwdad.jacobian(line, 2.0), float)
assert_type(fwdad.jacobian(line)(2.0), float)
assert_type(fwdad.jacobian(loss, x, args=(2.0,)), Matrix)
assert_type(fwdad.value_and_jacobian(field, x), tuple[Vector, Matrix])
assert_type(fwdad.value_and_jacobian(line, 2.0), tuple[float, float])
assert_type(fwdad.jacfwd(field)(x, 2.0), Matrix)
assert_type(fwdad.jacrev(field)(x, k=2.0), Matrix)
assert_type(fwdad.jacrev(line)(2.0), float)
assert_type(fwdad.hessian(loss)(x, 2.0), Matrix)
assert_type(fwdad.hessian(loss, x, args=(2.0,)), Matrix)
assert_type(fwdad.hessian(line, 2.0), float)
assert_type(fwdad.hvp(loss)(x, x, 2.0), np.ndarray[Any, np.dtype[np.float64]])
assert_type(fwdad.hvp(line, 2.0, 1.0), float)
assert_type(fwdad.derivative(line, 2.0), float)
assert_type(fwdad.derivative(line)(2.0), float)
assert_type(fwdad.derivative(field)(x, k=2.0), Vector)

# -- products with Jacobians

assert_type(fwdad.jvp(line, 2.0, 1.0), tuple[float, float])
assert_type(fwdad.jvp(field, x, x), tuple[Vector, Matrix])
y, pull = fwdad.vjp(field, x)
assert_type(y, Vector)
assert_type(pull(y), Float1D)
number, pull_both = fwdad.vjp(loss, x, 2.0)
assert_type(number, float)
assert_type(pull_both(1.0), tuple[Float1D, float])
value, J = fwdad.linearize(field, x)
assert_type(value, Vector)
assert_type(J.matvec(x), NDArray[Any])
assert_type(J.rmatmat(np.eye(3)), NDArray[Any])

# -- the rest

assert_type(fwdad.stop_gradient(x), Float1D)
assert_type(fwdad.checkpoint(loss)(x, 2.0), float)
assert_type(fwdad.checkpoint(snapshots=3)(loss)(x, 2.0, power=1), float)
assert_type(fwdad.__version__, str)
assert_type(fwdad.supported(np.sin).reason, str)


@fwdad.frule(line)
def line_frule(primals: tuple[float], tangents: tuple[Any]) -> tuple[float, Any]:
    return line(primals[0]), 2 * primals[0] * tangents[0]


assert_type(line_frule((2.0,), (1.0,)), tuple[float, Any])


@fwdad.rrule(loss)
def loss_rrule(primals: tuple[Vector, float]) -> tuple[float, Any]:
    return 1.0, lambda y_bar: (y_bar, 0.0)


assert_type(loss_rrule((x, 2.0)), tuple[float, Any])


@reversible
def swing(angle: float, speed: float, steps: int) -> None:
    for _ in range(steps):
        angle += 0.1 * speed


swing(1.0, 0.0, 10)
(~swing)(1.0, 0.0, steps=10)
swing(1.0, 0.0, 10, inplace=True)
assert_type(fwdad.grad(swing)(1.0, 0.0, 10), float)

# -- what is written into an array that is given has its type

assert_type(fwdad.hessian(loss, x, args=(2.0,), out=np.ones((3, 3))), Any)
assert_type(fwdad.jit(loss).bind(x, 2.0)(), float)
assert_type(fwdad.jit(fwdad.grad(loss)).bind(x, 2.0)(), Float1D)
assert_type(fwdad.jit(fwdad.grad(loss)).bind(x, 2.0, out=np.ones(3))(), Float1D)
assert_type(fwdad.grad(loss)(x, 2.0, out=x), Float1D)
assert_type(fwdad.grad(fwdad.jit(loss))(x, 2.0, out=x), Float1D)
fwdad.jit(fwdad.grad(loss))(x, 2.0, out=x)
assert_type(fwdad.value_and_grad(loss)(x, 2.0, out=x), tuple[float, Float1D])
assert_type(fwdad.jacfwd(field)(x, out=square), Float2D)
assert_type(fwdad.hessian(loss)(x, 2.0, out=square), Float2D)
assert_type(fwdad.jit(fwdad.grad(loss))(x, 2.0), Float1D)
