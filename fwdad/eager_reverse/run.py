"""Recorded runs of functions, through which cotangents are pulled back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.arguments import Arguments
from fwdad.eager.build import Run
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.forward import run_once
from fwdad.eager.run import STATE
from fwdad.eager_reverse.record import Record
from fwdad.eager_reverse.sweep import Sweep
from fwdad.eager_reverse.tangent import Recorded
from fwdad.errors import ChunkMismatchError, NonScalarOutputError, UnsupportedTypeError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import Structure, unflatten
from fwdad.tangents.plain import plain
from fwdad.tangents.quiet import quietly
from fwdad.tangents.registrations import OWN
from fwdad.tangents.seeds import leaf_dtype, leaf_shape
from fwdad.tangents.zero import ZERO, NoTangentType, Undefined, Zero


class Outcome:
    """The value of a recorded run, and its reverse pass.

    ``leaves`` and ``structure`` make up the value ``y``, ``operations`` is the number recorded.
    """

    def __init__(
        self,
        aux: Any,
        leaves: list[Any],
        structure: Structure,
        record: Record,
        inputs: list[tuple[Any, Recorded]],
        tangents: list[Any],
    ) -> None:
        self.y = unflatten(structure, leaves)
        self.aux = aux
        self.leaves = leaves
        self.structure = structure
        self.operations = len(record.operations)
        self._record = record
        self._operations = record.operations  # while a call is run again, the record has others
        self._inputs = inputs
        self._tangents = tangents
        self._shapes = [(leaf_shape(y), leaf_dtype(plain(y))) for y in leaves]

    @property
    def nbytes(self) -> int:
        """The bytes of the record: partials, primals and indices that it reads, and operations."""
        with self._record.lock:
            return self._record.nbytes

    def pull(self, y_bars: list[Any]) -> list[Any]:
        """Pull cotangents of the value's leaves back to the argument's leaves.

        Each is a number or array of its leaf's shape, a ``Chunk`` of K of them, or ``ZERO``; so are
        the results. It is the adjoint under Re<., .>: with a complex value, ``x_bar = conj(dy/dx)
        y_bar``. It may be called again, and by several threads at once.
        """
        fitted = [
            _fitted(y_bar, shape, dtype)
            for y_bar, (shape, dtype) in zip(y_bars, self._shapes, strict=True)
        ]
        widths = {None if n is None else n for bar, n in fitted if bar is not ZERO}
        if len(widths) > 1:
            message = f"cotangents of different widths meet: {sorted(map(str, widths))}"
            raise ChunkMismatchError(message)
        n = widths.pop() if widths else None
        bars = [bar for bar, _ in fitted]
        x_bars = quietly(self._pull, bars, n, False)
        if not all(_finite(x_bar) for x_bar in x_bars):
            x_bars = quietly(self._pull, bars, n, True)
        return [x if n is None or x is ZERO else Chunk(x) for x in x_bars]

    def _pull(self, bars: list[Any], n: int | None, careful: bool) -> list[Any]:
        sweep = Sweep(n, careful=careful, nested=STATE.run is not None)
        for t, bar in zip(self._tangents, bars, strict=True):
            if type(t) is Recorded and bar is not ZERO:
                sweep.spread(t.terms, bar)
        for operation in reversed(self._operations):
            operation.pull(sweep)
        return [self._cotangent_of(sweep, leaf, t) for leaf, t in self._inputs]

    def _cotangent_of(self, sweep: Sweep, leaf: Any, t: Recorded) -> Any:
        ((node, _),) = t.terms.items()
        owned = node in sweep.owned
        bar = sweep.take(node)
        if bar is None:
            return ZERO
        if isinstance_dual(bar):
            return bar if owned or not np.shape(plain(bar)) else bar.copy()
        if node.dtype.kind == "f" and np.iscomplexobj(bar):  # a real number moves on the real line
            bar, owned = np.real(bar), False
        if sweep.n is None and not node.shape and not isinstance(plain(leaf), np.ndarray):
            raw = plain(leaf)
            kind = raw.dtype.type if isinstance(raw, np.generic) else type(raw)
            return kind(bar)
        x_bar = np.asarray(bar)
        return x_bar if owned and x_bar.dtype == node.dtype else x_bar.astype(node.dtype)


def _fitted(y_bar: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Any, int | None]:
    """A cotangent as the sweep takes it, and its number of lanes."""
    if isinstance(y_bar, (Zero, NoTangentType)) or y_bar is None:
        return ZERO, None
    n = y_bar.n if isinstance(y_bar, Chunk) else None
    bar = y_bar.lanes if isinstance(y_bar, Chunk) else y_bar
    bar_shape = np.shape(plain(bar))
    expected = shape if n is None else (n, *shape)
    if bar_shape != expected:
        message = f"got a cotangent of shape {bar_shape} for a value of shape {shape}"
        raise ChunkMismatchError(message)
    if isinstance_dual(bar):
        return bar, n
    bar = np.asarray(bar)
    if bar.dtype.kind == "c" and dtype.kind != "c":
        message = "got a complex cotangent for a real value"
        raise ChunkMismatchError(message)
    if dtype.kind in "fc":
        bar = bar.astype(dtype)  # a copy: the caller's stays the caller's
    return (bar.item() if not bar.shape and n is None else bar), n


def _finite(x_bar: Any) -> bool:
    return x_bar is ZERO or bool(np.all(np.isfinite(plain(x_bar))))


def run_recorded(
    f: Callable[..., Any],
    arguments: Arguments,
    *,
    has_aux: bool = False,
    outputs: str = "returned",
    once: bool = False,
) -> Outcome:
    """Run f once, and record every operation on tangents.

    Loops are unrolled: the record grows with every operation that runs. Arrays that it reads are
    copied before they are written, and at the end if the caller could write them; with ``once``
    they are not, because the caller pulls back before that. ``MissingTransposeError`` if a rule
    inspects its tangents and has no transpose.
    """
    if OWN and any(type(plain(leaf)) in OWN for leaf in arguments.leaves):
        message = (
            "the argument contains an instance of a class with a tangent class of its own, which "
            "reverse mode does not support here: use jvp"
        )
        raise UnsupportedTypeError(message)
    record = Record()
    record.whole = f
    tangents = [record.input(leaf) for leaf in arguments.leaves]
    try:
        with Run(1, tag=record.tag) as run, run:
            pairs, structure, aux = run_once(
                f, arguments, run, list(tangents), has_aux=has_aux, outputs=outputs
            )
            for _, t in pairs:
                if isinstance(t, Undefined):
                    t.use()
            record.closed = True
    finally:
        # nobody reads a run that has failed
        record.release(copies=record.closed and not once)
        record.contents.clear()
    inputs = list(zip(arguments.leaves, tangents, strict=True))
    leaves, y_dots = [p for p, _ in pairs], [record.adopt(t) for _, t in pairs]
    return Outcome(aux, leaves, structure, record, inputs, y_dots)


def written_out(x_bars: list[Any], leaves: list[Any]) -> list[Any]:
    """Cotangents of leaves, with zeros written out where there are none."""
    return [
        zeros_of(leaf) if isinstance(x_bar, Zero) else x_bar
        for x_bar, leaf in zip(x_bars, leaves, strict=True)
    ]


def zeros_of(leaf: Any) -> Any:
    """A zero cotangent of a leaf."""
    leaf = plain(leaf)
    return np.zeros_like(leaf) if isinstance(leaf, np.ndarray) else type(leaf)(0)


def gradient(f: Callable[..., Any], x: Any) -> Any:
    """The gradient of a function of one argument, by recording it."""
    arguments = Arguments((x,), {}, (0,))
    outcome = run_recorded(f, arguments, once=True)
    if len(outcome.leaves) != 1 or np.shape(plain(outcome.leaves[0])):
        message = "a gradient needs a function that returns one number: use jacobian or vjp"
        raise NonScalarOutputError(message)
    x_bars = outcome.pull([1.0])
    zeros = [
        np.zeros(leaf_shape(v), leaf_dtype(plain(v)))[()] if t is ZERO else t
        for t, v in zip(x_bars, arguments.leaves, strict=True)
    ]
    return unflatten(arguments.structures[0], zeros)
