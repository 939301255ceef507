"""JAX, PyTorch, CasADi and SciPy's differences, as the tables of compiled code want them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.jit_base import Call, Inside, JitTool, Prepared, problem_of
from benchmarks.jit_problems import INPUTS, SHORT, STEP
from benchmarks.peers import NotApplicableError, Row, TorchNamespace, scipy_differences

# -- JAX


def _lorenz_jax(p: Any, steps: int) -> Any:
    """Lorenz with JAX's loop: a Python loop would be unrolled."""
    import jax

    sigma, rho, beta = p[3], p[4], p[5]

    def step(_: Any, s: Any) -> Any:
        x, y, z = s
        x_t, y_t, z_t = sigma * (y - x), x * (rho - z) - y, x * y - beta * z
        return x + STEP * x_t, y + STEP * y_t, z + STEP * z_t

    return jax.numpy.stack(jax.lax.fori_loop(0, steps, step, (p[0], p[1], p[2])))


def _jax_function(row: Row) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    problem = problem_of(row)
    if problem.name.startswith("lorenz"):
        (steps,) = problem.args  # known when it is traced, as reverse mode wants it
        return lambda p: _lorenz_jax(p, steps)
    return problem.rewrite(jax.numpy)


def _jax(mode: str) -> Callable[[Row], Prepared]:
    def prepare(row: Row) -> Prepared:
        import jax

        f = _jax_function(row)
        x = jax.numpy.asarray(row.problem.x)
        program = jax.jit(f)
        primal = lambda: jax.block_until_ready(program(x))  # noqa: E731
        if row.lanes is None:
            jac = jax.jit(getattr(jax, mode)(f))
            return Prepared(lambda: jax.block_until_ready(jac(x)), primal)
        if mode == "jacrev":
            raise NotApplicableError

        def one(x: Any, v: Any) -> Any:
            return jax.jvp(f, (x,), (v,))

        push = jax.jit(jax.vmap(one, in_axes=(None, 0), out_axes=(None, 0)))
        v = jax.numpy.asarray(row.seeds)
        return Prepared(lambda: jax.block_until_ready(push(x, v)), primal)

    return prepare


def _jax_inside(mode: str) -> Callable[[Row], Inside]:
    def prepare(row: Row) -> Inside:
        import jax

        if row.name not in SHORT:
            raise NotApplicableError
        jac = getattr(jax, mode)(_jax_function(row))
        count = 64 if row.problem.name.startswith("burgers") else 1024
        points = problem_of(row).points
        many = jax.numpy.asarray(np.tile(points, (count // INPUTS, 1)))
        run = jax.jit(lambda points: jax.lax.map(jac, points))
        return Inside(lambda _: jax.block_until_ready(run(many)), count)

    return prepare


def _warm_jax() -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))


# -- PyTorch


def _torch(row: Row) -> Prepared:
    import torch

    problem = problem_of(row)
    if problem.args:
        raise NotApplicableError  # a loop of a million steps is unrolled
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.compiler.reset()  # what it keeps belongs to code objects, which the rows share
    f, x = problem.rewrite(TorchNamespace(torch)), torch.as_tensor(problem.x)
    program = torch.compile(f)
    if row.lanes is None:
        jac = torch.compile(torch.func.jacfwd(f))
        return Prepared(lambda: jac(x), lambda: program(x))

    def one(x: Any, v: Any) -> Any:
        return torch.func.jvp(f, (x,), (v,))

    push = torch.compile(torch.func.vmap(one, in_dims=(None, 0), out_dims=(None, 0)))
    v = torch.as_tensor(row.seeds)
    return Prepared(lambda: push(x, v), lambda: program(x))


def _warm_torch() -> None:
    import torch

    torch.set_num_threads(1)
    torch.compile(lambda x: x + 1)(torch.ones(3))


# -- CasADi


class _CasadiNamespace:
    """The few names of NumPy that the programs use, for CasADi's symbols."""

    def __init__(self, casadi: Any) -> None:
        self.array = lambda items: casadi.vertcat(*items)
        self.concatenate = self.array
        self.zeros = casadi.SX.zeros


def _casadi(*, buffered: bool) -> Callable[[Row], Prepared]:
    def prepare(row: Row) -> Prepared:
        import casadi

        problem = problem_of(row)
        if row.lanes is not None or problem.args:
            raise NotApplicableError  # symbols stand for single numbers
        n = problem.x.size
        x = casadi.SX.sym("x", n)
        y = problem.rewrite(_CasadiNamespace(casadi))(x)
        program = casadi.Function("program", [x], [y])
        jac = casadi.Function("derivative", [x], [casadi.densify(casadi.jacobian(y, x))])
        if not buffered:
            return Prepared(lambda: jac(problem.x), lambda: program(problem.x))
        return Prepared(
            _buffered(jac, problem.x, n * y.shape[0]),
            _buffered(program, problem.x, y.shape[0]),
            lambda columns: columns.reshape(n, -1).T,
        )

    return prepare


def _warm_casadi() -> None:
    import casadi

    x = casadi.SX.sym("x")
    casadi.Function("trivial", [x], [x + 1])(1.0)


def _buffered(function: Any, x: np.ndarray, size: int) -> Call:
    buffer, evaluate = function.buffer()
    out = np.zeros(size)
    buffer.set_arg(0, memoryview(x))
    buffer.set_res(0, memoryview(out))

    def call(_keep: Any = buffer) -> np.ndarray:
        evaluate()
        return out

    return call


# -- SciPy's differences of the program under plain NumPy


def _scipy(row: Row) -> Prepared:
    problem = problem_of(row)
    if problem.args:
        raise NotApplicableError  # a loop of a million steps in Python
    return Prepared(scipy_differences(row), lambda: problem.function(problem.x))


PEERS = (
    *(
        JitTool(name, f"JAX {mode}", ("jax",), _jax(mode), _jax_inside(mode), _warm_jax)
        for name, mode in (("jax-fwd", "jacfwd"), ("jax-rev", "jacrev"))
    ),
    JitTool("torch", "torch.compile", ("torch",), _torch, warm=_warm_torch),
    JitTool("casadi", "CasADi", ("casadi",), _casadi(buffered=False), warm=_warm_casadi),
    JitTool(
        "casadi-buffered", "CasADi buffered", ("casadi",), _casadi(buffered=True), warm=_warm_casadi
    ),
    JitTool("scipy", "SciPy 2-point", ("scipy",), _scipy),
)
