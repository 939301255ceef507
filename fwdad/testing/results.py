"""Checks of what a rule returns: the primal, the structure, unchanged inputs, shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import type_in_words
from fwdad.rules.core.containers import walk
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import NoTangentType, Undefined, Zero
from fwdad.testing.structure import copied, describe, is_leaf, result_tangents
from fwdad.testing.trial import Trial


def check_primal(trial: Trial, _settings: Any) -> None:
    """The primal comes back as the plain call gives it, to the last bit."""
    lanes = {path: trial.seeds[path][:1] for path in trial.paths}
    y, _ = trial.push(trial.primals, lanes)
    hint = "compute the primal as the function itself does"
    got, want = dict(walk(y)), dict(walk(trial.y))
    if type(y) is not type(trial.y) or got.keys() != want.keys():
        trial.fail("primal", f"got {type(y).__name__}, expected {type(trial.y).__name__}", hint)
    for path, value in want.items():
        mine, where = got[path], f"result{describe(path)}"
        if type(mine) is not type(value):
            names = f"got {type(mine).__name__}, expected {type(value).__name__}"
            trial.fail("primal", f"{where}: {names}", hint)
        if not isinstance(value, (np.ndarray, np.generic, float, complex, int)):
            continue
        a, b = np.asarray(mine), np.asarray(value)
        if a.dtype != b.dtype:
            trial.fail("primal", f"{where}: got dtype {a.dtype}, expected {b.dtype}", hint)
        if a.shape != b.shape:
            trial.fail("primal", f"{where}: got shape {a.shape}, expected {b.shape}", hint)
        if a.dtype != object and a.tobytes() != b.tobytes():
            error = np.max(np.abs(a - b)) if a.dtype.kind in "fc" else "an integer"
            trial.fail("primal", f"{where}: not bit-equal to the plain call, off by {error}", hint)


def check_structure(trial: Trial, _settings: Any) -> None:
    """Each part of the result has a tangent of its shape, dtype and width, or ``ZERO``."""
    n = 2
    lanes = {path: trial.draw(path, n) for path in trial.paths}
    y, y_dot = trial.push(trial.primals, lanes)
    try:
        parts = list(result_tangents(y, y_dot))
    except AssertionError as error:
        trial.fail("structure", str(error))
    leaves = [(path, value, tangent) for path, value, tangent in parts if is_leaf(value)]
    if leaves and all(isinstance(tangent, Undefined) for *_, tangent in leaves):
        trial.fail("structure", "every tangent is undefined here: choose other arguments")
    for path, value, tangent in parts:
        where = f"result{describe(path)}"
        if isinstance(tangent, (Zero, Undefined, NoTangentType)):
            continue
        if not isinstance(tangent, Chunk):
            trial.fail("structure", f"{where}: {type_in_words(tangent)} is not a tangent")
        if not is_leaf(value):
            trial.fail("structure", f"{where}: {type_in_words(value)} has no tangent space")
        if tangent.n != n or tangent.shape != np.shape(value):
            trial.fail(
                "structure",
                f"{where}: got {tangent!r} for {n} lanes of shape {np.shape(value)}",
                "a tangent has its primal's shape",
            )
        dtype, space = tangent.lanes.dtype, np.asarray(value).dtype
        if not np.can_cast(dtype, space, "safe"):
            trial.fail(
                "structure",
                f"{where}: got a tangent of dtype {dtype} for a primal of dtype {space}",
                "real results have real tangents (take .real), float32 has float32",
            )


def check_inputs(trial: Trial, _settings: Any) -> None:
    """Neither the primals, nor the options, nor the lanes are written."""
    inputs = (tuple(trial.primals), trial.options)
    before = {path: copied(value) for path, value in walk(inputs)}
    lanes = {path: trial.seeds[path][:2].copy() for path in trial.paths}
    _, y_dot = trial.push(trial.primals, lanes, restore=False)
    for _, part in walk(y_dot):
        if isinstance(part, Chunk):
            part.lanes  # noqa: B018  (multiplies out what was deferred)
    now = dict(walk(inputs))
    written = [
        path
        for path, value in before.items()
        if isinstance(value, np.ndarray) and now[path].tobytes() != value.tobytes()
    ]
    trial.restore()
    for kind, *path in written:
        name = f"option {path[0]}" if kind else trial.primal_name(tuple(path))
        trial.fail("inputs", f"the rule wrote into {name}", "copy first")
    for where, seeds in lanes.items():
        if seeds.tobytes() != trial.seeds[where][:2].tobytes():
            name = trial.primal_name(where)
            trial.fail("inputs", f"the rule wrote into the lanes of {name}", "lanes are immutable")


def _memory(value: Any) -> dict[Any, np.ndarray]:
    return {path: part for path, part in walk(value) if isinstance(part, np.ndarray)}


def check_aliasing(trial: Trial, _settings: Any) -> None:
    """The result shares memory with an input only where the plain result does."""
    lanes = {path: trial.seeds[path][:1] for path in trial.paths}
    y, y_dot = trial.push(trial.primals, lanes)
    inputs = _memory(tuple(trial.primals))
    plain_y = trial.plain(trial.primals)
    own, plain = _memory(y), _memory(plain_y)
    for path, part in own.items():
        for where, source in inputs.items():
            shares = np.shares_memory(part, source)
            if shares != np.shares_memory(plain[path], source):
                name = f"result{describe(path)} {'shares' if shares else 'does not share'} memory"
                trial.fail(
                    "aliasing",
                    f"{name} with {trial.primal_name(where)}; the plain call's is the opposite",
                    "a view stays a view, a fresh array stays fresh",
                )
    for path, part in walk(y_dot):
        if not isinstance(part, Chunk):
            continue
        arrays = [a for item in part.terms.items() for a in _arrays_of(item)]
        for name, source in [
            *((trial.primal_name(where), value) for where, value in inputs.items()),
            *((f"result{describe(where)}", value) for where, value in own.items()),
        ]:
            if any(np.shares_memory(array, source) for array in arrays):
                trial.fail(
                    "aliasing",
                    f"the tangent of result{describe(path)} shares memory with {name}",
                    "user code may write there later: let the tangent own its arrays",
                )


def _arrays_of(term: tuple[Any, Any]) -> list[np.ndarray]:
    lanes, d = term
    return [a for a in (lanes.array, d) if isinstance(a, np.ndarray)]


def check_writeable(trial: Trial, _settings: Any) -> None:
    """An array that the plain call returns writeable is returned writeable."""
    lanes = {path: trial.seeds[path][:1] for path in trial.paths}
    y, _ = trial.push(trial.primals, lanes)
    plain = _memory(trial.y)
    for path, part in _memory(y).items():
        if part.flags.writeable != plain[path].flags.writeable:
            state = "writeable" if part.flags.writeable else "read-only"
            trial.fail(
                "writeable",
                f"result{describe(path)} is {state}, the plain call's is not",
                "users update results in place",
            )
