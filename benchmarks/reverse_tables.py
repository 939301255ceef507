"""Tables of gradients as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.measure import paired_ratio
from benchmarks.reverse_programs import PROBLEMS
from benchmarks.reverse_row import Row
from benchmarks.table import duration, machine, size, table, three_digits, versions

PRIMALS = ("numba", "jit")
COMPILED = {
    "fwdad": "gradient",
    "hand": "adjoint by hand",
    "casadi": "CasADi",
    "jax": "JAX jit",
}
INTERPRETED = {"fwdad": "gradient", "autograd": "autograd", "torch": "torch, eager"}


def report(rows: Sequence[Row], which: str) -> str:
    """Everything as Markdown, a table for each size."""
    listed = "\n".join(f"- {key}: {value}" for key, value in {**machine(), **versions()}.items())
    makers = {"compiled": _compiled, "interpreted": _interpreted, "memory": _memory}
    make = {**makers, "first": _firsts}[which]
    order = {p.name: k for k, p in enumerate(PROBLEMS)}
    parts = [listed]
    for sizes in dict.fromkeys(row.size for row in rows):
        chosen = [row for row in rows if row.size == sizes]
        parts.append(f"#### {sizes.capitalize()} sizes")
        parts.extend(make(sorted(chosen, key=lambda row: order[row.name])))
    return "\n\n".join(parts)


def _compiled(rows: Sequence[Row]) -> list[str]:
    body = []
    for row in rows:
        of = _faster(row)
        if of is None:
            body.append([row.name, "failed", "", *_cells(row, COMPILED, ""), "", ""])
            continue
        numba = row.status.get("numba") or f"{three_digits(_ratio(row, 'jit', 'numba'))}×"
        firsts = [_first(row, name) for name in ("fwdad", "jax")]
        own = f"{duration(float(np.median(row.rounds[of])))} ({of})"
        body.append([row.name, own, numba, *_cells(row, COMPILED, of), *firsts])
    header = ["program", "compiled program", "`jit` over Numba", *COMPILED.values(),
              "first call", "JAX's"]  # fmt: skip
    parts = [table(header, body)]
    ratios = [_ratio(row, "fwdad", of) for row in rows if (of := _faster(row))]
    parts.append(f"Gradient over the faster compiled program: {_summary(ratios)}.")
    behind = [_ratio(row, "jax", "fwdad") for row in rows]
    parts.append(f"JAX's gradient over ours: {_summary(behind)}.")
    if rows[0].size == "small":  # elsewhere it was compiled before
        parts.append(_over_jax(rows))
    partly = [f"- {row.name}: {row.runs}" for row in rows if "NumPy" in row.runs]
    if partly:
        parts.append("Not, or not wholly, compiled:\n\n" + "\n".join(partly))
    return parts


def _interpreted(rows: Sequence[Row]) -> list[str]:
    body = []
    for row in rows:
        own = duration(float(np.median(row.rounds["numpy"]))) if "numpy" in row.rounds else "-"
        body.append([row.name, own, *_cells(row, INTERPRETED, "numpy")])
    ratios = [_ratio(row, "fwdad", "numpy") for row in rows]
    return [
        table(["program", "NumPy", *INTERPRETED.values()], body),
        f"Gradient over the program, both under NumPy: {_summary(ratios)}.",
    ]


def _memory(rows: Sequence[Row]) -> list[str]:
    body = []
    for row in rows:
        args = next(p for p in PROBLEMS if p.name == row.name).arguments(row.size)
        given = sum(a.nbytes for a in args if isinstance(a, np.ndarray))
        if {"jit", "fwdad", "saved"} - {*row.peak}:
            body.append([row.name, size(given), row.status.get("fwdad", "-"), "", "", ""])
            continue
        own, saved, peak = (row.peak[name] for name in ("jit", "saved", "fwdad"))
        ratio = three_digits(peak / (saved + 2 * (given + own)))
        body.append([row.name, *(size(number) for number in (given, own, saved, peak)), ratio])
    header = ["program", "arguments", "peak of the program", "saved, as reported",
              "peak of the gradient", "over saved + 2 (arguments + program)"]  # fmt: skip
    return [table(header, body)]


def _firsts(rows: Sequence[Row]) -> list[str]:
    body = []
    for row in rows:
        times = [_first(row, name) for name in ("fwdad", "jax")]
        both = {"fwdad", "jax"} <= {*row.first}
        ratio = f"{three_digits(row.first['fwdad'] / row.first['jax'])}×" if both else "-"
        body.append([row.name, *times, ratio, *row.status.values()])
    return [table(["program", "first call", "JAX's", "ours over JAX's"], body), _over_jax(rows)]


def _over_jax(rows: Sequence[Row]) -> str:
    timed = [row.first for row in rows if {"fwdad", "jax"} <= {*row.first}]
    both = [first["fwdad"] / first["jax"] for first in timed]
    return f"Our first call over JAX's: {_summary(both)}."


def _first(row: Row, name: str) -> str:
    return duration(row.first[name]) if name in row.first and row.size == "small" else "-"


def _cells(row: Row, titles: dict[str, str], of: str) -> list[str]:
    cells = []
    for name in titles:
        if name not in row.rounds or of not in row.rounds:
            cells.append(row.status.get(name, "-"))
            continue
        beside = "" if name == "fwdad" else f" ({three_digits(_ratio(row, name, 'fwdad'))}× ours)"
        cells.append(f"{three_digits(_ratio(row, name, of))}×{beside}")
    return cells


def _faster(row: Row) -> str | None:
    """The faster of the compiled programs."""
    medians = {name: np.median(row.rounds[name]) for name in PRIMALS if name in row.rounds}
    return min(medians, key=lambda name: medians[name]) if medians else None


def _ratio(row: Row, name: str, of: str) -> float:
    """The median ratio of two calls; NaN where one was not timed."""
    if name not in row.rounds or of not in row.rounds:
        return math.nan
    ours, others = row.rounds[name], row.rounds[of]
    if len(ours) != len(others):  # one of them was timed once
        return float(np.median(ours) / np.median(others))
    return paired_ratio(ours, others)


def _summary(ratios: Sequence[float]) -> str:
    known = [r for r in ratios if not math.isnan(r)]
    if not known:
        return "not measured"
    mean = math.exp(sum(map(math.log, known)) / len(known))
    return (
        f"geometric mean {three_digits(mean)} over {len(known)} programs, "
        f"from {three_digits(min(known))} to {three_digits(max(known))}"
    )
