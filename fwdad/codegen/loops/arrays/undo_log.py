"""The reverse pass's undo log in the Numba source: old values of elements, and their addresses."""

from __future__ import annotations

from fwdad.codegen.loops.arrays.functions import handles
from fwdad.codegen.loops.notation import length_text, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.ir.ops import Apply, Operand, Value
from fwdad.ir.primitives.undo_log import note
from fwdad.ir.types import INT


@handles(note)
def _note(
    w: Parts,
    op: Apply,
    addresses: Value,
    contents: Value,
    height: Value,
    a: Value,
    *index: Operand,
) -> None:
    array, counter = w.operands.array(a), w.names.temporary("noted", INT)
    log = [w.operands.array(x) for x in (addresses, contents, height)]
    w.code.line(f"{counter} = {log[2]}[0]", op)
    view, shape = w.stores.view_of(a, index)
    if not shape:
        place = w.operands.scalar_index(index, a)
        _note_element(w, log, counter, array, place)
    else:
        name = w.names.temporary("view")
        w.code.line(f"{name} = {view}")
        with w.loops.nest(
            [length_text(d, name, k) for k, d in enumerate(shape)], inner=True
        ) as loop:
            _note_element(w, log, counter, name, subscript(loop))
            w.code.line(f"{counter} += 1")
    w.code.line(f"{log[2]}[0] = {counter}{'' if shape else ' + 1'}")


def _note_element(w: Parts, log: list[str], counter: str, array: str, index: str) -> None:
    addresses, contents, _ = log
    w.code.line(f"{addresses}[{counter}] = {w.helpers.use('address_of')}({array}, ({index},))")
    w.code.line(f"{contents}[{counter}] = {array}[{index}]")
