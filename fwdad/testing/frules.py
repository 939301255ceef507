"""``check_frule``: one rule against finite differences, and against everything it promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.evaluation.differences import directional
from fwdad.rules.core.containers import rebuild, walk
from fwdad.tangents.chunk import Chunk
from fwdad.testing.memory import check_returned, check_written
from fwdad.testing.modes import check_modes
from fwdad.testing.nested import check_second_order
from fwdad.testing.results import (
    check_aliasing,
    check_inputs,
    check_primal,
    check_structure,
    check_writeable,
)
from fwdad.testing.structure import describe, is_leaf, result_tangents
from fwdad.testing.transposes import check_recording
from fwdad.testing.trial import CheckError, Trial, make_trial

DIFFERENCES_RTOL = 1e-7
LINEARITY_RTOL = 1e-11
LANES_RTOL = 1e-13
SINGLE_RTOL = 1e-3
DIFFERENCED_LANES = 2


def check_frule(
    f: Callable[..., Any],
    *args: Any,
    chunk: Sequence[int] = (1, 2, 3),
    rng: np.random.Generator | None = None,
    rtol: float | None = None,
    reason: str | None = None,
    argnums: Sequence[int | str] | None = None,
    float32: bool = True,
    opaque: bool = False,
    second_order: bool = True,
    modes: bool = True,
    **options: Any,
) -> None:
    """Check a function's forward rule at given arguments.

    The rule is the registered one, or the one that the builder derives. It is checked against
    finite differences, at every chunk width in ``chunk`` and at every width that equals a length
    of the arguments or of the result, for every pattern of active and ``ZERO`` tangents.

    Parameters
    ----------
    f : callable
        The primal.
    *args
        Its arguments; containers of arrays are allowed. Take them where f is smooth.
    chunk : sequence of int, default (1, 2, 3)
        The chunk widths.
    rng : numpy.random.Generator, optional
        Where seeds come from; ``numpy.random.default_rng(0)`` by default.
    rtol : float, optional
        The tolerance of the comparison with finite differences, relative to the largest
        derivative; 1e-7 by default (1e-3 for float32 and complex64). A looser one needs a
        ``reason``.
    reason : str, optional
        Why a looser tolerance is right here.
    argnums : sequence of int or str, optional
        The primals that are differentiated; by default every one that has a tangent space and
        no ``no_derivative``.
    float32 : bool, default True
        Also run with float64 arrays cast to float32 (where f itself can).
    opaque : bool, default False
        Accept a rule that looks into its lanes and has no transpose.
    second_order : bool, default True
        Also differentiate the pushforward.
    modes : bool, default True
        Also run a rule of your own on a tape, compiled (where Numba is installed) and backwards.
    **options
        Keyword arguments of ``f``. One that has the name of a setting above goes in as
        ``functools.partial(f, rtol=…)``.

    Raises
    ------
    AssertionError
        Naming the check, the chunk width, the argument and the largest error.

    Notes
    -----
    The checks: the primal is bit-equal to the plain call, in type, dtype and shape;
    tangents mirror it; inputs are not mutated; the result aliases an input only where the plain
    result does, and is as writeable; derivatives agree with finite differences; the rule is
    linear in its tangents to 1e-11; the derivative of several arguments is the sum of their
    derivatives; a lane does not depend on its neighbours (bitwise for elementwise rules, 1e-13
    otherwise); float32 stays float32. Of a rule of your own also: the function writes into the
    arguments that ``mutates=`` names only, and what it returns is the memory that ``returns=``
    says; a tape, compiled code and reverse mode give the same. The rule of a function that writes
    is checked as that of the function that returns the new contents.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.testing import check_frule
    >>> check_frule(np.linalg.solve, np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]))
    """
    trial = make_trial(f, args, options, chunk, rng, argnums)
    settings = {
        "rtol": allowed(trial, rtol, reason),
        "float32": float32,
        "opaque": opaque,
        "second_order": second_order,
        "modes": modes,
    }
    for check in CHECKS:
        check(trial, settings)


def failing_checks(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any] | None = None,
    *,
    chunk: Sequence[int] = (1, 2, 3),
    **settings: Any,
) -> dict[str, str]:
    """Run every check of :func:`check_frule` and return the messages of those that fail.

    Other modes are run on request only: what is wrong eagerly is wrong there, too.
    """
    trial = make_trial(f, args, options or {}, chunk, None, None)
    settings = {"rtol": allowed(trial, None, None), "float32": True, "modes": False, **settings}
    failures = {}
    for check in CHECKS:
        try:
            check(trial, settings)
        except CheckError as failure:
            failures[failure.check] = str(failure)
    return failures


def allowed(trial: Trial, rtol: float | None, reason: str | None) -> float:
    """The tolerance against finite differences; a looser one than usual carries its reason."""
    usual = SINGLE_RTOL if trial.single else DIFFERENCES_RTOL
    if rtol is None:
        return usual
    if rtol > usual and not reason:
        raise ValueError(f"rtol={rtol:g} is looser than {usual:g}: give the reason, reason=…")
    return rtol


# -- the derivative


def check_differences(trial: Trial, settings: Any) -> None:
    """Each argument's derivative agrees with finite differences in double precision."""
    for path in trial.paths:
        scale = trial.scale(path)
        for lane in range(min(DIFFERENCED_LANES, max(trial.widths))):

            def along(step: float, path: Any = path, lane: int = lane) -> Any:
                y = trial.plain(trial.moved({path: step * trial.seeds[path][lane]}))
                return {key: np.asarray(v)[None] for key, v in walk(y) if is_leaf(v)}

            want, errors = directional(along, scale)
            got = trial.run_at((path,), lane, lane + 1)
            for key in [k for k in want if k in got]:
                size = float(np.max(np.abs(want[key]), initial=0.0))
                # values of moderate size have differences that are good to 1e-12 of them
                y_size = float(np.max(np.abs(dict(walk(trial.y))[key]), initial=0.0))
                floor = 1e-10 * max(y_size, 1.0) / scale
                if errors[key] > settings["rtol"] * size + floor:
                    trial.fail(
                        "differences",
                        f"finite differences along {trial.primal_name(path)} are accurate to "
                        f"{errors[key]:.1e} only (needed {settings['rtol'] * size + floor:.1e})",
                        "choose arguments away from kinks and poles, or pass rtol= with a reason",
                    )
                trial.compare(
                    "differences",
                    {key: got[key]},
                    {key: want[key]},
                    settings["rtol"],
                    f"N = 1, argument {trial.primal_name(path)}",
                    "the derivative itself is wrong",
                    atol=floor,
                )


def check_linearity(trial: Trial, _settings: Any) -> None:
    """The rule is linear in the tangents, to 1e-11: no constant is added, no product taken."""
    alpha, beta = -0.75, 1.5
    first = {path: trial.draw(path, 1) for path in trial.paths}
    second = {path: trial.draw(path, 1) for path in trial.paths}
    both = {path: (alpha * first[path] + beta * second[path]) for path in trial.paths}
    u, v, w = trial.run(first), trial.run(second), trial.run(both)
    want = {key: alpha * u[key] + beta * v[key] for key in u}
    rtol = 1e-4 if trial.single else LINEARITY_RTOL
    hint = "a rule must be linear in its tangents: look for a constant that is added"
    trial.compare("linearity", w, want, rtol, "N = 1, L(au + bv)", hint, atol=rtol)


def check_patterns(trial: Trial, _settings: Any) -> None:
    """The derivative along several arguments is the sum of the derivatives along each."""
    rtol = 1e-4 if trial.single else LINEARITY_RTOL
    for pattern in trial.patterns():
        if len(pattern) == 1:
            continue
        got = trial.run_at(pattern, 0, 1)
        singles = [trial.run_at((path,), 0, 1) for path in pattern]
        want = {key: sum(s[key] for s in singles) for key in got if all(key in s for s in singles)}
        for key, summed in want.items():
            size = sum(float(np.max(np.abs(s[key]), initial=0.0)) for s in singles)
            trial.compare(
                "patterns",
                {key: got[key]},
                {key: summed},
                0.0,
                f"N = 1, active {trial.names(pattern)}",
                "a term is dropped or doubled when several arguments are active",
                atol=rtol * max(size, 1.0),
            )


def check_lanes(trial: Trial, _settings: Any) -> None:
    """Lane k of a chunk is what a chunk of that lane alone gives, at every width and pattern."""
    exact = trial.rule is not None and trial.rule.kind == "elementwise"
    rtol = 0.0 if exact else 1e-5 if trial.single else LANES_RTOL
    hint = "the lane axis is mixed up with an axis of the primal, or all lanes share one seed"
    for pattern in trial.patterns():
        for n in trial.widths:
            try:
                got = trial.run_at(pattern, 0, n)
            except (ValueError, IndexError, TypeError) as error:
                what = f"N = {n}, active {trial.names(pattern)}: {type(error).__name__}: {error}"
                raise trial.failure("lanes", what, hint) from error
            # products of matrices round by the size of their terms, which may cancel in one lane
            size = {key: _largest(value) for key, value in got.items()}
            lanes = range(n) if n <= 8 else sorted({0, 1, n // 2, n - 1})
            for k in lanes:
                want = trial.run_at(pattern, k, k + 1)
                mine = {key: value[k : k + 1] for key, value in got.items()}
                where = f"N = {n}, lane {k} beside its own run, active {trial.names(pattern)}"
                for key, value in want.items():
                    beside = {key: mine[key]} if key in mine else {}
                    atol = rtol * size.get(key, 0.0)
                    trial.compare("lanes", beside, {key: value}, rtol, where, hint, atol)


def _largest(x: Any) -> float:
    return float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))


def check_float32(trial: Trial, settings: Any) -> None:
    """Single precision goes in and comes out, and agrees with double precision."""
    arrays = [x for x in trial.leaves if isinstance(x, (np.ndarray, np.generic))]
    if not settings["float32"] or trial.single or not arrays:
        return
    small = rebuild(tuple(trial.primals), lambda _, v: _single(v))
    try:
        with np.errstate(all="ignore"):
            want_y = trial.plain(small)
    except (TypeError, ValueError, np.linalg.LinAlgError):
        return  # the function itself takes no float32
    lanes = {path: _single(trial.seeds[path][:2]) for path in trial.paths}
    with np.errstate(all="ignore"):
        double = rebuild(small, lambda _, v: _as_double(v))
        double_lanes = {path: _as_double(v) for path, v in lanes.items()}
        y, y_dot = trial.push(small, lanes)
        reference = trial.push(double, double_lanes)
    wanted = {path: t for path, _, t in result_tangents(*reference)}
    plain = dict(walk(trial.y))
    for (where, a), (_, b) in zip(walk(y), walk(want_y), strict=True):
        same = np.asarray(dict(walk(reference[0]))[where]).dtype == np.asarray(plain[where]).dtype
        if is_leaf(b) and np.asarray(a).dtype != np.asarray(b).dtype and same:
            kinds = f"got {np.asarray(a).dtype}, expected {np.asarray(b).dtype}"
            trial.fail("float32", f"result{describe(where)} of float32 arguments: {kinds}")
    for path, value, tangent in result_tangents(y, y_dot):
        if not isinstance(tangent, Chunk) or not isinstance(wanted[path], Chunk):
            continue
        dtype, space = tangent.lanes.dtype, np.asarray(value).dtype
        if not np.can_cast(dtype, space, "safe"):
            trial.fail(
                "float32",
                f"result{describe(path)}: got a tangent of dtype {dtype} for {space}",
                "a constant of dtype float64 in the rule promotes: use Python numbers",
            )
        got, want = {path: np.asarray(tangent.lanes)}, {path: np.asarray(wanted[path].lanes)}
        hint = "the rule loses precision in float32"
        trial.compare("float32", got, want, SINGLE_RTOL, "N = 2", hint, atol=1e-5)


def _single(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype in (np.float64, np.complex128):
        return value.astype(np.float32 if value.dtype.kind == "f" else np.complex64)
    return value


def _as_double(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype in (np.float32, np.complex64):
        return value.astype(np.float64 if value.dtype.kind == "f" else np.complex128)
    return value


CHECKS: tuple[Callable[[Trial, Any], None], ...] = (
    check_written,  # what writes into its arguments unasked changes what the others see
    check_primal,
    check_structure,
    check_inputs,
    check_returned,
    check_aliasing,
    check_writeable,
    check_differences,
    check_linearity,
    check_patterns,
    check_lanes,
    check_float32,
    check_recording,
    check_second_order,
    check_modes,
)
