"""The source of a call from compiled code, which selects a tape by lengths and calls its kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numba
import numpy as np

from fwdad.core.generated_source import define
from fwdad.errors import type_in_words
from fwdad.ir.types import Number, number_type

types: Any = numba.core.types
TypingError: Any = numba.core.errors.TypingError


def is_leaf_key(key: Any) -> bool:
    """Whether a part of a tape's key is that of a number or an array."""
    return isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], np.dtype)


def _leaf_keys(key: Any) -> Iterator[Any]:
    if is_leaf_key(key):
        yield key
    elif isinstance(key, tuple):
        for part in key:
            yield from _leaf_keys(part)


class _Place(NamedTuple):
    """A placeholder for a result of a program."""

    place: int

    def __bool__(self) -> bool:
        raise TypingError("a value that may be None cannot be returned to code that Numba compiles")


class CallWriter:
    """A writer of the function that selects a tape by lengths and calls it.

    ``open`` is True as long as some arguments are served by no tape yet.
    """

    def __init__(self, name: str, given: Any) -> None:
        self.open = True
        self._name = name
        self._given = given
        self._lines = [f"def call({', '.join(given.names)}):"]
        self._namespace: dict[str, Any] = {"np": np, "may_overlap": _may_overlap}
        self._count = 0

    def add(self, made: Any) -> None:
        """Write the call of one specialisation under its conditions."""
        tape, k = made.tape, self._count
        conditions = self._conditions(tape)
        test = " and ".join(conditions)
        if test and f"    if {test}:" in self._lines:
            return
        self._count += 1
        kernel = self._kernel(made)
        self._namespace[f"tape_{k}"] = kernel
        texts = [leaf.text for leaf in self._given.leaves]
        for j, value in enumerate(c.fetch() for c in tape.captures):
            self._namespace[f"captured_{k}_{j}"] = value
            texts.append(f"captured_{k}_{j}")
        indent = "    "
        if test:
            self._lines.append(f"{indent}if {test}:")
            indent += "    "
        self.open = bool(test)
        for pair in self._overlaps(tape):
            self._lines.append(f"{indent}if may_overlap({pair}):")
            what = f"{self._name} writes into one of two arguments that share memory"
            self._lines.append(f"{indent}    raise ValueError({what!r})")
        self._lines.append(f"{indent}made = tape_{k}({', '.join(texts)})")
        places = [_Place(j) for j in range(len(tape.program.block.results))]
        result = self._result(tape.rebuild(places), tape.program.block.results)
        self._lines.append(f"{indent}return {result}")

    def dispatcher(self) -> Any:
        """The written function, under Numba."""
        if self.open:
            what = (
                f"{self._name} has no tape for arguments of these lengths or values: call it once "
                "from Python, with such arguments, before the function that calls it is compiled"
            )
            self._lines.append(f"    raise TypeError({what!r})")
        text = "\n".join(self._lines) + "\n"
        filename = f"<fwdad call of {self._name} {hash(text) & 0xFFFFFFFF:x}>"
        return numba.njit(nogil=True)(define(text, filename, self._namespace, "call"))

    def _conditions(self, tape: Any) -> list[str]:
        found = []
        assumed = {(k, axis): n for k, axis, n in tape.length_guards}
        for k, (leaf, key) in enumerate(zip(self._given.leaves, _leaf_keys(tape.key), strict=True)):
            if isinstance(key[1], tuple) and k in tape.value_guards:
                found.append("False")  # contents are compared by Python only
            elif isinstance(key[1], tuple):
                for axis, n in enumerate(key[1]):
                    known = assumed.get((k, axis), n)
                    test = ">= 2" if known == -1 else f"== {known}"
                    found.append(f"{leaf.text}.shape[{axis}] {test}")
            elif k in tape.value_guards:
                found.append(f"{leaf.text} == {tape.value_guards[k]!r}")
        texts = [leaf.text for leaf in self._given.leaves]
        for k, axis, other, at in tape.equal_lengths:
            found.append(f"{texts[k]}.shape[{axis}] == {texts[other]}.shape[{at}]")
        return found

    def _kernel(self, made: Any) -> Any:
        """The compiled tape; what it captures has Numba's types of constants."""
        tape, compiled = made.tape, made.run.callee
        if compiled is None:
            raise TypingError(
                f'{self._name} was made for NumPy (backend="numpy"), so it cannot be called '
                "from compiled code"
            )
        first = len(self._given.leaves)
        signature = [types.unliteral(leaf.type) for leaf in self._given.leaves]
        for k, capture in enumerate(tape.captures, first):
            t = numba.typeof(capture.fetch())
            if isinstance(t, types.Array):
                if tape.program.written[k]:
                    raise TypingError(
                        f"{self._name} writes into an array from outside, which is a constant of "
                        "compiled code: pass it as an argument"
                    )
                t = t.copy(readonly=True)
            signature.append(t)
        called = [reason for c in compiled.source.callbacks for reason in c.reasons]
        if called:  # others with the same text could be linked into the same caller
            raise TypingError(f"{self._name} cannot be called from compiled code: {called[0]}")
        if not compiled.serves(tuple(signature)):
            reason = compiled.left[-1] if compiled.left else "its tape runs under NumPy"
            raise TypingError(f"{self._name} cannot be compiled: {reason}")
        return compiled.kernel

    def _overlaps(self, tape: Any) -> Iterator[str]:
        """Pairs of array arguments that must not share memory, because one of them is written."""
        arrays = [
            (k, leaf.text)
            for k, leaf in enumerate(self._given.leaves)
            if isinstance(leaf.type, types.Array)
        ]
        for j, (k, a) in enumerate(arrays):
            for m, b in arrays[j + 1 :]:
                if k in tape.alone or m in tape.alone:
                    yield f"{a}, {b}"

    def _result(self, y: Any, results: list[Any]) -> str:
        if type(y) is _Place:
            t = getattr(results[y.place], "type", None)
            text = f"made[{y.place}]"
            if isinstance(t, Number) and not t.python:
                return f"np.{'bool_' if t.dtype.kind == 'b' else t.dtype.name}({text})"
            return text
        if isinstance(y, tuple):
            items = "".join(f"{self._result(item, results)}, " for item in y)
            if hasattr(y, "_fields"):
                name = f"{type(y).__name__}_of_call"
                self._namespace[name] = type(y)
                return f"{name}({items.rstrip(', ')})"
            return f"({items.rstrip() if len(y) == 1 else items.rstrip(', ')})"
        if y is None or isinstance(y, str) or number_type(y) is not None:
            name = f"constant_{len(self._namespace)}"
            self._namespace[name] = y
            return name
        raise TypingError(
            f"{self._name} returns {type_in_words(y)}: only numbers, arrays, None and tuples of "
            "these can be returned to code that Numba compiles"
        )


@numba.njit
def _extent(a: Any) -> Any:
    """The address of an array's first element, and the one after its last."""
    first = last = a.ctypes.data
    for k in range(a.ndim):
        if a.shape[k] == 0:
            return first, first
        step = (a.shape[k] - 1) * a.strides[k]
        if step < 0:
            first += step
        else:
            last += step
    return first, last + a.itemsize


@numba.njit
def _may_overlap(a: Any, b: Any) -> bool:
    """Whether two arrays may share memory."""
    from_a, to_a = _extent(a)
    from_b, to_b = _extent(b)
    return from_a < to_b and from_b < to_a


__all__ = ["CallWriter", "is_leaf_key"]
