"""Arrays that callers give for results, ``out=``: what they must be, and how they are written."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from fwdad.eager.arguments import Arguments
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.errors import OutError, SeedError, message_of, type_in_words
from fwdad.tangents.composite import Structure, flatten, leaf_order
from fwdad.tangents.matching import gather
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype, leaf_shape

SEVERAL = (
    "out is one array, and the Jacobian of a composite is several: pass stack=True and an array "
    "for the matrix of all of them"
)
_KINDS = (np.ndarray, np.memmap)  # others would say with `out[...] = y` what they are


def check_memory(out: Any, inputs: Iterable[Any], *, of: str) -> None:
    """Raise unless ``out`` is an array that can be written while the inputs are read."""
    if isinstance_dual(out):
        raise OutError(
            "out carries a derivative of an enclosing call, and what is written there would be "
            "another array: pass a new one, as numpy.empty makes it"
        )
    if type(out) not in _KINDS:
        raise OutError(not_a_place(type_in_words(out), of))
    if not out.flags.writeable:
        hint = ' (a memmap is opened with mode="r+" or "w+")' if type(out) is np.memmap else ""
        raise OutError(f"out is read-only: pass an array that may be written{hint}")
    if not (out.flags.c_contiguous or out.flags.f_contiguous) or not out.flags.aligned:
        raise OutError(
            f"out, of shape {out.shape} and strides {out.strides}, has gaps: pass a whole array, "
            f"numpy.empty({out.shape}), and copy it from there"
        )
    for x in inputs:
        x = plain(x)
        if isinstance(x, np.ndarray) and np.may_share_memory(out, x):
            raise OutError(
                f"out shares memory with an argument of shape {x.shape}, which is read while out "
                "is written: pass an array of its own"
            )


def not_a_place(what: str, of: str) -> str:
    """What is said of an ``out`` that is no array."""
    return (
        f"out is {what}, and {of} is written into an array: pass a numpy.ndarray or a numpy.memmap"
    )


def check_fits(out: np.ndarray, shape: tuple[int, ...], dtype: Any, *, of: str) -> None:
    """Raise unless an array has the shape, type and layout of a result."""
    if out.shape != shape or out.dtype != dtype:
        kind = "" if dtype == np.float64 else f", {str(dtype)!r}"
        raise OutError(
            f"out is {out.dtype} of shape {out.shape}, and {of} is {dtype} of shape {shape}: pass "
            f"numpy.empty({shape}{kind})"
        )


def check_c_contiguous(out: np.ndarray, *, of: str) -> None:
    """Raise unless an array is C-contiguous."""
    if not out.flags.c_contiguous:
        raise OutError(
            f"out, of shape {out.shape}, is in Fortran order, and {of} is written row by row: pass "
            "a C-contiguous array, as numpy.empty makes it"
        )


def check_no_out(out: Any, what: str) -> None:
    """Raise where there is nothing that could be written into ``out``."""
    if out is None:
        return
    if what.startswith("sparse"):
        raise OutError(f"a {what} is an object of its own: out is of dense ones")
    raise OutError(
        f"out is written at a point, and there is none: write {what}(f, x, out=out), or give it to "
        f"the function that {what}(f) returns"
    )


def arrays_in(*trees: Any) -> list[Any]:
    """The arrays in some arguments."""
    return [leaf for leaf in flatten(trees)[0] if isinstance(plain(leaf), np.ndarray)]


def store(target: np.ndarray, place: Any, value: Any) -> None:
    """``target[place] = value``, with what the value carries of an enclosing derivative."""
    if isinstance_dual(value) or SHADOWED:
        call(operator.setitem, target, place, value)
    else:
        target[place] = value


class _Writer:
    """Writes what chunks give; what carries derivatives only when the last chunk is through.

    What is stored while a chunk runs counts as the function's own, and is undone when it ends.
    """

    def __init__(self) -> None:
        self._later: list[tuple[np.ndarray, Any, Any]] = []

    def write(self, target: np.ndarray, place: Any, value: Any) -> None:
        """Write, now or when it is finished."""
        if isinstance_dual(value):
            self._later.append((target, place, value))
        elif SHADOWED:  # the target may carry tangents, which end here
            self._later.append((target, place, np.array(value)))
        else:
            target[place] = value

    def finish(self) -> None:
        """Write what had to wait."""
        for target, place, value in self._later:
            call(operator.setitem, target, place, value)
        self._later = []


class JacobianOut(_Writer):
    """A given array, as the matrix of a Jacobian: some columns, or rows, are put into it at a time.

    It is the Jacobian of one array or number by one, or with ``stack`` of all by all.
    """

    def __init__(self, out: Any, arguments: Arguments, *, single: bool, stack: bool) -> None:
        super().__init__()
        of = self._of = "the Jacobian"
        check_memory(out, arrays_in(arguments.args, arguments.kwargs), of=of)
        if not stack and (not single or any(s.kind != "leaf" for s in arguments.structures)):
            raise OutError(
                "out is one array, and the Jacobian by several arguments, or by a composite, is "
                "several: pass stack=True and an array for the matrix of all of them"
            )
        self.out = out
        self._stack = stack
        self._shapes = [leaf_shape(x) for x in arguments.leaves]
        self._ends = [0, *itertools.accumulate(map(math.prod, self._shapes))]
        self._matrix = out
        self._starts: list[list[int]] = []  # of a leaf that is in several places, each

    @classmethod
    def of(cls, out: Any, arguments: Arguments, *, single: bool, stack: bool) -> JacobianOut | None:
        """What ``out`` is to a Jacobian; None if none is given."""
        return None if out is None else cls(out, arguments, single=single, stack=stack)

    def begin(self, values: list[Any], structure: Structure, dtype: Any = None) -> None:
        """Compare it with the Jacobian of a value with these leaves; of ``dtype``, or theirs."""
        if not self._stack and structure.kind != "leaf":
            raise OutError(SEVERAL)
        if dtype is None:
            dtype = np.result_type(*(leaf_dtype(plain(v)) for v in values))
        sizes = [math.prod(leaf_shape(v)) for v in values]
        order = leaf_order(structure)
        rows, columns = sum(sizes[k] for k in order), self._ends[-1]
        shape = (rows, columns) if self._stack else leaf_shape(values[0]) + self._shapes[0]
        check_fits(self.out, shape, dtype, of=self._of)
        if shape != (rows, columns):
            check_c_contiguous(self.out, of=f"{self._of} of an array with {len(shape)} axes")
        self._matrix = self.out.reshape(rows, columns)
        self._starts = [[] for _ in values]
        start = 0
        for k in order:
            self._starts[k].append(start)
            start += sizes[k]

    def put(self, k: int, start: int, stop: int, lanes: Any) -> None:
        """Write columns ``start`` to ``stop`` of leaf k of the value, from lanes."""
        size = math.prod(lanes.shape[1:])
        last = lanes.reshape(stop - start, size).transpose()
        for at in self._starts[k]:
            self.write(self._matrix, (slice(at, at + size), slice(start, stop)), last)

    def put_rows(self, k: int, start: int, stop: int, parts: list[Any]) -> None:
        """Write rows ``start`` to ``stop`` of leaf k of the value, a part for each leaf of x."""
        for at in self._starts[k]:
            rows = slice(at + start, at + stop)
            for first, last, part in zip(self._ends, self._ends[1:], parts, strict=False):
                block = part.reshape(stop - start, last - first)
                store(self._matrix, (rows, slice(first, last)), block)


class TangentsOut(_Writer):
    """Given arrays, in the structure of a value, into which its tangents are put."""

    def __init__(self, out: Any, arguments: Arguments, v: Any, count: int, *, single: bool) -> None:
        super().__init__()
        self.out = out
        self._inputs = arrays_in(arguments.args, arguments.kwargs, v)
        self._of = "the tangent"
        self._lead = () if single else (count,)
        self._targets: list[Any] = []
        for leaf in flatten(out)[0]:
            check_memory(leaf, self._inputs, of=self._of)

    def begin(self, values: list[Any], structure: Structure) -> None:
        """Compare them with the leaves of the value."""
        self._targets = given_for(self.out, structure, self._of)
        for target, v in zip(self._targets, values, strict=True):
            check_memory(target, self._inputs, of=self._of)
            check_fits(target, self._lead + leaf_shape(v), leaf_dtype(plain(v)), of=self._of)
            check_c_contiguous(target, of=self._of)

    def put(self, k: int, start: int, stop: int, lanes: Any) -> None:
        """Write the tangents of leaf k along directions ``start`` to ``stop``."""
        if self._lead:
            self.write(self._targets[k], slice(start, stop), lanes)
        else:
            self.write(self._targets[k], Ellipsis, lanes[0])


def given_for(out: Any, structure: Structure, of: str) -> list[Any]:
    """The arrays given for the leaves of a result with this structure."""
    if structure.kind == "leaf":
        return [out]
    found = []
    try:
        gathered = gather(structure, out, of, "out")
    except SeedError as error:
        message = f"out does not have the structure of {of}: {message_of(error)}"
        raise OutError(message) from None
    for parts in gathered:
        if len(parts) > 1:
            raise OutError(
                f"{of} has one array in two places: give no out for it, and take what is returned"
            )
        found.append(parts[0])
    return found


def check_target(out: Any, like: Any, inputs: Any, of: str) -> None:
    """Raise unless ``out`` can take what has the structure, shapes and types of ``like``."""
    leaves, structure = flatten(like)
    arrays = arrays_in(inputs)
    for target, leaf in zip(given_for(out, structure, of), leaves, strict=True):
        check_memory(target, arrays, of=of)
        check_fits(target, leaf_shape(leaf), leaf_dtype(plain(leaf)), of=of)


def written_into(out: Any, value: Any, of: str) -> Any:
    """``out``, into which a value is written; both have been found to fit."""
    leaves, structure = flatten(value)
    targets = given_for(out, structure, of)
    for target, leaf in zip(targets, leaves, strict=True):
        check_fits(target, leaf_shape(leaf), leaf_dtype(plain(leaf)), of=of)
    for target, leaf in zip(targets, leaves, strict=True):
        store(target, Ellipsis, leaf)
    return out
