"""The figures that compiled derivatives are to reach, each computed from one run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks.jit_floor import FORMS
from benchmarks.measure import paired_ratio
from benchmarks.table import duration, three_digits
from benchmarks.targets import Target

Rounds = Mapping[tuple[str, str], list[float]]


def speed_of(rounds: list[float]) -> str:
    """The median, with nanoseconds where they are what counts."""
    seconds = statistics.median(rounds)
    return f"{three_digits(seconds * 1e9)} ns" if seconds < 1e-6 else duration(seconds)


def _ratio(rounds: Rounds, row: str, tool: str, other: str) -> float | None:
    a, b = rounds.get((row, tool)), rounds.get((row, other))
    return None if a is None or b is None else paired_ratio(a, b)


def _median(rounds: Rounds, row: str, scale: float) -> float | None:
    a = rounds.get((row, "fwdad"))
    return None if a is None else statistics.median(a) * scale


def _floor(floor: Mapping[str, list[float]]) -> Target:
    """The best hand-written form over the primal: a floor under what any tool can reach."""
    ratios = {
        title: paired_ratio(floor[way], floor["primal"]) for way, title in FORMS.items() if floor
    }
    best = min(ratios, key=ratios.__getitem__, default="any form")
    title = f"the floor: POLLU Jacobian by hand, {best} / its primal, inside compiled code"
    return Target(title, 4.5, ratios.get(best))


def jit_targets(found: Mapping[str, Any]) -> list[Target]:
    """Compare a run with the figures to reach.

    Parameters
    ----------
    found : mapping
        What ``benchmarks.jit`` measured, by part.
    """
    outside = {(c.row, c.tool): c.rounds for c in found["cells"] if c.rounds}
    own = {(c.row, c.tool): c.own for c in found["cells"] if c.own}
    inside = {(c.row, c.tool): c.rounds for c in found["inside"] if c.rounds}
    targets = [_floor(found["floor"])]
    targets += [
        Target(f"{row}: fwdad / by hand, inside compiled code", 1.25,
               _ratio(inside, row, "fwdad", "hand"))
        for row in ("pollu/jacobian", "rober/jacobian")
    ]  # fmt: skip
    targets += [
        Target(f"{row}: fwdad / by hand", 1.25, _ratio(outside, row, "fwdad", "hand"))
        for row in (
            "array-1e5/N=8",
            "array-1e5/N=32",
            "lorenz-scalars-1e6/jacobian",
            "lorenz-scalars-1e6/N=8",
            "lorenz-vector-1e6/jacobian",
        )
    ]
    for row, whose, title, bound in (
        # vector math makes the primal so quick that 32 tangents are bound by memory
        ("array-1e5/N=32", "hand-loops", "the primal in plain Numba", 2.2),
        ("array-1e5/N=32", "fwdad", "its compiled primal", 2.2),
        ("lorenz-scalars-1e6/N=8", "fwdad", "its compiled primal", 2.0),
    ):
        a, b = outside.get((row, "fwdad")), own.get((row, whose))
        value = None if a is None or b is None else paired_ratio(a, b)
        targets.append(Target(f"{row}: fwdad / {title}", bound, value))
    targets += [
        Target(f"{row}: one call from Python", bound, _median(outside, row, scale), unit=unit)
        for row, bound, scale, unit in (
            ("pollu/jacobian", 2.0, 1e6, "µs"),
            ("rober/jacobian", 1.5, 1e6, "µs"),
            ("burgers-512/jacobian", 0.15, 1e3, "ms"),
        )
    ]
    targets.append(_ahead(outside, "burgers-512/jacobian"))
    targets += _first_targets(found["first"])
    ratios = [g.ratio for g in found["growth"]]
    worst = None if not ratios else math.inf if None in ratios else max(ratios)
    targets.append(Target("growth: ten times the elements, steps or directions", 10, worst))
    calling = [row for row, text in found["explained"].items() if not text.endswith("run by Numba")]
    count = len(calling) if found["explained"] else None
    targets.append(Target("rows that call NumPy", 0, count, unit="", where=str(calling)))
    return targets


def _ahead(rounds: Rounds, row: str) -> Target:
    """How far fwdad is ahead of the best peer."""
    ratios = [
        (r, tool)
        for of, tool in rounds
        if of == row and tool not in {"primal", "fwdad"} and not tool.startswith("hand")
        if (r := _ratio(rounds, row, tool, "fwdad")) is not None
    ]
    value, where = min(ratios) if ratios else (None, "")
    return Target(f"{row}: the best peer / fwdad", 1, value, at_least=True, where=where)


def _first_targets(first: list[Any]) -> list[Target]:
    seconds = {(f.row, f.tool): f.seconds for f in first if f.seconds is not None}
    both = [
        math.log(s / seconds[row, "jax-fwd"])
        for (row, tool), s in seconds.items()
        if tool == "fwdad" and (row, "jax-fwd") in seconds
    ]
    rober = next((f for f in first if (f.row, f.tool) == ("rober/jacobian", "fwdad")), None)
    total = rober.seconds if rober is not None else None
    compiling = rober.compiling if rober is not None else None
    share = 1 - compiling / total if total and compiling is not None else None
    mean = math.exp(statistics.mean(both)) if both else None
    return [
        Target("first calls: fwdad / JAX jacfwd, geometric mean", 1, mean),
        Target("ROBER: first call", 0.4, total, unit="s"),
        Target("ROBER: fwdad's own share of the first call", 0.1, share, unit=""),
    ]
