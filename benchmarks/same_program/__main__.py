"""What runs as it is, and how long it takes: ``python -m benchmarks.same_program``.

Each program is tried as it is, with only ``np`` changed for JAX and autograd. Where that fails, the
tool gets a version of its own, whose lines are counted that are not in the original. Value and
gradient are checked against differences of high order before they are timed.
"""

from __future__ import annotations

import difflib
import importlib
import json
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Timing, time_interleaved
from benchmarks.table import duration, machine, table, versions

HERE = Path(__file__).parent
ROUNDS, ROUND_SECONDS = 9, 0.05

Call = Callable[[], Any]


@dataclass
class Problem:
    """A program, where its gradient is taken, and what it is."""

    name: str
    title: str
    x: np.ndarray
    tolerance: float = 1e-6  # of a slope, relative; adaptive solvers agree to their own


PROBLEMS = [
    Problem("diffusion", "time steps in place, 200 unknowns", np.linspace(0.2, 1.0, 200)),
    Problem("predators", "`solve_ivp`, 4 rate constants", np.array([1.1, 0.4, 0.1, 0.4]), 1e-4),
    Problem(
        "cholesky",
        "a factorisation in place, 80 coordinates",
        np.random.default_rng(1).normal(size=80),
    ),
    Problem("network", "a network, 750 weights", 0.3 * np.random.default_rng(2).normal(size=750)),
]


@dataclass
class Attempt:
    """One tool on one program: how it came to a gradient, or why not."""

    call: Call | None = None
    changed: int = 0  # lines
    of: int = 0
    failure: str = ""
    timing: Timing | None = None
    error: float = 0.0
    notes: list[str] = field(default_factory=list)


def source(name: str, tool: str = "") -> Path:
    """The file of a program, or of a tool's own version of it."""
    return HERE / (f"{name}_{tool}.py" if tool else f"{name}.py")


def lines_changed(name: str, tool: str) -> tuple[int, int]:
    """How many lines of a tool's version are not in the original, and how many it has."""
    old, new = (_code(source(name, of)) for of in ("", tool))
    matched = sum(
        b.size
        for b in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    )
    return len(new) - matched, len(new)


def _code(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip()]


def with_numpy(name: str, np_of_tool: Any) -> Callable[..., Any]:
    """The program as it is, but for what ``np`` means."""
    module = types.ModuleType(name)
    text = source(name).read_text(encoding="utf-8").replace("import numpy as np\n", "", 1)
    module.__dict__["np"] = np_of_tool
    exec(compile(text, str(source(name)), "exec"), module.__dict__)  # noqa: S102 (files of this folder)
    loss: Callable[..., Any] = module.__dict__["loss"]
    return loss


def own_version(name: str, tool: str = "") -> Callable[..., Any]:
    """``loss`` of a program's file."""
    suffix = f"_{tool}" if tool else ""
    loss: Callable[..., Any] = importlib.import_module(
        f"benchmarks.same_program.{name}{suffix}"
    ).loss
    return loss


def fwdad_attempts(problem: Problem) -> dict[str, Attempt]:
    """The program as it is, as it runs and compiled."""
    import fwdad

    loss = own_version(problem.name)
    plain = fwdad.value_and_grad(loss)
    compiled = fwdad.jit(plain)
    made = {"fwdad": Attempt(lambda: plain(problem.x))}
    try:
        compiled(problem.x)
    except fwdad.errors.FwdadError as error:
        made["fwdad jit"] = Attempt(failure=type(error).__name__)
    else:
        made["fwdad jit"] = Attempt(lambda: compiled(problem.x))
    return made


def jax_attempts(problem: Problem) -> dict[str, Attempt]:
    """As it is with ``jax.numpy``, else JAX's version; compiled where that works."""
    import jax

    jax.config.update("jax_enable_x64", True)
    x = jax.numpy.asarray(problem.x)

    def call_of(loss: Callable[..., Any]) -> Call:
        compiled = jax.jit(jax.value_and_grad(loss))
        return lambda: jax.block_until_ready(compiled(x))

    return {"JAX": _as_it_is_or_own(problem, "jax", jax.numpy, call_of)}


def autograd_attempts(problem: Problem) -> dict[str, Attempt]:
    """As it is with ``autograd.numpy``, else autograd's version."""
    import autograd

    def call_of(loss: Callable[..., Any]) -> Call:
        f = autograd.value_and_grad(loss)
        return lambda: f(problem.x)

    return {
        "autograd": _as_it_is_or_own(
            problem, "autograd", importlib.import_module("autograd.numpy"), call_of
        )
    }


def _as_it_is_or_own(problem: Problem, tool: str, np_of_tool: Any, call_of: Any) -> Attempt:
    try:
        call = call_of(with_numpy(problem.name, np_of_tool))
        call()
    except Exception as error:
        if not source(problem.name, tool).exists():
            return Attempt(failure=type(error).__name__)
        changed, of = lines_changed(problem.name, tool)
        return Attempt(call_of(own_version(problem.name, tool)), changed, of, type(error).__name__)
    return Attempt(call, 1, len(_code(source(problem.name))))  # the import


def difference_attempts(problem: Problem) -> dict[str, Attempt]:
    """SciPy's two-point differences."""
    from scipy.optimize import approx_fprime

    loss = own_version(problem.name)
    return {"differences": Attempt(lambda: (loss(problem.x), approx_fprime(problem.x, loss)))}


TOOLS = {
    "fwdad": fwdad_attempts,
    "jax": jax_attempts,
    "autograd": autograd_attempts,
    "scipy": difference_attempts,
}


def slope(problem: Problem, direction: np.ndarray) -> float:
    """A directional derivative by differences of sixth order."""
    loss, h = own_version(problem.name), 1e-3
    weights = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
    return sum(
        w * (loss(problem.x + k * h * direction) - loss(problem.x - k * h * direction)) / h
        for k, w in weights.items()
    )


def measured(problem: Problem) -> dict[str, Attempt]:
    """All tools on one program, checked and timed in turns."""
    attempts: dict[str, Attempt] = {}
    for tool, make in TOOLS.items():
        try:
            importlib.import_module(tool)
        except ImportError:
            print(f"{tool} is not installed", file=sys.stderr)
            continue
        attempts |= make(problem)
    direction = np.random.default_rng(3).normal(size=problem.x.shape)
    direction /= np.linalg.norm(direction)
    want = slope(problem, direction)
    for name, attempt in attempts.items():
        if attempt.call is not None:
            got = float(np.vdot(np.asarray(attempt.call()[1]), direction))
            attempt.error = abs(got - want) / abs(want)
            exact = name != "differences"
            if exact and attempt.error > problem.tolerance:
                attempt.failure, attempt.call = f"WRONG by {attempt.error:.0e}", None
    loss = own_version(problem.name)
    calls = {name: a.call for name, a in attempts.items() if a.call is not None}
    timings = time_interleaved({"primal": lambda: loss(problem.x), **calls}, ROUNDS, ROUND_SECONDS)
    for name, timing in timings.items():
        attempts.setdefault(name, Attempt(calls.get(name))).timing = timing
    return attempts


def cell(attempt: Attempt | None) -> str:
    """A tool's cell: what had to be changed, and the time."""
    if attempt is None:
        return "not installed"
    if attempt.timing is None:
        return attempt.failure
    how = f"{attempt.changed} of {attempt.of} lines" if attempt.changed else "as it is"
    return f"{how}, {duration(attempt.timing.median)}"


def main() -> None:
    """Print the table; ``--json FILE`` keeps what was measured."""
    warnings.simplefilter("ignore")
    columns = ["fwdad", "fwdad jit", "JAX", "autograd", "differences"]
    rows, kept = [], {}
    for problem in PROBLEMS:
        print(f"… {problem.name}", file=sys.stderr)
        found = measured(problem)
        own = duration(found["primal"].timing.median)  # type: ignore[union-attr]
        rows.append([problem.title, own, *(cell(found.get(name)) for name in columns)])
        kept[problem.name] = {
            name: {
                "changed": a.changed, "of": a.of, "failure": a.failure, "error": a.error,
                "seconds": a.timing.median if a.timing else None,
                "first": a.timing.first if a.timing else None,
            }
            for name, a in found.items()
        }  # fmt: skip
    print("\n".join(f"- {key}: {value}" for key, value in {**machine(), **versions()}.items()))
    print()
    print(table(["value and gradient", "the program", *columns], rows))
    print()
    for name, found in kept.items():
        for tool, values in found.items():
            if values["failure"]:
                print(f"- {name}, {tool}: as it is, {values['failure']}")
        print(f"- {name}: the differences are off by {found['differences']['error']:.0e}")
    if "--json" in sys.argv:
        Path(sys.argv[sys.argv.index("--json") + 1]).write_text(
            json.dumps(kept, indent=1), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
