"""A function run forward once, and its way back run for each cotangent that is asked."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.backends.numpy_source import defined, numpy_source
from fwdad.builder.dispatch import call
from fwdad.compilation import Runner
from fwdad.reverse.halves import Halves, cut
from fwdad.tangents.chunk import plain
from fwdad.tape.forward import push_forward
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
    def back(self) -> Runner:
        """The way back."""
        return Runner(self.halves.back, self.backend)

    @functools.cached_property
    def back_source(self) -> Callable[..., Any]:
        """The way back as a Python function with a source."""
        return defined(numpy_source(self.halves.back))

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
                self._pushed[width] = (Runner(made, self.backend), constants)
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
            own[k] = own[k].copy()
        found = list(self.forward(*own))
        values, kept = found[: halves.values], found[halves.values :]
        values = _apart(values, [*own, *(values[k] for k in halves.shared)])
        for k in halves.hollow:
            kept[k] = _hollow(kept[k])
        y, _ = self.rebuild([*values, *[None] * (self.results - halves.values)])
        return y, Kept(self, kept)


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

    def pull_active(self, bars: list[Any]) -> Any:
        """The same for a cotangent that carries derivatives: the source is run on duals."""
        own = [call(np.copy, bar) if isinstance(plain(bar), np.ndarray) else bar for bar in bars]
        answers = call(self.sweeps.back_source, *self._own(), *own)
        _, x_bar = self.sweeps.rebuild([*[None] * self.sweeps.halves.values, *answers])
        return x_bar

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
        for k, deep in halves.stacks.items():
            values[k] = [x.copy() for x in values[k]] if deep else list(values[k])
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


def _apart(values: Any, others: list[Any]) -> list[Any]:
    """Arrays, copied where they are no memory of their own: views, inputs, and one array twice."""
    taken = {id(x) for x in others}
    made = []
    for v in values:
        if type(v) is np.ndarray and (v.base is not None or id(v) in taken):
            v = v.copy()
        taken.add(id(v))
        made.append(v)
    return made
