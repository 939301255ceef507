"""What type checkers must refuse: each line with a comment `refused`, and no other."""

import numpy as np
from numpy.typing import NDArray

import fwdad
from fwdad.reversible import reversible

Vector = NDArray[np.float64]
x = np.ones(3)


def loss(w: Vector, scale: float, *, power: int = 2) -> float:
    return float(scale * np.sum(w**power))


def line(t: float) -> float:
    return t * t


@reversible
def swing(angle: float, steps: int) -> None:
    angle += 0.1 * steps


fwdad.grad(loss)(x)  # refused
fwdad.grad(loss)(x, "2")  # refused
fwdad.grad(loss)(x, 2.0, power="3")  # refused
fwdad.grad(loss)(x, 2.0, exponent=3)  # refused
fwdad.grad(2.0)  # refused
text: str = fwdad.grad(line)(2.0)  # refused
fwdad.value_and_grad(loss)(x)  # refused
fwdad.jit(loss)(x)  # refused
fwdad.jit(loss)("x", 2.0)  # refused
fwdad.jit(loss, backend="cuda")  # refused
fwdad.jit(loss).speed  # refused
fwdad.jacobian(line, 2.0, mode="sideways")  # refused
fwdad.jacobian(line, 2.0, chunk="all")  # refused
fwdad.jacobian(line, 2.0, modus="reverse")  # refused
fwdad.jacobian(loss)(x)  # refused
fwdad.jvp(line, 2.0, 1.0, outputs="all")  # refused
fwdad.hessian(loss)(x, "2")  # refused
fwdad.derivative(line)("2")  # refused
fwdad.checkpoint(loss)(x)  # refused
fwdad.show(line, 2.0, backend="llvm")  # refused
swing.steps  # refused
fwdad.grad(swing)()  # refused
fwdad.elementwise_grad(line)  # refused
fwdad.SeedError  # refused
right: float = fwdad.grad(line)(2.0)
fwdad.grad(loss)(x, 2.0)
