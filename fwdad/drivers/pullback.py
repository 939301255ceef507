"""``vjp``: cotangents pulled back through a function."""

from __future__ import annotations

import copy
import functools
import math
import operator
from collections.abc import Callable
from typing import Any, Generic, Literal, NamedTuple, Unpack, overload

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.core.tracebacks import leave
from fwdad.core.unpicklable import OfOneRun
from fwdad.display.html import facts, framed, mono
from fwdad.display.words import function_in_words, value_in_words
from fwdad.drivers.cotangents import fitted, in_type_of, summed
from fwdad.drivers.gradient import in_trees
from fwdad.drivers.pulled_into import pull_into
from fwdad.drivers.residual_store import Kept, hollow, sweeps_of
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.drivers.tape_cache import share_memory, tape_at, traced, undone_if_raised
from fwdad.drivers.written_passes import WrittenReverse, written_forward
from fwdad.eager.activity import is_active
from fwdad.eager.arguments import Arguments, check_outputs, copied, explicit_leaves
from fwdad.eager.calls.dispatch import call
from fwdad.eager_reverse import Outcome, run_recorded, written_out
from fwdad.errors import NoOutputError, SeedError, UntraceableError, message_of, type_in_words
from fwdad.evaluation.arguments import (
    argument_numbers,
    arguments_of,
    width_of,
    with_more,
)
from fwdad.evaluation.by_tape import MISS, Evaluator, Question, at_once
from fwdad.evaluation.signatures import (
    T2,
    A,
    Argnums,
    ChunkedArguments,
    ChunkSize,
    Function,
    Outputs,
    R,
    T,
    VjpOptions,
)
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.pullbacks import traced_vjp
from fwdad.frontend.derivatives.pulled import pulled_value, value_alone, value_and_pullback
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import Structure, flatten, opaque_parts
from fwdad.tangents.linear_map import mapped
from fwdad.tangents.matching import gather, match
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import (
    ONE_OR_SEVERAL,
    leaf_dtype,
    leaf_shape,
)
from fwdad.tangents.zero import ZERO, Zero

_ROWS = 32  # of a Jacobian, pulled back at once


class _AsksForPullback(Evaluator):
    """How a call of :func:`vjp` asks."""

    def __call__(self, f: Any, args: Any, kwargs: Any, look: Any) -> Question | None:
        """The question of a call, if it is one."""
        asked = super().__call__(f, args, kwargs, look)
        if asked is None:
            return None
        given, named = asked.args, asked.kwargs
        _, argnums = with_more(args[2:], (), asked.argnums)
        options = {k: option for k, option in asked.options.items() if k != "chunk"}
        chunk = asked.options["chunk"]

        def opens(made: Any, inputs: list[Any]) -> Any:
            first: Any = Pullback(f, given[0], given[1:], named, argnums, options, chunk)
            return first.opener(made, inputs), first.result

        return asked._replace(argnums=argument_numbers(argnums), options=options, opens=opens)


@overload
def vjp(
    f: Callable[..., R], x: T, **options: Unpack[ChunkedArguments]
) -> tuple[R, Pullback[T]]: ...
@overload
def vjp(
    f: Callable[..., R], x: T, y: T2, /, **options: Unpack[ChunkedArguments]
) -> tuple[R, Pullback[tuple[T, T2]]]: ...
@overload
def vjp(
    f: Callable[..., tuple[R, A]],
    x: T,
    *,
    has_aux: Literal[True],
    **options: Unpack[ChunkedArguments],
) -> tuple[R, Pullback[T], A]: ...
@overload
def vjp(f: Function, x: Any, *more: Any, **options: Unpack[VjpOptions]) -> Any: ...
@at_once(value_and_pullback, absent=(), kind=_AsksForPullback)
def vjp(
    f: Function,
    x: Any,
    *more: Any,
    argnums: Argnums | None = None,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: Outputs = "returned",
    chunk: ChunkSize = "auto",
) -> Any:
    """The value of a function, and the function that pulls cotangents back through it.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``; any NumPy program.
    x : float, array or composite
        Where.
    *more : like x
        Further arguments of f, as JAX takes them; x_bar is then a tuple.
    argnums : int or tuple of int, optional
        The arguments to pull back to, counted in ``(x, *more, *args)``. By default x, or ``(x,
        *more)`` if there are more.
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
        ``pullback(y_bar)`` returns ``x_bar`` in x's structure (a tuple if ``argnums`` is one or
        there are more; of x alone it is no tuple of one, which JAX returns), with
        Re<y_bar, J v> = Re<x_bar, v> for every v. Of K cotangents, ``(K, *y.shape)``, it returns
        ``(K, *x.shape)``. ``pullback(y_bar, out=x_bar)`` writes it into arrays that are given,
        which share no memory with ``y_bar``. It can be called again, and gives the same result
        after the caller has changed x, y or anything that f reads.
    aux : object
        With ``has_aux``.

    Raises
    ------
    SeedError
        By ``pullback``, if a cotangent does not fit y.
    OutError
        By ``pullback``, if ``out`` does not fit x_bar, is read-only, or shares memory with y_bar.
    UnsupportedTypeError
        If x is an integer or holds nothing to differentiate.

    Notes
    -----
    f runs forward once, and keeps what its reverse pass needs; each call of ``pullback`` runs the
    reverse pass. Copied are the arguments that f writes into, arguments and captured arrays that
    the reverse pass reads, and y where it reads or changes that; :func:`memory_report` lists them.
    What the reverse pass overwrites, because f has, is swapped, and swapped again when it ends or
    raises: that takes as much as f has saved, or a copy of these arrays if that is less. Calls from
    several threads wait for one another there. A cotangent has y's structure; parts of y without a
    tangent space may have anything in theirs. Where f cannot be traced, its run is written down,
    loops unrolled, and each call runs that backwards: the memory grows with the number of
    operations.

    Examples
    --------
    >>> import numpy as np
    >>> y, pullback = vjp(lambda x: np.array([x[0] * x[1], x[1] ** 2]), np.array([3.0, 4.0]))
    >>> pullback(np.array([1.0, 0.0]))
    array([4., 3.])
    """
    check_outputs(outputs)
    args, argnums = with_more(more, args, argnums)
    made: Pullback[Any] = Pullback(
        f, x, args, kwargs or {}, argnums, {"has_aux": has_aux, "outputs": outputs}, chunk
    )
    return made.result


class _Asked(NamedTuple):
    """What a pullback is of; of ``arguments`` the structures and the shapes of the leaves count."""

    f: Function
    arguments: Arguments
    single: bool
    argnums: Any
    options: dict[str, Any]
    chunk: ChunkSize


class _Flat(NamedTuple):
    """The leaves of a value, its structure, and their shapes."""

    leaves: list[Any]
    structure: Structure
    shapes: list[Any]


def _flattened(y: Any) -> _Flat:
    leaves, structure = flatten(y)
    return _Flat(leaves, structure, [leaf_shape(leaf) for leaf in leaves])


class Pullback(OfOneRun, Generic[T]):
    """Pulls cotangents of a function's value back to its arguments; made by :func:`vjp`.

    Attributes
    ----------
    y : object
        The value.
    aux : object
        What came beside it; None without ``has_aux``.
    """

    made_by = "vjp(f, x)"
    _reverse: Any = None  # the WrittenReverse of one that a shortcut has made
    _values: Any = None
    aux: Any = None

    @functools.cached_property
    def _kept(self) -> Any:
        """What the reverse pass needs of the forward pass, where there is a tape."""
        return Kept(self._reverse.sweeps, self._values)

    def __repr__(self) -> str:
        return f"<pullback of {function_in_words(self._of.f)}>"

    def _repr_html_(self) -> str:
        inputs, outputs = (
            ", ".join(value_in_words(plain(leaf)) for leaf in leaves)
            for leaves in (self._of.arguments.leaves, self._flat.leaves)
        )
        rows = [("takes cotangents of", mono(outputs)), ("returns cotangents of", mono(inputs))]
        return framed(f"pullback of {function_in_words(self._of.f)}", facts(rows))

    def __init__(
        self,
        f: Function,
        x: Any,
        args: Any,
        kwargs: dict[str, Any],
        argnums: Argnums,
        options: dict[str, Any],
        chunk: ChunkSize,
    ) -> None:
        arguments, single = arguments_of(f, x, args, kwargs, argnums)
        width_of(chunk, 1, arguments.leaves)  # raises if it is invalid
        self._of = _Asked(f, arguments, single, argument_numbers(argnums), options, chunk)
        self._outcome: Outcome | None = None
        self._kept = None
        self._args: tuple[Any, ...] = self._of.arguments.args
        self._kwargs = kwargs
        self._active = is_active((*self._args, *kwargs.values()))
        self._shared = _share_memory((*self._args, *kwargs.values()))
        self.y: Any = None
        first_that_can(
            "value and pullback",
            f,
            Candidate("tape", self._run_tape),
            Candidate("recorded run", self._run_recorded),
        )
        self._flat = _flattened(self.y)  # before the caller changes y

    @property
    def result(self) -> tuple[Any, ...]:
        """What :func:`vjp` returns."""
        has_aux = self._of.options["has_aux"]
        return (self.y, self, self.aux) if has_aux else (self.y, self)

    def opener(self, made: Any, inputs: list[Any]) -> Callable[..., Any] | None:
        """A function of a tape's inputs that returns what :func:`vjp` does, with another pullback.

        They are like ``inputs``, which are those of this one. None if it has no tape.
        """
        forward = None if self._kept is None else written_forward(sweeps_of(made), inputs)
        if forward is None:
            return None
        sweeps, has_aux = sweeps_of(made), self._of.options["has_aux"]
        arguments = copy.copy(self._of.arguments)
        arguments.args, arguments.kwargs = (), {}
        arguments.leaves = [hollow(x) if isinstance(x, np.ndarray) else x for x in arguments.leaves]
        of, reverse = self._of._replace(arguments=arguments), WrittenReverse(sweeps)
        structure, written = self._flat.structure, sweeps.passes.written
        is_leaf = structure.kind == "leaf"

        def opened(*leaves: Any) -> Any:
            pullback: Any = object.__new__(Pullback)
            y, pullback._values = forward(*leaves)  # noqa: SLF001  (of this class)
            pullback._of, pullback._reverse = of, reverse  # noqa: SLF001
            if has_aux:
                y, pullback.aux = y
            pullback.y = y
            flat = _Flat([y], structure, [leaf_shape(y)]) if is_leaf else _flattened(y)
            pullback._flat = flat  # noqa: SLF001  (before the caller changes y)
            if written:  # only one may write into it
                pullback._kept = Kept(sweeps, pullback._values)  # noqa: SLF001
            return (y, pullback, pullback.aux) if has_aux else (y, pullback)

        return opened

    def __call__(self, y_bar: Any, *, out: Any = None) -> T:
        """The cotangent of x for one of y, or of K for K of them, stacked in front.

        With ``out``, arrays in the structure of the result, it is written there, a chunk at a time.
        """
        try:
            if self._reverse is not None and out is None:
                x_bar: Any = self._reverse.run(self, y_bar)
                if x_bar is MISS:
                    x_bar = self._reverse.run_together(self, y_bar)
                if x_bar is not MISS:
                    return x_bar
            return self._in_full(y_bar, out)
        except BaseException as error:
            leave(error)
            raise

    def _in_full(self, y_bar: Any, out: Any = None) -> Any:
        given = gather(self._flat.structure, explicit_leaves(y_bar), "y", "cotangent")
        y_bars = [
            functools.reduce(summed, [fitted(b, y) for b in bars])
            for bars, y in zip(given, self._flat.leaves, strict=True)
        ]
        count, leaves = self._count(y_bars), self._of.arguments.leaves
        width = width_of_rows(self._of.chunk, count or 1, leaves)
        if out is not None:
            return pull_into(self, out, y_bars, self._of, count=count, width=width)
        x_bar = self.of_leaves(y_bars)
        if self._reverse is not None and (count is None or 0 < count <= width):
            self._reverse.write(self.y, self._kept, leaves, count)
        return x_bar

    def of_leaves(self, bars: list[Any], done: Callable[[int], None] | None = None) -> Any:
        """The same for one cotangent, or K, of each leaf of y; ``done`` takes the rows finished."""
        count = self._count(bars)
        if count is None:
            return self._pull(
                [in_type_of(b, y) for b, y in zip(bars, self._flat.leaves, strict=True)]
            )
        if count == 0:
            leaves = self._of.arguments.leaves
            none = [np.zeros((0, *leaf_shape(x)), leaf_dtype(x)) for x in leaves]
            return in_trees(none, self._of.arguments, single=self._of.single)
        bars = [
            np.zeros((count, *shape), leaf_dtype(y)) if b is ZERO else b
            for b, y, shape in zip(bars, self._flat.leaves, self._flat.shapes, strict=True)
        ]
        return self._pull_many(bars, count, done)

    def _pull_many(self, bars: list[Any], count: int, done: Any = None) -> Any:
        if self._kept is None:
            return self._recorded_pull(bars, count)
        if is_active(bars):
            return self._stacked([[call(operator.getitem, b, k) for b in bars]
                                  for k in range(count)])  # fmt: skip
        width = min(count, width_of_rows(self._of.chunk, count, self._of.arguments.leaves))
        parts = self._rows(bars, count, width, done)
        return in_trees(parts, self._of.arguments, single=self._of.single)

    def _rows(self, bars: list[Any], count: int, width: int, done: Any = None) -> list[np.ndarray]:
        """K cotangents of x's leaves for K cotangents of the value."""
        x_bar = self._kept.pull_many(bars, count, width, done)
        bars_of_x = leaves_of_x(self._of.arguments, x_bar, single=self._of.single)
        return [
            b if isinstance(b, np.ndarray) else np.zeros((count, *leaf_shape(x)), leaf_dtype(x))
            for b, x in zip(bars_of_x, self._of.arguments.leaves, strict=True)
        ]

    def _pull_active(self, bars: list[Any]) -> Any:
        """The cotangents of x for ones that carry derivatives: a linear map of real numbers."""
        parts = []
        for bar, y in zip(bars, self._flat.leaves, strict=True):
            flat = call(np.reshape, bar, (-1,))
            is_complex = leaf_dtype(y).kind == "c"
            parts += [call(np.real, flat), call(np.imag, flat)] if is_complex else [flat]
        vector = call(mapped, call(np.concatenate, parts), self._pull_vector, self._push_vector)
        found, start = [], 0
        for x in self._of.arguments.leaves:
            shape, dtype = leaf_shape(x), leaf_dtype(x)
            size = math.prod(shape)
            own = call(operator.getitem, vector, slice(start, start + size) if shape else start)
            own = call(np.reshape, own, shape) if len(shape) > 1 else own
            found.append(own if dtype == np.float64 else own.astype(dtype))
            start += size
        return in_trees(found, self._of.arguments, single=self._of.single)

    def _pull_vector(self, vector: np.ndarray) -> np.ndarray:
        """The cotangent of x as a real vector, for one of the value as a real vector."""
        bars = [row[0] for row in self._split(vector[None])]
        x_bar = self._kept.pull(
            [in_type_of(b, y) for b, y in zip(bars, self._flat.leaves, strict=True)]
        )
        parts = _x_leaves(x_bar, single=self._of.single)
        return np.concatenate([np.reshape(p, (-1,)) for p in parts]).astype(float)

    def _push_vector(self, vector: np.ndarray) -> np.ndarray:
        """The adjoint of :meth:`_pull_vector`: the Jacobian times a vector, by rows."""
        total = sum(
            y.size * (1 + (y.dtype.kind == "c")) for y in map(np.asarray, self._flat.leaves)
        )
        array = np.empty(total)
        for start in range(0, total, _ROWS):
            count = min(_ROWS, total - start)
            parts = self._rows(self._split(np.eye(count, total, start)), count, count)
            rows = np.concatenate([p.reshape(count, -1) for p in parts], axis=1)
            array[start : start + count] = rows @ vector
        return array

    def _split(self, rows: np.ndarray) -> list[np.ndarray]:
        """Real rows as stacked cotangents of the value's leaves."""
        found, start = [], 0
        for y, shape in zip(self._flat.leaves, self._flat.shapes, strict=True):
            size = math.prod(shape)
            part = rows[:, start : start + size]
            start += size
            if leaf_dtype(y).kind == "c":
                part = part + 1j * rows[:, start : start + size]
                start += size
            found.append(part.reshape(-1, *shape))
        return found

    def _stacked(self, rows: list[list[Any]]) -> Any:
        """The cotangents of x for several that carry derivatives, pulled one by one."""
        pulled = [_x_leaves(self._pull(row), single=self._of.single) for row in rows]
        parts = [call(np.stack, list(column)) for column in zip(*pulled, strict=True)]
        return in_trees(parts, self._of.arguments, single=self._of.single)

    def _run_tape(self) -> Untraced | None:
        """Run f's tape; the result says why if it cannot be run."""
        shared = self._shared_memory()
        if shared is not None:
            return shared
        try:
            return self._run_pushed() if self._active else self._run_forward()
        except NoOutputError as error:  # f may write into an argument that is no part of x
            return Untraced(self._of.f, reason=message_of(error))

    def _run_forward(self) -> Untraced | None:
        """Run f's tape forward and keep what its reverse pass needs."""
        arguments = (self._of.f, self._of.argnums, self._args, self._kwargs, self._of.options)
        at = tape_at(value_and_pullback, *arguments)
        if isinstance(at, Untraced):
            return at
        made, leaves, _ = at
        try:
            with undone_if_raised(made, leaves):
                result, kept = sweeps_of(made).run(leaves)
        except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
            return Untraced(self._of.f, error, catches=made.tape.catches)
        untraced = self._take_value(result)
        if untraced is None:
            self._kept = kept
        return untraced

    def _run_pushed(self) -> Untraced | None:
        """Run f's tape on duals; its pullback is run on duals, too, when it is called."""
        arguments = self._args, self._kwargs
        self._copy_arguments()
        result = traced(value_alone, self._of.f, self._of.argnums, *arguments, self._of.options)
        return result if isinstance(result, Untraced) else self._take_value(result)

    def _take_value(self, result: Any) -> Untraced | None:
        """Set the value that a tape has returned; the result says why if it cannot be one."""
        y, aux = result if self._of.options["has_aux"] else (result, None)
        for o, _, _ in opaque_parts(y):
            message = f"the returned value contains {type_in_words(o)}, which has no tangent type"
            return Untraced(self._of.f, UntraceableError(message))
        if y is None:  # the recorded run raises the error
            return Untraced(self._of.f, reason="it returns None")
        self.y, self.aux = y, aux
        return None

    def _run_recorded(self) -> None:
        """Record f's run on the arguments themselves.

        Copies would no longer share memory with what f reads from outside, which may be an
        argument.
        """
        self._copy_arguments()
        self._outcome = run_recorded(self._of.f, self._of.arguments, **self._of.options)
        self.y, self.aux = copied(self._outcome.y), copied(self._outcome.aux)

    def _copy_arguments(self) -> None:
        """Keep the arguments as they are before f runs, for later runs."""
        self._args = tuple(copied(a) for a in self._args)
        self._kwargs = {key: copied(a) for key, a in self._kwargs.items()}

    def _count(self, bars: list[Any]) -> int | None:
        """The number of stacked cotangents; None for a single one, without an axis for them."""
        shapes = self._flat.shapes
        both = [(np.shape(plain(b)), s) for b, s in zip(bars, shapes, strict=True) if b is not ZERO]
        if all(given == shape for given, shape in both):
            return None
        counts = {given[0] if given else -1 for given, _ in both}
        if len(counts) != 1 or any(given[1:] != shape for given, shape in both) or -1 in counts:
            raise SeedError(
                f"got cotangents of shapes {[given for given, _ in both]} for values of shapes "
                f"{[shape for _, shape in both]}: {ONE_OR_SEVERAL}"
            )
        return int(counts.pop())

    def _pull(self, bars: list[Any]) -> Any:
        if self._kept is not None:
            return self._pull_active(bars) if is_active(bars) else self._kept.pull(bars)
        if not self._active:
            return self._recorded_pull(bars, None)
        arguments = (
            self._of.f,
            self._of.argnums,
            (*self._args, tuple(bars)),
            self._kwargs,
            self._of.options,
        )
        return first_that_can(
            "pullback",
            self._of.f,
            Candidate("tape", lambda: self._shared_memory() or traced(pulled_value, *arguments)),
            Candidate("recorded run", lambda: self._recorded_pull(bars, None)),
        )

    def _shared_memory(self) -> Untraced | None:
        """Why there is no tape for arguments that share memory, if they do."""
        reason = "two of its arguments share memory"
        return Untraced(self._of.f, reason=reason) if self._shared else None

    def _recorded_pull(self, bars: list[Any], count: int | None) -> Any:
        """The cotangents of x from a recorded run, where there is no tape."""
        if self._outcome is None:  # the value is the tape's
            x, *args = self._args  # as they were
            arguments, _ = arguments_of(self._of.f, x, tuple(args), self._kwargs, self._of.argnums)
            self._outcome = run_recorded(self._of.f, arguments, **self._of.options)
        given = [b if count is None else Chunk(b) for b in bars]
        found = self._outcome.pull(given)
        leaves = self._of.arguments.leaves
        if count is None:
            parts = written_out(found, leaves)
        else:
            parts = [
                np.zeros((count, *leaf_shape(x)), leaf_dtype(x))
                if isinstance(x_bar, Zero)
                else x_bar.lanes
                for x_bar, x in zip(found, leaves, strict=True)
            ]
        return in_trees(parts, self._of.arguments, single=self._of.single)


def leaves_of_x(arguments: Arguments, x_bar: Any, *, single: bool) -> list[Any]:
    """The cotangent of each leaf of the arguments, repeated where two leaves are one array."""
    trees = zip(arguments.structures, (x_bar,) if single else x_bar, strict=True)
    return [leaf for structure, tree in trees for leaf in match(structure, tree)]


def _x_leaves(x_bar: Any, *, single: bool) -> list[Any]:
    trees = [x_bar] if single else list(x_bar)
    return [leaf for tree in trees for leaf in flatten(tree)[0]]


def _share_memory(args: tuple[Any, ...]) -> bool:
    """Whether arrays of two arguments share memory, which copies of them would not."""
    leaves = [leaf for x in args for leaf in flatten(x)[0]]
    return share_memory([leaf for leaf in leaves if type(leaf) is np.ndarray])


def width_of_rows(chunk: ChunkSize, count: int, leaves: list[Any]) -> int:
    """How many cotangents travel together, of arguments with these leaves."""
    width = width_of(chunk, count, leaves)
    return width if isinstance(width, int) else width(None)


builtin(vjp)(traced_vjp)
