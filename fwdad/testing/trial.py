"""One function with one set of arguments, ready to have its rule run in any way."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from fwdad.eager.build import build_frule, run_on_duals
from fwdad.errors import ChunkMismatchError, ChunkOperationError, NonlinearTangentError
from fwdad.rules.core.containers import Path, pick, rebuild, walk
from fwdad.rules.core.partials import NoDerivative
from fwdad.rules.core.registry import Rule, find_rule, function_name
from fwdad.tangents.chunk import Chunk
from fwdad.testing.structure import copied, describe, is_leaf, lanes_of, leaf_paths, tangents_for

LONGEST = 64
"""Chunks as wide as an argument is long are tried up to this length."""


class CheckError(AssertionError):
    """A check of the harness failed; ``check`` says which."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check


class Trial:
    """A function, its bound arguments, seeds for each, and ways to run the rule.

    For a function that writes, ``writer`` is its rule, and ``f`` and ``rule`` are those of the
    function that returns the new contents; otherwise ``writer`` is None.
    """

    def __init__(
        self,
        f: Any,
        args: tuple[Any, ...],
        options: dict[str, Any],
        *,
        chunk: Sequence[int],
        rng: np.random.Generator,
        argnums: Sequence[int | str] | None = None,
        rule: Rule | None = None,
    ) -> None:
        self.name = function_name(f)
        self.rule = find_rule(f) if rule is None else rule
        self.writer = self.rule if self.rule is not None and self.rule.mutates else None
        if self.writer is not None:  # all but what it writes is that of the new contents' function
            f = self.writer.pure
            self.rule = find_rule(f)
        self.f, self.args, self.kwargs = f, args, options
        if self.rule is None:
            self.primals, self.options = args, options
        else:
            self.primals, self.options = self.rule.binder.bind(args, options)
        self.rng = rng
        self.paths = self._active_paths(argnums)
        self.leaves = [pick(self.primals, path) for path in self.paths]
        self.single = any(np.asarray(x).dtype in (np.float32, np.complex64) for x in self.leaves)
        of_user = self.rule is not None and self.rule.of_user  # which may write, unasked
        self.y = self.plain(copied(tuple(self.primals)) if of_user else self.primals)
        self.widths = self._widths(chunk)
        self.seeds = {path: self.draw(path, max(self.widths)) for path in self.paths}
        self._runs: dict[Any, dict[Path, Any]] = {}
        values = [*walk(tuple(self.primals)), *walk(self.options)]
        self._kept = [(v, v.copy()) for _, v in values if isinstance(v, np.ndarray)]

    # -- what there is

    def _active_paths(self, argnums: Sequence[int | str] | None) -> list[Path]:
        paths = leaf_paths(self.primals)
        partials = self.rule.partials if self.rule else ()
        paths = [
            path
            for path in paths
            if path[0] >= len(partials) or not isinstance(partials[path[0]], NoDerivative)
        ]
        if argnums is not None:
            names = [self.primal_name((k,)) for k in range(len(self.primals))]
            chosen = {names.index(a) if isinstance(a, str) else a for a in argnums}
            paths = [path for path in paths if path[0] in chosen]
        if not paths:
            message = f"{self.name}: no argument has a tangent space: pass floats or float arrays"
            raise ValueError(message)
        return paths

    def primal_name(self, path: Path) -> str:
        """An argument's name, with the path into it."""
        if self.rule is not None and self.rule.kind != "constant":
            return self.rule.binder.primal_name(path[0]) + describe(path[1:])
        return f"args[{path[0]}]" + describe(path[1:])

    def names(self, pattern: tuple[Path, ...]) -> str:
        """The active arguments of a pattern, for messages."""
        return ", ".join(self.primal_name(path) for path in pattern)

    def _widths(self, chunk: Sequence[int]) -> list[int]:
        lengths = {
            length
            for _, value in [*walk(self.primals), *walk(self.y)]
            for length in np.shape(value)
            if 0 < length <= LONGEST
        }
        return sorted({*chunk, *lengths})

    def patterns(self) -> list[tuple[Path, ...]]:
        """Every way to choose active leaves; for many leaves: one, all but one, all."""
        paths = self.paths
        if len(paths) <= 4:
            sizes: Any = range(1, len(paths) + 1)
        else:
            sizes = (1, len(paths) - 1, len(paths))
        return [tuple(p) for size in sizes for p in itertools.combinations(paths, size)]

    # -- seeds

    def draw(self, path: Path, n: int) -> np.ndarray:
        """Random lanes for one leaf: no element is near zero, complex ones point anywhere."""
        leaf = np.asarray(pick(self.primals, path))
        shape = (n, *leaf.shape)
        lanes = self.rng.uniform(0.5, 1.0, shape) * self.rng.choice([-1.0, 1.0], shape)
        if leaf.dtype.kind == "c":
            lanes = lanes * np.exp(1j * self.rng.uniform(0, 2 * np.pi, shape))
        return np.asarray(lanes, dtype=leaf.dtype)

    # -- runs

    def call_args(self, primals: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Put bound primals back to where they came from in the call."""
        if self.rule is None or self.rule.kind == "constant":
            return tuple(primals), self.options
        return self.rule.binder.unbind(tuple(primals), self.options)

    def plain(self, primals: Sequence[Any]) -> Any:
        """Call the primal itself."""
        args, kwargs = self.call_args(primals)
        return self.f(*args, **kwargs)

    def dispatched(self, *primals: Any) -> Any:
        """Call the primal on duals, as lifted code does."""
        return run_on_duals(self.f, *self.call_args(primals))

    def tangents(self, primals: Sequence[Any], lanes: dict[Path, Any]) -> tuple[Any, ...]:
        """Lanes (arrays or chunks) by path, as the tangents of all primals."""
        tangents = []
        for k, primal in enumerate(primals):
            mine = {path[1:]: t for path, t in lanes.items() if path[0] == k}
            chunks = {path: t if isinstance(t, Chunk) else Chunk(t) for path, t in mine.items()}
            tangents.append(tangents_for(primal, chunks))
        return tuple(tangents)

    def push(
        self, primals: Sequence[Any], lanes: dict[Path, Any], *, restore: bool = True
    ) -> tuple[Any, Any]:
        """Run the rule once, with the given lanes (arrays or chunks) by path.

        Unless ``restore`` is False, what the rule writes into the primals is undone.
        """
        tangents = self.tangents(primals, lanes)
        try:
            if self.rule is None:
                return build_frule(self.dispatched)(tuple(primals), tangents)
            return self.rule.body(tuple(primals), tangents, **self.options)
        except (NonlinearTangentError, ChunkOperationError, ChunkMismatchError) as error:
            what = f"active {self.names(tuple(lanes))}: {error.msg}"
            raise self.failure("operations", what) from error
        finally:
            if restore:
                self.restore()

    def restore(self) -> None:
        """Put the arguments back to what they were when the trial began."""
        for array, kept in self._kept:
            if array.flags.writeable:
                array[...] = kept

    def run(self, lanes: dict[Path, Any]) -> dict[Path, Any]:
        """The lanes of the result, for given lanes of the arguments."""
        n = len(next(iter(lanes.values())))
        try:
            return lanes_of(*self.push(self.primals, lanes), n)
        except Exception as error:  # whatever the rule raises, with a note
            error.add_note(
                f"while fwdad.testing ran the rule of {self.name} at N = {n}, "
                f"active: {self.names(tuple(lanes))}"
            )
            raise

    def run_at(self, pattern: tuple[Path, ...], first: int, last: int) -> dict[Path, Any]:
        """The lanes of the result for the drawn seeds ``first`` to ``last``."""
        key = (pattern, first, last)
        if key not in self._runs:
            lanes = {path: self.seeds[path][first:last].copy() for path in pattern}
            self._runs[key] = self.run(lanes)
        return self._runs[key]

    def moved(self, moves: dict[Path, Any]) -> tuple[Any, ...]:
        """The primals with some leaves moved, in double precision."""

        def move(path: Path, value: Any) -> Any:
            value = _double(value)
            if path not in moves:
                return value
            there = value + moves[path]
            return there if isinstance(value, np.ndarray) else type(value)(there)

        return rebuild(tuple(self.primals), move)

    def scale(self, path: Path) -> float:
        """The size of a leaf, which steps of differences are measured by."""
        x = np.abs(np.asarray(pick(self.primals, path)))
        return float(np.clip(np.max(x, initial=0.0), 1e-3, 1e3)) if x.size else 1.0

    # -- failing

    def failure(self, check: str, what: str, hint: str = "") -> CheckError:
        """The AssertionError of a failed check."""
        message = f"{self.name}, {check}: {what}"
        return CheckError(check, message + (f"\n  hint: {hint}" if hint else ""))

    def fail(self, check: str, what: str, hint: str = "") -> NoReturn:
        """Raise the AssertionError of a failed check."""
        raise self.failure(check, what, hint)

    def compare(
        self,
        check: str,
        got: dict[Path, Any],
        want: dict[Path, Any],
        rtol: float,
        where: str,
        hint: str,
        atol: float = 0.0,
    ) -> None:
        """Fail where lanes differ by more than ``rtol`` times the size of what is expected."""
        for path, b in want.items():
            if path not in got:
                self.fail(check, f"{where}: result{describe(path)} has no tangent", hint)
            a = got[path]
            if a.shape != b.shape:
                self.fail(check, f"{where}: got shape {a.shape}, expected {b.shape}", hint)
            if a.tobytes() == b.tobytes():
                continue
            finite = np.isfinite(b)
            if not np.array_equal(finite, np.isfinite(a)):
                self.fail(check, f"{where}: not finite in other elements than the reference", hint)
            error = np.abs(np.where(finite, a, 0) - np.where(finite, b, 0))
            scale = float(np.max(np.abs(b), initial=0.0, where=finite))
            worst = float(np.max(error, initial=0.0))
            if worst > rtol * scale + atol:
                at = np.unravel_index(int(np.argmax(error)), error.shape)
                place = f"lane {at[0]}, element {tuple(map(int, at[1:]))} of result{describe(path)}"
                self.fail(
                    check,
                    f"{where}: max error {worst:.3g} (allowed {rtol * scale + atol:.3g}) at "
                    f"{place}: got {a[at]!r}, expected {b[at]!r}",
                    hint,
                )


def _double(value: Any) -> Any:
    if not is_leaf(value):
        return value
    dtype = np.asarray(value).dtype
    if dtype == np.float32:
        return value.astype(np.float64)
    if dtype == np.complex64:
        return value.astype(np.complex128)
    return copied(value)


def make_trial(
    f: Any,
    args: tuple[Any, ...],
    options: dict[str, Any],
    chunk: Sequence[int],
    rng: np.random.Generator | None,
    argnums: Sequence[int | str] | None,
) -> Trial:
    """Bind the arguments and draw the seeds."""
    if rng is None:
        rng = np.random.default_rng(0)
    return Trial(f, args, options, chunk=chunk, rng=rng, argnums=argnums)
