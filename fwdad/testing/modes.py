"""One rule in every way that runs it: on a tape, compiled, and backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.api.jit import jit
from fwdad.codegen.numba_support import have_numba
from fwdad.errors import (
    MissingRuleError,
    MissingTransposeError,
    UndefinedDerivativeError,
    UntraceableError,
)
from fwdad.rules.core.containers import Path, pick, rebuild, walk
from fwdad.testing.programs import Primal, program_of, pulled, pushed
from fwdad.testing.structure import copied, is_leaf
from fwdad.testing.trial import Trial

LANES = 2
RTOL = 1e-11
SINGLE_RTOL = 1e-3


def check_modes(trial: Trial, settings: Any) -> None:
    """A tape, compiled code and reverse mode give what the rule gives eagerly.

    What cannot be put on a tape is skipped, as it is run without one everywhere.
    """
    if not settings.get("modes", True) or trial.rule is None or not trial.rule.of_user:
        return
    want = trial.run_at(tuple(trial.paths), 0, LANES)
    dots = [_in_parts(trial.seeds[path][:LANES]) for path in trial.paths]
    push = pushed(called_by(trial))
    for mode, run in compilers():
        got = attempt(trial, mode, run(push), leaves_of(trial), dots)
        if got is not None:
            _compare(trial, mode, dict(walk(got)), want)
    y_leaves = {path: v for path, v in walk(trial.y) if is_leaf(v)}
    if trial.rule.kind == "constant" or not y_leaves.keys() <= want.keys():
        return
    bars = {path: _drawn(trial, v) for path, v in y_leaves.items()}
    y_bar = rebuild(trial.y, lambda path, _: bars.get(path))
    pull = pulled(called_by(trial))
    for mode, run in (("reverse", lambda f: f), *compilers(" in reverse")):
        x_bars = attempt(trial, mode, run(pull), leaves_of(trial), copied(y_bar))
        if x_bars is not None:
            _compare_backwards(trial, mode, (bars, want), (x_bars, dots))


def compilers(behind: str = "") -> list[tuple[str, Callable[[Any], Any]]]:
    """The ways to run a tape that there are, each with its name in messages."""
    ways: list[tuple[str, Callable[[Any], Any]]] = [
        (f"tape{behind}", lambda f: jit(f, backend="numpy"))
    ]
    return [*ways, (f"compiled{behind}", jit)] if have_numba() else ways


def called_by(trial: Trial) -> Callable[[Any], Any]:
    """A call of the trial's function as a program of the leaves of its arguments."""
    rule: Any = trial.writer or trial.rule
    call = trial.call_args([Primal(k) for k in range(len(trial.primals))])
    primals = list(copied(tuple(trial.primals)))
    return program_of(rule.function, call, primals, trial.paths, rule.mutates)


def leaves_of(trial: Trial) -> list[Any]:
    """Copies of the leaves of a trial's arguments, as :func:`program_of` takes them."""
    return [_in_parts(pick(trial.primals, path)) for path in trial.paths]


def _in_parts(x: Any) -> Any:
    if np.iscomplexobj(x):
        return [np.real(x).copy(), np.imag(x).copy()]
    return copied(x)


def attempt(trial: Trial, mode: str, f: Callable[..., Any], *args: Any) -> Any:
    """What a function returns, None where it is refused; a failure for any other error."""
    try:
        return f(*args)
    except (MissingRuleError, MissingTransposeError, UndefinedDerivativeError, UntraceableError):
        return None
    except Exception as error:
        what = f"{type(error).__name__}: {getattr(error, 'msg', error)}"
        raise trial.failure(mode, what, "the rule runs eagerly") from error


def _compare(trial: Trial, mode: str, found: dict[Path, Any], want: dict[Path, Any]) -> None:
    """Compare lanes with those of the rule that was run eagerly."""
    rtol = SINGLE_RTOL if trial.single else RTOL
    for path, value in want.items():
        mine = {path: np.asarray(found[path])} if path in found else {}
        hint = "the rule must give the same result there as it does eagerly"
        size = float(np.max(np.abs(value), initial=0.0, where=np.isfinite(value)))
        trial.compare(mode, mine, {path: value}, rtol, f"N = {LANES}", hint, atol=rtol * size)


def _compare_backwards(trial: Trial, mode: str, ends: Any, starts: Any) -> None:
    """Compare <y_bar, J x_dot> by the rule with <x_bar, x_dot>, lane by lane."""
    (bars, want), (x_bars, dots) = ends, starts
    rtol = SINGLE_RTOL if trial.single else 1e-10
    for k in range(LANES):
        y_pairs = [(bar, want[path][k]) for path, bar in bars.items()]
        flat = (x for _, x in walk(x_bars)), (x for _, x in walk(dots))
        x_pairs = [(bar, dot[k]) for bar, dot in zip(*flat, strict=True)]
        left, right = (sum(_inner(*pair) for pair in pairs) for pairs in (y_pairs, x_pairs))
        size = sum(_size(*pair) for pair in (*y_pairs, *x_pairs))
        if not abs(left - right) <= rtol * max(size, 1e-300):
            trial.fail(
                mode,
                f"<y_bar, J x_dot> = {left!r} by the rule, but <x_bar, x_dot> = {right!r}",
                "the rule gives another derivative in reverse mode than in forward mode",
            )


def _drawn(trial: Trial, y: Any) -> Any:
    y = np.asarray(y)
    bar = trial.rng.uniform(0.5, 1.0, y.shape)
    if y.dtype.kind == "c":
        bar = bar * np.exp(1j * trial.rng.uniform(0, 2 * np.pi, y.shape))
    return bar.astype(y.dtype)[()]


def _inner(bar: Any, dot: Any) -> float:
    return float(np.sum((np.conj(bar) * dot).real))


def _size(bar: Any, dot: Any) -> float:
    return float(np.sum(np.abs(bar) * np.abs(dot)))
