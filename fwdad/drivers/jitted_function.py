"""Functions under ``jit``: one tape for each kind of arguments, looked up at each call."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from fwdad.codegen.numba_support import have_numba
from fwdad.core.fallbacks import internal, is_own
from fwdad.core.gc_pause import NoCollection
from fwdad.core.tracebacks import leave
from fwdad.display.html import facts, framed, mono
from fwdad.display.words import counted, function_in_words, signature_in_words
from fwdad.drivers.bound_calls import bound
from fwdad.drivers.executable import Runner, threads_of
from fwdad.drivers.kept_tapes import KeptTapes, tried_equal, wide
from fwdad.drivers.specialisation import Specialisation
from fwdad.eager.build import unseen
from fwdad.eager.lifting.reached import Carrier
from fwdad.errors import FwdadError, OutError, UntraceableError
from fwdad.evaluation.by_tape import MISS, Shortcuts, forget_shortcuts_to, never
from fwdad.evaluation.signatures import P, R, T
from fwdad.evaluation.transformed import Transformed
from fwdad.frontend.arguments import EVERY, UNKNOWN, Flattened
from fwdad.frontend.fast_path import shortcut
from fwdad.frontend.parts_of_calls import Parts, key_of
from fwdad.frontend.specialise import gaining, trace_optimised
from fwdad.frontend.tape import Tape
from fwdad.ir.other_way import OtherWayError
from fwdad.ir.primitives.known_shapes import UnforeseenShapeError
from fwdad.rules.core.registry import function_name, when_changed
from fwdad.transforms.forward import push_forward
from fwdad.transforms.passes import optimise
from fwdad.transforms.passes.destinations import compute_in_destination
from fwdad.transforms.reverse.whole_program import pull_backward

P2 = ParamSpec("P2")
S = TypeVar("S")

_KEPT = 256  # shortcuts of one function
_REWRITTEN = 16
_WAYS = 8  # of them that hold different ways of the program
_RETRIED = 16  # of so many calls that no tape has served, one tries them all


_ALL: weakref.WeakSet[Any] = weakref.WeakSet()


@when_changed
def _forget_tapes() -> None:
    for jitted in list(_ALL):
        jitted.forget()


class Jitted(Carrier, Generic[P, R]):
    """A function that is traced once for each kind of arguments; made by :func:`jit`.

    What the tape of a derivative returns is ``apart`` from its inputs.
    """

    def __init__(
        self,
        f: Callable[P, R],
        backend: str = "auto",
        *,
        parallel: bool = False,
        static_shapes: bool = False,
        apart: bool = False,
    ) -> None:
        functools.update_wrapper(self, f)
        self.__wrapped__ = f
        self._backend = backend
        self._parallel = parallel
        self._lengths = EVERY if static_shapes else UNKNOWN
        self._apart = apart
        self.kept = KeptTapes()
        self._shortcuts: dict[Any, Callable[..., Any]] = {}
        self._lock = threading.RLock()
        self.traces = 0
        self._hits = [0]
        self._strays = 0  # calls that no tape has served, one after the other
        self._untraced: set[Any] = set()  # kinds of arguments of which another way was refused
        self._latest: Callable[[tuple[Any, ...], dict[str, Any]], Any] = never
        self.last: Specialisation | None = None
        self.shortcuts = Shortcuts()
        self.derivatives: dict[Any, Any] = {}  # kept here by drivers/tape_cache.py
        _ALL.add(self)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, out: Any, **kwargs: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        try:
            try:
                y = self._latest(args, kwargs)  # the most that a call of a small function costs
                if y is MISS:
                    y = self._by_shortcut(args, kwargs)
                if y is not MISS:
                    return y
                return self._find_and_call(args, kwargs)
            except OtherWayError as error:
                if isinstance(error, UnforeseenShapeError) and self._has_effects():
                    raise
                return self._by_another_way(args, kwargs)
            except FwdadError as error:
                if type(error) is OutError:
                    self._check_out(args, kwargs)  # what the program cannot say
                raise
            except Exception as error:
                if self.may_catch() and not is_own(error):
                    return self.__wrapped__(*args, **kwargs)
                self._check_out(args, kwargs)
                self._raise_in_full(error, args, kwargs)
                raise
        except BaseException as error:
            leave(error)
            raise

    @overload
    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Callable[[], R]: ...
    @overload
    def bind(self, *args: Any, out: T, **kwargs: Any) -> Callable[[], T]: ...
    def bind(self, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """Bind the function to arguments: what is returned calls it with them.

        Parameters
        ----------
        *args, **kwargs
            Those of the function, ``out`` among them. Arrays are read at each call, so that the
            caller writes into x and calls; their shapes and numbers are those of now.

        Returns
        -------
        callable
            Without parameters. With ``out`` of a derivative a call allocates no array.

        Raises
        ------
        OutError
            If ``out`` cannot be written.

        Examples
        --------
        >>> import numpy as np, fwdad
        >>> x, g = np.array([1.0, 2.0]), np.empty(2)
        >>> step = fwdad.jit(fwdad.grad(lambda x: x @ x)).bind(x, out=g)
        >>> x[:] = 3.0
        >>> step() is g, g
        (True, array([6., 6.]))
        """
        return bound(self, args, kwargs)

    def _check_out(self, args: Any, kwargs: Any) -> None:
        if "out" in kwargs and self._writes_out:
            self.__wrapped__.check_out(args, kwargs)

    @functools.cached_property
    def _writes_out(self) -> bool:
        """Whether it is a derivative that is written into the argument ``out``."""
        return type(self.__wrapped__) is Transformed and self.__wrapped__.writes

    def _find_and_call(self, args: Any, kwargs: Any) -> Any:
        self._check_out(args, kwargs)
        made, leaves, containers = self.find(args, kwargs, compiled=True)
        if made.tape.aliased(leaves):  # an array that is written shares memory with another
            return self.__wrapped__(*args, **kwargs)
        return made.tape.rebuild(made.run(*leaves), containers)

    def may_catch(self) -> bool:
        """Whether the program may catch what a tape has raised."""
        return any(made.tape.catches for made in self.specialisations())

    def _has_effects(self) -> bool:
        """Whether a call must not be repeated: the program writes into arguments, or prints."""
        tapes = [made.tape for made in self.specialisations()]
        return any(any(tape.program.written) or tape.prints for tape in tapes)

    def _by_another_way(self, args: Any, kwargs: Any) -> Any:
        """The result where the tape that was tried holds another way of a branch."""
        self._hits[0] -= 1  # it was none
        if self._strays > _WAYS and self._strays % _RETRIED:
            return self._astray(args, kwargs)
        y = self._by_other_shortcuts(args, kwargs)
        if y is not MISS:
            self._strays = 0
            return y
        flat = Flattened(args, kwargs)
        tapes = self.kept.of_kind(flat.key)
        for made in list(tapes):
            leaves = made.tape.leaves(flat.leaves)
            if made.tape.holds(leaves):
                try:
                    y = made.tape.rebuild(made.run(*leaves), flat.containers)
                except OtherWayError:
                    continue
                with self._lock:  # the next call is tried with this one first
                    self.kept.first(made)
                self._note_shortcut(made, args, kwargs)
                self._hits[0] += 1
                self._strays = 0
                return y
        if len(tapes) < _WAYS and flat.key not in self._untraced:
            try:
                with NoCollection() as resting, resting, self._lock:
                    made = self._trace(flat)
                leaves = made.tape.leaves(flat.leaves)
                return made.tape.rebuild(made.run(*leaves), flat.containers)
            except OtherWayError:  # what decides could not be computed from the example
                pass
            except UntraceableError:  # no tape holds this way: another attempt would be wasted
                self._untraced.add(flat.key)
        return self._astray(args, kwargs)

    def _astray(self, args: Any, kwargs: Any) -> Any:
        """The result where no tape holds the way; if that goes on, few are tried."""
        self._strays += 1
        return self.__wrapped__(*args, **kwargs)

    def _by_other_shortcuts(self, args: Any, kwargs: Any) -> Any:
        """What a shortcut to another tape returns; ``MISS`` if there is none that fits."""
        key, tried = key_of(args, kwargs), self._latest
        for made in self.specialisations():
            run = made.shortcuts.get(key) if made.tape.follows else None
            if run is None or run is tried:
                continue
            try:
                y = run(args, kwargs)
            except OtherWayError:
                self._hits[0] -= 1
                continue
            if y is not MISS:
                self._latest = self._shortcuts[key] = run
                return y
        return MISS

    def _raise_in_full(self, error: Exception, args: Any, kwargs: Any) -> None:
        """Raise what a derivative raises without a tape, or report an exception of ours as a bug.

        A tape's error comes from an operation on lanes or cotangents, so its message names their
        shapes, with one axis too many. The function is not run again if the tape has written into
        its arguments, and the second run makes no effects: the tape has made them.
        """
        program = None if self.last is None else self.last.tape.program
        derives = hasattr(self.__wrapped__, "evaluate")  # jacfwd(f) and its relatives
        if program is not None:
            derives = (derives or program.quiet) and not any(program.written)
        if derives:
            try:
                with unseen() as run, run:
                    self.__wrapped__(*args, **kwargs)
            except FwdadError:
                return
        if is_own(error):
            raise internal(f"{function_name(self.__wrapped__)} under jit", error) from error

    def quickly(self, args: tuple[Any, ...]) -> Any:
        """What a call returns that needs no more than a shortcut looks at; else ``MISS``."""
        y = self._latest(args, {})
        return self._by_shortcut(args, {}) if y is MISS else y

    def _by_shortcut(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        run = self._shortcuts.get(key_of(args, kwargs))
        if run is None:
            return MISS
        self._latest = run
        self.kept.use_by(run)
        return run(args, kwargs)

    def __repr__(self) -> str:
        return f"<fwdad.jit of {function_in_words(self.__wrapped__)}>"

    def _repr_html_(self) -> str:
        made = self.specialisations()
        rows = [
            ("backend", mono(repr(self._backend)) if not self._parallel else "Numba's threads"),
            ("calls", f"{self.traces} traced, {self.hits} found their tape"),
        ]
        title = f"jit({function_in_words(self.__wrapped__)}){signature_in_words(self)}"
        tapes = (m.shown() for m in made)
        return framed(mono(title), facts(rows), *tapes, note=counted(len(made), "tape"))

    @property
    def backend(self) -> str:
        """What runs its tapes, as it was given to :func:`jit`."""
        return self._backend

    @property
    def counted(self) -> list[int]:
        """The number of calls that have found their tape, alone in a list, to be counted on."""
        return self._hits

    @property
    def hits(self) -> int:
        """How many calls have found their tape."""
        return self._hits[0]

    @overload
    def __get__(self, owner: None, _cls: Any = None) -> Jitted[P, R]: ...
    @overload
    def __get__(
        self: Jitted[Concatenate[S, P2], R], owner: S, _cls: Any = None
    ) -> Callable[P2, R]: ...
    def __get__(self, owner: Any, _cls: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def _made_by(self) -> Any:
        return (functools.partial(Jitted, **self._as_given()), (self.__wrapped__,))

    def _as_given(self) -> dict[str, Any]:
        static = self._lengths is EVERY
        return {"backend": self._backend, "parallel": self._parallel, "static_shapes": static}

    def with_static_shapes(self) -> Jitted[P, R]:
        """The function with tapes of its own, each for one shape of each array."""
        options = {**self._as_given(), "static_shapes": True, "apart": self._apart}
        return Jitted(self.__wrapped__, **options)

    def derivative_of(self, f: Any, *, apart: bool = True) -> Jitted[..., Any]:
        """A derivative under ``jit``, with the options of this function."""
        return Jitted(f, **self._as_given(), apart=apart)

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """The attribute that Numba reads where a function under ``numba.njit`` calls this one."""
        from fwdad.drivers.numba_interop import JittedType  # noqa: PLC0415  (imports Numba)

        return JittedType(self)

    def forget(self) -> None:
        """Drop all tapes: a function that they call has another rule now."""
        with self._lock:
            self.kept.forget()
            self._untraced.clear()
            self._shortcuts.clear()
            self.derivatives.clear()
            self.shortcuts.forget()
            self._latest = never

    def specialisations(self) -> list[Specialisation]:
        """All that were made until now."""
        return self.kept.all()

    def _drop_shortcuts(self, gone: Specialisation) -> None:
        """Remove the shortcuts to a tape that was evicted."""
        runs = {id(run) for run in gone.shortcuts.values()}
        self._shortcuts = {k: run for k, run in self._shortcuts.items() if id(run) not in runs}
        if id(self._latest) in runs:
            self._latest = never
        forget_shortcuts_to(gone)

    def trace_types(self, flat: Flattened) -> Specialisation:
        """Trace for types without example values."""
        return self._trace(flat)

    def find(
        self, args: Any, kwargs: Any, *, compiled: bool = False
    ) -> tuple[Specialisation, list[Any], list[Any]]:
        """The specialisation for these arguments, made if there is none, and its inputs."""
        flat = Flattened(args, kwargs)
        made, leaves, is_new = self.find_flat(flat, compiled=compiled)
        if not is_new:
            self._note_shortcut(made, args, kwargs)
        return made, leaves, flat.containers

    def find_flat(
        self, flat: Flattened, *, compiled: bool = False
    ) -> tuple[Specialisation, list[Any], bool]:
        """The specialisation for flattened arguments, its inputs, and whether it was made now."""
        found = self._known(flat)
        if found is None:
            with NoCollection() as resting, resting:
                with self._lock:
                    found = self._known(flat)  # another thread may have been first
                    if found is None:
                        made = self._trace(flat)
                if found is None:
                    leaves = made.tape.leaves(flat.leaves)
                    if compiled and not made.tape.aliased(leaves):
                        made.run.prepare(leaves)
                    return made, leaves, True
        self._hits[0] += 1
        return *found, False

    def known(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Specialisation, list[Any], list[Any]] | None:
        """The result of :meth:`find` if a specialisation has been made; else None."""
        flat = Flattened(args, kwargs)
        found = self._known(flat)
        if found is None:
            return None
        self._hits[0] += 1
        return *found, flat.containers

    def _known(self, flat: Flattened) -> tuple[Specialisation, list[Any]] | None:
        for made in self.kept.of_kind(flat.key):
            leaves = made.tape.leaves(flat.leaves)
            if made.tape.holds(leaves) and not made.left_to_others(leaves):
                self.kept.use(made)
                return made, leaves
        return None

    def _trace(self, flat: Flattened) -> Specialisation:
        tapes = self.kept.of_kind(flat.key)
        general = wide(tapes, flat)
        if general is None:
            equal = not tried_equal(tapes, flat)
            tape = trace_optimised(
                self.__wrapped__,
                flat,
                lengths=self._lengths,
                equal=equal,
                threads=threads_of(self._backend, parallel=self._parallel),
                rows=True,
                follows=not self._apart,
            )
            self._finish(tape)
            general = Specialisation(tape, self._backend)
            compiles = self._backend != "numpy" and have_numba()  # NumPy has no registers
            if compiles and not tape.follows:
                general.gaining = gaining(tape.program, tape.leaves(flat.leaves))
            self.kept.add(general, first=tape.follows)
        made = self._own_tape(general, flat) if flat.examples else general
        if made is not general:
            self.kept.add(made, first=True)
        for gone in self.kept.drop_beyond_limits(made):
            self._drop_shortcuts(gone)
        self.traces += 1
        self.last = made
        return made

    def _finish(self, tape: Tape) -> None:
        tape.program.parallel = self._parallel
        if self._writes_out:
            compute_in_destination(tape.program)

    def tapes_beside(self, made: Specialisation) -> int:
        """How many tapes there are for arguments of the same kind as those of one."""
        return len(self.kept.of_kind(made.tape.key))

    def _own_tape(self, general: Specialisation, flat: Flattened) -> Specialisation:
        """A tape for small arrays of these shapes if loops gain from it; else the general one."""
        shapes = general.left_to_others(general.tape.leaves(flat.leaves))
        if not shapes or general.gaining is None:
            return general
        general.tried.add(shapes)
        equal, threads = (
            bool(general.tape.equal_lengths),
            threads_of(self._backend, parallel=self._parallel),
        )
        tape = trace_optimised(
            self.__wrapped__,
            flat,
            lengths=general.gaining,
            equal=equal,
            threads=threads,
            rows=True,
            follows=not self._apart,
        )
        self._finish(tape)
        gained = tape.split > general.tape.split
        return Specialisation(tape, self._backend) if gained else general

    def _note_shortcut(self, made: Specialisation, args: Any, kwargs: Any) -> None:
        """Let calls like this one find their tape without flattening their arguments."""
        key = key_of(args, kwargs)
        if key not in made.shortcuts:
            made.shortcuts[key] = self._written_shortcut(made, args, kwargs)
        elif made.tape.captures and made.rewritten < _REWRITTEN:  # an array has another shape now
            made.shortcuts[key] = self._written_shortcut(made, args, kwargs)
            made.rewritten += 1
        run = made.shortcuts[key]
        if run is None:
            return
        if len(self._shortcuts) >= _KEPT:
            self._shortcuts.clear()
        self._shortcuts[key] = run
        self._latest = never

    def _written_shortcut(self, made: Specialisation, args: Any, kwargs: Any) -> Any:
        parts = Parts()
        given, named = parts.call(args, kwargs)
        parts.take([*given, *named.values()])
        return self.shortcut_to(made, parts)

    def shortcut_to(self, made: Specialisation, parts: Parts, **options: Any) -> Any:
        """A shortcut from a call to a tape, for the parts of an example; None if impossible."""
        tape = made.tape
        acts = tape.prints or tape.rebuild.needs_containers or any(tape.program.written)
        if self._apart and acts:  # if it raises, f is run instead
            return None
        run = None if options.get("instead") else made.run.function
        options["writes"] = self._writes_out
        made_of: Any = shortcut(tape, run, parts, self._hits, apart=self._apart, **options)
        if made_of is not None:
            made_of.tape = weakref.ref(made)
        return made_of

    def push(self, made: Specialisation, n: int, active: tuple[bool, ...]) -> Any:
        """The program that pushes n tangents through one specialisation."""
        key = (n, active)
        if key not in made.pushed:
            with self._lock:
                program, constants = push_forward(made.tape.program, n, list(active))
                optimise(program)
                program.parallel = self._parallel
                made.pushed[key] = (Runner(program, self._backend), constants)
        return made.pushed[key]

    def pull(self, made: Specialisation, active: tuple[bool, ...]) -> Any:
        """The program that pulls cotangents back through one specialisation."""
        if active not in made.pulled:
            with self._lock:
                program, returned = pull_backward(made.tape.program, list(active))
                program.parallel = self._parallel
                made.pulled[active] = (Runner(program, self._backend), returned)
        return made.pulled[active]
