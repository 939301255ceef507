"""Second order: a rule body is a program like any other, and is differentiated itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.eager.build import build_frule
from fwdad.errors import FwdadError, RuleError
from fwdad.evaluation.differences import directional
from fwdad.rules.core.containers import Path
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import is_leaf as is_dual_leaf
from fwdad.testing.structure import is_leaf, lanes_of, result_tangents
from fwdad.testing.trial import Trial

SECOND_RTOL = 1e-6
INNER, OUTER = 2, 3


def check_second_order(trial: Trial, settings: dict[str, Any]) -> None:
    """The derivative of the pushforward agrees with finite differences of the pushforward."""
    if not settings.get("second_order", True) or trial.single:
        return
    if trial.rule is not None and trial.rule.kind == "constant":
        return
    pattern = tuple(trial.paths)
    inner = {path: trial.draw(path, INNER) for path in pattern}
    outer = {path: trial.draw(path, OUTER) for path in pattern}
    first = trial.run(_copies(inner))
    got = _nested(trial, inner, outer)

    def pushed(step: float) -> dict[Path, Any]:
        moves = {path: step * outer[path][0] for path in pattern}
        y, y_dot = trial.push(trial.moved(moves), _copies(inner))
        return lanes_of(y, y_dot, INNER)

    scale = min(trial.scale(path) for path in pattern)
    want, errors = directional(pushed, scale)
    for key in [k for k in want if k in got and k in first]:
        floor = 1e-9 * max(float(np.max(np.abs(first[key]), initial=0.0)), 1.0) / scale
        rtol = max(SECOND_RTOL, 10 * settings["rtol"])
        if errors[key] > rtol * float(np.max(np.abs(want[key]), initial=0.0)) + floor:
            trial.fail(
                "second order",
                f"finite differences of the pushforward are accurate to {errors[key]:.1e} only",
                "choose arguments away from kinks and poles, or pass second_order=False",
            )
        trial.compare(
            "second order",
            {key: got[key]},
            {key: want[key]},
            rtol,
            f"N = {INNER} inside {OUTER}",
            "the rule body loses an enclosing derivative: use NumPy functions, and plain() only "
            "for decisions",
            atol=floor,
        )


def _copies(lanes: dict[Path, Any]) -> dict[Path, Any]:
    return {path: array.copy() for path, array in lanes.items()}


def _nested(trial: Trial, inner: dict[Path, Any], outer: dict[Path, Any]) -> dict[Path, Any]:
    """The lanes of the inner tangents, differentiated along the first outer lane."""

    def pushforward(*primals: Any) -> Any:
        tangents = trial.tangents(primals, _copies(inner))
        y, y_dot = build_frule(trial.dispatched)(primals, tangents)
        return [
            t.lanes if isinstance(t, Chunk) else np.zeros((INNER, *np.shape(v)))
            for _, v, t in result_tangents(y, y_dot)
            if is_dual_leaf(v)
        ]

    primals = trial.moved({})
    try:
        y, y_dot = build_frule(pushforward)(primals, trial.tangents(primals, outer))
    except RuleError as error:
        raise trial.failure("aliasing", error.msg) from error
    except FwdadError as error:
        what = f"{type(error).__name__}: {error.msg}"
        raise trial.failure("second order", what, "or pass second_order=False") from error
    lanes = lanes_of(y, y_dot, OUTER)
    keys = [path for path, value, _ in result_tangents(trial.y, trial.y) if is_leaf(value)]
    return {keys[path[0]]: value[0] for path, value in lanes.items()}
