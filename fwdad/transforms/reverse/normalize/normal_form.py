"""The normal form of a program that is to be reversed."""

from __future__ import annotations

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Block, Program
from fwdad.transforms.passes.hoist import hoist
from fwdad.transforms.reverse.normalize.copy_insertion import insert_copies
from fwdad.transforms.reverse.normalize.induction import write_affine
from fwdad.transforms.reverse.normalize.lowering import lower
from fwdad.transforms.reverse.normalize.sealed_calls import open_calls
from fwdad.transforms.reverse.normalize.view_phis import lower_view_phis


def normalize(recorder: Recorder, block: Block) -> None:
    """Bring a block, which must be the caller's own, into the normal form."""
    open_calls(block)
    write_affine(block)
    hoist(Program("", block, own=True), loads=True)
    lower(recorder, block)
    lower_view_phis(block, rows=recorder.rows)
    insert_copies(block)
