"""``jit``: functions that are traced once for each kind of arguments, and then run as tapes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, overload

from fwdad.codegen.numba_support import CannotCompileError
from fwdad.codegen.numpy_backend.source import numpy_source
from fwdad.core.tracebacks import public
from fwdad.display.html import facts, framed
from fwdad.display.text import SourceText
from fwdad.display.words import file_in_words
from fwdad.drivers.executable import check_backend, uses_numba
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.jitted_on_duals import call_on_duals
from fwdad.drivers.kept_tapes import MOST_BYTES, MOST_TAPES, nbytes_of
from fwdad.drivers.tape_cache import run_tape
from fwdad.eager.calls.dispatch import on_call
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.signatures import Backend, P, R
from fwdad.frontend.calls import python_calls
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.tape import Tape
from fwdad.ir.other_way import OtherWayError
from fwdad.ir.primitives import opaque_call
from fwdad.ir.printer import show_program
from fwdad.rules.core.registry import function_name

on_call(Jitted)(call_on_duals)


class Jit(Protocol):
    """``jit()``, a decorator."""

    def __call__(self, f: Callable[P, R], /) -> Jitted[P, R]:
        """The function under ``jit``."""


class _Calls(NamedTuple):
    traces: int
    hits: int


class CacheInfo(_Calls):
    """How often a function was traced, how often a tape was found, and which are kept.

    Attributes
    ----------
    traces, hits : int
        Numbers of calls; they are a tuple.
    tapes, nbytes : int
        How many tapes are kept, and about how many bytes they take.
    dropped : int
        How many were dropped since others have been used more recently.
    most_tapes, most_nbytes : int
        The limits of each function, or derivative of one, beyond which tapes are dropped.
    """

    tapes: int = 0
    nbytes: int = 0
    dropped: int = 0
    most_tapes: int = MOST_TAPES
    most_nbytes: int = MOST_BYTES

    def __repr__(self) -> str:
        gone = f", dropped={self.dropped}" if self.dropped else ""
        return f"CacheInfo(traces={self.traces}, hits={self.hits}{gone})"

    def _repr_html_(self) -> str:
        rows = (
            ("traced", self.traces),
            ("calls that found their tape", self.hits),
            ("tapes", f"{self.tapes}, {self.nbytes / 1e6:.1f} MB"),
            ("kept at most", f"{self.most_tapes}, {self.most_nbytes / 1e6:.0f} MB"),
            ("dropped, the least recently used", self.dropped),
        )
        return framed("cache", facts(rows))


@overload
def jit(
    f: Callable[P, R],
    *,
    backend: Backend = "auto",
    parallel: bool = False,
    static_shapes: bool = False,
) -> Jitted[P, R]: ...
@overload
def jit(
    f: None = None,
    *,
    backend: Backend = "auto",
    parallel: bool = False,
    static_shapes: bool = False,
) -> Jit: ...
@public
def jit(
    f: Callable[..., Any] | None = None,
    *,
    backend: Backend = "auto",
    parallel: bool = False,
    static_shapes: bool = False,
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
        (nothing is carried, and each writes only its own element or row of new arrays); the points
        of :func:`vmap`, of derivatives, too; and the columns of a forward Jacobian of a program
        with loops, in chunks. ``chunk=k`` says how many travel together, ``"auto"`` gives each
        thread a chunk from 16 columns on; each chunk runs f. What is short is computed as without.
        Elements and rows have the same bits; a reduction to one number is added up in blocks,
        whatever the number of threads.
        Such code is not kept on disk. Numba must find OpenMP or TBB, else it has no effect, as
        under NumPy; do not fork the process after a call.
    static_shapes : bool
        Whether each tape is for one shape of each array, so that all lengths are known to the
        compiler: loops over short axes become straight code, and other shapes have tapes of their
        own, a second or so each. Without, a tape is for one shape only where it has to be.

    Returns
    -------
    callable
        With f's signature. Derivatives of it are compiled, too, whichever way they are asked for:
        ``jvp(jit(f), x, v)`` and ``hessian(jit(f), x)`` run what ``jit`` of them would. Of many
        columns, chunks are pushed through f's own tape.

    Raises
    ------
    UntraceableError
        When it is called, if a value would have to be known before the program runs.
    ValueError
        If the backend is none of these.
    ImportError
        When it is called, if the backend is not installed.
    UnsupportedTypeError
        If f is no function.

    Notes
    -----
    A tape serves all arguments of the same structure, types and ranks whatever their numbers and
    lengths, lengths 0 and 1 apart. What it had to assume beyond that (a length, an axis that is an
    argument) is checked at each call, and traced anew if it does not hold. Where a length must be
    known that others determine, as that of a part of an argument, the shapes of all arguments are
    assumed.

    Both ways of a branch are on one tape. Where they cannot be (one leaves a list and the other a
    tuple, or another function), where a value decides on a length or a key, and where a ``try``
    catches what operations raise, the tape follows the arguments that it is traced with, and checks
    when it runs that the same way is taken. For another way there is another tape, up to eight, and
    then the function runs as it is. What is not followed raises ``UntraceableError``: floats, loops
    of more than 64 iterations, and functions that write into arrays from outside or put anything
    out, which could not be run again.

    A call of an installed package that cannot be traced (``scipy.integrate.solve_ivp``, a class of
    another library) is made by Python at each run, and is differentiated as without ``jit``;
    :func:`explain` lists such calls. It must not write into anything outside of it.

    What the function puts out (``print``, loggers, warnings, ``write`` of a file from outside,
    ``append`` to a list from outside that it does not read) is put out at each call, in order, by
    Python, which compiled code calls. Other effects raise ``UntraceableError``.

    What has no compiled form (an FFT, a function with a rule of your own) is called by compiled
    code, too, and runs under NumPy; such a call costs 1 to 2 µs beside the function itself.
    :func:`explain` lists these calls.

    A function under ``numba.njit`` may call it, or be given it. The tape is then chosen by the
    types of the arguments when the caller is compiled, and by their lengths when it runs. Where a
    tape needs a length (``jacfwd`` of an array needs the number of lanes), call it once from Python
    with such arguments before. There, numbers are Python's (``1 / 0.0`` raises), what the function
    reads from outside is constant from then on, and it must return numbers, arrays, None or tuples.

    Compiled code is kept on disk for other processes: in the directory that the environment
    variable ``FWDAD_CACHE_DIR`` names, else in the user's directory for caches; an empty variable
    switches that off. A directory that others may write, or that is another user's, is refused with
    one warning of the logger ``fwdad.cache``, and code is compiled in memory; entries are signed
    with a key in the user's configuration. ``SECURITY.md`` says what is trusted.

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
    check_backend(backend)
    if f is None:
        return lambda g: jit(g, backend=backend, parallel=parallel, static_shapes=static_shapes)
    if not callable(f):
        raise UnsupportedTypeError(f"jit takes a function; got {type_in_words(f)}")
    if isinstance(f, Jitted):
        return f
    return Jitted(f, backend, parallel=parallel, static_shapes=static_shapes)


@builtin(jit)
def _traced_jit(_tracer: Any, f: Any = None, **options: Any) -> Any:
    """In a trace, a function that is made there is compiled together with all else."""
    if f is None:
        return _as_it_is
    return f if mentions_symbols(f) else jit(f, **options)


def _as_it_is(f: Any) -> Any:
    return f


def _jitted(f: Any) -> Jitted[..., Any]:
    if not isinstance(f, Jitted):
        message = f"{function_name(f)} is not under jit: pass the function that jit(f) returns"
        raise TypeError(message)
    return f


@public
def cache_info(f: Callable[..., Any]) -> CacheInfo:
    """How often a function under :func:`jit` was traced, and how often a tape was found.

    Derivatives of it have tapes of their own, which count, too.

    Parameters
    ----------
    f : callable
        Made by :func:`jit`.

    Returns
    -------
    CacheInfo
        ``traces`` and ``hits``; of the tapes that are kept ``tapes`` and ``nbytes``, the limits of
        both, and how many were ``dropped``.

    Raises
    ------
    TypeError
        If f is not under :func:`jit`.
    """
    jitted = _jitted(f)
    own = [jitted, *(d for d in jitted.derivatives.values() if isinstance(d, Jitted))]
    info = CacheInfo(sum(j.traces for j in own), sum(j.hits for j in own))
    kept = [made for j in own for made in j.specialisations()]
    info.tapes, info.nbytes = len(kept), sum(map(nbytes_of, kept))
    info.dropped = sum(j.kept.dropped for j in own)
    return info


@public
def show(
    f: Callable[..., Any],
    *args: Any,
    backend: Literal["numpy", "numba", "tape"] = "numpy",
    **kwargs: Any,
) -> str:
    """The source that runs for a function, with names derived from the user's.

    Lines that free arrays of a gradient under NumPy (``del``) are left out.

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
        Shown as it is; in a notebook its loops and branches fold.

    Raises
    ------
    UntraceableError
        If f cannot be traced for these arguments.
    TypeError, ValueError
        Without arguments, if f is not under :func:`jit`, or has not been called; if there is no
        such backend.
    ImportError
        For ``"numba"``, if Numba is not installed.
    """
    if backend not in ("numpy", "numba", "tape"):
        raise ValueError(f'backend must be "numpy", "numba" or "tape", not {backend!r}')
    if not args and not kwargs and hasattr(f, "__show__"):
        return SourceText(f.__show__())
    program = _program_of(f, args, kwargs)
    if backend == "tape":
        return SourceText(show_program(program))
    if backend == "numpy":
        return SourceText(numpy_source(program).text)
    uses_numba("numba")
    from fwdad.codegen.callbacks.outline import compilable  # noqa: PLC0415  (imports Numba)
    from fwdad.codegen.passes.zero_tests import without_tests  # noqa: PLC0415  (imports Numba)

    try:
        return SourceText(compilable(without_tests(program) or program).text())
    except CannotCompileError:  # NumPy runs the whole
        return SourceText(numpy_source(program).text)


def _program_of(f: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(f, Tape):
        return f.program
    if args or kwargs:
        jitted = f if isinstance(f, Jitted) else jit(f, backend="numpy")
        return jitted.find(args, kwargs)[0].tape.program
    last = _jitted(f).last
    if last is None:
        raise ValueError(f"{function_name(f)} has not been called: give example arguments")
    return last.tape.program


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """What runs a function that is not differentiated, and why; see :func:`fwdad.explain`."""
    jitted = f if isinstance(f, Jitted) else jit(f)
    if args or kwargs:
        copies = copy.deepcopy((args, kwargs))
        specialisation: Any
        specialisation, leaves, _ = jitted.find(*copies)
        try:
            run_tape(specialisation, leaves)  # Numba compiles at the first call
        except OtherWayError:
            jitted(*copies[0], **copies[1])
            specialisation = jitted.find(*copies)[0]
    else:
        specialisation = jitted.last
    if specialisation is None:
        raise ValueError(f"{function_name(f)} has not been called: give example arguments")
    count = specialisation.tape.count()
    operations = "1 operation" if count == 1 else f"{count} operations"
    program = specialisation.tape.program
    notes = f"{python_calls.in_words(program)}{opaque_call.mistakes(program)}"
    way, at = "", specialisation.tape.followed_at
    if specialisation.tape.follows:
        where = "" if at is None else f" at {file_in_words(at.filename)}:{at.line}"
        way = f"\n  where it goes{where} as it does here; another way is another tape"
    return f"{operations}, run by {specialisation.run.explain()}{way}{notes}"
