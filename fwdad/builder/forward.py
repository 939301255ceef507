"""Running a function forward on chunks of tangents, chunk after chunk."""

from __future__ import annotations

import copy
import random
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.builder.build import Run, run_on_duals
from fwdad.builder.dual import explicit, wrap
from fwdad.builder.memory import SHADOWED, owner_of
from fwdad.errors import (
    ChunkMismatchError,
    NondeterministicFunctionError,
    NoOutputError,
    UnsupportedTypeError,
)
from fwdad.tangents.alike import alike
from fwdad.tangents.chunk import Chunk, plain
from fwdad.tangents.composite import Structure, flatten, is_leaf, unflatten
from fwdad.tangents.registrations import OWN
from fwdad.tangents.seeds import leaf_dtype, leaf_shape
from fwdad.tangents.vectors import zero_tangent
from fwdad.tangents.zero import NoTangent, Undefined


class Arguments:
    """The arguments of a call, those to differentiate taken apart into leaves.

    Parameters
    ----------
    args : tuple
        ``(x, *args)``.
    kwargs : dict
        Keyword arguments, inactive.
    argnums : tuple of int
        The positions to differentiate with respect to.
    """

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: tuple[int, ...]
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.argnums = argnums
        self.structures: list[Structure] = []
        self.counts: list[int] = []
        self.leaves: list[Any] = []
        self.composite = False
        for k in argnums:
            if not -len(args) <= k < len(args):
                message = f"argnums holds {k}, and {len(args)} arguments came"
                raise UnsupportedTypeError(message)
            leaves, structure = flatten(args[k], strict=True)
            if not leaves:
                raise UnsupportedTypeError(_no_tangent(k, args[k]))
            self.structures.append(structure)
            self.composite |= structure.kind != "leaf"
            self.counts.append(len(leaves))
            if SHADOWED:  # an enclosing call may keep tangents in the memory of a plain array
                leaves = [wrap(x, copy=True) if explicit(x) is not x else x for x in leaves]
            self.leaves.extend(leaves)

    def with_duals(self, run: Run, tangents: list[Any]) -> list[Any]:
        """The arguments of one run: copies of the leaves, as duals where a tangent came."""
        duals = [
            run.dual(alike(leaf) if isinstance(leaf, np.ndarray) else leaf, t)
            for leaf, t in zip(self.leaves, tangents, strict=True)
        ]
        made = list(self.args)
        if len(self.argnums) == 1:
            made[self.argnums[0]] = unflatten(self.structures[0], duals)
            return made
        start = 0
        for k, structure, count in zip(self.argnums, self.structures, self.counts, strict=True):
            made[k] = unflatten(structure, duals[start : start + count])
            start += count
        return made

    def arrays(self) -> list[tuple[int, Any]]:
        """Every array among the arguments, with the position of its argument."""
        found: list[tuple[int, Any]] = []
        for k, x in enumerate(self.args):
            leaves, _ = flatten(x)
            found.extend((k, leaf) for leaf in leaves if isinstance(leaf, np.ndarray))
        return found


def _no_tangent(k: int, x: Any) -> str:
    name = type(x).__name__
    what = f"argument {k} is {'an' if name[0] in 'aeiou' else 'a'} {name}"
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        what += f" of dtype {dtype}"
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return f"{what}: integers have no tangent space. Write {x}.0"
    if getattr(dtype, "kind", "") in "iub" and dtype is not None:
        return f"{what}: it has no tangent space. Write x.astype(float)"
    return (
        f"{what} and holds nothing to differentiate with respect to: floats, complex numbers and "
        "arrays of them have tangents; register_tangent_type adds a class of your own"
    )


def explicit_leaves(x: Any) -> Any:
    """A value with the tangents that an enclosing call keeps in memory made explicit."""
    if not SHADOWED:
        return x
    leaves, structure = flatten(x)
    return unflatten(structure, [explicit(leaf) for leaf in leaves])


class Outcome:
    """What a function answered: its value, and the tangents of the value's leaves.

    Attributes
    ----------
    y, aux : object
        The value, and what came beside it with ``has_aux``.
    leaves : list
        The leaves of the value.
    structure : Structure
        The value without its leaves.
    tangents : list
        ``(K, *leaf.shape)`` for each leaf.
    """

    def __init__(
        self, y: Any, aux: Any, leaves: list[Any], structure: Structure, tangents: list[Any]
    ) -> None:
        self.y = y
        self.aux = aux
        self.leaves = leaves
        self.structure = structure
        self.tangents = tangents

    def pushed(self, *, single: bool) -> Any:
        """The tangents in the value's structure; of a single direction, without the lane axis."""
        if not single:
            return self.tangent_tree(self.tangents)
        pairs = zip(self.tangents, self.leaves, strict=True)
        return self.tangent_tree([_only_direction(t, leaf) for t, leaf in pairs])

    def tangent_tree(self, parts: list[Any]) -> Any:
        """Put one thing per leaf into the value's structure."""
        return unflatten(self.structure, parts, lambda _: NoTangent)


def _only_direction(lanes: Any, leaf: Any) -> Any:
    """The tangent of a single direction, of the leaf's own type."""
    t = lanes[0]
    return t.item() if type(plain(leaf)) in (float, complex) and hasattr(t, "item") else t


def run_forward(
    f: Callable[..., Any],
    arguments: Arguments,
    seeds: Any,
    width: Any,
    *,
    has_aux: bool = False,
    outputs: str = "returned",
) -> Outcome:
    """Run f once per chunk of directions and collect the tangents.

    Parameters
    ----------
    f : callable
        The function.
    arguments : Arguments
        Where to differentiate.
    seeds : BasisSeeds or GivenSeeds
        The directions.
    width : int or callable
        Directions per run; or ``width(leaves of the value, bytes of the largest array that a rule
        answered)``, before the first run ``width(None)``.
    has_aux, outputs
        See :func:`fwdad.jvp`.

    Raises
    ------
    NondeterministicFunctionError
        If the value differs between chunks.
    NoOutputError
        If f returns None.
    """
    collector = Collector(seeds.count)
    start, stop = 0, min(seeds.count, width(None) if callable(width) else width)
    while True:
        with Run(stop - start, eager=seeds.eager) as run:
            if start or stop < seeds.count:
                run.note_generator(np.random.mtrand._rand)
                run.note_generator(random._inst)  # type: ignore[attr-defined]
            pairs, structure, aux = run_once(
                f, arguments, run, seeds.lanes(start, stop), has_aux=has_aux, outputs=outputs
            )
            collector.add(start, stop, pairs, structure, aux)
        if stop >= seeds.count:
            return collector.outcome()
        run.rewind_generators()
        step = width(collector.values, run.tag.largest) if callable(width) else width
        start, stop = stop, min(stop + step, seeds.count)


def run_once(
    f: Callable[..., Any],
    arguments: Arguments,
    run: Run,
    tangents: list[Any],
    *,
    has_aux: bool,
    outputs: str,
) -> tuple[list[tuple[Any, Any]], Structure, Any]:
    """Run f inside a :class:`Run`, with a tangent for each leaf of its arguments.

    Returns
    -------
    pairs : list
        Each leaf of the value with its tangent.
    structure : Structure
        The value without its leaves.
    aux : object
        What came beside the value with ``has_aux``.
    """
    args = arguments.with_duals(run, tangents)
    _forbid_aliased_writes(arguments, args, run)
    y = run_on_duals(f, tuple(args), arguments.kwargs)
    return taken_apart(f, y, args, run, has_aux=has_aux, outputs=outputs)


def taken_apart(
    f: Callable[..., Any], y: Any, args: list[Any], run: Run, *, has_aux: bool, outputs: str
) -> tuple[list[tuple[Any, Any]], Structure, Any]:
    """What f answered, as :func:`run_once` returns it."""
    run.raise_swallowed()
    y = _chosen(f, y, args, run, outputs)
    aux = None
    if has_aux:
        y, aux = _with_aux(f, y, run)
    leaves, structure = flatten(_numbers(y))
    pairs = [run.parts(leaf) for leaf in leaves]
    _keep_constants(structure, run)
    return pairs, structure, aux


def _numbers(y: Any) -> Any:
    """A bare integer output is a constant of the reals: its derivative is zero, not missing."""
    if is_leaf(y) or isinstance(y, (bool, np.bool_)):
        return y
    if isinstance(y, (int, np.integer)):
        return float(y)
    if isinstance(y, np.ndarray) and y.dtype.kind in "iu":
        return y.astype(float)
    return y


def _with_aux(f: Any, y: Any, run: Run) -> tuple[Any, Any]:
    if not isinstance(y, tuple) or len(y) != 2:
        message = f"has_aux=True: {_name(f)} must return (y, aux); it returned a {type(y).__name__}"
        raise NoOutputError(message)
    y, aux = y
    return y, _without_tangents(aux, run, {})


def _without_tangents(x: Any, run: Run, seen: dict[int, Any]) -> Any:
    """A copy of a value with plain numbers, also inside objects of any class."""
    leaves, structure = flatten(x)
    kept = [run.parts(leaf)[0] for leaf in leaves]
    return unflatten(structure, kept, lambda o: _plain_object(o, run, seen))


def _keep_constants(structure: Structure, run: Run) -> None:
    """Copy the parts of a value that have no tangents, before what was written is put back."""
    if structure.kind == "leaf":
        return
    nodes, seen = [structure], set()
    copies: dict[int, Any] = {}
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind == "static":
            node.value = _plain_object(node.value, run, copies)
        nodes.extend(node.children)


def _plain_object(o: Any, run: Run, seen: dict[int, Any]) -> Any:
    if isinstance(o, np.ndarray):
        return o.copy() if run.log.wrote(o) else o
    if isinstance(o, (set, bytearray, deque)):
        return copy.copy(o)
    held = getattr(o, "__dict__", None)
    if not held or callable(o) or isinstance(o, (type, types.ModuleType)):
        return o
    if id(o) not in seen:
        made = seen[id(o)] = copy.copy(o)
        for name, value in held.items():
            made.__dict__[name] = _without_tangents(value, run, seen)
    return seen[id(o)]


def _chosen(f: Any, y: Any, args: list[Any], run: Run, outputs: str) -> Any:
    """The outputs asked for: what f returned, or the arguments that it wrote into."""
    if outputs == "returned":
        if y is None:
            message = (
                f"{_name(f)} returned None. If it updates its arguments in place, say "
                'outputs="mutated"'
            )
            raise NoOutputError(message)
        return y
    if outputs not in ("mutated", "both"):
        message = f'outputs is "returned", "mutated" or "both", not {outputs!r}'
        raise ValueError(message)
    written = []
    for x in args:
        leaves, _ = flatten(x)
        if any(isinstance(v, np.ndarray) and run.log.wrote(plain(v)) for v in leaves):
            written.append(x)
    if not written:
        message = f'outputs="{outputs}": {_name(f)} wrote into none of its arguments'
        raise NoOutputError(message)
    mutated = written[0] if len(written) == 1 else tuple(written)
    return mutated if outputs == "mutated" else (y, mutated)


NUMBERS = (int, float, complex, bool, str, type(None), np.float64)
"""Types of arguments that share no memory with others."""


def _forbid_aliased_writes(arguments: Arguments, args: list[Any], run: Run) -> None:
    """Two arguments that share memory are independent here; writing into one would not be."""
    if not arguments.composite:
        every = arguments.args
        if len(every) == 1 or sum([type(x) not in NUMBERS for x in every]) == 1:
            return
    arrays = arguments.arrays()
    if len(arrays) < 2:
        return
    given = [leaf for x in args for leaf in flatten(x)[0] if isinstance(leaf, np.ndarray)]
    for i, (first, a) in enumerate(arrays):
        for j in range(i):
            second, b = arrays[j]
            if not np.may_share_memory(plain(a), plain(b)):
                continue
            for k, position in ((j, second), (i, first)):
                message = (
                    f"arguments {second} and {first} share memory, and argument {position} is "
                    "written here: their derivatives cannot be kept apart. Pass a copy of one"
                )
                owner = owner_of(plain(given[k]))
                run.log.shared[id(owner)] = (owner, message)


def _name(f: Any) -> str:
    return getattr(f, "__qualname__", None) or repr(f)


class Collector:
    """Gathers the tangents of the chunks, and compares their values."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: list[Any] | None = None
        self.structure: Structure | None = None
        self.aux: Any = None
        self.rows: list[list[Any]] = []

    def add(
        self, start: int, stop: int, pairs: list[tuple[Any, Any]], structure: Structure, aux: Any
    ) -> None:
        """Take what one run answered, along directions ``start`` to ``stop``."""
        values = [p for p, _ in pairs]
        if self.values is None:
            self.values, self.structure, self.aux = values, structure, aux
            self.rows = [[] for _ in pairs]
        elif len(values) != len(self.values) or not all(
            _identical(a, b) for a, b in zip(values, self.values, strict=True)
        ):
            message = (
                "the function's value differs between two chunks of tangents: it depends on "
                "something that fwdad cannot set back (a clock, the operating system's entropy, "
                "code in C that keeps a state). Use chunk=None, which runs it once"
            )
            raise NondeterministicFunctionError(message)
        for row, (p, t) in zip(self.rows, pairs, strict=True):
            row.append(self._lanes(start, stop, p, t, row))

    def _lanes(self, start: int, stop: int, p: Any, t: Any, row: list[Any]) -> Any:
        if type(t) is Chunk and stop - start == self.count and type(p) is np.ndarray:
            lanes = t.lanes
            if type(lanes) is np.ndarray and lanes.dtype is p.dtype:  # the commonest
                return lanes
        dtype = leaf_dtype(plain(p))
        if isinstance(t, Undefined):
            t.use()
        n = stop - start
        if isinstance(t, Chunk):
            lanes = t.lanes
        elif dtype.kind == "O":
            lanes = zero_tangent(plain(p), n).lanes
        else:
            lanes = np.zeros((n, *leaf_shape(p)), dtype)
        kind = plain(lanes).dtype
        if kind.kind == "O" != dtype.kind:
            message = f"the tangent of a {type(plain(p)).__name__} is a chunk of objects"
            raise ChunkMismatchError(message)
        if kind.kind == "c" and dtype.kind != "c":
            lanes = lanes.real
        if kind != dtype:
            lanes = lanes.astype(dtype)
        if n == self.count or type(lanes) is not np.ndarray:
            return lanes
        # one array for all chunks: memory is that of the answer and of one chunk
        whole = next((r.base for r in row if type(r) is np.ndarray), None)
        if whole is None:
            whole = np.empty((self.count, *lanes.shape[1:]), dtype)
        whole[start:stop] = lanes
        return whole[start:stop]

    def outcome(self) -> Outcome:
        """All chunks together."""
        values = self.values
        assert values is not None
        assert self.structure is not None
        tangents = [self._joined(row) for row in self.rows]
        y = unflatten(self.structure, values)
        return Outcome(y, self.aux, values, self.structure, tangents)

    def _joined(self, row: list[Any]) -> Any:
        if len(row) == 1:
            return owned(row[0])
        if all(type(lanes) is np.ndarray for lanes in row):
            return row[0].base
        return np.concatenate(row)


def owned(lanes: Any) -> Any:
    """Lanes that nobody else holds: seeds, constants and parts of either are copied."""
    if type(lanes) is np.ndarray and (lanes.base is not None or not lanes.flags.writeable):
        return lanes.copy()
    return lanes


def _identical(a: Any, b: Any) -> bool:
    if type(plain(a)) in OWN:  # whether two of them are equal only their class would know
        return type(plain(a)) is type(plain(b))
    a, b = np.asarray(plain(a)), np.asarray(plain(b))
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
