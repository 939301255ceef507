"""``memory_report``: what reverse mode keeps, by line of the user's source.

The program that a gradient runs is run once under NumPy, with stacks that count and a look at its
variables where the reverse pass begins and where it ends: the numbers are measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fwdad.api.transforms import differentiated
from fwdad.codegen.numpy_backend.source import numpy_source
from fwdad.core.fallbacks import Untraced
from fwdad.core.tracebacks import public
from fwdad.display.html import bar, folded, framed, mono, noted, paragraph, table
from fwdad.display.words import counted, file_in_words
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.linearized import copied
from fwdad.drivers.memory_profiler import Found, MeasuredRun
from fwdad.drivers.residual_store import sweeps_of
from fwdad.drivers.tape_cache import Evaluated, apart, on_copies, tape_of
from fwdad.eager.build import unseen
from fwdad.eager_reverse import run_recorded
from fwdad.errors import UnsupportedTypeError, UntraceableError
from fwdad.evaluation.arguments import arguments_of
from fwdad.evaluation.signatures import Function
from fwdad.frontend.arguments import Flattened
from fwdad.frontend.derivatives.pulled import measured_value, value_alone, value_and_pullback
from fwdad.rules.core.registry import function_name
from fwdad.tangents.composite import flatten, unflatten

_KINDS = {
    "saved": "kept for the reverse pass",
    "copy": "copies of arguments that are written into",
    "array": "arrays of the program itself, read again in the reverse pass",
    "cotangent": "cotangents",
    "held": "further copies that vjp makes, because the caller may change the arrays",
    "linearized": "copies of all arrays that the tape reads, which linearize makes",
    "record": "the record of a run",
}


@dataclass(frozen=True)
class Kept:
    """Memory of one line of the user's source.

    Attributes
    ----------
    kind : str
        ``"saved"``: values kept for the reverse pass, and what a state of a loop has; ``"copy"``:
        of an argument that the function writes into; ``"array"``: an array that the program makes
        and writes, and that the reverse pass reads in place; ``"cotangent"``; ``"held"``:
        copies that ``vjp`` makes besides, of the arguments and captured arrays that its reverse
        pass reads, and of what is no memory of its own in the value, and arrays that it keeps
        because it computes the value, too; ``"linearized"``: those that ``linearize`` makes;
        ``"record"``.
    filename, line : str and int
        Where; 0 where there is no line.
    text : str
        The line, or what else it is.
    number : int
        How many values.
    nbytes : int
        Their bytes: the most at once.
    """

    kind: str
    filename: str
    line: int
    text: str
    number: int
    nbytes: int

    @property
    def place(self) -> str:
        """Where the line stands; nothing if there is none."""
        return f"{file_in_words(self.filename)}:{self.line}" if self.line else ""


@dataclass(frozen=True, repr=False)
class MemoryReport:
    """What a gradient keeps; made by :func:`memory_report`.

    Attributes
    ----------
    lines : tuple of Kept
        By line, the largest first.
    saved : int
        The bytes that are kept for the reverse pass, the most at once: on stacks, and in variables.
    recorded : str
        Why the function is recorded as it runs; empty if a tape is run.
    """

    lines: tuple[Kept, ...]
    saved: int
    recorded: str = ""

    def of(self, kind: str) -> int:
        """The bytes of a kind, summed over lines.

        Parameters
        ----------
        kind : str
            As in :class:`Kept`.
        """
        return sum(k.nbytes for k in self.lines if k.kind == kind)

    @property
    def copies(self) -> int:
        """The bytes of copies of arguments."""
        return self.of("copy")

    @property
    def arrays(self) -> int:
        """The bytes of the program's own arrays that the reverse pass reads."""
        return self.of("array")

    @property
    def cotangents(self) -> int:
        """The bytes of cotangents that have names at the end."""
        return self.of("cotangent")

    def _repr_html_(self) -> str:
        most = max((k.nbytes for k in self.lines), default=0)
        parts: list[object] = []
        if self.recorded:
            parts.append(paragraph(f"recorded as it runs, because {self.recorded}"))
        for kind, words in _KINDS.items():
            rows = [
                (k.nbytes, bar(k.nbytes / most), counted(k.number, "value"), k.place, mono(k.text))
                for k in self.lines
                if k.kind == kind
            ]
            if rows:
                head = f"{words}: {self.of(kind):,} bytes"
                shown = table((), rows)
                parts.append(folded(head, shown, opened=True))
        if not parts:
            parts.append(noted("nothing"))
        return framed(f"{self.saved:,} bytes are kept for the reverse pass", *parts)

    def __repr__(self) -> str:
        lines = [f"{self.saved:,} bytes are kept for the reverse pass"]
        if self.recorded:
            lines.append(f"recorded as it runs, because {self.recorded}")
        for kind, words in _KINDS.items():
            of_kind = [k for k in self.lines if k.kind == kind]
            if not of_kind:
                continue
            lines.append(f"{words}: {self.of(kind):,} bytes")
            for k in of_kind:
                place = f"{k.place}: {k.text}" if k.line else k.text
                lines.append(f"{k.nbytes:>15,}  {k.number:>9,} x  {place}".rstrip())
        return "\n".join(lines)


@public
def memory_report(f: Function, *args: Any, **kwargs: Any) -> MemoryReport:
    """What reverse mode keeps of a run of a function, in bytes by line of its source.

    Parameters
    ----------
    f : callable
        Any NumPy program; it is differentiated with respect to its first argument. Of ``grad(f)``
        and the like, f is looked at, with respect to the arguments that it names.
    *args, **kwargs
        f's arguments. They stay as they are.

    Returns
    -------
    MemoryReport
        ``print`` it, or read ``lines``, ``saved``, ``copies``, ``arrays``, ``cotangents``.

    Raises
    ------
    UnsupportedTypeError
        If the arguments are missing.

    Notes
    -----
    The program that the gradient runs is run once, under NumPy, and measured: what its stacks hold
    at once, and which variables of the forward pass the reverse pass reads; single integers (how
    often a loop ran) are left out. Numbers count as in compiled code, 8 bytes a float; the lists on
    which NumPy's programs keep them take more. Arrays that the function itself makes and writes in
    place, and that are read again where they lie, cost nothing and stand apart. ``vjp`` makes
    copies besides (``"held"``), of the arguments and captured arrays that its reverse pass reads,
    and of the value where it is memory which that reads or changes, an argument, or a view: the
    caller may change all of these. It also keeps arrays there that a gradient alone computes in the
    reverse pass, because the value needs them as well. ``linearize`` copies the arrays that its
    tape reads (``"linearized"``).

    A function that cannot be traced is recorded as it runs; then the bytes are those of the record.

    Examples
    --------
    >>> import numpy as np
    >>> def f(x):
    ...     y = np.zeros(len(x))
    ...     for i in range(1, len(x)):
    ...         y[i] = x[i] * y[i - 1] + np.sin(y[i - 1])
    ...     return np.sum(y)
    >>> memory_report(f, np.linspace(0.0, 1.0, 1000)).saved
    0
    """
    with unseen() as run, run:
        return _report(f, args, kwargs)


def _report(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> MemoryReport:
    f, argnums = differentiated(f)
    if not args:
        message = f"memory_report(f, x, …) runs f: the arguments of {function_name(f)} are missing"
        raise UnsupportedTypeError(message)
    copies = tuple(_copied(a) for a in args)
    at = measured_tape(f, argnums, copies, kwargs)
    if isinstance(at, Untraced):
        arguments, _ = arguments_of(f, copies[0], copies[1:], kwargs, argnums)
        outcome = run_recorded(f, arguments)
        held = Kept("record", "", 0, f"{outcome.operations:,} operations", 1, outcome.nbytes)
        return MemoryReport((held,), outcome.nbytes, at.reason)
    made, leaves, _ = at
    source = numpy_source(made.tape.program)
    run = MeasuredRun(source, on_copies(made.tape, leaves))
    lines = [_line(k, source.places) for k in run.found()]
    listed = sum(k.nbytes for k in lines if k.kind != "cotangent")
    lines += _kept_by_pullback(f, argnums, copies, kwargs, listed)
    return MemoryReport(tuple(_merged(lines)), run.saved)


def measured_tape(f: Function, argnums: Any, args: Any, kwargs: Any) -> Any:
    """The tape of the pullback of a cotangent of ones, with a mark where the reverse pass begins.

    An :class:`Untraced` where there is none; else the specialisation, its inputs and containers.
    """
    at = _numpy_tape(value_alone, f, argnums, args, kwargs)
    if isinstance(at, Untraced):
        return at
    made, leaves, containers = at
    values = made.run(*on_copies(made.tape, leaves))
    y, _ = flatten(made.tape.rebuild(apart(values, leaves), containers))
    ones = tuple(np.ones_like(v) if isinstance(v, np.ndarray) else type(v)(1) for v in y)
    return _numpy_tape(measured_value, f, argnums, (*args, ones), kwargs)


def _numpy_tape(evaluate: Any, f: Function, argnums: Any, args: Any, kwargs: Any) -> Any:
    """A tape of reverse mode that NumPy runs, whatever runs f's own."""
    options = {"has_aux": False, "outputs": "returned"}
    return tape_of(Jitted(Evaluated(evaluate, f, argnums, options), "numpy"), args, kwargs)


def _kept_by_pullback(
    f: Function, argnums: Any, args: Any, kwargs: Any, counted: int
) -> list[Kept]:
    """The copies that a pullback of ``vjp`` makes, and what it keeps beyond a gradient."""
    at = _numpy_tape(value_and_pullback, f, argnums, args, kwargs)
    if isinstance(at, Untraced):
        return []
    made, leaves, _ = at
    try:
        sweeps = sweeps_of(made)
    except UntraceableError:  # as vjp: the run is recorded
        arguments, _ = arguments_of(f, args[0], args[1:], kwargs, argnums)
        outcome = run_recorded(f, arguments)
        return [Kept("held", "", 0, "the record of the run", 1, outcome.nbytes)]
    count = len(Flattened(args, kwargs).leaves)
    held = [
        ("arguments" if k < count else "captured arrays", leaves[k].nbytes)
        for k in sweeps.copied(leaves)
    ]
    _, kept = sweeps.run(on_copies(made.tape, leaves))
    values = [a.nbytes for a in sweeps.copied_values(on_copies(made.tape, leaves))]
    more = kept.nbytes - sum(nbytes for _, nbytes in held) - sum(values) - counted
    if more > 0:  # a gradient computes them in the reverse pass, where nobody asks for the value
        held.append(("arrays that the value is computed from, too", more))
    held += [("the value", nbytes) for nbytes in values]
    lines = [Kept("held", "", 0, words, 1, nbytes) for words, nbytes in held]
    if argnums in (0, (0,)):
        lines += [
            Kept("linearized", "", 0, "arguments and captured arrays", 1, a.nbytes)
            for a in copied(f, args, kwargs)
        ]
    return lines


def _line(found: Found, places: list[Any]) -> Kept:
    place = places[found.row - 1] if 0 < found.row <= len(places) else None
    if place is None:
        text = "an argument" if found.kind == "copy" else "a sum of the reverse pass"
        return Kept(found.kind, "", 0, text, found.number, found.nbytes)
    text = (place.text or "").strip()
    return Kept(found.kind, place.filename, place.line, text, found.number, found.nbytes)


def _merged(lines: list[Kept]) -> list[Kept]:
    """One entry for each line and kind, the largest first."""
    merged: dict[Any, Kept] = {}
    for k in lines:
        key = (k.kind, k.filename, k.line, k.text)
        if key in merged:
            before = merged[key]
            k = replace(k, number=before.number + k.number, nbytes=before.nbytes + k.nbytes)
        merged[key] = k
    return sorted((k for k in merged.values() if k.number), key=lambda k: -k.nbytes)


def _copied(x: Any) -> Any:
    leaves, structure = flatten(x)
    return unflatten(structure, [v.copy() if isinstance(v, np.ndarray) else v for v in leaves])
