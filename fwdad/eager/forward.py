"""Forward runs of a function, chunk of tangents after chunk."""

from __future__ import annotations

import copy
import random
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.core.progress import Progress
from fwdad.eager.arguments import Arguments, check_outputs, check_read_again
from fwdad.eager.build import Run, run_on_duals
from fwdad.eager.effects import Journal
from fwdad.eager.memory.shadow import owner_of
from fwdad.eager.outcomes import Collector, Outcome, Sink
from fwdad.errors import NoOutputError, UnsupportedTypeError, returned_nothing, type_in_words
from fwdad.tangents.composite import (
    Structure,
    flatten,
    is_leaf,
    map_attributes,
    opaque_parts,
    unflatten,
)
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import Zero


def run_forward(
    f: Callable[..., Any],
    arguments: Arguments,
    seeds: Any,
    width: Any,
    *,
    has_aux: bool = False,
    outputs: str = "returned",
    sink: Sink | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run f once per chunk of directions and collect the tangents; see :func:`forward_chunks`."""
    collector = Collector(seeds.count, sink=sink, progress=progress)
    for _ in forward_chunks(
        f, arguments, seeds, width, collector, has_aux=has_aux, outputs=outputs
    ):
        pass
    return collector.outcome()


def forward_chunks(
    f: Callable[..., Any],
    arguments: Arguments,
    seeds: Any,
    width: Any,
    collector: Collector,
    *,
    has_aux: bool = False,
    outputs: str = "returned",
) -> Iterator[tuple[int, int]]:
    """Run f once per chunk of directions; yields which of them ``collector`` has now.

    ``width`` is the number of directions per run, or a function ``width(leaves of the value, bytes
    of the largest array that a rule returned)``, called as ``width(None)`` before the first run.
    ``NondeterministicFunctionError`` if the value differs between chunks; ``NoOutputError`` if f
    returns None.
    """
    start, stop = 0, min(seeds.count, width(None) if callable(width) else width)
    journal: Journal | None = None
    if stop < seeds.count:
        journal = []
        check_read_again((arguments.args, arguments.kwargs))
    while True:
        last = stop >= seeds.count
        with (
            Run(
                stop - start, eager=seeds.eager, stays=last, repeats=start > 0, journal=journal
            ) as run,
            run,
        ):
            if start or stop < seeds.count:
                run.note_generator(np.random.mtrand._rand)
                run.note_generator(random._inst)  # type: ignore[attr-defined]
            pairs, structure, aux = run_once(
                f, arguments, run, seeds.lanes(start, stop), has_aux=has_aux, outputs=outputs
            )
            collector.add(start, stop, pairs, structure, aux)
        yield start, stop
        if last:
            return
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

    Returns the leaves of the value with their tangents, the value's structure, and aux.
    """
    args = arguments.with_duals(run, tangents)
    run.given = (*arguments.args, *arguments.kwargs.values())
    _forbid_aliased_writes(arguments, args, run)
    y = run_on_duals(f, tuple(args), arguments.kwargs)
    return taken_apart(f, y, args, run, has_aux=has_aux, outputs=outputs)


def taken_apart(
    f: Callable[..., Any], y: Any, args: list[Any], run: Run, *, has_aux: bool, outputs: str
) -> tuple[list[tuple[Any, Any]], Structure, Any]:
    """The result of f in the form of :func:`run_once`."""
    run.raise_swallowed()
    y = _chosen(f, y, args, run, outputs)
    aux = None
    if has_aux:
        y, aux = _with_aux(f, y, run)
    leaves, structure = flatten(numbers(y))
    pairs = [run.parts(leaf) for leaf in leaves]
    if structure.kind != "leaf":
        _refuse_lost_tangents(f, y, run)
    _keep_constants(structure, run, {})
    return pairs, structure, aux


def numbers(y: Any) -> Any:
    """A value with a bare integer as a float: a constant has derivative zero, not none at all."""
    if is_leaf(y) or isinstance(y, (bool, np.bool_)):
        return y
    if isinstance(y, (int, np.integer)):
        return float(y)
    if isinstance(y, np.ndarray) and y.dtype.kind in "iu":
        return y.astype(float)
    return y


def _with_aux(f: Any, y: Any, run: Run) -> tuple[Any, Any]:
    if not isinstance(y, tuple) or len(y) != 2:
        what = "number or array" if is_leaf(y) else type(y).__name__
        message = f"has_aux=True: {_name(f)} must return (y, aux); it returned a {what}"
        raise NoOutputError(message)
    y, aux = y
    return y, _without_tangents(aux, run, {})


def _without_tangents(x: Any, run: Run, seen: dict[int, Any]) -> Any:
    """A copy of a value with plain numbers, also inside objects of any class."""
    leaves, structure = flatten(x)
    primals = [run.parts(leaf)[0] for leaf in leaves]
    _keep_constants(structure, run, seen)
    return unflatten(structure, primals)


def _keep_constants(structure: Structure, run: Run, copies: dict[int, Any]) -> None:
    """Copy the parts of a value that have no tangents, before what was written is restored."""
    if structure.kind == "leaf":
        return
    nodes, seen = [structure], set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind == "static":
            node.value = _plain_object(node.value, run, copies)
        elif node.kind in ("tuple", "list", "dict") and id(node.value) not in copies:
            copies[id(node.value)] = node.value  # it may hold itself
            map_attributes(node, lambda held: _without_tangents(held, run, copies))
            del copies[id(node.value)]
        nodes.extend(node.children)


def _refuse_lost_tangents(f: Callable[..., Any], y: Any, run: Run) -> None:
    """Raise where an object without a tangent type holds values that have tangents."""
    for o, name, leaves in opaque_parts(y):
        if any(not isinstance(run.parts(leaf)[1], Zero) for leaf in leaves):
            message = (
                f"{_name(f)} returned {type_in_words(o)}, which has no tangent type, and its "
                f"attribute {name!r} carries a derivative. Return the values themselves, in a "
                "tuple, dict or dataclass; or register the class with register_tangent_type; or "
                "return (y, aux) and pass has_aux=True"
            )
            raise UnsupportedTypeError(message)


def _plain_object(o: Any, run: Run, seen: dict[int, Any]) -> Any:
    if isinstance(o, np.ndarray):
        return o.copy() if run.log.wrote(o) else o
    if isinstance(o, (set, bytearray, deque)):
        return copy.copy(o)
    attributes = namespace_of(o)
    if not attributes or callable(o) or isinstance(o, (type, types.ModuleType)):
        return o
    if id(o) not in seen:
        copied = seen[id(o)] = copy.copy(o)
        for name, value in attributes.items():
            copied.__dict__[name] = _without_tangents(value, run, seen)
    return seen[id(o)]


def _chosen(f: Any, y: Any, args: list[Any], run: Run, outputs: str) -> Any:
    """The requested outputs: what f returned, or the arguments that it wrote into."""
    if outputs == "returned":
        if y is None:
            raise NoOutputError(returned_nothing(_name(f)))
        return y
    check_outputs(outputs)
    written = []
    for x in args:
        leaves, _ = flatten(x)
        if any(isinstance(v, np.ndarray) and run.log.wrote(plain(v)) for v in leaves):
            written.append(x)
    if not written:
        message = f'outputs="{outputs}", but {_name(f)} wrote into none of its arguments'
        raise NoOutputError(message)
    mutated = written[0] if len(written) == 1 else tuple(written)
    return mutated if outputs == "mutated" else (y, mutated)


NUMBERS = (int, float, complex, bool, str, type(None), np.float64)


def _forbid_aliased_writes(arguments: Arguments, args: list[Any], run: Run) -> None:
    """Make writes into arguments that share memory raise, because here they are independent."""
    if not arguments.composite:
        every = arguments.args
        if len(every) == 1 or sum([type(x) not in NUMBERS for x in every]) == 1:
            return
    arrays = arguments.arrays()
    if len(arrays) < 2:
        return
    copies = [leaf for x in args for leaf in flatten(x)[0] if isinstance(leaf, np.ndarray)]
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
                owner = owner_of(plain(copies[k]))
                run.log.shared[id(owner)] = (owner, message)


def _name(f: Any) -> str:
    return getattr(f, "__qualname__", None) or repr(f)
