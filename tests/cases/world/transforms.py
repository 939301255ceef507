"""Every way in which fwdad runs a function, by name: each is called with a function and a point."""

import numpy as np

import fwdad

V = np.array([1.0, -0.5, 0.25, 2.0, -1.0, 0.5])


def operator(f, x):
    _, J = fwdad.linearize(f, x)
    return J.matvec(V[: len(x)]), J.rmatvec(np.ones(1)), J.matmat(np.eye(len(x)))


def pulled_twice(f, x):
    _, pullback = fwdad.vjp(f, x)
    return pullback(1.0), pullback(2.0)


DERIVATIVES = {
    "jvp": lambda f, x: fwdad.jvp(f, x, V[: len(x)]),
    "jvp of three": lambda f, x: fwdad.jvp(f, x, np.eye(len(x))[:3]),
    "forward": lambda f, x: fwdad.jacobian(f, x, mode="forward"),
    "forward, chunk=1": lambda f, x: fwdad.jacobian(f, x, mode="forward", chunk=1),
    "forward, ragged": lambda f, x: fwdad.jacobian(f, x, mode="forward", chunk=4),
    "jacobian": lambda f, x: fwdad.jacobian(f, x),
    "reverse": lambda f, x: fwdad.jacobian(f, x, mode="reverse"),
    "grad": lambda f, x: fwdad.grad(f)(x),
    "value_and_grad": lambda f, x: fwdad.value_and_grad(f)(x),
    "jacfwd": lambda f, x: fwdad.jacfwd(f, chunk=2)(x),
    "jacrev": lambda f, x: fwdad.jacrev(f)(x),
    "vjp": pulled_twice,
    "linearize": operator,
    "hessian": lambda f, x: fwdad.hessian(f, x),
    "hvp": lambda f, x: fwdad.hvp(f, x, V[: len(x)]),
    "checkpoint": lambda f, x: fwdad.grad(fwdad.checkpoint(f))(x),
    "nested": lambda f, x: fwdad.jvp(lambda p: fwdad.grad(f)(p), x, V[: len(x)]),
}  # fmt: skip

LOOKS = {
    "trace": lambda f, x: fwdad.trace(f, x),
    "show": lambda f, x: fwdad.show(f, x),
    "explain": lambda f, x: fwdad.explain(fwdad.grad(f), x),
    "explain hvp": lambda f, x: fwdad.explain(fwdad.hvp, f, x, V[: len(x)]),
    "supported": lambda f, _x: fwdad.supported(f),
    "memory_report": lambda f, x: fwdad.memory_report(f, x),
}

COMPILED = {
    "jit": lambda f, x: fwdad.jit(f)(x),
    "jit, numpy": lambda f, x: fwdad.jit(f, backend="numpy")(x),
    "jit(grad)": lambda f, x: fwdad.jit(fwdad.grad(f))(x),
    "jit(grad), numpy": lambda f, x: fwdad.jit(fwdad.grad(f), backend="numpy")(x),
    "jit(jacfwd)": lambda f, x: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x),
    "jit(hessian)": lambda f, x: fwdad.jit(lambda p: fwdad.hessian(f, p), backend="numpy")(x),
}
