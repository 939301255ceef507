"""The arguments of a call that is differentiated."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.eager.build import Run
from fwdad.eager.duals.explicit import explicit, settled
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.memory.stale import ARRAYS, overwrite
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.tangents.alike import alike
from fwdad.tangents.composite import Structure, flatten, unflatten
from fwdad.tangents.plain import plain


class Arguments:
    """The arguments of a call, with those to differentiate (at ``argnums``) flattened into leaves.

    ``args`` is ``(x, *args)``; ``kwargs`` are inactive.
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
                message = f"argnums names argument {k}, but the call has {len(args)} arguments"
                raise UnsupportedTypeError(message)
            leaves, structure = flatten(args[k], strict=True)
            if not leaves:
                raise UnsupportedTypeError(_no_tangent(k, args[k]))
            self.structures.append(structure)
            self.composite |= structure.kind != "leaf"
            self.counts.append(len(leaves))
            if SHADOWED:  # an enclosing call may keep tangents in the memory of a plain array
                leaves = [settled(x) if explicit(x) is not x else x for x in leaves]
            self.leaves.extend(leaves)

    def with_duals(self, run: Run, tangents: list[Any]) -> list[Any]:
        """The arguments of one run: copies of the leaves, as duals where there is a tangent."""
        duals = [
            run.dual(alike(leaf) if isinstance(leaf, np.ndarray) else leaf, t)
            for leaf, t in zip(self.leaves, tangents, strict=True)
        ]
        if ARRAYS:
            for _, a in self.arrays():  # an argument is not a stale result
                overwrite(plain(a))
        args = list(self.args)
        if len(self.argnums) == 1:
            args[self.argnums[0]] = unflatten(self.structures[0], duals)
            return args
        start = 0
        for k, structure, count in zip(self.argnums, self.structures, self.counts, strict=True):
            args[k] = unflatten(structure, duals[start : start + count])
            start += count
        return args

    def arrays(self) -> list[tuple[int, Any]]:
        """Every array among the arguments, with the position of its argument."""
        arrays: list[tuple[int, Any]] = []
        for k, x in enumerate(self.args):
            leaves, _ = flatten(x)
            arrays.extend((k, leaf) for leaf in leaves if isinstance(leaf, np.ndarray))
        return arrays


def _no_tangent(k: int, x: Any) -> str:
    what = f"argument {k} is {type_in_words(x)}"
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        what += f" of dtype {dtype}"
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return f"{what}: integers have no tangent space. Write {x}.0"
    if getattr(dtype, "kind", "") in "iub" and dtype is not None:
        return f"{what}: it has no tangent space. Write x.astype(float)"
    if isinstance(x, (list, tuple)) and any(isinstance(v, (int, np.integer)) for v in x):
        return f"{what} of integers, which have no tangent space. Write floats: [1.0, 2.0]"
    what += " and holds nothing to differentiate with respect to"
    if x is None or type(x).__module__ == "builtins":
        return f"{what}. Other arguments are named by argnums, the second by argnums=1"
    return (
        f"{what}: floats, complex numbers and arrays of them have tangents. Register a class of "
        "your own with register_tangent_type"
    )


def check_numbers(k: int, x: Any) -> None:
    """Raise for an int among the floats of a list, which would have no derivative.

    Only plain lists and tuples of numbers, or of such lists, are checked; k is the position of x.
    """
    left, seen = [(x, "")], set()  # a list may contain itself
    while left:
        items, where = left.pop()
        if type(items) not in (list, tuple) or id(items) in seen:
            continue
        seen.add(id(items))
        kinds = [_number_kind(item) for item in items]
        if set(kinds) <= {"i", "u", "f", "c"} and not {"f", "c"}.isdisjoint(kinds):
            _check_items(k, items, kinds, where)
        left += [(item, f"{where}[{at}]") for at, item in reversed([*enumerate(items)])]


def _check_items(k: int, x: Any, kinds: list[str], where: str) -> None:
    for at, kind in enumerate(kinds):
        if kind in "iu":
            value = "a float" if hasattr(type(x[at]), "__fwdad_symbolic__") else f"{x[at]}.0"
            message = (
                f"argument {k} is {type_in_words(x)} of numbers, and item {where}[{at}] is an "
                f"int, which has no derivative: write {value}"
            )
            raise UnsupportedTypeError(message)


def _number_kind(x: Any) -> str:
    """The kind of a number's dtype; empty for booleans and anything that is no number."""
    if hasattr(type(x), "__fwdad_symbolic__"):
        return "" if x.is_array else x.dtype.kind
    x = plain(x)
    if isinstance(x, (int, float, complex)) and not isinstance(x, bool):
        return "i" if isinstance(x, int) else "c" if isinstance(x, complex) else "f"
    return x.dtype.kind if isinstance(x, np.number) else ""


def check_outputs(outputs: Any) -> None:
    """Raise unless an evaluator knows these outputs."""
    if outputs not in ("returned", "mutated", "both"):
        message = f'outputs must be "returned", "mutated" or "both", not {outputs!r}'
        raise ValueError(message)


def explicit_leaves(x: Any) -> Any:
    """A value with the tangents that an enclosing call keeps in memory made explicit."""
    if not SHADOWED:
        return x
    leaves, structure = flatten(x)
    return unflatten(structure, [explicit(leaf) for leaf in leaves])


def copied(x: Any) -> Any:
    """A value whose arrays are copies, with the tangents that enclosing calls keep for them."""
    leaves, structure = flatten(explicit_leaves(x))
    return unflatten(structure, [alike(v) if isinstance(plain(v), np.ndarray) else v
                                 for v in leaves])  # fmt: skip


def check_read_again(args: Any) -> None:
    """Raise if there is an iterator among the arguments of a function that is run repeatedly."""
    iterators, _ = flatten(args, leaf=_is_read_once)
    if iterators:
        message = (
            f"got {type_in_words(iterators[0])} among the arguments: it can be read only once, "
            "but the function runs more than once here. Pass a list"
        )
        raise UnsupportedTypeError(message)


def _is_read_once(x: Any) -> bool:
    """Whether a value is an iterator in C; the position of a user's iterator is restored."""
    return isinstance(x, Iterator) and not isinstance(type(x).__next__, types.FunctionType)
