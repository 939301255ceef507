"""fwdad and code written by hand for Numba, and everything else that the tables hold.

A tool gets a row and gives a call from Python, with its arguments made beforehand, and the call of
its own compiled program without a derivative. Some give a loop inside compiled code as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.jit_base import (
    Inside,
    JitTool,
    Prepared,
    numba_loop,
    problem_of,
    warm_numba,
)
from benchmarks.jit_peers import PEERS
from benchmarks.jit_problems import SHORT
from benchmarks.peers import NotApplicableError, Row

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


def explained(row: Row) -> str:
    """What runs fwdad's derivative, in its own words."""
    import fwdad

    try:
        derivative, _, given = fwdad_functions(row)
        return " ".join(fwdad.explain(derivative, *given).split())
    except Exception as problem:
        return f"failed: {type(problem).__name__}"


def _warm_fwdad() -> None:
    """One trivial function of Numba's, and the backend's modules, which ``jit`` imports late."""
    import fwdad.codegen.call_entry  # noqa: F401

    warm_numba()


def _fwdad(row: Row) -> Prepared:
    derivative, program, given = fwdad_functions(row)
    problem = problem_of(row)
    return Prepared(lambda: derivative(*given), lambda: program(problem.x, *problem.args))


def _fwdad_inside(row: Row) -> Inside:
    """The function that ``jit`` compiles, without the entry that Python calls."""
    from numba import njit

    import fwdad
    from fwdad.codegen.call_entry import compile_program
    from fwdad.transforms.passes import optimise

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


NUMBA = ("numba",)
JIT_TOOLS = {
    tool.name: tool
    for tool in (
        JitTool(
            "primal", "Numba primal by hand", NUMBA, _hand_primal, _hand_inside("primal"),
            warm_numba,
        ),
        JitTool("fwdad", "fwdad", NUMBA, _fwdad, _fwdad_inside, _warm_fwdad),
        *(
            JitTool(name, title, NUMBA, _hand(style), _hand_inside(style), warm_numba)
            for name, title, style in (
                ("hand", "by hand, SIMD lanes", "lanes"),
                ("hand-loops", "by hand, loops", "loops"),
                ("hand-entries", "by hand, entries", "entries"),
            )
        ),
        *PEERS,
    )
}  # fmt: skip
