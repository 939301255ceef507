"""A function run forward once, and its way back run for each cotangent that is asked."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

import numpy as np

from fwdad.backends.array_stacks import as_list
from fwdad.compilation import Runner
from fwdad.reverse.halves import Halves, Stacked, cut
from fwdad.tangents.alike import alike
from fwdad.tape.forward import push_forward
from fwdad.tape.ops import Program
from fwdad.tape.passes import optimise
from fwdad.tape.types import Number, Type


class Sweeps:
    """The two programs of one specialisation, and what runs them.

    Parameters
    ----------
    made : object
        The specialisation; its tape has a value and its way back.
    """

    def __init__(self, made: Any) -> None:
        self.rebuild = made.tape.rebuild
        self.backend = made.backend
        self.halves: Halves = cut(made.tape.program, made.tape.cut)
        self.bars: list[Type] = made.tape.cut.bars
        self.results = len(made.tape.program.block.results)
        self._pushed: dict[int, Any] = {}
        self._lock = threading.Lock()

    @functools.cached_property
    def forward(self) -> Runner:
        """The way forward."""
        return Runner(self.halves.forward, self.backend)

    @functools.cached_property
    def back(self) -> _WayBack:
        """The way back."""
        return _WayBack(self.halves.back, self.backend, self.halves.stacks)

    def pushed(self, width: int) -> Any:
        """The way back of some cotangents together, and its constants."""
        with self._lock:
            if width not in self._pushed:
                program = self.halves.back
                first = len(program.block.params) - len(self.bars)
                active = [k >= first for k in range(len(program.block.params))]
                made, constants = push_forward(program, width, list(active))
                made.block.results = made.block.results[len(program.block.results) :]
                optimise(made)
                run = _WayBack(made, self.backend, self.halves.stacks)
                self._pushed[width] = (run, constants)
            return self._pushed[width]

    def copied(self, leaves: list[Any]) -> list[int]:
        """The inputs, by position, of which a pullback has copies: its way back reads them.

        Parameters
        ----------
        leaves : list
            The inputs of the whole.
        """
        return [k for k in self.halves.read if isinstance(leaves[k], np.ndarray)]

    def run(self, leaves: list[Any]) -> tuple[Any, Kept]:
        """The value for some inputs, and what is kept for the way back.

        Parameters
        ----------
        leaves : list
            The inputs of the whole.
        """
        halves = self.halves
        own = list(leaves)
        for k in self.copied(leaves):
            own[k] = alike(own[k])
        found = list(self.forward(*own))
        values, kept = found[: halves.values], found[halves.values :]
        values = _apart(values, [*own, *(values[k] for k in halves.shared)])
        for k in halves.hollow:
            kept[k] = _hollow(kept[k])
        y, _ = self.rebuild([*values, *[None] * (self.results - halves.values)])
        return y, Kept(self, kept)


class _WayBack:
    """Runs a way back on stacks as the way forward has left them.

    Parameters
    ----------
    program : Program
        The way back.
    backend : str
        As :func:`fwdad.jit` takes it.
    stacks : dict
        The stacks among its inputs.
    """

    def __init__(self, program: Program, backend: str, stacks: dict[int, Stacked]) -> None:
        self._program = program
        self._run = Runner(program, backend)
        self._stacks = stacks

    @functools.cached_property
    def _plain(self) -> Runner:
        return Runner(self._program, "numpy")

    def __call__(self, *inputs: Any) -> Any:
        """Compiled if the way forward was, and Numba knows the types."""
        if self._run.compiled is None or not self._stacks:
            return self._run(*inputs)
        if all(type(inputs[k]) is tuple for k in self._stacks):
            if self._run.serves(inputs):
                return self._run(*inputs)
            made = list(inputs)
            for k, use in self._stacks.items():
                made[k] = as_list(made[k], use.rank)
            return self._plain(*made)
        return self._plain(*inputs)


class Kept:
    """What one run has kept for its way back.

    Parameters
    ----------
    sweeps : Sweeps
        The programs.
    values : list
        What is kept; nothing else refers to it.
    """

    def __init__(self, sweeps: Sweeps, values: list[Any]) -> None:
        self.sweeps = sweeps
        self.values = values

    def pull(self, bars: list[Any]) -> Any:
        """The cotangents of the arguments, in their structures, for one of the value.

        Parameters
        ----------
        bars : list
            One for each leaf of the value, in its type, and in memory that may be written.
        """
        own = self._own()
        return self._rebuilt(self.sweeps.back(*own, *bars), own)

    def pull_many(self, bars: list[Any], count: int, width: int) -> Any:
        """The same for K cotangents, some at a time; 0 for a number that nothing depends on."""
        run, constants = self.sweeps.pushed(width)
        parts = []
        for start in range(0, count, width):
            lanes, marks = [], []
            for bar, t in zip(bars, self.sweeps.bars, strict=True):
                row = bar[start : start + width]
                padded = np.zeros((width, *bar.shape[1:]), t.dtype)
                padded[: len(row)] = row
                lanes.append(padded)
                mark = np.zeros(bar.shape[1:], t.dtype)  # the way back writes into both
                python = isinstance(t, Number) and t.python
                marks.append(mark.item() if python else mark if mark.ndim else mark[()])
            parts.append(run(*self._own(), *marks, *lanes, *constants))
        joined = [np.concatenate(rows)[:count] for rows in zip(*parts, strict=True)]
        return self._rebuilt(joined, [])

    def _own(self) -> list[Any]:
        """What is kept, with what the way back changes in memory of its own."""
        halves = self.sweeps.halves
        values = list(self.values)
        for k in halves.written:
            values[k] = values[k].copy()
        for k, use in halves.stacks.items():
            values[k] = _own_stack(values[k], use)
        return values

    def _rebuilt(self, answers: Any, inputs: list[Any]) -> Any:
        """What the way back answers, in f's structures and in memory that nobody else has."""
        values = _apart(answers, inputs)
        _, x_bar = self.sweeps.rebuild([*[None] * self.sweeps.halves.values, *values])
        return x_bar


_KNOWN: weakref.WeakKeyDictionary[Any, Sweeps] = weakref.WeakKeyDictionary()


def sweeps_of(made: Any) -> Sweeps:
    """The two programs of a specialisation, made once.

    Parameters
    ----------
    made : object
        As :class:`Sweeps` takes it.
    """
    found = _KNOWN.get(made)
    if found is None:
        found = _KNOWN.setdefault(made, Sweeps(made))
    return found


def _hollow(a: np.ndarray) -> np.ndarray:
    """An array of the same shape, without its memory."""
    return np.lib.stride_tricks.as_strided(np.zeros((), a.dtype), a.shape, (0,) * a.ndim)


def _own_stack(stack: Any, use: Stacked) -> Any:
    """A stack that may be changed: a list, or the memory of compiled code and its height."""
    if type(stack) is list:
        return [_own(x) for x in stack] if use.deep else list(stack)
    if not use.deep and not use.grows:
        return stack
    return tuple(_own(x) for x in stack)


def _own(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _apart(values: Any, others: list[Any]) -> list[Any]:
    """Arrays, copied where they are no memory of their own: views, inputs, and one array twice."""
    taken = [x for x in others if type(x) is np.ndarray]
    made = []
    for v in values:
        if type(v) is np.ndarray:
            if isinstance(v.base, np.ndarray) or any(np.may_share_memory(v, x) for x in taken):
                v = v.copy()
            taken.append(v)
        made.append(v)
    return made
