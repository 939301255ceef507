"""Transposes against the rules that they transpose: <y_bar, L x_dot> = <L' y_bar, x_dot>."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import (
    ChunkMismatchError,
    ChunkOperationError,
    MissingTransposeError,
    NonlinearTangentError,
)
from fwdad.rules.core.adjoints import TRANSPOSES, Space
from fwdad.rules.core.containers import Path, pick, rebuild
from fwdad.rules.core.recording import (
    OpaqueTangentError,
    Operation,
    RecordingTangent,
    pull_back,
)
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import Undefined
from fwdad.testing.structure import describe, is_leaf, result_tangents
from fwdad.testing.trial import Trial, make_trial

TRANSPOSE_RTOL = 1e-12


def check_transpose(
    f: Callable[..., Any],
    *args: Any,
    argnum: int = 0,
    rng: np.random.Generator | None = None,
    **options: Any,
) -> None:
    """Check the transpose of a linear primitive: <y_bar, L x_dot> = <L' y_bar, x_dot>.

    Parameters
    ----------
    f : callable
        A function with a transpose for this argument.
    *args
        Its arguments; the function is linear in the one at ``argnum``, which may be a list of
        arrays.
    argnum : int, default 0
        The position, among the primals of the rule of ``f``, of the linear argument.
    rng : numpy.random.Generator, optional
        Where seeds come from.
    **options
        Keyword arguments of ``f``.

    Raises
    ------
    AssertionError
        Where the two differ by more than 1e-12 of the sizes that meet, under Re<., .>, or the
        cotangent has not the argument's shape, or is complex for a real argument.

    Notes
    -----
    Chunks of one, two and three cotangents are pulled back, and as many as an argument is long.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.testing import check_transpose
    >>> check_transpose(np.sum, np.ones((2, 3)), axis=1)
    """
    trial = make_trial(f, args, options, (1, 2, 3), rng, [argnum])
    body = TRANSPOSES.get(f, {}).get(argnum)
    if body is None:
        raise MissingTransposeError(f"{trial.name} has no transpose for argument {argnum}")
    body = inspect.unwrap(body)  # what is looked at when it runs is looked at here
    x_dot = {path: trial.seeds[path][:1] for path in trial.paths}
    y_lanes = trial.run(x_dot)
    ((where, dy),) = y_lanes.items()
    if where:
        trial.fail("transpose", "a linear primitive has one result, not a container")
    y = np.asarray(pick(trial.y, where))
    spaces = [
        rebuild(p, lambda _, v: Space.of(v) if is_leaf(v) else v) if k == argnum else p
        for k, p in enumerate(trial.primals)
    ]
    for n in trial.widths:
        y_bar = cotangent(trial, y, n)
        copy = y_bar.lanes.copy()
        x_bar = body(y_bar, *spaces, **trial.options)
        if copy.tobytes() != y_bar.lanes.tobytes():
            trial.fail("transpose", "the transpose wrote into its cotangent", "copy first")
        right, size = np.zeros(n), np.zeros(n)
        for path in trial.paths:
            part = pick(x_bar, path[1:])
            right += inner(trial, part, x_dot[path][0], path, n)
            size += magnitude(part, x_dot[path][0], n)
        left = real_inner(y_bar.lanes, dy[0])
        size += np.sum(np.abs(y_bar.lanes) * np.abs(dy[0]), axis=tuple(range(1, y.ndim + 1)))
        verdict(trial, "transpose", left, right, size, f"N = {n}, argument {argnum}")


def cotangent(trial: Trial, y: Any, n: int) -> Chunk:
    """Random cotangents of a value: complex for a complex one."""
    y = np.asarray(y)
    lanes = trial.rng.uniform(-1, 1, (n, *y.shape))
    if y.dtype.kind == "c":
        lanes = lanes + 1j * trial.rng.uniform(-1, 1, lanes.shape)
    return Chunk(lanes.astype(y.dtype) if y.dtype.kind in "fc" else lanes)


def real_inner(bars: Any, dots: Any) -> Any:
    """Re<bar, dot> for each lane of bars."""
    product = np.conj(bars) * dots
    return np.sum(product.real, axis=tuple(range(1, product.ndim)))


def inner(trial: Trial, x_bar: Any, x_dot: Any, path: Path, n: int) -> Any:
    """Re<x_bar, x_dot> for each of n cotangents; the cotangent lives in the argument's space."""
    if not isinstance(x_bar, Chunk):
        return np.zeros(n)
    name = trial.primal_name(path)
    if x_bar.shape != np.shape(x_dot) or x_bar.n != n:
        what = f"got {x_bar!r} as {n} cotangents of {name}, of shape {np.shape(x_dot)}"
        trial.fail("transpose", what, "a cotangent has its primal's shape")
    if x_bar.lanes.dtype.kind == "c" and np.asarray(x_dot).dtype.kind != "c":
        trial.fail("transpose", f"got a complex cotangent for the real {name}", "take .real")
    return real_inner(x_bar.lanes, x_dot)


def magnitude(x_bar: Any, x_dot: Any, n: int) -> Any:
    """The size of the terms of an inner product, which rounding is measured by."""
    if not isinstance(x_bar, Chunk):
        return np.zeros(n)
    product = np.abs(x_bar.lanes) * np.abs(x_dot)
    return np.sum(product, axis=tuple(range(1, product.ndim)))


def verdict(trial: Trial, check: str, left: Any, right: Any, size: Any, where: str) -> None:
    """Fail where <y_bar, L x_dot> and <L' y_bar, x_dot> differ."""
    rtol = 1e-4 if trial.single else TRANSPOSE_RTOL
    error = np.abs(left - right)
    if np.any(~(error <= rtol * np.maximum(size, 1e-300))) and np.any(size > 0):
        k = int(np.argmax(error))
        trial.fail(
            check,
            f"{where}: <y_bar, L x_dot> = {left[k]!r} but <L' y_bar, x_dot> = {right[k]!r} "
            f"(error {error[k]:.3g}, allowed {rtol * size[k]:.3g})",
            "the transpose is not the adjoint under Re<., .>",
        )


def check_recording(trial: Trial, settings: Any) -> None:
    """The rule consists of operations of the closed list, and can be run backwards.

    Each single active argument, and all together, are recorded; the record is transposed and
    compared with the rule itself. A rule that looks into its lanes needs a transpose of its own.
    """
    if trial.rule is None or trial.rule.kind == "constant":
        return
    patterns: list[tuple[Path, ...]] = [(path,) for path in trial.paths]
    if len(patterns) > 1:
        patterns.append(tuple(trial.paths))
    for pattern in patterns:
        where = f"active {trial.names(pattern)}"
        try:
            outputs, values, inputs = _record(trial, pattern)
        except OpaqueTangentError as error:
            if settings.get("opaque"):
                continue
            what = f"{where}: {error}"
            hint = "use the closed list, write a @transpose, or pass opaque=True"
            raise trial.failure("recording", what, hint) from error
        try:
            x_bars = pull_back(outputs)
        except MissingTransposeError as error:
            if settings.get("opaque"):
                continue
            raise trial.failure("recording", f"{where}: {error.msg}") from error
        except (ChunkOperationError, ChunkMismatchError, NonlinearTangentError) as error:
            raise trial.failure("recording", f"{where}: {error.msg}") from error
        _compare(trial, pattern, values, inputs, x_bars)


def _record(trial: Trial, pattern: tuple[Path, ...]) -> Any:
    """Record one run: recorded results with cotangents, all results, the inputs."""
    lanes = {path: trial.seeds[path][:1] for path in pattern}
    inputs = {path: RecordingTangent(Chunk(x)) for path, x in lanes.items()}
    own = TRANSPOSES.get(trial.f, {})
    if len({path[0] for path in pattern}) == 1 and pattern[0][0] in own:
        y, y_dot = trial.push(trial.primals, lanes)
        # the inactive items of a list stay themselves: a transpose asks them for their shape
        primals = rebuild(tuple(trial.primals), inputs.get)
        if isinstance(y_dot, Chunk):
            y_dot = RecordingTangent(y_dot, Operation(trial.f, primals, trial.options))
    else:
        y, y_dot = trial.push(trial.primals, inputs)
    outputs: list[tuple[RecordingTangent, Chunk]] = []
    values: list[tuple[Path, Chunk]] = []
    for path, value, tangent in result_tangents(y, y_dot):
        if not isinstance(tangent, Chunk) or isinstance(tangent, Undefined) or not is_leaf(value):
            continue
        y_bar = cotangent(trial, value, 2)
        if isinstance(tangent, RecordingTangent):
            outputs.append((tangent, y_bar))
        elif np.any(np.asarray(tangent.lanes) != 0):
            what = f"the tangent of result{describe(path)} does not come from the arguments'"
            trial.fail("recording", what, "a rule must be linear in its tangents")
        values.append((path, y_bar))
    return outputs, values, inputs


def _compare(
    trial: Trial, pattern: tuple[Path, ...], values: Any, inputs: Any, x_bars: dict[int, Chunk]
) -> None:
    got = trial.run_at(pattern, 0, 1)
    left, right, size = np.zeros(2), np.zeros(2), np.zeros(2)
    for path, y_bar in values:
        left += real_inner(y_bar.lanes, got[path][0])
        size += magnitude(y_bar, got[path][0], 2)
    for path, tangent in inputs.items():
        x_bar = x_bars.get(id(tangent))
        x_dot = trial.seeds[path][0]
        right += inner(trial, x_bar, x_dot, path, 2)
        size += magnitude(x_bar, x_dot, 2)
    verdict(trial, "recording", left, right, size, f"active {trial.names(pattern)}")
