"""``jit``: functions that are traced once for each kind of arguments, and then run as one."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fwdad.backends.numpy_source import compiled, numpy_source
from fwdad.builder.build import build_frule
from fwdad.builder.dispatch import call, is_active, on_call
from fwdad.builder.dual import Array, Scalar, explicit, top_tag, with_explicit
from fwdad.builder.run import STATE
from fwdad.rules.registry import function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tape.forward import push_forward
from fwdad.tape.passes import optimise
from fwdad.tape import whole
from fwdad.tape.show import show_program
from fwdad.tracing.arguments import Flattened, leaf_key
from fwdad.tracing.trace import Tape, trace_flat

def compile_program(program: Any, backend: str) -> tuple[Callable[..., Any], str, str]:
    """The function of a program, what runs it, and why nothing quicker does."""
    return compiled(numpy_source(program)), "NumPy", ""


whole.install(call, build_frule)

_KEPT = 256  # specialisations of one function


class CacheInfo(NamedTuple):
    """How often a function was traced, and how often a tape was found.

    Attributes
    ----------
    traces, hits : int
        Numbers of calls.
    """

    traces: int
    hits: int


@dataclass(eq=False)
class _Compiled:
    """One specialisation: its tape, and the functions made of it."""

    tape: Tape
    run: Callable[..., Any]
    backend: str
    reason: str
    pushed: dict[Any, tuple[Callable[..., Any], list[np.ndarray]]]


class Jitted:
    """A function that is traced once for each kind of arguments; made by :func:`jit`."""

    def __init__(self, f: Callable[..., Any], backend: str) -> None:
        functools.update_wrapper(self, f)
        self.__wrapped__ = f
        self._backend = backend
        self._table: dict[Any, list[_Compiled]] = {}
        self._lock = threading.RLock()
        self._traces = 0
        self._hits = 0
        self._last: _Compiled | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made, leaves, containers = self._find(args, kwargs)
        if made.tape.entangled(leaves):  # an array that is written shares memory with another
            return self.__wrapped__(*args, **kwargs)
        return made.tape.rebuild(made.run(*leaves), containers)

    def __get__(self, owner: Any, _cls: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __reduce__(self) -> Any:
        return (jit, (self.__wrapped__,))

    def _find(self, args: Any, kwargs: Any) -> tuple[_Compiled, list[Any], list[Any]]:
        """The specialisation for these arguments, made if there is none, and its inputs."""
        flat = Flattened(args, kwargs)
        for made in self._table.get(flat.key, ()):
            leaves = made.tape.leaves(flat.leaves)
            if made.tape.holds(leaves):
                self._hits += 1
                return made, leaves, flat.containers
        with self._lock:
            tape = trace_flat(self.__wrapped__, flat)
            optimise(tape.program)
            run, backend, reason = compile_program(tape.program, self._backend)
            made = _Compiled(tape, run, backend, reason, {})
            self._traces += 1
            self._last = made
            if len(self._table) >= _KEPT:
                self._table.clear()
            self._table.setdefault(flat.key, []).append(made)
        return made, tape.leaves(flat.leaves), flat.containers

    def _pushed(self, made: _Compiled, n: int, active: tuple[bool, ...]) -> Any:
        """The program that pushes n tangents through one specialisation."""
        key = (n, active)
        if key not in made.pushed:
            with self._lock:
                program, constants = push_forward(made.tape.program, n, list(active))
                optimise(program)
                run, _, _ = compile_program(program, self._backend)
                made.pushed[key] = (run, constants)
        return made.pushed[key]


def jit(f: Callable[..., Any] | None = None, *, backend: str = "auto") -> Any:
    """Trace a function once for each kind of arguments, and compile what was traced.

    Parameters
    ----------
    f : callable, optional
        A Python function whose source can be read. Without it, a decorator is returned.
    backend : {"auto", "numpy", "numba"}
        What runs the traced program; ``"auto"`` is Numba where it is installed and can compile it.

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
        return lambda g: jit(g, backend=backend)
    return f if isinstance(f, Jitted) else Jitted(f, backend)


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
    return CacheInfo(held._traces, held._hits)


def show(f: Callable[..., Any], *args: Any, backend: str = "numpy", **kwargs: Any) -> str:
    """The source that runs for a function, with names derived from the user's.

    Parameters
    ----------
    f : callable
        A function, under :func:`jit` or not, or a :class:`Tape`.
    *args, **kwargs
        Example arguments; without them, the last specialisation of a function under ``jit``.
    backend : {"numpy", "numba", "tape"}
        Which source; ``"tape"`` is the tape itself.

    Returns
    -------
    str
    """
    program = _program_of(f, args, kwargs)
    if backend == "tape":
        return show_program(program)
    if backend == "numpy":
        return numpy_source(program).text
    from fwdad.backends.numba_source import numba_source  # needs Numba

    return numba_source(program).text


def _program_of(f: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(f, Tape):
        return f.program
    if args or kwargs:
        held = f if isinstance(f, Jitted) else jit(f)
        return held._find(args, kwargs)[0].tape.program
    last = _jitted(f)._last
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
        The backend, and the line that keeps a program from being compiled.
    """
    held = f if isinstance(f, Jitted) else jit(f)
    made = held._find(args, kwargs)[0] if args or kwargs else held._last
    if made is None:
        message = f"{function_name(f)} has not been called: give example arguments"
        raise ValueError(message)
    count = made.tape.count()
    return f"{count} operations, run by {made.backend}" + (f": {made.reason}" if made.reason else "")


# -- under the evaluator that runs at once


@on_call(Jitted)
def _call_on_duals(f: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call by lifted code: the traced program, pushed forward, where an argument is active."""
    args = with_explicit(args)
    if not is_active((*args, *kwargs.values())):
        made, leaves, containers = f._find(args, kwargs)
        if any(made.tape.program.written):
            return call(f.__wrapped__, *args, **kwargs)
        return made.tape.rebuild(made.run(*leaves), containers)
    flat = _DualArguments(args, kwargs)
    if flat.tag is None or flat.nested:
        return call(f.__wrapped__, *args, **kwargs)
    made, leaves, _ = f._find(*flat.primals)
    if made.tape.rebuild.needs_containers:  # those of the duals are others
        return call(f.__wrapped__, *args, **kwargs)
    if any(made.tape.program.written) or STATE.run is None:
        return call(f.__wrapped__, *args, **kwargs)
    missing = len(leaves) - len(flat.tangents)
    tangents = [*flat.tangents, *[None] * missing]
    active = tuple(t is not None for t in tangents)
    run, constants = f._pushed(made, flat.tag.n, active)
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
    return Scalar(p, {held: 1.0 for held in chunk.terms}, tag)


class _DualArguments:
    """Arguments on duals of one call: primals in their structure, and the leaves' tangents."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tag = top_tag((*args, *kwargs.values()))
        self.nested = False
        self.tangents: list[Any] = []
        self.primals = (tuple(self._take(a) for a in args), {k: self._take(a) for k, a in kwargs.items()})

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
        if isinstance(x, np.ndarray) or isinstance(x, (bool, int, float, complex, np.generic)):
            self.tangents.append(None)
            return x
        if hasattr(x, "__dict__") and not callable(x):
            self.nested = True  # objects are run by the other evaluator
        return x


__all__ = ["CacheInfo", "Jitted", "cache_info", "explain", "jit", "leaf_key", "show"]
