"""Fingerprints of parts of a record, which show whether a second run has recorded the same."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager_reverse.memory import Accumulation, Memory, PutBack, Store, View
from fwdad.eager_reverse.tangent import Node, Recorded
from fwdad.rules.core.recording import Operation
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain


def created(operations: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The nodes and memories that operations have made, each with its key.

    A second run of the same code gives the same keys.
    """
    for i, op in enumerate(operations):
        several = getattr(op, "nodes", None)
        if several is not None:
            for k, node in several.items():
                yield (i, k), node
            continue
        node = getattr(op, "node", None)
        if node is not None:
            yield i, node


class Fingerprint:
    """All that the reverse pass does with some operations, without the arrays that they hold.

    ``digest`` covers every number, array and index, and how operations depend on each other.
    ``outside`` lists the nodes and memories from before that they use, in order; ``stored`` are
    those memories among them that are written. Fingerprints are equal if digests and ``outside``
    are.
    """

    def __init__(self, operations: list[Any]) -> None:
        self.outside: list[Any] = []
        self.stored: dict[Memory, None] = {}
        self._own = {node: key for key, node in created(operations)}
        self._known: dict[Any, int] = {}
        self._said: list[Any] = []
        self._floats = array("d")
        for op in operations:
            self._operation(op)
        self.digest = hash((tuple(self._said), self._floats.tobytes()))
        del self._own, self._known, self._said, self._floats

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fingerprint) or self.digest != other.digest:
            return False
        return len(self.outside) == len(other.outside) and all(
            a is b for a, b in zip(self.outside, other.outside, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def _operation(self, op: Any) -> None:
        self._said.append(type(op).__name__)
        inner = getattr(op, "fingerprint", None)
        if inner is not None:  # of what is run again in its turn
            self._said.append(inner.digest)
            for node in inner.outside:
                self._place(node)
            self._store(inner.stored)
            return
        if isinstance(op, (Store, Accumulation)):
            self._store((op.view.memory,))
        elif isinstance(op, PutBack):
            self._store((op.memory,))
        names = getattr(type(op), "__slots__", None) or vars(op)
        for name in names:
            self._say(getattr(op, name))

    def _store(self, memories: Any) -> None:
        for memory in memories:
            if memory not in self._own:
                self.stored[memory] = None

    def _place(self, node: Any) -> None:
        """Add the identity of a node or memory."""
        key = self._own.get(node)
        if key is None:
            key = self._known.get(node)
            if key is None:
                key = self._known[node] = -1 - len(self.outside)
                self.outside.append(node)
        self._said.append(key)

    def _say(self, v: Any) -> None:
        t = type(v)
        if t is float:
            self._floats.append(v)
        elif t is Node or t is Memory:
            self._place(v)
        elif t is dict:
            self._said.append(len(v))
            for key, item in v.items():
                self._say(key)
                self._say(1.0 if item is None and type(key) is Node else item)
        elif t is int or t is bool or v is None or t is str:
            self._said.append(v)
        elif t is np.ndarray:
            self._array(v)
        elif t is tuple or t is list:
            self._said.append(len(v))
            for item in v:
                self._say(item)
        else:
            self._say_other(v)

    def _say_other(self, v: Any) -> None:
        if isinstance_dual(v):
            self._say(plain(v))
        elif isinstance(v, Recorded):
            self._said.append(v.shape)
            self._say(v.terms)
        elif isinstance(v, View):
            self._place(v.memory)
            self._said.append((v.offset, v.shape, v.strides, v.dtype.str))
        elif isinstance(v, Operation):
            self._say_other(v.function)
            self._say(v.primals)
            self._say(v.options)
        elif isinstance(v, Chunk):  # zeros that a rule wrote out
            self._said.append(v.shape)
        elif isinstance(v, (np.ndarray, np.generic)):
            self._array(np.asarray(v))
        elif isinstance(v, complex):
            self._floats.extend((v.real, v.imag))
        elif isinstance(v, (slice, range)):
            self._said.append(repr(v))
        else:
            self._said.append(getattr(v, "__name__", None) or type(v).__qualname__)

    def _array(self, a: np.ndarray) -> None:
        if not a.shape and a.dtype.kind in "fc":  # numbers have several forms
            self._say(a.item())
            return
        self._said.append((a.dtype.str, a.shape))
        if a.dtype.hasobject:
            for item in a.ravel().tolist():
                self._say(item)
        else:
            self._said.append(zlib.crc32(np.ascontiguousarray(a).reshape(-1).view(np.uint8).data))
