"""The sweep: what all parts of a reverse pass share, and how far the pass has come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Loop, Op, Operand, Value, map_values
from fwdad.ir.primitives.stacks import new_stack
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Type
from fwdad.transforms.reverse.normalize.array_phis import Choices
from fwdad.transforms.reverse.region import Region
from fwdad.transforms.reverse.structure import NotReversibleError, Structure


class Setting(NamedTuple):
    """What the reversed program is to another one.

    ``in_loop``: a part of it, inside a loop. ``is_called``: called by it; ``restores``: its reverse
    pass restores what it overwrites in its arguments.
    """

    in_loop: bool = False
    is_called: bool = False
    restores: bool = False


ALONE = Setting()


class Sweep:
    """The reverse pass of a program, from its last operation to its first.

    ``region`` is that of the whole program.

    Attributes
    ----------
    region : Region
        The region that is open.
    op : Op or None
        The operation that is being reversed.
    stacks : list of Op
        The operations that make stacks, which precede the forward pass.
    """

    def __init__(
        self,
        recorder: Recorder,
        structure: Structure,
        choices: Choices,
        region: Region,
        setting: Setting,
    ) -> None:
        self.recorder = recorder
        self.structure = structure
        self.choices = choices
        self.region = region
        self.setting = setting
        self.op: Op | None = None
        self.stacks: list[Op] = []

    def fail(self, what: str) -> NoReturn:
        """Refuse the operation that is being reversed."""
        location = self.op.location if self.op is not None else None
        raise NotReversibleError(what, location)

    def fail_names(self, v: Value, what: str) -> NoReturn:
        """Refuse a name that stands for one array or another, which is written."""
        name = f"`{v.name}`: " if v.name else ""
        self.fail(f"{name}{what}. Where one name takes another's array, write `a = b.copy()`")

    def symbols(self, operand: Operand) -> Any:
        """A structure of operands as symbols."""
        return map_values(lambda v: Symbol(v, self.recorder), operand)

    @contextmanager
    def writing(self, region: Region) -> Iterator[None]:
        """Write into a region."""
        outer, block = self.region, self.recorder.block
        self.region, self.recorder.block = region, region.block
        try:
            yield
        finally:
            self.region, self.recorder.block = outer, block

    def home_of(self, v: Value) -> Region:
        """The region of the block that defines a value."""
        region: Region | None = self.region
        source = self.structure.home[v]
        while region is not None:
            if region.source is source:
                return region
            region = region.parent
        return self.fail_names(
            v, "an array that a branch or a loop makes, and that is written outside"
        )

    def is_inside_loop(self) -> bool:
        """Whether the open region is inside a loop, not counting calls, which run once."""
        region: Region | None = self.region
        while region is not None:
            if isinstance(region.owner, Loop) and not region.owner.sealed:
                return True
            region = region.parent
        return self.setting.in_loop

    def new_stack(self, of: Type, name: str | None) -> Value:
        """A stack, of a type of stacks, that exists before the forward pass begins."""
        stack = Value(of, name)
        self.stacks.append(Apply(new_stack, (), outputs=(stack,)))
        return stack
