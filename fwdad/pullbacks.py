"""``vjp`` and ``jacrev``: cotangents pulled back through a function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.arguments import Argnums, Function, arguments_of, width_of
from fwdad.builder.dispatch import is_active
from fwdad.errors import SeedError
from fwdad.evaluators import install_reverse
from fwdad.gradients import (
    UNTRACED,
    found,
    in_trees,
    is_real,
    share_memory,
    tape_for,
    traced,
    written_out,
)
from fwdad.recorded import Outcome, run_recorded
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tangents.seeds import leaf_dtype, leaf_shape
from fwdad.tangents.zero import NoTangent, Zero
from fwdad.tracing.derivatives import pulled_value, value_alone


def vjp(
    f: Function,
    x: Any,
    *,
    argnums: Argnums = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: str = "returned",
    chunk: int | str | None = "auto",
) -> Any:
    """The value of a function, and the function that pulls cotangents back through it.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``; any NumPy program.
    x : float, array or composite
        Where.
    argnums : int or tuple of int, default 0
        The arguments to pull back to, counted in ``(x, *args)``.
    args, kwargs
        Further arguments of f.
    has_aux : bool, default False
        f returns ``(y, aux)``; aux is a third result.
    outputs : {"returned", "mutated", "both"}
        What counts as y: the value returned, or the arguments that f writes into (in argument
        order; one alone is not wrapped in a tuple). The caller's arrays are never changed.
    chunk : int, "auto" or None, default "auto"
        How many cotangents travel together where several are given.

    Returns
    -------
    y : object
        ``f(x)``.
    pullback : callable
        ``pullback(y_bar)`` answers ``x_bar`` in x's structure (a tuple if ``argnums`` is one), with
        Re<y_bar, J v> = Re<x_bar, v> for every v. Of K cotangents, ``(K, *y.shape)``, it answers
        ``(K, *x.shape)``. It can be called again, and gives the same answer after the caller has
        changed x or y: it has copies of the arguments.
    aux : object
        With ``has_aux``.

    Raises
    ------
    SeedError
        By ``pullback``, if a cotangent does not fit y.
    UnsupportedTypeError
        If x is an integer or holds nothing to differentiate.

    Notes
    -----
    Each call of ``pullback`` runs f once more, and backwards. Where f cannot be traced, its run is
    written down once, loops unrolled, and each call runs that backwards: the memory grows with the
    number of operations.

    Examples
    --------
    >>> import numpy as np
    >>> y, pullback = vjp(lambda x: np.array([x[0] * x[1], x[1] ** 2]), np.array([3.0, 4.0]))
    >>> pullback(np.array([1.0, 0.0]))
    array([4., 3.])
    """
    if outputs not in ("returned", "mutated", "both"):
        message = f'outputs is "returned", "mutated" or "both", not {outputs!r}'
        raise ValueError(message)
    made = Pullback(
        f, x, args, kwargs or {}, argnums, {"has_aux": has_aux, "outputs": outputs}, chunk
    )
    return (made.y, made, made.aux) if has_aux else (made.y, made)


class Pullback:
    """Pulls cotangents of a function's value back to its arguments; made by :func:`vjp`.

    Attributes
    ----------
    y : object
        The value.
    aux : object
        What came beside it; None without ``has_aux``.
    """

    def __init__(
        self,
        f: Function,
        x: Any,
        args: Any,
        kwargs: dict[str, Any],
        argnums: Argnums,
        options: dict[str, Any],
        chunk: int | str | None,
    ) -> None:
        self._arguments, self._single = arguments_of(f, x, args, kwargs, argnums)
        self._f = f
        self._argnums = argnums if isinstance(argnums, int) else tuple(argnums)
        self._args = tuple(_copied(a) for a in self._arguments.args)
        self._kwargs = {key: _copied(a) for key, a in kwargs.items()}
        self._options = options
        self._outcome: Outcome | None = None
        self._copies = arguments_of(f, self._args[0], self._args[1:], self._kwargs, argnums)[0]
        self._chunk = chunk
        self.y, self.aux = self._value()
        self._leaves, self._structure = flatten(self.y)

    def __call__(self, y_bar: Any) -> Any:
        """The cotangent of x for one of y, or of K for K of them, stacked in front."""
        bars, _ = flatten(y_bar)
        if len(bars) != len(self._leaves):
            message = f"the cotangent has {len(bars)} leaves, the value has {len(self._leaves)}"
            raise SeedError(message)
        bars = [np.asarray(b) for b in bars]
        count = self._count(bars)
        if count is None:
            return self._pull([_like(b, y) for b, y in zip(bars, self._leaves, strict=True)])
        return self._pull_many(bars, count)

    def _value(self) -> Any:
        answer = UNTRACED
        if self._traceable():
            answer = traced(
                value_alone,
                self._f,
                self._argnums,
                tuple(_copied(a) for a in self._args),  # f may return one of them
                self._kwargs,
                self._options,
            )
        if answer is UNTRACED:
            self._outcome = self._record()
            return self._outcome.y, self._outcome.aux
        return answer if self._options["has_aux"] else (answer, None)

    def _traceable(self) -> bool:
        given = (self._argnums,) if isinstance(self._argnums, int) else self._argnums
        return all(is_real(self._args[k]) for k in given)

    def _count(self, bars: list[np.ndarray]) -> int | None:
        """How many cotangents there are; None for one without an axis for them."""
        shapes = [leaf_shape(y) for y in self._leaves]
        if all(b.shape == shape for b, shape in zip(bars, shapes, strict=True)):
            return None
        counts = {b.shape[0] if b.ndim else -1 for b in bars}
        many = [b.shape[1:] == shape for b, shape in zip(bars, shapes, strict=True)]
        if len(counts) != 1 or not all(many) or -1 in counts:
            message = (
                f"cotangents of shapes {[b.shape for b in bars]} for values of shapes {shapes}: "
                "one has the value's shape, K of them (K, *shape)"
            )
            raise SeedError(message)
        return counts.pop()

    def _pull(self, bars: list[Any]) -> Any:
        y_bar = unflatten(self._structure, bars)
        if self._traceable():
            answer = traced(
                pulled_value,
                self._f,
                self._argnums,
                (*self._args, y_bar),
                self._kwargs,
                self._options,
            )
            if answer is not UNTRACED:
                return answer
        return self._recorded_pull(bars, None)

    def _pull_many(self, bars: list[np.ndarray], count: int) -> Any:
        held = None
        if self._traceable():
            held = tape_for(pulled_value, self._f, self._argnums, self._options)
        example = unflatten(self._structure, [_zero_like(y) for y in self._leaves])
        made_for = (
            None if held is None else _specialised(held, (*self._args, example), self._kwargs)
        )
        if made_for is None:
            return self._recorded_pull(bars, count)
        made, leaves = made_for
        first = len(self._argument_leaves(made, leaves)) - len(bars)
        width = min(count, _width(self._chunk, count, self._arguments.leaves))
        parts = []
        for start in range(0, count, width):
            rows = [b[start : start + width] for b in bars]
            parts.append(self._run(held, made, leaves, rows, width, first))
        joined = [np.concatenate(rows)[:count] for rows in zip(*parts, strict=True)]
        return in_trees(joined, self._arguments, single=self._single)

    def _argument_leaves(self, made: Any, leaves: list[Any]) -> list[Any]:
        return leaves[: len(leaves) - len(made.tape.captures)]

    def _run(
        self, held: Any, made: Any, leaves: list[Any], rows: list[Any], width: int, first: int
    ) -> list[Any]:
        """The cotangents of the leaves of x for one chunk."""
        active = [False] * len(leaves)
        lanes = []
        for k, (row, y) in enumerate(zip(rows, self._leaves, strict=True)):
            active[first + k] = True
            padded = np.zeros((width, *leaf_shape(y)), leaf_dtype(y))
            padded[: len(row)] = row
            lanes.append(padded)
        run, constants = held.push(made, width, tuple(active))
        results = run(*leaves, *lanes, *constants)
        return list(results[len(results) // 2 :])

    def _recorded_pull(self, bars: list[Any], count: int | None) -> Any:
        """By the record of one run, where there is no tape."""
        if self._outcome is None:
            self._outcome = self._record()
        given = [b if count is None else Chunk(b) for b in bars]
        found = self._outcome.pull(given)
        leaves = self._arguments.leaves
        if count is None:
            parts = written_out(found, leaves)
        else:
            parts = [
                np.zeros((count, *leaf_shape(x)), leaf_dtype(x))
                if isinstance(x_bar, Zero)
                else x_bar.lanes
                for x_bar, x in zip(found, leaves, strict=True)
            ]
        return in_trees(parts, self._arguments, single=self._single)

    def _record(self) -> Outcome:
        return run_recorded(self._f, self._copies, **self._options)


def jacrev_at(
    f: Function,
    x: Any,
    *,
    chunk: int | str | None,
    argnums: Argnums,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    has_aux: bool,
    outputs: str,
    stack: bool,
    auto: bool = False,
) -> Any:
    """Value and Jacobian of a function by reverse mode; see :func:`fwdad.jacobian`.

    Parameters
    ----------
    f, x, chunk, argnums, args, kwargs, has_aux, outputs, stack
        See :func:`fwdad.jacobian`.
    auto : bool
        Whether to answer None where forward mode is better.
    """
    if auto and not _pays(f, x, args, kwargs, argnums, {"has_aux": has_aux, "outputs": outputs}):
        return None
    result = vjp(
        f, x, argnums=argnums, args=args, kwargs=kwargs, has_aux=has_aux, outputs=outputs,
        chunk=chunk,
    )  # fmt: skip
    y, pullback = result[:2]
    leaves, structure = flatten(y)
    sizes = [math.prod(leaf_shape(leaf)) for leaf in leaves]
    total, start = sum(sizes), 0
    bars = []
    for leaf, size in zip(leaves, sizes, strict=True):
        rows = np.zeros((total, size), leaf_dtype(leaf))
        rows[start : start + size] = np.eye(size)
        bars.append(rows.reshape(total, *leaf_shape(leaf)))
        start += size
    x_bar = pullback(unflatten(structure, bars))
    arguments, single = arguments_of(f, x, args, kwargs, argnums)
    parts = _x_leaves(x_bar, single=single)
    if stack:
        J = np.concatenate([p.reshape(total, -1) for p in parts], axis=1)
        return (y, J, *result[2:])
    blocks, start = [], 0
    for leaf, size in zip(leaves, sizes, strict=True):
        own = [p[start : start + size].reshape(leaf_shape(leaf) + p.shape[1:]) for p in parts]
        own = [
            part.item() if part.shape == () and type(leaf) is float and type(arg) is float else part
            for part, arg in zip(own, arguments.leaves, strict=True)
        ]
        trees, at = [], 0
        for inner, count in zip(arguments.structures, arguments.counts, strict=True):
            trees.append(unflatten(inner, own[at : at + count], lambda _: NoTangent))
            at += count
        blocks.append(trees[0] if single else tuple(trees))
        start += size
    return (y, unflatten(structure, blocks, lambda _: NoTangent), *result[2:])


_FEW = 64  # directions that forward mode takes at once
_RATIO = 4


def _pays(
    f: Function, x: Any, args: Any, kwargs: Any, argnums: Argnums, options: dict[str, Any]
) -> bool:
    """Whether rows are cheaper than columns: far fewer, and of a function that can be traced."""
    arguments, _ = arguments_of(f, x, args, kwargs, argnums)
    columns = sum(math.prod(leaf_shape(leaf)) for leaf in arguments.leaves)
    given = [arguments.args[k] for k in arguments.argnums]
    everything = (*arguments.args, *arguments.kwargs.values())
    if columns <= _FEW or is_active(everything) or not all(map(is_real, given)):
        return False
    if options["outputs"] != "returned":
        return False
    copies = tuple(_copied(a) for a in arguments.args)
    numbers = argnums if isinstance(argnums, int) else tuple(argnums)
    y = traced(value_alone, f, numbers, copies, arguments.kwargs, options)
    if y is UNTRACED or y is None:
        return False
    leaves, _ = flatten(y[0] if options["has_aux"] else y)
    rows = sum(math.prod(leaf_shape(leaf)) for leaf in leaves)
    return 0 < rows * _RATIO <= columns


def _pull_at(f: Function, x: Any, y_bar: Any, chunk: Any, args: Any, kwargs: Any) -> Any:
    return vjp(f, x, args=args, kwargs=kwargs, chunk=chunk)[1](y_bar)


install_reverse(jacrev_at, _pull_at)


def _x_leaves(x_bar: Any, *, single: bool) -> list[Any]:
    trees = [x_bar] if single else list(x_bar)
    return [leaf for tree in trees for leaf in flatten(tree)[0]]


def _specialised(held: Any, args: Any, kwargs: Any) -> Any:
    try:
        made, leaves, _ = found(held, args, kwargs)
    except Exception:  # noqa: BLE001  (who runs at once says what is wrong, if anything is)
        return None
    if any(made.tape.program.written) or made.tape.rebuild.needs_containers or share_memory(leaves):
        return None
    return made, leaves


def _copied(x: Any) -> Any:
    leaves, structure = flatten(x)
    return unflatten(structure, [v.copy() if isinstance(v, np.ndarray) else v for v in leaves])


def _zero_like(y: Any) -> Any:
    return np.zeros_like(y) if isinstance(y, np.ndarray) else type(y)(0)


def _like(bar: Any, y: Any) -> Any:
    """A cotangent of its value's type."""
    if isinstance(y, np.ndarray):
        return np.asarray(
            bar, np.result_type(y.dtype, np.float16) if y.dtype.kind in "fc" else float
        )
    if isinstance(y, np.generic):
        return y.dtype.type(bar)
    return type(y)(np.asarray(bar).item())


def _width(chunk: int | str | None, count: int, leaves: list[Any]) -> int:
    found = width_of(chunk, count, leaves)
    return found if isinstance(found, int) else found(None)
