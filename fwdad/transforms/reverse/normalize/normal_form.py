"""The normal form of a program that is to be reversed."""

from __future__ import annotations

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Block
from fwdad.transforms.reverse.normalize.copy_insertion import insert_copies
from fwdad.transforms.reverse.normalize.lowering import lower
from fwdad.transforms.reverse.normalize.view_phis import lower_view_phis


def normalize(recorder: Recorder, block: Block) -> None:
    """Bring a block, which must be the caller's own, into the normal form."""
    lower(recorder, block)
    lower_view_phis(block, rows=recorder.rows)
    insert_copies(block)
