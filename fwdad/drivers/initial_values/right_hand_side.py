"""The right-hand side of an equation: its values, and its derivatives from a tape or on duals.

States are real vectors here; a complex one has its real and imaginary parts side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.drivers.initial_values.twins import Primals
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.solver_call import Watched
from fwdad.drivers.specialisation import Specialisation
from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.run import STATE, Tag
from fwdad.evaluation.evaluators import jvp, stop_gradient
from fwdad.frontend.syntax.loops import WithoutWarnings
from fwdad.tangents.chunk import Chunk

Matrix = np.ndarray[Any, Any]


def depth_of_calls() -> int:
    """How many derivative calls are around this one: the order of derivatives at most."""
    count, run = 0, STATE.run
    while run is not None:
        count, run = count + 1, run.outer
    return count


class RightHandSide:
    """A function ``f(t, y, *args)`` that carries tangents in its arguments or what it reads.

    ``primals`` are shared with the other functions of a solve. ``active`` says, once the function
    was run, whether its values carry tangents when y does not; ``depth`` how many derivative calls
    are around the solve. ``watched`` makes duals of states, to see what f stores.
    """

    def __init__(
        self, f: Any, args: tuple[Any, ...], primals: Primals, *, column: bool = False
    ) -> None:
        self.f = f
        self.args = args
        self.column = column
        self.primals = primals
        self.plain_args = tuple(primals.of(a) for a in args)
        inner = f.__wrapped__ if isinstance(f, Jitted) else f
        self._inner = primals.of(inner)
        self.backend = f.backend if isinstance(f, Jitted) else "numpy"
        self.plain_f = self._inner
        twin = primals.twin(inner)
        if isinstance(f, Jitted):
            self.plain_f = f
            if twin is not None:
                self.plain_f = twin.jitted.setdefault(f.backend, Jitted(self._inner, f.backend))
        self.twin = twin
        self.active = is_active(args)
        self.watched: Watched | None = None
        self.depth = depth_of_calls()

    def plain(self, t: Any, y: Any) -> Any:
        """The value for plain arguments, without tangents, as SciPy asks for it."""
        if self.watched is not None:
            return stop_gradient(call(self.f, t, self.watched(y), *self.args))
        value = call(self.plain_f, t, y, *self.plain_args)
        if type(value) is np.ndarray and not SHADOWED:
            return value
        if not self.active and is_active((value,)):
            self.active = True
        return stop_gradient(value)

    def vector(self, t: float, y: Any) -> Matrix:
        """The value at one state, as a vector."""
        return np.ravel(np.asarray(self.plain(t, self._as_given(y))))

    def on_duals(self, t: float, y: Any) -> Any:
        """The value at a state that may be a dual, as a vector."""
        if self.column:
            y = call(np.reshape, y, (-1, 1))
        value = explicit(call(np.array, call(self.f, t, y, *self.args)))  # f may use it again
        return call(np.ravel, value) if np.ndim(stop_gradient(value)) != 1 else value

    def _as_given(self, y: Any) -> Any:
        return y[:, None] if self.column else y

    def traced(self, t: float, y: Matrix, wanted: Any = None) -> Traced | Untraced:
        """The function as a tape, beside the tangents that what it reads has in one call.

        ``wanted`` is the tag of the call; without it, a tape for Jacobians alone.
        """
        if self.twin is None:
            return Untraced(self.f, reason="it is no function of the user's, or has a rule")
        held = self.twin.jitted.get(self.backend)
        if held is None:
            held = self.twin.jitted[self.backend] = Jitted(self._inner, self.backend)
        given = self._as_given(y)
        try:
            with WithoutWarnings() as silent, silent:
                made, leaves, _ = held.find((t, given, *self.plain_args), {})
            why_not = _why_not(made, leaves, given)
            if why_not:
                return Untraced(self.f, reason=why_not)
            return Traced(self, held, made, leaves, wanted)
        except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
            return Untraced(self.f, error)

    def jacobian(self, t: float, y: Matrix) -> Matrix:
        """The Jacobian with respect to the state, by forward mode without a tape."""

        def value(y: Any) -> Any:
            if self.column:
                y = call(np.reshape, y, (-1, 1))
            return call(np.ravel, call(np.asarray, call(self.plain_f, t, y, *self.plain_args)))

        def push(v: Matrix) -> Matrix:
            return np.asarray(stop_gradient(jvp(value, y, v, holomorphic=False)[1]))

        return self.real_matrix(push, y)

    @staticmethod
    def real_matrix(push: Callable[[Matrix], Matrix], y: Matrix) -> Matrix:
        """The real Jacobian from a function that pushes lanes forward."""
        basis = np.eye(y.size, dtype=y.dtype)
        if y.dtype.kind == "c":
            basis = np.stack([basis, 1j * basis], axis=1).reshape(-1, y.size)
        return as_real(push(basis)).T


def as_real(y: Matrix) -> Matrix:
    """Vectors along the last axis, with real and imaginary parts side by side."""
    return np.ascontiguousarray(y).view(float) if y.dtype.kind == "c" else y


def as_given(y: Matrix, dtype: Any) -> Matrix:
    """Real vectors as they were."""
    return np.ascontiguousarray(y).view(complex) if dtype.kind == "c" else y


def _why_not(made: Specialisation, leaves: list[Any], y: Matrix) -> str:
    """Why a tape does not serve for all states; empty if it does."""
    if made.tape.follows:
        return "one tape does not hold all its ways"
    tape = made.tape
    if any(tape.program.written) or tape.rebuild.needs_containers:
        return "it writes into what it is given"
    if tape.prints:
        return "it prints"
    if tape.value_guards:
        return "its tape is for some values only"
    if is_active(leaves):
        return "an object that it reads carries tangents"
    return "" if len(leaves) > 1 and leaves[1] is y else "it does not read its arguments"


class _Place:
    """Stands for a result of a program."""

    def __init__(self, k: int) -> None:
        self.k = k


class Traced:
    """A right-hand side as a tape, with the tangents in one call of what it reads.

    ``inputs`` are the active leaves' places beside that of y, ``duals`` these leaves.
    """

    def __init__(
        self,
        rhs: RightHandSide,
        held: Jitted[..., Any],
        made: Specialisation,
        leaves: list[Any],
        tag: Tag | None,
    ) -> None:
        self.rhs = rhs
        self.held = held
        self.made = made
        self.leaves = leaves
        self.dtype = leaves[1].dtype
        self.shape = leaves[1].shape
        found = [(k, rhs.primals.dual_of(leaf)) for k, leaf in enumerate(leaves)]
        self.inputs = [k for k, x in found if x is not None and tag is not None]
        self.duals = [x for _, x in found if x is not None and tag is not None]
        self.active = tuple(k == 1 or k in self.inputs for k in range(len(leaves)))
        has_lanes = tag is not None and tag.record is None
        self.lanes = [x.t.lanes for x in self.duals] if has_lanes else []
        values = made.run(*leaves)
        self._shapes = [np.shape(v) for v in values]
        self._places = _places(made.tape.rebuild([_Place(k) for k in range(len(values))]))
        if sum(self._sizes()) != leaves[1].size:
            raise ValueError("its value does not have as many numbers as y")

    def _sizes(self) -> list[int]:
        return [1 if p is None else int(np.prod(self._shapes[p])) for p in self._places]

    def _vectors(self, results: Any, n: int) -> Matrix:
        """Tangents of the results as vectors, ``(n, size of y)``."""
        if len(self._places) == 1 and self._places[0] is not None:
            return as_real(np.asarray(results[self._places[0]]).reshape(n, -1).astype(self.dtype))
        parts = [
            np.zeros((n, 1)) if p is None else np.reshape(results[p], (n, -1)) for p in self._places
        ]
        return as_real(np.concatenate(parts, axis=1).astype(self.dtype))

    def push(self, t: float, y: Matrix, lanes: Matrix) -> Matrix:
        """The tangents of the value for those of y, ``(n, size)``, and of what it reads."""
        return self._pushed(t, y, lanes, self.lanes, self.active)

    def _pushed(
        self, t: float, y: Matrix, y_dot: Matrix, others: list[Any], active: tuple[bool, ...]
    ) -> Matrix:
        n = len(y_dot)
        run, constants = self.held.push(self.made, n, active)
        y_dot = as_given(y_dot, self.dtype).reshape(n, *self.shape)
        leaves = [t, y.reshape(self.shape), *self.leaves[2:]]
        lanes = [y_dot if k == 1 else None for k in range(len(leaves)) if active[k]]
        rest = iter(others)
        lanes = [next(rest) if x is None else x for x in lanes]
        results = run(*leaves, *lanes, *constants)
        return self._vectors(results[len(results) // 2 :], n)

    def jacobian(self, t: float, y: Matrix) -> Matrix:
        """The real Jacobian with respect to the state."""
        alone = tuple(k == 1 for k in range(len(self.leaves)))
        return self.rhs.real_matrix(lambda v: self._pushed(t, y, as_real(v), [], alone), y)

    def linearized(self, t: float, y: Matrix) -> tuple[Matrix, Matrix]:
        """The Jacobian, and the tangents of the value for a constant y, in one run."""
        n = y.size * (2 if self.dtype.kind == "c" else 1)
        count = len(self.lanes[0]) if self.lanes else 0
        basis = np.vstack([np.eye(n), np.zeros((count, n))])
        before = [np.concatenate([np.zeros((n, *x.shape[1:])), x]) for x in self.lanes]
        found = self._pushed(t, y, basis, before, self.active)
        return found[:n].T, found[n:]

    def pull(self, t: float, y: Matrix, bar: Matrix) -> tuple[Matrix, list[Any]]:
        """The cotangents of y, and of what it reads, for that of the value."""
        run, returned = self.held.pull(self.made, self.active)
        leaves = [t, y.reshape(self.shape), *self.leaves[2:]]
        results = run(*leaves, *self._bars(bar))
        found = iter(results)
        parts = [next(found) if known else None for known in returned]
        y_bar, *others = parts  # y stands before what is read
        size = y.size * (2 if self.dtype.kind == "c" else 1)
        if y_bar is None:
            return np.zeros(size), others
        return as_real(np.asarray(y_bar).reshape(-1).astype(self.dtype)), others

    def _bars(self, bar: Matrix) -> list[Any]:
        """The cotangent of each result of the program."""
        bar = as_given(bar, self.dtype)
        found: list[Any] = [None] * len(self._shapes)
        start = 0
        for p, size in zip(self._places, self._sizes(), strict=True):
            if p is not None:
                part = bar[start : start + size].reshape(self._shapes[p])
                found[p] = part if found[p] is None else found[p] + part
            start += size
        wanted = self.made.tape.program.block.results
        return [
            _like(np.zeros(shape) if b is None else b, r)
            for b, shape, r in zip(found, self._shapes, wanted, strict=True)
        ]


def _like(bar: Any, result: Any) -> Any:
    """A cotangent of the type of a result."""
    dtype = getattr(getattr(result, "type", None), "dtype", np.dtype(float))
    if dtype.kind != "c" and np.iscomplexobj(bar):
        bar = np.real(bar)
    return np.asarray(bar, dtype if dtype.kind in "fc" else float)[()]


def _places(value: Any) -> list[int | None]:
    """For each part of a value the result that it is; None for constants."""
    if isinstance(value, _Place):
        return [value.k]
    if isinstance(value, (list, tuple)):
        return [p for item in value for p in _places(item)]
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return [None]
    raise ValueError("its value is no array, list or tuple of numbers")


class OnDuals:
    """A right-hand side that is run on duals of one call, where it has no tape."""

    def __init__(self, rhs: RightHandSide, y: Matrix, tag: Tag) -> None:
        self.rhs = rhs
        self.tag = tag
        self.dtype = y.dtype

    def push(self, t: float, y: Matrix, lanes: Matrix) -> Matrix:
        """See :class:`Traced`."""
        dual = Array(y.copy(), Chunk(as_given(lanes, self.dtype)), self.tag)
        return self._lanes(self.rhs.on_duals(t, dual))

    def _lanes(self, value: Any) -> Matrix:
        if type(value) is not Array or value.tag is not self.tag:
            return np.zeros((self.tag.n, np.size(value) * (2 if self.dtype.kind == "c" else 1)))
        return as_real(np.asarray(value.t.lanes).astype(self.dtype))

    def jacobian(self, t: float, y: Matrix) -> Matrix:
        """See :class:`Traced`."""
        return self.rhs.jacobian(t, y)

    def linearized(self, t: float, y: Matrix) -> tuple[Matrix, Matrix]:
        """See :class:`Traced`."""
        return self.jacobian(t, y), self._lanes(self.rhs.on_duals(t, y.copy()))
