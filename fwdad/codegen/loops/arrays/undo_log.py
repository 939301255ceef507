"""The reverse pass's undo log in the Numba source: old values of elements, and their addresses."""

from __future__ import annotations

from typing import Any

from fwdad.codegen.loops.arrays.functions import handles, length_text
from fwdad.ir.ops import Apply, Operand, Value
from fwdad.ir.primitives.undo_log import note
from fwdad.ir.types import INT

Writer = Any


@handles(note)
def _note(
    w: Writer,
    op: Apply,
    addresses: Value,
    contents: Value,
    height: Value,
    a: Value,
    *index: Operand,
) -> None:
    array, counter = w.array(a), w.temporary("noted", INT)
    log = [w.array(x) for x in (addresses, contents, height)]
    w.line(f"{counter} = {log[2]}[0]", op)
    view, shape = w.view_of(a, index)
    if not shape:
        place = w.scalar_index(index, a)
        _note_element(w, log, counter, array, place)
    else:
        name = w.temporary("view")
        w.line(f"{name} = {view}")
        loop = w.open_loops([length_text(d, name, k) for k, d in enumerate(shape)], inner=True)
        _note_element(w, log, counter, name, w.at(loop))
        w.line(f"{counter} += 1")
        w.close_loops(loop)
    w.line(f"{log[2]}[0] = {counter}{'' if shape else ' + 1'}")


def _note_element(w: Writer, log: list[str], counter: str, array: str, index: str) -> None:
    addresses, contents, _ = log
    w.line(f"{addresses}[{counter}] = {w.help('address_of')}({array}, ({index},))")
    w.line(f"{contents}[{counter}] = {array}[{index}]")
