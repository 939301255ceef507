"""The main job on a real problem: an exact Jacobian for SciPy's stiff solver."""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.integrate import solve_ivp
from scipy.optimize import approx_fprime

import fwdad
from fwdad.examples.pollu import SPECIES, T_END, Y_END, Y_START, pollu

SOLVER = {"method": "BDF", "rtol": 1e-8, "atol": 1e-22}
LARGEST_ERROR = 1e-6


@dataclass
class Run:
    """What one way to get the Jacobian cost, and how well the solve ended."""

    name: str
    jac: Callable | None  # as solve_ivp takes it; None: SciPy's own differences
    one_jacobian: Callable  # of the start state, outside the solver
    evaluations: int = 0
    steps: int = 0
    error: float = np.inf
    worst: str = ""
    first: float = np.inf
    best: float = np.inf

    def solve(self):
        """Integrate once; keep the result, the first time and the best time."""
        start = time.perf_counter()
        solution = solve_ivp(pollu, (0.0, T_END), Y_START, jac=self.jac, **SOLVER)
        seconds = time.perf_counter() - start
        if not solution.success:
            message = f"{self.name}: {solution.message}"
            raise RuntimeError(message)
        relative = np.abs(solution.y[:, -1] / Y_END - 1)
        self.evaluations, self.steps = solution.njev, solution.t.size - 1
        self.error, self.worst = relative.max(), SPECIES[relative.argmax()]
        if self.first == np.inf:
            self.first = seconds
        self.best = min(self.best, seconds)

    def time_one_jacobian(self, number=20, rounds=5):
        """Seconds for one Jacobian: the best mean of some rounds."""
        means = []
        for _ in range(rounds):
            start = time.perf_counter()
            for _ in range(number):
                self.one_jacobian()
            means.append((time.perf_counter() - start) / number)
        return min(means)


def run(repeat: int = 3) -> int:
    """Solve POLLU with fwdad's Jacobian and with SciPy's differences, and print both.

    Parameters
    ----------
    repeat : int
        How often each is solved; the best time is printed beside the first.

    Returns
    -------
    int
        0 if the end state with fwdad's Jacobian agrees with the published reference within
        1e-6 in each of the 20 components, else 1: the exit status of ``python -m fwdad demo``.
    """
    jac = fwdad.jacfwd(pollu, argnums=1)
    exact = Run("fwdad.jacfwd", jac, lambda: jac(0.0, Y_START))
    differences = Run(
        "SciPy's differences", None, lambda: approx_fprime(Y_START, lambda y: pollu(0.0, y))
    )
    runs = (exact, differences)
    for _ in range(repeat):
        for each in runs:  # in turns, so that both meet the same load of the machine
            each.solve()
    print_table(runs, repeat)
    if not exact.error <= LARGEST_ERROR:  # `not <=`, so that NaN fails too
        print(f"\nFAILED: {exact.worst} is off by {exact.error:.1e}, allowed {LARGEST_ERROR:.0e}.")
        return 1
    print(f"\nThe published end state is met: {exact.error:.1e} <= {LARGEST_ERROR:.0e}.")
    return 0


def print_table(runs, repeat):
    """Print the runs side by side."""
    options = ", ".join(f"{name}={value!r}" for name, value in SOLVER.items())
    print(f"POLLU, air pollution: 20 species, 25 reactions, t = 0 ... {T_END:g} minutes")
    print(f"solve_ivp({options})")
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}\n"
    )
    rows = [
        ("Jacobian by", [each.name for each in runs]),
        ("Jacobian evaluations", [str(each.evaluations) for each in runs]),
        ("steps", [str(each.steps) for each in runs]),
        ("max |y/y_ref - 1|", [f"{each.error:.1e}" for each in runs]),
        ("  reached by", [each.worst for each in runs]),
        ("first solve", [f"{1e3 * each.first:.1f} ms" for each in runs]),
        (f"best of {repeat} solves", [f"{1e3 * each.best:.1f} ms" for each in runs]),
        ("one Jacobian", [f"{1e3 * each.time_one_jacobian():.3f} ms" for each in runs]),
    ]
    for title, cells in rows:
        print(f"{title:<22}" + "".join(f"{cell:>22}" for cell in cells))
