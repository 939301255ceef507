"""The record of one run: every operation on tangents, in order of execution."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.memory.shadow import keep, owner_of, release
from fwdad.eager.run import Tag
from fwdad.eager_reverse.memory import Allocated, Memory, stored_bytes
from fwdad.eager_reverse.operations import Call, Combination, Gathered, Indexed, Terms
from fwdad.eager_reverse.reverse_rules import run_reverse_rule
from fwdad.eager_reverse.tangent import Node, Recorded
from fwdad.errors import MissingTransposeError, NonlinearTangentError
from fwdad.rules.core.adjoints import TRANSPOSES
from fwdad.rules.core.containers import is_composite, rebuild
from fwdad.rules.core.recording import OpaqueTangentError, Operation, transposes_for
from fwdad.rules.core.registry import Rule
from fwdad.rules.core.reverse_rules import RRULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype, leaf_shape
from fwdad.tangents.zero import ZERO, Zero

_PARTS_KEPT = 4096
Kept = dict[int, tuple[Any, list[Any]]]
_OPERATION_BYTES = sys.getsizeof(Combination(Node((), np.dtype(float)), {})) + sys.getsizeof(
    Node((), np.dtype(float))
)


class Record:
    """What a recorded run writes down; the builder reaches it as ``tag.record``.

    ``operations`` are in order of execution; while a ``segment`` is open (the innermost call under
    way that is run again in the reverse pass), they are that call's. ``kept`` maps the id of an
    array's owner to the owner and whatever reads its memory in the reverse pass. ``contents`` holds
    the last content found by calls that are run again, so that it is kept once. ``whole`` is the
    recorded function until it is called, ``thread`` the one in which the run began; ``lock`` is
    held by the thread that runs a call again.
    """

    most = 6

    def __init__(self) -> None:
        self.tag = Tag(1, record=self, call=call)
        self.tag.most = self.most
        self.operations: list[Any] = []
        self.closed = False
        self.append = self.operations.append
        self.kept: Kept = {}
        self.segment: Any = None
        self.contents: dict[Any, Any] = {}
        self.whole: Any = None
        self.thread = threading.get_ident()
        self.lock = threading.RLock()

    # -- tangents

    def input(self, leaf: Any) -> Recorded:
        """The tangent of a leaf of the arguments."""
        node = Node(leaf_shape(leaf), leaf_dtype(plain(leaf)))
        return Recorded.made(self, node.shape, {node: None})

    def tangent(self, shape: tuple[int, ...], terms: Terms) -> Recorded:
        """A sum of scaled nodes as a tangent."""
        return Recorded.made(self, shape, terms)

    def adopt(self, t: Any) -> Any:
        """A tangent of this run in recorded form; ``ZERO`` for zeros that a rule wrote out."""
        if type(t) is Recorded or not isinstance(t, Chunk):
            return t
        # scaled nodes that somebody has combined as a chunk's lanes
        terms = {node: d for node, d in t.terms.items() if isinstance(node, Node)}
        if terms:
            return Recorded.made(self, t.shape, terms)
        if t.n != 1 or np.any(plain(t.lanes) != 0):
            message = (
                f"a rule returns {t!r}, whose lanes do not come from its tangents: a rule must "
                "be linear in its tangents"
            )
            raise NonlinearTangentError(message)
        return ZERO

    def product(self, a_dot: Recorded, b_dot: Recorded, p: Any, q: Any) -> Recorded:
        """The tangent of ``p * q`` of one shape; a primal that becomes a scaling is copied."""
        first, second = a_dot.factors(), b_dot.factors()
        terms = {}
        for node, d in first.items():
            if node not in second:
                terms[node] = q.copy() if d is None else d * q
        for node, e in second.items():
            if node not in first:
                terms[node] = p.copy() if e is None else e * p
            else:
                d = first[node]
                terms[node] = (q if d is None else d * q) + (p if e is None else e * p)
        return Recorded.short(self, a_dot.shape, terms)

    def scalar_terms(self, t: Any) -> Terms:
        """The terms of a number's tangent; its scalings are Python numbers."""
        return {node: 1.0 if d is None else _number(d) for node, d in t.terms.items()}

    def fewer(self, terms: Terms) -> Terms:
        """A long sum as a sum of one node."""
        return {self.combination(terms, (), Recorded.made(self, (), terms).dtype): 1.0}

    def combination(self, terms: Terms, shape: tuple[int, ...], dtype: Any) -> Node:
        """Record a sum of scaled nodes as one node."""
        node = Node(shape, dtype)
        self.append(Combination(node, terms))
        return node

    def gather(self, rows: list[Terms | None], dtype: Any) -> Recorded:
        """Record the tangent of an array of numbers."""
        node = Node((len(rows),), dtype)
        self.append(Gathered(node, rows))
        return Recorded.made(self, node.shape, {node: None})

    def element(self, source: Node, index: tuple[int, ...]) -> Node:
        """The node of one element, recorded once."""
        if self.segment is not None:
            parts = self.segment.parts.setdefault(source, {})
        else:
            parts = source.parts
            if parts is None:
                parts = source.parts = {}
        part = parts.get(index)
        if part is None:
            part = self.indexed(source, index, ())
            if len(parts) < _PARTS_KEPT:
                parts[index] = part
        return part

    def indexed(self, source: Node, index: tuple[Any, ...], shape: tuple[int, ...]) -> Node:
        """Record the node of a part of an array."""
        node = Node(shape, source.dtype)
        self.append(Indexed(node, source, index))
        return node

    def memory(self, owner: Any, nbytes: int) -> Memory:
        """A recorder of the loads and stores of one piece of memory."""
        memory = Memory(self, owner, nbytes)
        if self.segment is not None:
            self.append(Allocated(memory))
        return memory

    # -- linear primitives

    def operation(self, value: Chunk, operation: Operation) -> Recorded:
        """Record a function of the closed list or a linear primitive."""
        operation = _with_own_lists(operation)
        transposes_for(operation)  # a missing one is reported where it is needed
        for _, source in operation.sources:
            source.settle()  # type: ignore[attr-defined]
        node = Node(value.shape, value.dtype)
        self.write_down(Call(node, operation))
        return Recorded.made(self, node.shape, {node: None})

    def run_rule(
        self, rule: Rule, body: Callable[..., Any], primals: Any, tangents: Any, options: Any
    ) -> tuple[Any, Any]:
        """Run a rule's body; if it inspects its tangents, its transposes are recorded instead."""
        if rule.function in RRULES:
            return run_reverse_rule(self, RRULES[rule.function], primals, tangents, options)
        tangents = tuple([self.adopt(t) if type(t) is Chunk else t for t in tangents])
        try:
            return body(primals, tangents, **options)
        except OpaqueTangentError as error:
            transposes = TRANSPOSES.get(rule.function, {})
            active = [k for k, t in enumerate(tangents) if not isinstance(t, Zero)]
            if not set(active) <= set(transposes):
                message = (
                    f"the frule of {rule.name} cannot be run backwards: it reads the lanes of "
                    "its tangents. Write it with the operations of a Chunk, or, if the function "
                    f"is linear, write a transpose for it, @fwdad.transpose({rule.name}, "
                    "argnum=...)"
                )
                raise MissingTransposeError(message) from error
        y = body(primals, (ZERO,) * len(primals), **options)[0]
        value = Chunk(np.empty((0, *np.shape(plain(y))), leaf_dtype(plain(y))))
        y_dot: Any = ZERO
        for k in active:
            arguments = (*primals[:k], tangents[k], *primals[k + 1 :])
            y_dot = y_dot + self.operation(value, Operation(rule.function, arguments, options))
        return y, y_dot

    # -- arrays that the reverse pass reads

    def write_down(self, call: Any) -> None:
        """Record an operation that reads arrays in the reverse pass."""
        self.append(call)
        for v in call.arrays():
            owner = owner_of(plain(v))
            self.kept.setdefault(id(owner), (owner, []))[1].append(call)
            keep(owner, call)

    def all_operations(self) -> Iterator[Any]:
        """All recorded operations, those of calls under way included."""
        lists, segment = [self.operations], self.segment
        while segment is not None:
            lists.append(segment.before)
            segment = segment.outer
        for operations in lists:
            yield from operations

    def stored_bytes(self, memories: list[Any]) -> dict[Any, np.ndarray]:
        """For each memory, a mask of the bytes in which a tangent was stored."""
        return stored_bytes(self, memories)

    def release(self, *, copies: bool) -> None:
        """End the run: copy what somebody else could still write."""
        arrays, self.kept = self.kept, {}
        while arrays:
            _, (owner, calls) = arrays.popitem()
            if not release(owner, calls):  # written meanwhile, and copied then
                continue
            if copies and _references(owner, calls) > _OUR_REFERENCES:
                copied: dict[int, Any] = {}
                for call in calls:
                    call.copy_from(owner, copied)

    @property
    def nbytes(self) -> int:
        """The bytes that the record holds; what operations share counts once."""
        arrays: dict[int, int] = {}
        total = 0
        for op in self.operations:
            total += _OPERATION_BYTES
            for v in op.held():
                raw = plain(v)
                if isinstance(raw, np.ndarray):
                    arrays[id(raw)] = raw.nbytes
                else:
                    total += sys.getsizeof(raw)
        return total + sum(arrays.values())


def _number(d: Any) -> Any:
    if isinstance_dual(d):
        return d[()] if type(d) is Array else d  # type: ignore[index]
    return d.item() if isinstance(d, (np.generic, np.ndarray)) else d


def _references(owner: Any, calls: list[Call]) -> int:
    """The number of references to an array beyond those of some calls of the record.

    A view of it counts as another reference, since nobody knows who else has the view.
    """
    of_record = 0
    if type(owner) is not np.ndarray:
        return sys.maxsize
    for operation in calls:
        of_record += sum(v is owner for v in operation.arrays())
    return sys.getrefcount(owner) - of_record


def _our_references() -> int:
    """What :func:`_references` gives in :meth:`Record.release` for an array that is not shared."""
    arrays: dict[int, tuple[Any, list[Call]]] = {0: (np.zeros(1), [])}
    operation = Operation(np.multiply, (arrays[0][0],), {})
    arrays[0][1].append(Call(Node((), np.dtype(float)), operation))
    _, (owner, calls) = arrays.popitem()
    return _references(owner, calls)


_OUR_REFERENCES = _our_references()


def _with_own_lists(operation: Operation) -> Operation:
    """An operation with its own lists and dicts, unaffected when f's changes are undone."""
    options, primals = operation.options, operation.primals
    if not any(map(is_composite, (*primals, *options.values()))):
        return operation
    return Operation(operation.function, rebuild(primals, _as_it_is), rebuild(options, _as_it_is))


def _as_it_is(_path: Any, value: Any) -> Any:
    return value
