"""The figures that fwdad is to reach, each computed from one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.measure import paired_ratio


@dataclass(frozen=True)
class Target:
    """One figure, its bound, and what was measured (None: its rows were not run)."""

    title: str
    bound: float
    value: float | None
    at_least: bool = False
    unit: str = "×"
    where: str = ""  # the worst row, of those that the figure is about

    @property
    def verdict(self) -> str:
        """Say pass, fail or not run."""
        if self.value is None:
            return "not run"
        met = self.value >= self.bound if self.at_least else self.value <= self.bound
        return "pass" if met else "**FAIL**"

    def cells(self) -> list[str]:
        """The row of the table."""
        sign = "≥" if self.at_least else "≤"
        value = "-" if self.value is None else f"{self.value:.2f} {self.unit}"
        bound = f"{sign} {self.bound:g} {self.unit}"
        return [self.title, bound, f"{value} {self.where}".strip(), self.verdict]


EAGER_PEERS = ("autograd", "autograd-reverse", "jax")


def targets(rounds: dict[tuple[str, str], list[float]], micro: dict[str, Any]) -> list[Target]:
    """Compare a run with the figures to reach.

    Parameters
    ----------
    rounds : dict
        ``(row, tool) -> seconds of each round``; the tool "primal" is the function itself.
    micro : dict
        The results of ``micro`` and ``memory`` that were run, by name.
    """

    def ratio(row: str, tool: str = "primal") -> float | None:
        ours, theirs = rounds.get((row, "fwdad")), rounds.get((row, tool))
        return None if ours is None or theirs is None else paired_ratio(ours, theirs)

    def lead(rows: list[str]) -> tuple[float | None, str]:
        """The smallest factor by which fwdad is ahead of the eager peers, and where."""
        ratios = [
            (r, f"({row}, {tool})")
            for row in rows
            for tool in EAGER_PEERS
            if (r := ratio(row, tool)) is not None
        ]
        if not ratios:
            return None, ""
        worst, where = max(ratios)
        return 1 / worst, where

    rows = sorted({row for row, _ in rounds})
    found = [
        Target(f"{row}: jvp / primal", bound, ratio(row))
        for row, bound in (
            ("array-1e5/N=1", 2),
            ("array-1e5/N=8", 3.5),
            ("array-1e5/N=32", 3.5),
            ("array-1e3/N=8", 5),
            ("array-1e3/N=32", 5),
            ("matrix/N=1", 3),
        )
    ]
    found += [
        Target(f"{name}/jacobian: fwdad / SciPy 2-point", 1, ratio(f"{name}/jacobian", "scipy"))
        for name in ("pollu", "pollu-stored")
    ]
    small = [row for row in rows if row in {f"array-1e3/N={n}" for n in (8, 16, 32)}]
    other = [row for row in rows if row != "array-1e5/N=1"]
    pollu = [row for row in rows if row in {"pollu/jacobian", "pollu-stored/jacobian"}]
    for title, bound, among in (
        # at n = 1e5 and N = 1 the aim is 2 primals: XLA's own elementary functions are quicker
        ("every other row: ahead of autograd and eager JAX", 1, other),
        ("array-1e3, N ≥ 8: ahead of autograd and eager JAX", 5, small),
        ("array-1e5/N=32: ahead of autograd and eager JAX", 5, ["array-1e5/N=32"]),
        ("POLLU Jacobian: ahead of autograd and eager JAX", 20, pollu),
    ):
        value, where = lead(among)
        found.append(Target(title, bound, value, at_least=True, where=where))
    found += [
        Target(title, bound, micro.get(name), unit=unit)
        for name, title, bound, unit in (
            ("product", "active × active, 4 elements, N = 8: beyond its NumPy calls", 2.5, "µs"),
            ("fresh lambda", "a fresh lambda at each call, after the first: added", 20, "µs"),
            ("factorisations", "matrix program: LU factorisations in a call, N = 1 … 32", 1, ""),
            ("memory by N", "jacobian, peak beyond J: chunk 32 / chunk 8", 4, "×"),
            ("memory by columns", "jacobian, peak beyond J: 256 columns / 64 columns", 1.1, "×"),
        )
    ]
    return found
