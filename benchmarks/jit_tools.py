"""What compiles: fwdad, code written by hand for Numba, JAX, PyTorch and CasADi, and differences.

A tool gets a row and gives a call from Python, with its arguments made beforehand, and the call of
its own compiled program without a derivative. Some give a loop inside compiled code as well.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.jit_problems import INPUTS, SHORT, STEP, JitProblem
from benchmarks.peers import NotApplicableError, Row, TorchNamespace, scipy_differences

Call = Callable[[], Any]


@dataclass(frozen=True)
class Prepared:
    """The calls of one tool on one row."""

    call: Call  # answers the Jacobian, or (y, y_dot)
    primal: Call | None = None  # the tool's own program without a derivative
    read: Callable[[Any], Any] = lambda answer: answer  # what is not part of the time


@dataclass(frozen=True)
class Inside:
    """A loop in compiled code over ``INPUTS`` points: ``loop(count)`` evaluates ``count`` times."""

    loop: Callable[[int], Any]
    count: int


@dataclass(frozen=True)
class JitTool:
    """A way to compile derivatives."""

    name: str
    title: str
    needs: tuple[str, ...]  # packages that must be importable
    prepare: Callable[[Row], Prepared]
    inside: Callable[[Row], Inside] | None = None
    warm: Callable[[], Any] = lambda: None  # what a process has done before first calls are timed

    def is_installed(self) -> bool:
        """Whether its packages can be imported."""
        try:
            for name in self.needs:
                importlib.import_module(name)
        except ImportError:
            return False
        return True


def problem_of(row: Row) -> JitProblem:
    """The row's problem, with its arguments that are not differentiated."""
    assert isinstance(row.problem, JitProblem)
    return row.problem


def _count(row: Row) -> int:
    """How many evaluations a loop makes: about a millisecond of them."""
    return 64 if row.problem.name.startswith("burgers") else 8192


def numba_loop(f: Callable[..., Any], row: Row, more: tuple[Any, ...] = ()) -> Inside:
    """A compiled loop around ``f(point, *more)``, which answers an array."""
    from numba import njit

    if row.name not in SHORT:
        raise NotApplicableError
    points, mask = problem_of(row).points, INPUTS - 1
    matrix = f(points[0], *more).ndim == 2

    @njit
    def loop(points, count, more):
        total = 0.0
        for i in range(count):
            y = f(points[i & mask], *more)
            # a result that nobody reads may vanish; no `ravel`, which copies some layouts
            total += y[i & 1, 1] if matrix else y[i & 1]
        return total

    return Inside(lambda count: loop(points, count, more), _count(row))


def _warm_numba() -> None:
    from numba import njit

    njit(lambda x: x + 1)(1.0)


# -- fwdad


def fwdad_functions(row: Row) -> tuple[Any, Any, tuple[Any, ...]]:
    """The compiled derivative, the compiled program, and the derivative's arguments."""
    import fwdad

    problem = problem_of(row)
    f, x, args = problem.function, problem.x, problem.args
    if row.lanes is None:
        return fwdad.jit(fwdad.jacfwd(f)), fwdad.jit(f), (x, *args)

    def push(x, v, *args):
        return fwdad.jvp(f, x, v, args=args)

    return fwdad.jit(push), fwdad.jit(f), (x, row.seeds, *args)


def _fwdad(row: Row) -> Prepared:
    derivative, program, given = fwdad_functions(row)
    problem = problem_of(row)
    return Prepared(lambda: derivative(*given), lambda: program(problem.x, *problem.args))


def _fwdad_inside(row: Row) -> Inside:
    """The function that ``jit`` compiles, without the entry that Python calls."""
    from numba import njit

    import fwdad
    from fwdad.backends.entry import compile_program
    from fwdad.tape.passes import optimise

    if row.name not in SHORT:
        raise NotApplicableError
    x = problem_of(row).x
    tape = fwdad.trace(fwdad.jacfwd(problem_of(row).function), x)
    optimise(tape.program)
    made = compile_program(tape.program)
    leaves = tape.leaves([x])
    made.call(*leaves)
    if made.left:
        raise made.left[0]
    kernel = made.kernel

    @njit
    def derivative(y, *constants):
        return kernel(y, *constants)[0]

    return numba_loop(derivative, row, tuple(leaves[1:]))


# -- Numba by hand


def hand_functions(row: Row, style: str) -> tuple[Any, Any]:
    """The hand-written derivative in a style, and the hand-written program.

    Styles are "lanes" (SIMD values), "loops" (plain loops), "entries" (formulas for entries).
    """
    family, jacobian = row.problem.name.partition("-")[0], row.lanes is None
    found: dict[str, Any] = {}
    program = None
    if family == "pollu" and jacobian:
        from benchmarks import hand_pollu as pollu

        found = {"lanes": pollu.lanes, "loops": pollu.loops, "entries": pollu.entries}
        program = pollu.primal
    elif family == "array":
        from benchmarks import hand_array as array

        found = {"lanes": array.lanes, "loops": array.loops}
        program = array.primal_loops if style == "loops" else array.primal
    else:
        from benchmarks import hand_small as small

        if family == "rober" and jacobian:
            found = {"lanes": small.rober_lanes, "entries": small.rober_entries}
            program = small.rober_primal
        elif family == "burgers" and jacobian:  # the bands are known: nothing to push by lanes
            found, program = {"lanes": small.burgers_bands}, small.burgers_primal
        elif family == "lorenz" and jacobian:
            found = {"lanes": small.lorenz_jacobian_lanes, "loops": small.lorenz_jacobian_loops}
            program = small.lorenz_primal
        elif family == "lorenz" and row.lanes == 8:
            found = {"lanes": small.lorenz_lanes, "loops": small.lorenz_loops}
            program = small.lorenz_primal
    if program is None:
        raise NotApplicableError
    return found.get(style), program


def _hand(style: str) -> Callable[[Row], Prepared]:
    def prepare(row: Row) -> Prepared:
        derivative, program = hand_functions(row, style)
        if derivative is None:
            raise NotApplicableError
        problem = problem_of(row)
        x, args = problem.x, problem.args
        given = (x, *args) if row.lanes is None else (x, row.seeds, *args)
        return Prepared(lambda: derivative(*given), lambda: program(x, *args))

    return prepare


def _hand_inside(style: str) -> Callable[[Row], Inside]:
    def prepare(row: Row) -> Inside:
        derivative, program = hand_functions(row, style if style != "primal" else "lanes")
        chosen = program if style == "primal" else derivative
        if chosen is None:
            raise NotApplicableError
        return numba_loop(chosen, row)

    return prepare


def _hand_primal(row: Row) -> Prepared:
    program = hand_functions(row, "lanes")[1]
    problem = problem_of(row)
    return Prepared(lambda: program(problem.x, *problem.args))


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


NUMBA = ("numba",)
JIT_TOOLS = {
    tool.name: tool
    for tool in (
        JitTool(
            "primal", "Numba primal by hand", NUMBA, _hand_primal, _hand_inside("primal"),
            _warm_numba,
        ),
        JitTool("fwdad", "fwdad", NUMBA, _fwdad, _fwdad_inside, _warm_numba),
        *(
            JitTool(name, title, NUMBA, _hand(style), _hand_inside(style), _warm_numba)
            for name, title, style in (
                ("hand", "by hand, SIMD lanes", "lanes"),
                ("hand-loops", "by hand, loops", "loops"),
                ("hand-entries", "by hand, entries", "entries"),
            )
        ),
        *(
            JitTool(name, f"JAX {mode}", ("jax",), _jax(mode), _jax_inside(mode), _warm_jax)
            for name, mode in (("jax-fwd", "jacfwd"), ("jax-rev", "jacrev"))
        ),
        JitTool("torch", "torch.compile", ("torch",), _torch, warm=_warm_torch),
        JitTool("casadi", "CasADi", ("casadi",), _casadi(buffered=False)),
        JitTool("casadi-buffered", "CasADi buffered", ("casadi",), _casadi(buffered=True)),
        JitTool("scipy", "SciPy 2-point", ("scipy",), _scipy),
    )
}  # fmt: skip
