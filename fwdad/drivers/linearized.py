"""A function's tape at a point, and its derivatives there: what ``linearize`` keeps.

All inputs of the tape are kept, with copies of the arrays that it reads from outside too, so that
both directions are those at the point whatever the caller changes later.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.drivers.executable import Runner
from fwdad.drivers.residual_store import Kept, sweeps_of
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.drivers.tape_cache import apart, tape_at
from fwdad.drivers.written_passes import misses, written_push
from fwdad.eager.activity import is_active
from fwdad.errors import SeedError
from fwdad.evaluation.arguments import width_of
from fwdad.evaluation.signatures import Function
from fwdad.frontend.arguments import Flattened
from fwdad.frontend.calls.tables import CALLED
from fwdad.frontend.derivatives.pulled import value_alone, value_and_pullback
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Program, values_in
from fwdad.ir.rewrite import all_used
from fwdad.tangents.alike import alike
from fwdad.tangents.composite import flatten, is_leaf
from fwdad.tangents.seeds import leaf_dtype
from fwdad.transforms.forward import push_forward
from fwdad.transforms.passes import optimise
from fwdad.transforms.reverse.pull import write_block

_OPTIONS = {"has_aux": False, "outputs": "returned"}


class Frozen:
    """A traced program as a function of its inputs that returns the results numbered ``results``.

    The program must not write into its inputs.
    """

    def __init__(self, program: Program, results: list[int], backend: str) -> None:
        self.program = program
        self.results = results
        self.tape_backend = backend
        self.__name__ = self.__qualname__ = program.name
        self._pushed: dict[Any, Any] = {}

    def __call__(self, *leaves: Any) -> Any:
        """Run the program."""
        found = Runner(self.program, self.tape_backend)(*leaves)
        return tuple(found[k] for k in self.results)

    def push(self, positions: list[int], width: int) -> Any:
        """The program that pushes tangents of the inputs at these positions, and its constants."""
        if width not in self._pushed:
            program, first = self.program, len(self.program.block.results)
            active = [k in positions for k in range(len(program.block.params))]
            made, constants = push_forward(program, width, list(active))
            made.block.results = [made.block.results[first + k] for k in self.results]
            optimise(made)
            self._pushed[width] = made, Runner(made, self.tape_backend), constants
        return self._pushed[width][1:]

    def pushed_program(self, width: int) -> Program:
        """The program that :meth:`push` has made."""
        program: Program = self._pushed[width][0]
        return program


_KNOWN: weakref.WeakKeyDictionary[Any, dict[Any, Frozen]] = weakref.WeakKeyDictionary()


def _frozen(made: Any, results: list[int]) -> Frozen:
    """The :class:`Frozen` of a specialisation, made once: it holds the tapes of its derivatives."""
    known = _KNOWN.setdefault(made, {})
    return known.setdefault(tuple(results), Frozen(made.tape.program, results, made.backend))


def _inlined(tracer: Tracer, f: Frozen, args: tuple[Any, ...], _kwargs: Any) -> Any:
    recorder = tracer.recorder
    found = write_block(recorder, f.program.block, [recorder.as_symbol(x) for x in args])
    return tuple(found[k] for k in f.results)


CALLED[Frozen] = _inlined


class Linearized:
    """A function's value ``y`` and its derivatives at a point; made by :func:`linearized`.

    ``leaves`` are the inputs of the tape, which nobody else may change, and ``positions`` those
    that belong to x. ``complete`` is False if a part of the value is no result of the tape.
    """

    def __init__(
        self, made: Any, leaves: list[Any], containers: list[Any], positions: list[int], chunk: Any
    ) -> None:
        values = apart(made.run(*leaves), leaves)
        self.y = made.tape.rebuild(values, containers)
        outputs, _ = flatten(self.y)
        where = [next((k for k, v in enumerate(values) if v is y), -1) for y in outputs]
        self.complete = -1 not in where
        self._frozen = _frozen(made, where)
        self._leaves = leaves
        self._positions = positions
        self._chunk = chunk
        self._inputs = [leaf_dtype(leaves[k]) for k in positions]
        self._outputs = [leaf_dtype(y) for y in outputs]
        self._kept: Kept | None = None
        self.along: Callable[[Any], Any] = misses  # of one direction, from the second on
        if self.complete:
            self._frozen.push(positions, 1)  # raises if the tape cannot be pushed forward

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self._frozen.program.name)

    @property
    def ways(self) -> tuple[str, str]:
        """How it multiplies, in words: by a direction, and by a cotangent."""
        if self._kept is None:
            return "runs the tape with tangents", "runs the tape forwards once, then backwards"
        return "runs the tape with tangents", "runs the tape backwards"

    def _width(self, count: int) -> int:
        if count == 1:
            return 1
        width = width_of(self._chunk, count, [self._leaves[k] for k in self._positions])
        return min(count, width if isinstance(width, int) else width(None))

    def push(self, rows: list[np.ndarray]) -> list[np.ndarray]:
        """The tangents of the value's leaves along K directions of x's leaves."""
        tangents = [_cast(row, dtype) for row, dtype in zip(rows, self._inputs, strict=True)]
        count = len(tangents[0])
        width = self._width(count)
        run, constants = self._frozen.push(self._positions, width)
        if width == count:
            given = (*self._leaves, *tangents, *constants)
            found = apart(run(*given), given)
            if count == len(tangents) == len(found) == 1 and self.along is misses:
                others = [*self._leaves, *constants]
                program, at = self._frozen.pushed_program(1), len(self._leaves)
                self.along = written_push(program, run.function, others, tangents[0], at)
            return found
        parts = []
        for start in range(0, count, width):
            lanes = [np.zeros((width, *row.shape[1:]), row.dtype) for row in tangents]
            for lane, row in zip(lanes, tangents, strict=True):
                part = row[start : start + width]
                lane[: len(part)] = part
            parts.append(run(*self._leaves, *lanes, *constants))
        return [np.concatenate(column)[:count] for column in zip(*parts, strict=True)]

    def pull(self, rows: list[np.ndarray]) -> list[np.ndarray]:
        """The cotangents of x's leaves for K cotangents of the value's leaves."""
        cotangents = [_cast(row, dtype) for row, dtype in zip(rows, self._outputs, strict=True)]
        count = len(cotangents[0])
        return first_that_can(
            "cotangents",
            self._frozen,
            Candidate("tape", lambda: self._by_tape(cotangents, count)),
            Candidate("columns", lambda: self._by_columns(cotangents, count)),
        )

    def _by_tape(self, bars: list[np.ndarray], count: int) -> list[np.ndarray] | Untraced:
        """The result of :meth:`pull` by the reverse pass, for which one forward run has kept."""
        if self._kept is None:
            given: Any = self._frozen, tuple(self._positions), tuple(self._leaves), {}, _OPTIONS
            at = tape_at(value_and_pullback, *given)
            if isinstance(at, Untraced):
                return at
            try:
                self._kept = sweeps_of(at[0]).run(at[1], copied=False)[1]
            except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
                return Untraced(self._frozen, error, catches=at[0].tape.catches)
        x_bars = self._kept.pull_many(bars, count, self._width(count))
        xs = [self._leaves[k] for k in self._positions]
        return [
            b if isinstance(b, np.ndarray) else np.zeros((count, *np.shape(x)), leaf_dtype(x))
            for b, x in zip(x_bars, xs, strict=True)
        ]

    def _by_columns(self, bars: list[np.ndarray], count: int) -> list[np.ndarray]:
        """The result of :meth:`pull` by pushing all directions, where no tape runs backward."""
        xs = [np.asarray(self._leaves[k]) for k in self._positions]
        ends = np.cumsum([x.size for x in xs])
        total = np.zeros((count, ends[-1]))
        for start in range(0, ends[-1], _COLUMNS):
            eye = np.eye(min(_COLUMNS, ends[-1] - start), ends[-1], start)
            parts = np.split(eye, ends[:-1], axis=1)
            dots = self.push([p.reshape(-1, *x.shape) for p, x in zip(parts, xs, strict=True)])
            for bar, dot in zip(bars, dots, strict=True):
                products = np.conj(bar.reshape(count, -1)) @ dot.reshape(len(eye), -1).T
                total[:, start : start + len(eye)] += np.real(products)
        found = np.split(total, ends[:-1], axis=1)
        return [b.reshape(count, *x.shape).astype(x.dtype) for b, x in zip(found, xs, strict=True)]


_COLUMNS = 32


def linearized(
    f: Function, args: tuple[Any, ...], kwargs: dict[str, Any], chunk: Any
) -> Linearized | Untraced:
    """A function's tape at a point, run once; the first argument is x."""
    at = _tape(f, args, kwargs)
    if isinstance(at, Untraced):
        return at
    made, leaves, containers = at
    xs, _ = flatten(args[0])
    own = Flattened((args[0],), {}).leaves
    positions = [k for k, x in enumerate(own) if is_leaf(x)]  # the others have no tangent space
    cannot = Untraced(f, reason="what it takes or returns cannot carry tangents on a tape")
    if len(positions) != len(xs) or any(
        own[k] is not x for k, x in zip(positions, xs, strict=True)
    ):
        return cannot
    read = _read(made.tape.program, leaves)
    fixed = [alike(x) if k in read else x for k, x in enumerate(leaves)]
    try:
        result = Linearized(made, fixed, containers, positions, chunk)
    except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
        return Untraced(f, error, catches=made.tape.catches)
    return result if result.complete else cannot


def copied(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[np.ndarray]:
    """The arrays that ``linearize`` copies; none for a function without a tape."""
    at = _tape(f, args, kwargs)
    return [] if isinstance(at, Untraced) else [at[1][k] for k in _read(at[0].tape.program, at[1])]


def _tape(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The specialisation of a function's value, its inputs and their containers."""
    if is_active((*args, *kwargs.values())):
        return Untraced(f, reason="an argument carries tangents")
    at = tape_at(value_alone, f, 0, args, kwargs, _OPTIONS)
    if isinstance(at, Untraced) or not any(at[0].tape.program.written):
        return at  # else each product would write again into what f writes outside
    return Untraced(f, reason="it writes into arrays from outside")


def _read(program: Program, leaves: list[Any]) -> list[int]:
    """The positions of the arrays among the inputs that a program uses."""
    used = {v for op in program.block.ops for v in all_used(op)}
    used.update(values_in(program.block.results))
    params = program.block.params
    return [k for k, x in enumerate(leaves) if isinstance(x, np.ndarray) and params[k] in used]


def _cast(row: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Directions in the dtype of what they move."""
    if row.dtype.kind == "c" and dtype.kind != "c":
        raise SeedError(f"got a complex vector for a real one of dtype {dtype}")
    return row.astype(dtype)
