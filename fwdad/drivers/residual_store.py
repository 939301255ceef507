"""A function's forward pass, run once, and its reverse pass, run for each cotangent."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from fwdad.codegen.loops.stack_memory import as_list
from fwdad.drivers.executable import Runner
from fwdad.errors import UntraceableError
from fwdad.ir.ops import Program
from fwdad.ir.primitives.undo_log import RedoLog, copied_together, sharing
from fwdad.ir.types import Number, Type
from fwdad.tangents.alike import alike
from fwdad.transforms.forward import push_forward
from fwdad.transforms.passes import optimise
from fwdad.transforms.reverse.split_passes import Cut, SplitPasses, Stacked, cut
from fwdad.transforms.reverse.swap_log import Log, swapping

_LESS = 16  # a copy must have this many times the bytes of a log, since copying is faster


class Sweeps:
    """The forward and reverse programs of one specialisation, and what runs them.

    The specialisation's tape computes a value and its reverse pass.
    """

    def __init__(self, made: Any) -> None:
        self.rebuild = made.tape.rebuild
        self.backend = made.backend
        known = made.tape.cut or Cut([], 0)  # none of a function that always raises
        self.passes: SplitPasses = cut(made.tape.program, known)
        self.bars: list[Type] = known.bars
        self.results = len(made.tape.program.block.results)
        self._pushed: dict[int, Any] = {}
        self._swapping: dict[Any, Any] = {}
        self._lock = threading.RLock()  # rules are run here, which may take derivatives

    @functools.cached_property
    def forward(self) -> Runner:
        """The forward pass."""
        return Runner(self.passes.forward, self.backend)

    @functools.cached_property
    def reverse(self) -> _ReversePass:
        """The reverse pass."""
        return _ReversePass(self.passes.reverse, self.backend, self.passes.stacks)

    def pushed(self, width: int) -> tuple[_ReversePass, Program, list[np.ndarray]] | None:
        """The reverse pass of ``width`` cotangents together, its program, and its constants.

        None where they must go one by one, because a view that may be a copy cannot be pushed.
        """
        with self._lock:
            if width not in self._pushed:
                try:
                    self._pushed[width] = self._push(width)
                except UntraceableError:
                    self._pushed[width] = None
            return self._pushed[width]

    def pull_apart(self, width: int) -> None:
        """Note that ``width`` cotangents must go one by one."""
        with self._lock:
            self._pushed[width] = None

    def _push(self, width: int) -> Any:
        program = self.passes.reverse
        first = len(program.block.params) - len(self.bars)
        active = [k >= first for k in range(len(program.block.params))]
        made, constants = push_forward(program, width, list(active), linear=True)
        made.block.results = made.block.results[len(program.block.results) :]
        optimise(made)
        return _ReversePass(made, self.backend, self.passes.stacks), made, constants

    def swapping(self, program: Program) -> tuple[_ReversePass, list[Log]] | None:
        """A reverse pass that logs what it overwrites, and its logs; None where it cannot.

        ``program`` is that of :attr:`back` or of one of :meth:`pushed`.
        """
        with self._lock:
            if program not in self._swapping:
                swapped = swapping(program, self.passes.written)
                self._swapping[program] = swapped and (
                    _ReversePass(swapped.program, self.backend, self.passes.stacks), swapped.logs
                )  # fmt: skip
            return self._swapping[program]

    def cotangents(self, results: list[Any]) -> Any:
        """The results of a reverse pass, in the structures of f's arguments."""
        return self.rebuild([*[None] * self.passes.values, *results])[1]

    def copied(self, leaves: list[Any]) -> list[int]:
        """The positions of the inputs that a pullback copies, since its reverse pass reads them."""
        return [k for k in self.passes.read if isinstance(leaves[k], np.ndarray)]

    def run(self, leaves: list[Any], *, copied: bool = True) -> tuple[Any, Kept]:
        """The value for the inputs of the whole tape, and what is kept for the reverse pass.

        Without ``copied``, the caller promises not to change the arrays that the reverse pass
        reads.
        """
        passes = self.passes
        values, kept = self._run(leaves, copied=copied)[1:]
        for k in passes.hollow:
            kept[k] = hollow(kept[k])
        y, _ = self.rebuild([*values, *[None] * (self.results - passes.values)])
        return y, Kept(self, kept)

    def _run(
        self, leaves: list[Any], *, copied: bool = True
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """The value as the forward pass returns it, the value in its own memory, what is kept."""
        passes = self.passes
        own = list(leaves)
        for k in self.copied(leaves) if copied else ():
            own[k] = alike(own[k])
        outputs = list(self.forward(*own))
        values, kept = outputs[: passes.values], outputs[passes.values :]
        return values, _apart(values, [*own, *(values[k] for k in passes.shared)]), kept

    def copied_values(self, leaves: list[Any]) -> list[np.ndarray]:
        """The arrays of the value that are copies, because the caller may change them."""
        found, values, _ = self._run(leaves)
        return [
            v
            for k, (v, old) in enumerate(zip(values, found, strict=True))
            if isinstance(v, np.ndarray) and (v is not old or k in self.passes.apart)
        ]


class _ReversePass:
    """A reverse pass that takes stacks (``stacks``, by input) as the forward pass left them."""

    def __init__(self, program: Program, backend: str, stacks: dict[int, Stacked]) -> None:
        self._program = program
        self._run = Runner(program, backend)
        self._stacks = stacks

    @functools.cached_property
    def _plain(self) -> Runner:
        return Runner(self._program, "numpy")

    @property
    def function(self) -> Callable[..., Any]:
        """The underlying function, of stacks as it takes them."""
        return self._run.function

    def __call__(self, *inputs: Any) -> Any:
        """Run it: compiled if the forward pass was and Numba knows the types, else under NumPy."""
        if self._run.compiled is None or not self._stacks:
            return self._run(*inputs)
        if all(type(inputs[k]) is tuple for k in self._stacks):
            if self._run.serves(inputs):
                return self._run(*inputs)
            converted = list(inputs)
            for k, use in self._stacks.items():
                converted[k] = as_list(converted[k], use.rank)
            return self._plain(*converted)
        return self._plain(*inputs)


class Kept:
    """What one forward run keeps for its reverse pass; nothing else may refer to ``values``."""

    def __init__(self, sweeps: Sweeps, values: list[Any]) -> None:
        self.sweeps = sweeps
        self.values = values
        self._sizes: dict[int, int] = {}
        self._logs: list[RedoLog] = []
        self._swapped = False  # a reverse pass is swapping what is kept
        self._lock = threading.RLock()

    @property
    def nbytes(self) -> int:
        """The bytes that are kept, numbers excluded; memory that is held twice counts once."""
        arrays: dict[int, int] = {}
        total = 0
        hollow = {id(self.values[k]) for k in self.sweeps.passes.hollow}
        for x in self.values:
            if id(x) in hollow:
                continue
            for part in x if type(x) is list else (x,):
                if isinstance(part, np.ndarray):
                    while isinstance(part.base, np.ndarray):
                        part = part.base
                    arrays[id(part)] = part.nbytes
                elif type(x) is list:  # a stack of numbers
                    total += np.asarray(part).nbytes
        return total + sum(arrays.values())

    def pull(self, bars: list[Any]) -> Any:
        """The cotangents of the arguments, in their structures, for one of the value.

        ``bars`` has one for each leaf of the value, in its type, in memory that may be written.
        """
        sweeps = self.sweeps
        return self.sweeps.cotangents(self._run(sweeps.reverse, sweeps.passes.reverse, bars))

    def pull_many(
        self,
        bars: list[Any],
        count: int,
        width: int,
        done: Callable[[int], None] | None = None,
    ) -> Any:
        """The result of :meth:`pull` for ``count`` cotangents, ``width`` at a time.

        A number that nothing depends on has the cotangent 0. ``done`` is called with the
        number of rows that each pass has finished.
        """
        pushed = self.sweeps.pushed(width)
        if pushed is not None:
            found = self._pull_together(pushed, bars, count, width, done)
            if found is not None:
                return found
        parts = []
        for k in range(count):
            row = [_typed(b[k], t) for b, t in zip(bars, self.sweeps.bars, strict=True)]
            parts.append(self._run(self.sweeps.reverse, self.sweeps.passes.reverse, row))
            if done is not None:
                done(1)
        return self.sweeps.cotangents([np.stack(rows) for rows in zip(*parts, strict=True)])

    def _pull_together(
        self, pushed: Any, bars: list[Any], count: int, width: int, done: Any
    ) -> Any:
        """The result of the reverse pass of ``width`` cotangents at a time.

        None where a reshape is a view, and that of their cotangents, which lie otherwise, is none.
        """
        (run, program, constants), parts = pushed, []
        for start in range(0, count, width):
            lanes = []
            for bar, t in zip(bars, self.sweeps.bars, strict=True):
                row = bar[start : start + width]
                padded = np.zeros((width, *bar.shape[1:]), t.dtype)
                padded[: len(row)] = row
                lanes.append(padded)  # the reverse pass writes into them
            try:
                parts.append(self._run(run, program, [*lanes, *constants]))
            except UntraceableError:
                if parts:
                    raise
                self.sweeps.pull_apart(width)
                return None
            if done is not None:
                done(min(width, count - start))
        rows = [np.concatenate(each)[:count] for each in zip(*parts, strict=True)]
        return self.sweeps.cotangents(rows)

    def _run(self, run: _ReversePass, program: Program, given: list[Any]) -> list[Any]:
        """The result of a reverse pass in memory of its own, with what is kept left unchanged.

        What the reverse pass restores is swapped with the present content, and swapped back when it
        ends or raises; where a copy of all the arrays is smaller than the log, they are copied
        instead.
        """
        logs = self._logs_for(program)
        with self._lock:
            if logs is not None and not self._swapped:
                try:
                    return self._run_swapping(*logs, given)
                finally:  # once more: its own end may have been interrupted
                    self._swapped = False
            own = self._copies()
        return _apart(run(*own, *given), own)

    def _run_swapping(self, run: _ReversePass, made: list[Any], given: list[Any]) -> list[Any]:
        """The result of :meth:`_run`, by logs."""
        self._undo()
        self._logs = [RedoLog(*each) for each in made]
        parts = [part for log in self._logs for part in log.parts]
        own = self._own(copied=False)
        self._swapped = True
        try:
            return _apart(run(*own, *given, *parts), own)
        finally:
            self._swapped = False
            self._undo()

    def restored_by_logs(self, program: Program) -> bool:
        """Whether a reverse pass logs what it restores here, since that is less than copies."""
        return self._logs_for(program) is not None

    def copies_of(self, places: list[int]) -> list[np.ndarray] | None:
        """Copies of kept arrays; None if one is no array, or while a reverse pass is swapping."""
        with self._lock:
            if self._swapped:
                return None
            self._undo()
            arrays = [self.values[k] for k in places]
            is_complete = all(type(a) is np.ndarray for a in arrays)
            return copied_together(arrays) if is_complete else None

    def _copies(self) -> list[Any]:
        """Copies of what is kept, as the forward pass left it."""
        if not self._swapped:
            self._undo()
            return self._own(copied=True)
        with ExitStack() as stack:  # a rule that the reverse pass runs may start another one
            for log in self._logs:
                stack.enter_context(log.undone())
            return self._own(copied=True)

    def _undo(self) -> None:
        """Return what is kept to its state after the forward pass; repeat an interrupted undo."""
        for log in self._logs:
            log.undo()
        self._logs = []

    def _logs_for(self, program: Program) -> tuple[_ReversePass, list[Any]] | None:
        """A swapping reverse pass, and the arrays, dtype and capacity of each of its logs.

        None where nothing is restored, or where copying everything is faster.
        """
        stacks = self.sweeps.passes.stacks.items()
        if any(use.deep and type(self.values[k]) is list for k, use in stacks):
            return None  # arrays may be on them, too, and are copied with them
        written = [self.values[k] for k in self.sweeps.passes.written]
        arrays = [a for a in written if isinstance(a, np.ndarray)]  # a branch may leave one out
        in_one_piece = all(a.flags.forc for a in arrays)
        swapped = self.sweeps.swapping(program) if arrays and in_one_piece else None
        if swapped is None:
            return None
        run, logs = swapped
        made = [
            (
                [a for k in log.arrays if isinstance(a := self.values[k], np.ndarray)],
                log.dtype,
                sum(self._elements(k) for k in log.room),
            )
            for log in logs
        ]
        needed = sum(room * (8 + dtype.itemsize) for _, dtype, room in made)
        return None if _LESS * needed > sum(a.nbytes for a in arrays) else (run, made)

    def _elements(self, k: int | None) -> int:
        """The number of numbers in a stack or an array; 1 for a number."""
        if k is None:
            return 1
        if k not in self._sizes:
            x = self.values[k]
            if type(x) is tuple:
                self._sizes[k] = int(x[1])
            else:
                self._sizes[k] = sum(map(np.size, x)) if type(x) is list else np.size(x)
        return self._sizes[k]

    def _own(self, *, copied: bool) -> list[Any]:
        """What is kept: stacks to pop from and, if ``copied``, arrays to restore into."""
        stacks = self.sweeps.passes.stacks
        values = list(self.values)
        for k, use in stacks.items():
            values[k] = own_stack(values[k], use)
        changed = {*self.sweeps.passes.written} if copied else set()
        changed |= {k for k, use in stacks.items() if use.deep and type(values[k]) is list}
        if changed:
            _copy_changed(values, changed)
        return values


_KNOWN: weakref.WeakKeyDictionary[Any, Sweeps] = weakref.WeakKeyDictionary()


def sweeps_of(made: Any) -> Sweeps:
    """The :class:`Sweeps` of a specialisation, made once."""
    sweeps = _KNOWN.get(made)
    if sweeps is None:
        sweeps = _KNOWN.setdefault(made, Sweeps(made))
    return sweeps


def _typed(x: np.ndarray, t: Type) -> Any:
    """A number or array of a type, in memory of its own."""
    array = np.array(x, t.dtype)
    if isinstance(t, Number):
        return array.item() if t.python else array[()]
    return array


def hollow(a: np.ndarray) -> np.ndarray:
    """An array of the same shape, without the memory."""
    return np.lib.stride_tricks.as_strided(np.zeros((), a.dtype), a.shape, (0,) * a.ndim)


def own_stack(stack: Any, use: Stacked) -> Any:
    """A stack to pop from: a list, or the memory and height of a compiled one."""
    if type(stack) is list:
        return list(stack)
    if not use.deep and not use.grows:
        return stack
    return tuple(_copy_of_array(x) for x in stack)


def _copy_changed(values: list[Any], changed: set[int]) -> None:
    """Copy the arrays at some places, which may be stacks, and all that share memory with these.

    What is kept twice, on two stacks for example, is one array for the reverse pass, too.
    """
    arrays: list[tuple[list[Any], int, bool]] = []  # where each is, and whether it changes
    for k, x in enumerate(values):
        if isinstance(x, np.ndarray):
            arrays.append((values, k, k in changed))
        elif type(x) is list:
            arrays += [(x, j, k in changed) for j, a in enumerate(x) if isinstance(a, np.ndarray)]
    own = [(held, k) for held, k, changes in arrays if changes]
    others = [(held, k) for held, k, changes in arrays if not changes]
    shared = sharing([held[k] for held, k in others], [held[k] for held, k in own])
    own += [place for place, is_shared in zip(others, shared, strict=True) if is_shared]
    copies = copied_together([held[k] for held, k in own])
    for (held, k), copy in zip(own, copies, strict=True):
        held[k] = copy


def _copy_of_array(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _apart(values: Any, others: list[Any]) -> list[Any]:
    """Values, copied where they are views, inputs or duplicates, so that each owns its memory."""
    taken = [x for x in others if type(x) is np.ndarray]
    copies = []
    for v in values:
        if type(v) is np.ndarray:
            # an empty array shares no memory, not even with itself
            shared = any(v is x or np.may_share_memory(v, x) for x in taken)
            if shared or isinstance(v.base, np.ndarray):
                v = v.copy()
            taken.append(v)
        copies.append(v)
    return copies
