"""``check_rrule``: one reverse rule against finite differences, and against what it promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fwdad.drivers.pullback import vjp
from fwdad.errors import FwdadError, MissingRuleError
from fwdad.evaluation.differences import directional
from fwdad.evaluation.evaluators import jvp
from fwdad.rules.core.containers import Path, rebuild, walk
from fwdad.rules.core.registry import RULES, function_name
from fwdad.rules.core.reverse_rules import RRULES
from fwdad.testing.frules import LINEARITY_RTOL, allowed
from fwdad.testing.memory import check_returned, check_written
from fwdad.testing.modes import attempt, called_by, compilers, leaves_of
from fwdad.testing.nested import SECOND_RTOL
from fwdad.testing.programs import pulled
from fwdad.testing.structure import copied, describe, is_leaf
from fwdad.testing.trial import Trial

PRIMAL_RTOL = 1e-12
SINGLE_RTOL = 1e-4
DIRECTIONS = 2
STEPS = (1.0, 0.5)  # two lanes, of one direction

Bars = dict[Path, np.ndarray]
"""Cotangents of a value's leaves, or tangents of arguments', by their places."""


def check_rrule(
    f: Callable[..., Any],
    *args: Any,
    cotangents: Sequence[int] = (1, 2, 3),
    rng: np.random.Generator | None = None,
    rtol: float | None = None,
    reason: str | None = None,
    argnums: Sequence[int | str] | None = None,
    second_order: bool = True,
    modes: bool = True,
    **options: Any,
) -> None:
    """Check a function's reverse rule at given arguments.

    The rule is compared with finite differences of the function: <y_bar, J x_dot> must be
    <x_bar, x_dot>, under Re<., .>. Call it once for each shape and each option that matters.

    Parameters
    ----------
    f : callable
        A function with an :func:`~fwdad.rrule`.
    *args
        Its arguments; lists and tuples of arrays are allowed. Take them where f is smooth.
    cotangents : sequence of int, default (1, 2, 3)
        How many cotangents are pulled back by one call; as many as an argument or the value is
        long are tried as well.
    rng : numpy.random.Generator, optional
        Where cotangents and directions come from; ``numpy.random.default_rng(0)`` by default.
    rtol : float, optional
        The tolerance of the comparison with finite differences, relative to the terms of the
        inner product; 1e-7 by default (1e-3 for float32 and complex64). A looser one needs a
        ``reason``.
    reason : str, optional
        Why a looser tolerance is right here.
    argnums : sequence of int or str, optional
        The primals whose cotangents are checked; by default every one that has a tangent space.
    second_order : bool, default True
        Also differentiate the pullback. This needs a rule whose calls have derivatives
        themselves; compiled code without a rule has none.
    modes : bool, default True
        Also pull cotangents back on a tape, and compiled where Numba is installed.
    **options
        Keyword arguments of ``f``.

    Raises
    ------
    AssertionError
        Naming the check, the argument and the error.
    MissingRuleError
        If f has no reverse rule.

    Notes
    -----
    The checks: the rule returns f's value, to 1e-12, in structure, type and shape; it writes into
    no argument; a cotangent has its argument's structure and shape, and is real where that is;
    the pullback can be called again and returns the same bits; it is linear in its cotangent to
    1e-11, several parts of the value among them; it agrees with finite differences, for each
    part of the value and each argument by itself; K cotangents together return what each returns
    alone; its derivative agrees with finite differences of the pullback; the function writes into
    the arguments that ``mutates=`` names only, and returns new arrays; a tape and compiled code
    return the same cotangents.

    Examples
    --------
    >>> import numpy as np
    >>> import fwdad
    >>> from fwdad.testing import check_rrule
    >>> def scaled(x, c):
    ...     return c * x
    >>> @fwdad.rrule(scaled)
    ... def scaled_rrule(primals):
    ...     x, c = primals
    ...     return c * x, lambda y_bar: (c * y_bar, np.sum(x * y_bar))
    >>> check_rrule(scaled, np.array([1.0, 2.0]), 3.0)
    """
    rule = RRULES.get(f)
    if rule is None:
        raise MissingRuleError(f"{function_name(f)} has no rrule: register one with @fwdad.rrule")
    forward, pure = RULES[f], RULES[f].pure
    if pure is not None:  # all but what it writes is that of the function of its new contents
        f, rule = pure, RRULES[pure]
    trial = Trial(
        f,
        args,
        options,
        chunk=cotangents,
        rng=np.random.default_rng(0) if rng is None else rng,
        argnums=argnums,
        rule=replace(RULES[f], binder=rule.binder),
    )
    trial.writer = forward if forward.mutates else None
    settings = {
        "rtol": allowed(trial, rtol, reason),
        "second_order": second_order,
        "modes": modes,
    }
    for check in CHECKS:
        check(_Pulls(trial), settings)


class _Pulls:
    """A function's reverse rule at the arguments of a trial."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.y_leaves = {path: v for path, v in walk(trial.y) if is_leaf(v)}
        if not self.y_leaves:
            trial.fail("primal", "the value has no floats", "there is nothing to differentiate")

    def at(self, primals: Sequence[Any]) -> tuple[Any, Callable[[Bars], Bars]]:
        """The value at some primals, and what pulls cotangents back from there."""
        trial = self.trial
        places = dict(walk(tuple(primals)))

        def of_leaves(leaves: Any) -> Any:
            by_path = dict(zip(trial.paths, leaves, strict=True))
            return trial.dispatched(*rebuild(tuple(primals), lambda path, v: by_path.get(path, v)))

        try:
            y, pullback = vjp(of_leaves, [places[path] for path in trial.paths])
        except FwdadError as error:
            what = f"{type(error).__name__}: {error.msg}"
            raise trial.failure("structure", what) from error

        def pull(bars: Bars) -> Bars:
            try:
                x_bars = pullback(self.in_structure(bars))
            except FwdadError as error:
                what = f"{type(error).__name__}: {error.msg}"
                raise trial.failure("structure", what) from error
            return dict(zip(trial.paths, x_bars, strict=True))

        return y, pull

    def ruled(self) -> tuple[Any, Callable[[Bars], dict[Path, bytes]]]:
        """What the rule itself returns: its value, and what its pullback returns, as bits."""
        trial, primals = self.trial, copied(tuple(self.trial.primals))
        y, pullback = RRULES[trial.f].body(primals, **trial.options)

        def pull(bars: Bars) -> dict[Path, bytes]:
            x_bars = pullback(self.in_structure(bars))
            return {path: np.asarray(x).tobytes() for path, x in walk(x_bars)}

        return y, pull

    def in_structure(self, bars: Bars) -> Any:
        """Cotangents as the pullback of f takes them: one of the value, in its structure."""
        return rebuild(
            self.trial.y,
            lambda path, v: bars[path].copy()[()] if is_leaf(v) else None,
        )

    def draw(self, count: int | None = None, *, only: Path | None = None) -> Bars:
        """Random cotangents of the value's leaves, or of one of them."""
        rng, bars = self.trial.rng, {}
        for path, leaf in self.y_leaves.items():
            dtype = np.asarray(leaf).dtype
            shape = np.shape(leaf) if count is None else (count, *np.shape(leaf))
            bar = rng.uniform(0.5, 1.0, shape) * rng.choice([-1.0, 1.0], shape)
            if dtype.kind == "c":
                bar = bar * np.exp(1j * rng.uniform(0, 2 * np.pi, shape))
            factor = 1.0 if only is None or path == only else 0.0
            bars[path] = np.asarray(bar * factor, dtype)
        return bars


def check_structure(pulls: _Pulls, _settings: Any) -> None:
    """What the rule and its pullback return has the right structures; no argument is written."""
    for only in pulls.y_leaves:
        pulls.at(pulls.trial.primals)[1](pulls.draw(only=only))


def check_value(pulls: _Pulls, _settings: Any) -> None:
    """The rule returns what the function returns."""
    trial = pulls.trial
    y, _ = pulls.ruled()
    got, want = dict(walk(y)), dict(walk(trial.y))
    hint = "under a derivative the rule's value stands in for the function's"
    if got.keys() != want.keys():
        trial.fail("primal", f"got {type(y).__name__}, expected {type(trial.y).__name__}", hint)
    for path, value in want.items():
        where = f"result{describe(path)}"
        a, b = np.asarray(got[path]), np.asarray(value)
        for what, mine, right in (("dtype", a.dtype, b.dtype), ("shape", a.shape, b.shape)):
            if mine != right:
                trial.fail("primal", f"{where}: got {what} {mine}, expected {right}", hint)
        if b.dtype.kind not in "fc":
            if not np.array_equal(a, b):
                trial.fail("primal", f"{where}: got {a!r}, expected {b!r}", hint)
            continue
        rtol = SINGLE_RTOL if trial.single else PRIMAL_RTOL
        finite = np.isfinite(b)
        error = _largest(a[finite] - b[finite])
        same = np.array_equal(a[~finite], b[~finite], equal_nan=True)
        if not error <= rtol * _largest(b[finite]) or not same:
            trial.fail("primal", f"{where}: off by {error:.3g} from the function's value", hint)


def check_repeated(pulls: _Pulls, _settings: Any) -> None:
    """The pullback returns the same again, whatever it was called with in between."""
    _, pull = pulls.ruled()
    bars = pulls.draw()
    first = pull(bars)
    pull(pulls.draw())
    again = pull(bars)
    for path in pulls.trial.paths:
        if first.get(path) != again.get(path):
            pulls.trial.fail(
                "repeated",
                f"the cotangent of {pulls.trial.primal_name(path)} changes when the pullback is "
                "called again",
                "the pullback must not change what it reads",
            )


def check_linear(pulls: _Pulls, _settings: Any) -> None:
    """The pullback is linear in its cotangent: no constant is added, no product taken."""
    trial, (alpha, beta) = pulls.trial, (-0.75, 1.5)
    _, pull = pulls.at(trial.primals)
    first, second = pulls.draw(), pulls.draw()
    both = {
        path: np.asarray(alpha * bar + beta * second[path], bar.dtype)
        for path, bar in first.items()
    }
    u, v, w = pull(first), pull(second), pull(both)
    rtol = SINGLE_RTOL if trial.single else LINEARITY_RTOL
    for path in trial.paths:
        want = alpha * np.asarray(u[path]) + beta * np.asarray(v[path])
        size = _largest(u[path]) + _largest(v[path])
        error = _largest(np.asarray(w[path]) - want)
        if not error <= rtol * max(size, 1.0):
            trial.fail(
                "linearity",
                f"the cotangent of {trial.primal_name(path)} is off by {error:.3g}",
                "a pullback must be linear in its cotangent",
            )


def check_differences(pulls: _Pulls, settings: Any) -> None:
    """<y_bar, J x_dot> by differences is <x_bar, x_dot>: each part of y, each argument."""
    trial = pulls.trial
    _, pull = pulls.at(trial.primals)
    chosen = [None] if len(pulls.y_leaves) == 1 else [None, *pulls.y_leaves]
    drawn = [(only, bars, pull(bars)) for only in chosen for bars in [pulls.draw(only=only)]]
    for path in trial.paths:
        scale = trial.scale(path)
        for k in range(DIRECTIONS):
            x_dot = trial.draw(path, 1)[0]

            def along(step: float, path: Path = path, x_dot: Any = x_dot) -> Bars:
                y = trial.plain(trial.moved({path: step * x_dot}))
                return {key: np.asarray(v) for key, v in walk(y) if is_leaf(v)}

            y_dot, errors = directional(along, scale)
            for only, bars, x_bars in drawn:
                left = sum(_inner(bars[key], y_dot[key]) for key in y_dot)
                right = _inner(x_bars[path], x_dot)
                size = _size(x_bars[path], x_dot)
                size += sum(_size(bars[key], y_dot[key]) for key in y_dot)
                doubt = sum(_size(bars[key], errors[key]) for key in y_dot)
                y_size = sum(_size(bars[key], v) for key, v in pulls.y_leaves.items())
                floor = 1e-10 * max(y_size, 1.0) / scale
                most = settings["rtol"] * size + floor
                part = "" if only is None else f", of result{describe(only)} alone"
                where = f"argument {trial.primal_name(path)}, direction {k}{part}"
                if doubt > most:
                    trial.fail(
                        "differences",
                        f"{where}: finite differences are accurate to {doubt:.1e} only (needed "
                        f"{most:.1e})",
                        "choose arguments away from kinks and poles, or pass rtol= with a reason",
                    )
                if not abs(left - right) <= most:
                    trial.fail(
                        "differences",
                        f"{where}: <y_bar, J x_dot> = {left!r} by differences, but "
                        f"<x_bar, x_dot> = {right!r} (allowed {most:.3g})",
                        "the cotangent itself is wrong; None says that it is zero",
                    )


def check_together(pulls: _Pulls, _settings: Any) -> None:
    """K cotangents that are pulled back together return what each returns alone."""
    trial = pulls.trial
    _, pull = pulls.at(trial.primals)
    rtol = SINGLE_RTOL if trial.single else LINEARITY_RTOL
    for count in trial.widths:
        bars = pulls.draw(count)
        got = pull(bars)
        for k in sorted({0, count // 2, count - 1}):
            alone = pull({path: bar[k] for path, bar in bars.items()})
            for path, want in alone.items():
                mine = np.asarray(got[path])
                name = f"{count} cotangents, number {k}, of {trial.primal_name(path)}"
                if mine.shape != (count, *np.shape(want)):
                    trial.fail("cotangents", f"{name}: got shape {mine.shape}")
                error = _largest(mine[k] - np.asarray(want))
                if not error <= rtol * max(_largest(want), 1.0):
                    trial.fail(
                        "cotangents",
                        f"{name}: off by {error:.3g} from the same one pulled back alone",
                        "the pullback must depend on its cotangent alone",
                    )


def check_second_order(pulls: _Pulls, settings: Any) -> None:
    """The derivative of the pullback agrees with finite differences of the pullback."""
    trial = pulls.trial
    if not settings["second_order"] or trial.single:
        return
    bars = pulls.draw()
    x_dot = {path: trial.draw(path, 1)[0] for path in trial.paths}
    leaves = dict(zip(trial.paths, trial.leaves, strict=True))

    def pulled(step: Any) -> Any:
        given = {path: leaves[path] + step * x_dot[path] for path in trial.paths}
        primals = rebuild(tuple(trial.primals), lambda path, v: given.get(path, v))
        return [pulls.at(primals)[1](bars)[path] for path in trial.paths]

    def along(step: float) -> Bars:
        moves = {path: step * x_dot[path] for path in trial.paths}
        x_bars = pulls.at(trial.moved(moves))[1](bars)
        return {path: np.asarray(x) for path, x in x_bars.items()}

    try:
        first, lanes = jvp(pulled, 0.0, np.array(STEPS))
    except (FwdadError, AssertionError) as error:
        what = getattr(error, "msg", str(error)).removeprefix(f"{trial.name}, structure: ")
        raise trial.failure("second order", what, "or pass second_order=False") from error
    scale = min(trial.scale(path) for path in trial.paths)
    want, errors = directional(along, scale)
    for path, x_bar, x_bar_dot in zip(trial.paths, first, lanes, strict=True):
        rtol = max(SECOND_RTOL, 10 * settings["rtol"])
        most = rtol * _largest(want[path]) + 1e-9 * max(_largest(x_bar), 1.0) / scale
        where = f"the derivative of the cotangent of {trial.primal_name(path)}"
        if errors[path] > most:
            trial.fail(
                "second order",
                f"{where}: finite differences are accurate to {errors[path]:.1e} only",
                "choose arguments away from kinks and poles, or pass second_order=False",
            )
        off = _largest(np.asarray(x_bar_dot)[0] - want[path])
        if not off <= most:
            trial.fail(
                "second order",
                f"{where} is off by {off:.3g} (allowed {most:.3g})",
                "the rule or the pullback loses an enclosing derivative: use NumPy functions of "
                "the primals and of y_bar",
            )


def _largest(x: Any) -> float:
    return float(np.max(np.abs(x), initial=0.0))  # NaN where there is one, which passes no test


def _inner(bar: Any, dot: Any) -> float:
    return float(np.sum((np.conj(bar) * dot).real))


def _size(bar: Any, dot: Any) -> float:
    return float(np.sum(np.abs(bar) * np.abs(dot)))


def check_memory(pulls: _Pulls, settings: Any) -> None:
    """The function writes into no other argument than it says, and returns new memory."""
    check_written(pulls.trial, settings)
    check_returned(pulls.trial, settings)


def check_modes(pulls: _Pulls, settings: Any) -> None:
    """On a tape and compiled the same cotangents come back."""
    trial = pulls.trial
    if not settings["modes"]:
        return
    bars = pulls.draw()
    want = pulls.at(trial.primals)[1](bars)
    pull = pulled(called_by(trial))
    for mode, run in compilers():
        x_bars = attempt(trial, mode, run(pull), leaves_of(trial), pulls.in_structure(bars))
        if x_bars is None:
            continue
        for path, x_bar in zip(trial.paths, x_bars, strict=True):
            whole = x_bar[0] + 1j * x_bar[1] if type(x_bar) is list else x_bar
            error = _largest(np.asarray(whole) - want[path])
            rtol = SINGLE_RTOL if trial.single else LINEARITY_RTOL
            if not error <= rtol * max(_largest(want[path]), 1.0):
                what = f"the cotangent of {trial.primal_name(path)} is off by {error:.3g}"
                trial.fail(mode, what, "the rule gives another result when it is recorded")


CHECKS: tuple[Callable[[_Pulls, Any], None], ...] = (
    check_memory,
    check_structure,
    check_value,
    check_repeated,
    check_linear,
    check_differences,
    check_together,
    check_second_order,
    check_modes,
)
