"""Passes as functions written for one kind of call: of a pullback, and of a linear operator.

In full they look at the structures of arguments and cotangents, at what must be copied, and at the
types that compiled code takes. For calls like an earlier one all this is known: it is written down
here, from the example of that call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.core.generated_source import define
from fwdad.drivers.residual_store import Kept, Sweeps, hollow, own_stack
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.evaluation.by_tape import MISS
from fwdad.frontend.fast_path import apart_lines, call_lines
from fwdad.ir.analysis.alias import written_parameters
from fwdad.ir.ops import Program
from fwdad.tangents.alike import alike
from fwdad.tangents.composite import flatten

_NUMBERS = (float, np.float64, np.float32)


class WrittenReverse:
    """The reverse passes of the pullbacks of one kind of call, written when one has run in full.

    ``run(pullback, y_bar)`` returns the cotangents of the arguments, or ``MISS`` for a cotangent of
    another kind than y; :meth:`run_together` does so for several.
    """

    def __init__(self, sweeps: Sweeps) -> None:
        self.sweeps = sweeps
        self.run: Callable[[Any, Any], Any] = misses
        self._together: dict[int, Callable[[Any, Any], Any]] = {}
        self._due = True

    def run_together(self, pullback: Any, y_bars: Any) -> Any:
        """The cotangents of the arguments for the rows of an array, or ``MISS``."""
        if type(y_bars) is not np.ndarray or not y_bars.ndim:
            return MISS
        return self._together.get(len(y_bars), misses)(pullback, y_bars)

    def write(self, y: Any, kept: Kept, leaves: list[Any], count: int | None) -> None:
        """Write it after the example of a pullback that has run, of ``count`` cotangents if any.

        ``leaves`` are those of the arguments that it has pulled back to.
        """
        sweeps = self.sweeps
        if count is not None and count not in self._together:
            self._together[count] = _reverse_together(sweeps, y, kept, leaves, count) or misses
        elif count is None and self._due:
            self._due = False
            self.run = _reverse(sweeps, y, kept) or misses


def written_push(
    program: Program, run: Callable[..., Any], given: list[Any], tangent: np.ndarray, at: int
) -> Callable[[Any], Any]:
    """A function of a vector that returns the one result of a program, raveled, or ``MISS``.

    The vector is the program's input ``at``, shaped as ``tangent``; the others are ``given``.
    """
    names = [f"x{k}" for k in range(len(given))]
    namespace: dict[str, Any] = {"ndarray": np.ndarray, "shadowed": SHADOWED, "miss": MISS}
    namespace |= dict(zip(names, given, strict=True))
    namespace |= {"dtype": tangent.dtype, "n": (tangent.size,), "shape": tangent.shape}
    names.insert(at, "v")
    test = "type(v) is ndarray and v.shape == n and v.dtype == dtype"
    arrays = [name for name, x in zip(names, [*given[:at], tangent, *given[at:]], strict=True)
              if type(x) is np.ndarray]  # fmt: skip
    values, copies = apart_lines(program, 1, arrays)
    lines = [f"if shadowed or not ({test}):", "    return miss"]
    lines += ["v = v.reshape(shape)"] if tangent.ndim > 1 else []
    lines += ["v = v.copy()"] if written_parameters(program)[at] else []
    lines += call_lines(run, names, namespace)
    return _defined(program, ["v"], [*lines, *copies, f"return {values[0]}.reshape(-1)"], namespace)


def misses(*_: Any) -> Any:
    """What is called as long as nothing is written."""
    return MISS


def written_forward(sweeps: Sweeps, leaves: list[Any]) -> Callable[..., Any] | None:
    """A function of inputs like these that returns the value and what is kept, if it can be."""
    passes, namespace = sweeps.passes, {"alike": alike, "hollow": hollow, "ndarray": np.ndarray}
    inputs = [f"x{k}" for k in range(len(leaves))]
    lines = [f"{inputs[k]} = alike({inputs[k]})" for k in sweeps.copied(leaves)]
    lines += call_lines(sweeps.forward.function, inputs, namespace)
    program = passes.forward
    arrays = [name for name, x in zip(inputs, leaves, strict=True) if type(x) is np.ndarray]
    values, copies = apart_lines(program, passes.values, arrays, passes.shared)
    kept = [f"made[{k}]" for k in range(passes.values, len(program.block.results))]
    for k in passes.hollow:
        kept[k] = f"hollow({kept[k]})"
    value = sweeps.rebuild.text([*values, *["None"] * sweeps.results], namespace, 0)
    if value is None or any(program.written):
        return None
    lines += [*copies, f"return {value}, [{', '.join(kept)}]"]
    return _defined(program, inputs, lines, namespace)


def _reverse(sweeps: Sweeps, y: Any, kept: Kept) -> Callable[..., Any] | None:
    if len(sweeps.bars) != 1:
        return None
    namespace: dict[str, Any] = {}
    program = sweeps.passes.reverse
    changes = written_parameters(program)[-1]
    take = _of_cotangent(y, namespace, changes=changes)
    if take is None:
        return None
    given = ["bar"] if type(y) is np.ndarray and not changes else []
    return _pass(sweeps, program, sweeps.reverse.function, kept, take, given, namespace)


def _reverse_together(
    sweeps: Sweeps, y: Any, kept: Kept, leaves: list[Any], count: int
) -> Callable[..., Any] | None:
    """The same of several cotangents, the rows of an array that is in C order."""
    pushed = sweeps.pushed(count) if len(sweeps.bars) == 1 else None
    if pushed is None or not isinstance(y, (np.ndarray, *_NUMBERS)):
        return None
    run, program, constants = pushed
    results = [np.empty(0) for _ in program.block.results]
    structure = flatten(sweeps.cotangents(results))[0]
    if len(structure) != len(leaves) or not all(any(x is r for r in results) for x in structure):
        return None  # some are zeros, of which there are as many
    changes = written_parameters(program)[len(kept.values)]
    namespace: dict[str, Any] = {"dtype": sweeps.bars[0].dtype, "count": count}
    is_like = "bar.dtype == dtype and bar.shape == (count, *pullback._flat.shapes[0])"
    take = [f"if not ({is_like} and bar.flags.c_contiguous):", "    return miss"]
    take += ["bar = bar.copy()"] if changes else []
    given = [] if changes else ["bar"]
    return _pass(sweeps, program, run.function, kept, take, given, namespace, constants)


def _pass(
    sweeps: Sweeps,
    program: Program,
    run: Callable[..., Any],
    kept: Kept,
    take: list[str],
    given: list[str],
    namespace: dict[str, Any],
    constants: Sequence[np.ndarray] = (),
) -> Callable[..., Any] | None:
    """A function of a pullback and what ``take`` makes ``bar``; ``given`` it leaves as it is."""
    passes = sweeps.passes
    if kept.restored_by_logs(program):
        return None
    if passes.stacks and not hasattr(run, "direct"):  # NumPy would be given a compiled stack
        return None
    namespace |= {"ndarray": np.ndarray, "shadowed": SHADOWED, "miss": MISS}
    names = [f"x{k}" for k in range(len(kept.values))]
    fixed = [f"c{k}" for k in range(len(constants))]
    namespace |= dict(zip(fixed, constants, strict=True))
    arrays = [name for name, x in zip(names, kept.values, strict=True) if type(x) is np.ndarray]
    values, copies = apart_lines(program, len(program.block.results), [*arrays, *fixed, *given])
    cotangents = sweeps.rebuild.text([*["None"] * passes.values, *values], namespace, 1)
    if cotangents is None:
        return None
    lines = ["if shadowed:", "    return miss", *take, *_of_kept(sweeps, names, namespace)]
    # what has raised runs in full: it has changed nothing
    raises = ("except Exception:", "    return miss")
    lines += call_lines(run, [*names, "bar", *fixed], namespace, raises)
    lines += [*copies, f"return {cotangents}"]
    return _defined(program, ["pullback", "bar"], lines, namespace)


def _of_cotangent(y: Any, namespace: dict[str, Any], *, changes: bool) -> list[str] | None:
    """The lines that take a cotangent of y in y's type, copied if the reverse pass changes it."""
    if type(y) is np.ndarray:
        namespace |= {"dtype": y.dtype}
        is_like = "bar.dtype == dtype and bar.shape == pullback._flat.shapes[0]"
        lines = [f"if not (type(bar) is ndarray and {is_like}):", "    return miss"]
        return [*lines, "bar = bar.copy()"] if changes else lines
    if type(y) not in _NUMBERS:
        return None
    namespace |= {"numbers": (float, np.float64), "number": type(y)}
    return ["if type(bar) not in numbers:", "    return miss", "bar = number(bar)"]


def _of_kept(sweeps: Sweeps, names: list[str], namespace: dict[str, Any]) -> list[str]:
    """The lines that take what is kept, with copies of what the reverse pass changes."""
    passes = sweeps.passes
    lines = [f"{', '.join(names)}, = pullback._values"] if names else []
    if passes.written:
        namespace["written"] = passes.written
        written = ", ".join(names[k] for k in passes.written)
        lines += ["own = pullback._kept.copies_of(written)", "if own is None:", "    return miss",
                  f"{written}, = own"]  # fmt: skip
    for k, use in passes.stacks.items():
        lines += [f"if type({names[k]}) is not tuple:", "    return miss"]
        if use.deep or use.grows:
            namespace |= {"own_stack": own_stack, f"use{k}": use}
            lines.append(f"{names[k]} = own_stack({names[k]}, use{k})")
    return lines


def _defined(
    program: Program, inputs: list[str], lines: list[str], namespace: dict[str, Any]
) -> Callable[..., Any]:
    text = "\n".join([f"def run_pass({', '.join(inputs)}):", *(f"    {x}" for x in lines)]) + "\n"
    filename = f"<fwdad pass of {program.name} {abs(hash(text)):x}>"
    return define(text, filename, namespace, "run_pass")
