"""``jit``: functions that are traced once for each kind of arguments, and then run as one."""

from __future__ import annotations

import copy
import functools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fwdad.backends.numba_support import have_numba
from fwdad.backends.numpy_source import compiled, numpy_source
from fwdad.builder.activity import is_active
from fwdad.builder.build import build_frule
from fwdad.builder.dispatch import call, on_call
from fwdad.builder.dual import Array, Scalar, explicit, top_tag, with_explicit
from fwdad.builder.run import STATE
from fwdad.rules.registry import function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tape import whole
from fwdad.tape.forward import push_forward
from fwdad.tape.ops import Program
from fwdad.tape.passes import optimise
from fwdad.tape.show import show_program
from fwdad.tracing.arguments import Flattened, Lengths
from fwdad.tracing.shortcuts import AGAIN, key_of, never, shortcut
from fwdad.tracing.specialise import Shapes, gaining, known_lengths, trace_optimised
from fwdad.tracing.trace import Tape

whole.install(call, build_frule)

_KEPT = 256  # specialisations of one function
_REWRITTEN = 16
_OWN_TAPES = 8  # of them for small arrays of other shapes, for each kind of arguments


class CacheInfo(NamedTuple):
    """How often a function was traced, and how often a tape was found.

    Attributes
    ----------
    traces, hits : int
        Numbers of calls.
    """

    traces: int
    hits: int


class Runner:
    """A program's function, made for the backend that was asked for.

    Parameters
    ----------
    program : Program
        What to run.
    backend : str
        As :func:`jit` takes it.
    """

    def __init__(self, program: Program, backend: str) -> None:
        self._made: Any = None
        if _uses_numba(backend):
            from fwdad.backends.entry import compile_program  # noqa: PLC0415  (imports Numba)

            self._made = compile_program(program, "numba")
        else:
            self._plain = compiled(numpy_source(program))

    def __call__(self, *leaves: Any) -> Any:
        """Run it."""
        return self._plain(*leaves) if self._made is None else self._made.call(*leaves)

    def serves(self, leaves: tuple[Any, ...]) -> bool:
        """Whether Numba has compiled the program as a whole, for leaves like these."""
        from fwdad.backends.entry import signature_of  # noqa: PLC0415  (imports Numba)

        if self._made is None or self._made.kernel is None:
            return False
        signature = signature_of(leaves)
        return signature is not None and bool(self._made.serves(signature))

    @property
    def compiled(self) -> Any:
        """What Numba runs, or None."""
        return self._made

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, as it is after the first call."""
        return self._plain if self._made is None else self._made.call

    def explain(self) -> str:
        """What runs the program, and why Numba does not."""
        if self._made is None:
            return "NumPy"
        reasons = "".join(f"\n  {_place(e)}{e.what}" for e in self._made.reasons())
        parts = self._made.compiled_parts()
        if not parts:
            return f"NumPy, because{reasons}"
        if not self._made.pieces:
            return "Numba"
        held, pieces = sum(p.size for p in parts), "piece" if len(parts) == 1 else "pieces"
        return f"Numba in {len(parts)} {pieces} of {held}, the others by NumPy, because{reasons}"


def _place(error: Any) -> str:
    location = getattr(error, "location", None)
    return "" if location is None else f"{location.filename}:{location.line}: "


def _uses_numba(backend: str) -> bool:
    if backend not in ("auto", "numpy", "numba"):
        message = f'backend is "auto", "numpy" or "numba", not {backend!r}'
        raise ValueError(message)
    if backend == "numpy" or have_numba():
        return backend != "numpy"
    if backend == "numba":
        message = "Numba is not installed: pip install 'fwdad[jit]'"
        raise ImportError(message)
    _say_once("Numba is not installed: fwdad.jit runs under NumPy (pip install 'fwdad[jit]')")
    return False


@functools.cache
def _say_once(message: str) -> None:
    logging.getLogger("fwdad").warning(message)


@dataclass(eq=False)
class _Specialisation:
    """A function for one kind of arguments: its tape, and the functions made of it."""

    tape: Tape
    backend: str
    pushed: dict[Any, tuple[Runner, list[np.ndarray]]] = field(default_factory=dict)
    shortcuts: dict[Any, Any] = field(default_factory=dict)
    rewritten: int = 0  # shortcuts that were for captured arrays of other shapes
    gaining: Lengths | None = None  # from which its loops might gain
    tried: set[Shapes] = field(default_factory=set)

    @functools.cached_property
    def run(self) -> Runner:
        """The tape's function."""
        return Runner(self.tape.program, self.backend)

    def left_to_others(self, leaves: list[Any]) -> Shapes:
        """The lengths for which a tape of their own has not been tried."""
        if self.gaining is None or len(self.tried) >= _OWN_TAPES:
            return ()
        shapes = known_lengths(leaves, self.gaining)
        return () if shapes in self.tried else shapes


class Jitted:
    """A function that is traced once for each kind of arguments; made by :func:`jit`.

    Of a gradient, shortcuts are for arrays that share no memory, and what the tape answers goes
    through ``apart``, with the tape's inputs.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        backend: str = "auto",
        *,
        parallel: bool = False,
        apart: Callable[..., Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, f)
        self.__wrapped__ = f
        self._backend = backend
        self._parallel = parallel
        self._apart = apart
        self._table: dict[Any, list[_Specialisation]] = {}
        self._shortcuts: dict[Any, Callable[..., Any]] = {}
        self._lock = threading.RLock()
        self.traces = 0
        self._hits = [0]
        self._latest: Callable[[tuple[Any, ...]], Any] = never
        self.last: _Specialisation | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if not kwargs:
            y = self._latest(args)  # the most that a call of a small function costs beside its code
            if y is AGAIN:
                y = self._by_shortcut(args)
            if y is not AGAIN:
                return y
        made, leaves, containers = self.find(args, kwargs)
        if made.tape.entangled(leaves):  # an array that is written shares memory with another
            return self.__wrapped__(*args, **kwargs)
        return made.tape.rebuild(made.run(*leaves), containers)

    def quickly(self, args: tuple[Any, ...]) -> Any:
        """What a call answers that needs no more than a shortcut looks at; else ``AGAIN``."""
        y = self._latest(args)
        return self._by_shortcut(args) if y is AGAIN else y

    def _by_shortcut(self, args: tuple[Any, ...]) -> Any:
        run = self._shortcuts.get(key_of(args))
        if run is None:
            return AGAIN
        self._latest = run
        return run(args)

    @property
    def backend(self) -> str:
        """What runs its tapes, as :func:`jit` was told."""
        return self._backend

    @property
    def hits(self) -> int:
        """How many calls have found their tape."""
        return self._hits[0]

    def __get__(self, owner: Any, _cls: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __reduce__(self) -> Any:
        made = functools.partial(jit, backend=self._backend, parallel=self._parallel)
        return (made, (self.__wrapped__,))

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """What Numba asks for where a function under ``numba.njit`` calls this one."""
        from fwdad.numba_calls import JittedType  # noqa: PLC0415  (imports Numba)

        return JittedType(self)

    def specialisations(self) -> list[_Specialisation]:
        """All that were made until now."""
        return [made for held in list(self._table.values()) for made in held]

    def trace_types(self, flat: Flattened) -> _Specialisation:
        """Trace for types without example values."""
        return self._trace(flat)

    def find(self, args: Any, kwargs: Any) -> tuple[_Specialisation, list[Any], list[Any]]:
        """The specialisation for these arguments, made if there is none, and its inputs."""
        flat = Flattened(args, kwargs)
        found = self._known(flat)
        if found is None:
            with self._lock:
                found = self._known(flat)  # another thread may have been first
                if found is None:
                    made = self._trace(flat)
                    return made, made.tape.leaves(flat.leaves), flat.containers
        self._hits[0] += 1
        if not kwargs:
            self._note_shortcut(found[0], args)
        return *found, flat.containers

    def _known(self, flat: Flattened) -> tuple[_Specialisation, list[Any]] | None:
        for made in self._table.get(flat.key, ()):
            leaves = made.tape.leaves(flat.leaves)
            if made.tape.holds(leaves) and not made.left_to_others(leaves):
                return made, leaves
        return None

    def _trace(self, flat: Flattened) -> _Specialisation:
        if len(self._table) >= _KEPT:
            self._table.clear()
        held = self._table.setdefault(flat.key, [])
        general = self._wide(held, flat)
        if general is None:
            equal = not self._tried_equal(held, flat)
            tape = trace_optimised(
                self.__wrapped__, flat, equal=equal, threads=self._threads(), rows=True
            )
            tape.program.parallel = self._parallel
            general = _Specialisation(tape, self._backend)
            compiles = self._backend != "numpy" and have_numba()  # NumPy has no registers
            if compiles:
                general.gaining = gaining(tape.program, tape.leaves(flat.leaves))
            held.append(general)
        made = self._own_tape(general, flat) if flat.examples else general
        if made is not general:
            held.insert(0, made)
        self.traces += 1
        self.last = made
        return made

    @staticmethod
    def _tried_equal(held: list[_Specialisation], flat: Flattened) -> bool:
        """Whether a tape only fails because its arguments' lengths are not equal any more."""
        return any(
            leaves[k].shape[axis] != leaves[other].shape[at]
            for made in held
            for leaves in [made.tape.leaves(flat.leaves)]
            for k, axis, other, at in made.tape.equal_lengths
        )

    def _threads(self) -> int:
        """How many cores chunks of columns are spread over."""
        if not self._parallel or self._backend == "numpy" or not have_numba():
            return 1
        from fwdad.backends.numba_parallel import count_threads  # noqa: PLC0415  (imports Numba)

        return count_threads()

    def _wide(self, held: list[_Specialisation], flat: Flattened) -> _Specialisation | None:
        """A tape that fits, beside which small arrays may have their own."""
        fits = (
            m for m in held if m.gaining is not None and m.tape.holds(m.tape.leaves(flat.leaves))
        )
        return next(fits, None) if flat.examples else None

    def _own_tape(self, general: _Specialisation, flat: Flattened) -> _Specialisation:
        """A tape for small arrays of these shapes, if loops gain from it."""
        shapes = general.left_to_others(general.tape.leaves(flat.leaves))
        if not shapes or general.gaining is None:
            return general
        general.tried.add(shapes)
        equal, threads = bool(general.tape.equal_lengths), self._threads()
        tape = trace_optimised(
            self.__wrapped__,
            flat,
            lengths=general.gaining,
            equal=equal,
            threads=threads,
            rows=True,
        )
        tape.program.parallel = self._parallel
        gained = tape.split > general.tape.split
        return _Specialisation(tape, self._backend) if gained else general

    def _note_shortcut(self, made: _Specialisation, args: tuple[Any, ...]) -> None:
        """Let calls like this one find their tape at once: no leaf needs to be looked at."""
        key = key_of(args)
        if key not in made.shortcuts:
            made.shortcuts[key] = self._written_shortcut(made, args)
        elif made.tape.captures and made.rewritten < _REWRITTEN:  # an array has another shape now
            made.shortcuts[key] = self._written_shortcut(made, args)
            made.rewritten += 1
        run = made.shortcuts[key]
        if run is None:
            return
        if len(self._shortcuts) >= _KEPT:
            self._shortcuts.clear()
        self._shortcuts[key] = run
        self._latest = never

    def _written_shortcut(self, made: _Specialisation, args: tuple[Any, ...]) -> Any:
        tape, run, apart = made.tape, made.run.function, self._apart
        if apart is None:
            return shortcut(tape, run, args, self._hits)
        if tape.prints or tape.rebuild.needs_containers:
            return None

        def run_apart(*leaves: Any) -> Any:
            return apart(run(*leaves), leaves)

        return shortcut(tape, run_apart, args, self._hits, separate=True)

    def push(self, made: _Specialisation, n: int, active: tuple[bool, ...]) -> Any:
        """The program that pushes n tangents through one specialisation."""
        key = (n, active)
        if key not in made.pushed:
            with self._lock:
                program, constants = push_forward(made.tape.program, n, list(active))
                optimise(program)
                program.parallel = self._parallel
                made.pushed[key] = (Runner(program, self._backend), constants)
        return made.pushed[key]


def jit(
    f: Callable[..., Any] | None = None, *, backend: str = "auto", parallel: bool = False
) -> Any:
    """Trace a function once for each kind of arguments, and compile what was traced.

    Parameters
    ----------
    f : callable, optional
        A Python function whose source can be read. Without it, a decorator is returned.
    backend : {"auto", "numpy", "numba"}
        What runs the traced program; ``"auto"`` is Numba where it is installed and can compile it.

    parallel : bool
        Whether Numba's threads (``NUMBA_NUM_THREADS``) share the work: loops over the elements of
        long arrays, lanes among them; reductions; loops of f's own whose iterations cannot meet
        (nothing is carried, and each writes only its own element or row of new arrays); and the
        columns of a forward Jacobian of a program with loops, in chunks. ``chunk=k`` says how many
        travel together, ``"auto"`` gives each thread a chunk from 16 columns on; each chunk runs f.
        What is short is computed as without. Elements and rows have the same bits; a reduction to
        one number is added up in blocks, whatever the number of threads.
        Such code is not kept on disk. Numba must find OpenMP or TBB, else it has no effect, as
        under NumPy; do not fork the process after a call.

    Returns
    -------
    callable
        With f's signature. Under ``jvp``, ``jacobian`` and the like the traced program is
        differentiated; ``jit(jacfwd(f))`` is one program.

    Raises
    ------
    UntraceableError
        When it is called, if a value would have to be known before the program runs.

    Notes
    -----
    A tape serves all arguments of the same structure, types and ranks whatever their numbers and
    lengths, lengths 0 and 1 apart. What it had to assume beyond that (a length, an axis that is an
    argument) is checked at each call, and traced anew if it does not hold.

    Output (``print``) is not part of the tape.

    A function under ``numba.njit`` may call it, or be given it. The tape is then chosen by the
    types of the arguments when the caller is compiled, and by their lengths when it runs. Where a
    tape needs a length (``jacfwd`` of an array needs the number of lanes), call it once from Python
    with such arguments before. There, numbers are Python's (``1 / 0.0`` raises), what the function
    reads from outside is constant from then on, and it must answer numbers, arrays, None or tuples.

    Compiled code is kept on disk for other processes: in the directory that the environment
    variable ``FWDAD_CACHE_DIR`` names, else in the user's directory for caches; an empty variable
    switches that off. Whoever can write there can make this user run code.

    Examples
    --------
    >>> @jit
    ... def power(x, n):
    ...     y = 1.0
    ...     for _ in range(n):
    ...         y = y * x
    ...     return y
    >>> power(2.0, 3), power(2.0, 10)
    (8.0, 1024.0)
    >>> cache_info(power)
    CacheInfo(traces=1, hits=1)
    """
    if f is None:
        return lambda g: jit(g, backend=backend, parallel=parallel)
    return f if isinstance(f, Jitted) else Jitted(f, backend, parallel=parallel)


def _jitted(f: Any) -> Jitted:
    if not isinstance(f, Jitted):
        message = f"{function_name(f)} is not under jit"
        raise TypeError(message)
    return f


def cache_info(f: Callable[..., Any]) -> CacheInfo:
    """How often a function under :func:`jit` was traced, and how often a tape was found.

    Parameters
    ----------
    f : callable
        Made by :func:`jit`.
    """
    held = _jitted(f)
    return CacheInfo(held.traces, held.hits)


def show(f: Callable[..., Any], *args: Any, backend: str = "numpy", **kwargs: Any) -> str:
    """The source that runs for a function, with names derived from the user's.

    Lines that let go arrays of a gradient under NumPy (``del``) are left out.

    Parameters
    ----------
    f : callable
        A function, under :func:`jit` or not, or a :class:`Tape`.
    *args, **kwargs
        Example arguments; without them, the last specialisation of a function under ``jit``; of a
        reversible function, or its inverse, the program itself.
    backend : {"numpy", "numba", "tape"}
        Which source; ``"tape"`` is the tape itself.

    Returns
    -------
    str
    """
    if not args and not kwargs and hasattr(f, "__show__"):
        return str(f.__show__())
    program = _program_of(f, args, kwargs)
    if backend == "tape":
        return show_program(program)
    if backend == "numpy":
        return numpy_source(program).text
    _uses_numba("numba")
    from fwdad.backends.glue import numba_text  # noqa: PLC0415  (imports Numba)

    return numba_text(program)


def _program_of(f: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(f, Tape):
        return f.program
    if args or kwargs:
        held = f if isinstance(f, Jitted) else jit(f, backend="numpy")
        return held.find(args, kwargs)[0].tape.program
    last = _jitted(f).last
    if last is None:
        message = f"{function_name(f)} has not been called: give example arguments"
        raise ValueError(message)
    return last.tape.program


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """What runs a function, and why.

    Parameters
    ----------
    f : callable
        A function, under :func:`jit` or not.
    *args, **kwargs
        Example arguments; without them, the last specialisation of a function under ``jit``.

    Returns
    -------
    str
        The backend, and the line that keeps a program from being compiled. Mistakes of the
        library that a slower way makes good are told, too.
    """
    held = f if isinstance(f, Jitted) else jit(f)
    if args or kwargs:
        copies = copy.deepcopy((args, kwargs))
        held(*copies[0], **copies[1])  # Numba compiles at the first call
        made: Any = held.find(args, kwargs)[0]
    else:
        made = held.last
    if made is None:
        message = f"{function_name(f)} has not been called: give example arguments"
        raise ValueError(message)
    count = made.tape.count()
    return f"{count} operations, run by {made.run.explain()}{whole.mistakes(made.tape.program)}"


# -- under the evaluator that runs at once


@on_call(Jitted)
def _call_on_duals(f: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call by lifted code: the traced program, pushed forward, where an argument is active."""
    args = with_explicit(args)
    if not is_active((*args, *kwargs.values())):
        made, leaves, containers = f.find(args, kwargs)
        writes = any(made.tape.program.written) or made.tape.entangled(leaves)
        if writes or is_active(leaves):  # what is captured may be active
            return call(f.__wrapped__, *args, **kwargs)
        return made.tape.rebuild(made.run(*leaves), containers)
    flat = _DualArguments(args, kwargs)
    if flat.tag is None or flat.nested or flat.tag.record is not None:  # no lanes to push
        return call(f.__wrapped__, *args, **kwargs)
    made, leaves, _ = f.find(*flat.primals)
    changes = any(made.tape.program.written) or made.tape.rebuild.needs_containers
    changes = changes or made.tape.entangled(leaves)
    if changes or is_active(leaves) or STATE.run is None:  # the duals' containers are others
        return call(f.__wrapped__, *args, **kwargs)
    missing = len(leaves) - len(flat.tangents)
    tangents = [*flat.tangents, *[None] * missing]
    active = tuple(t is not None for t in tangents)
    run, constants = f.push(made, flat.tag.n, active)
    lanes = [t.lanes for t in tangents if t is not None]
    results = run(*leaves, *lanes, *constants)
    half = len(results) // 2
    duals = [_dual(p, t, flat.tag) for p, t in zip(results[:half], results[half:], strict=True)]
    return made.tape.rebuild(duals)


def _dual(p: Any, lanes: Any, tag: Any) -> Any:
    if isinstance(p, np.ndarray):
        return Array(p, Chunk(lanes), tag) if p.dtype.kind in "fc" else p
    if isinstance(p, (bool, int, np.bool_, np.integer)):
        return p
    chunk = Chunk(lanes)
    return Scalar(p, dict.fromkeys(chunk.terms, 1.0), tag)


class _DualArguments:
    """Arguments on duals of one call: primals in their structure, and the leaves' tangents."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tag = top_tag((*args, *kwargs.values()))
        self.nested = False
        self.tangents: list[Any] = []
        self.primals = (
            tuple(self._take(a) for a in args),
            {k: self._take(a) for k, a in kwargs.items()},
        )

    def _take(self, x: Any) -> Any:
        x = explicit(x)
        if type(x) is Scalar or type(x) is Array:
            if x.tag is not self.tag or type(x.p) in (Scalar, Array):
                self.nested = True
            self.tangents.append(x.t)
            return x.p
        if isinstance(x, (tuple, list)):
            items = [self._take(item) for item in x]
            return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
        if isinstance(x, dict):
            return {key: self._take(item) for key, item in x.items()}
        if isinstance(x, (np.ndarray, bool, int, float, complex, np.generic)):
            self.tangents.append(None)
            return x
        if hasattr(x, "__dict__") and not callable(x):
            self.nested = True  # objects are run by the other evaluator
        return x
