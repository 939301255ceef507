"""A reversible function's program, and what it is lowered to in each direction."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from fwdad.errors import IrreversibleError
from fwdad.frontend.syntax.frame import WORLD
from fwdad.reversible.arguments.kinds import Kind, is_value
from fwdad.reversible.arguments.records import flat_kinds
from fwdad.reversible.containers.container import FIRST_ROOM
from fwdad.reversible.language.invert import inverted_program
from fwdad.reversible.language.parser import parse, read
from fwdad.reversible.language.places import text
from fwdad.reversible.language.program import Block, Call, Program, local_names
from fwdad.reversible.language.static_checks import check
from fwdad.reversible.language.syntax import location
from fwdad.reversible.lowering.adjoint import AdjointWriter
from fwdad.reversible.lowering.call_resolution import World, resolved, value_paths, world_of
from fwdad.reversible.lowering.copies import on_copies
from fwdad.reversible.lowering.effects import touches, updated_paths
from fwdad.reversible.lowering.expressions import Expressions, infer_kinds
from fwdad.reversible.lowering.function_builder import FunctionBuilder, Names, define_function
from fwdad.reversible.lowering.outside import Outside
from fwdad.reversible.lowering.record_fields import flattened
from fwdad.reversible.lowering.writer import Writer


@dataclass(eq=False)
class Lowered:
    """A program as a Python function for some kinds, in one direction.

    ``function`` is None while it is being written.
    """

    name: str
    function: Any = None
    definition: ast.FunctionDef = field(init=False)
    links: list[tuple[dict[str, Any], str]] = field(default_factory=list)


class Definition:
    """A program, its world, and what it is lowered to; shared by a function and its inverse.

    Names from outside mean what they mean when it runs. Where they mean another function, or
    another kind of number, what was lowered is dropped. ``version`` counts how often that was;
    ``room`` is the capacity of stacks and dictionaries without one of their own.
    """

    def __init__(self, f: FunctionType, *, checked: bool, tolerance: float) -> None:
        self.f = f
        self.checked = checked
        self.tolerance = tolerance
        self.node = read(f)
        self.version = 0
        self.room = FIRST_ROOM
        self._begin()

    def _begin(self) -> None:
        """Read the function, with what names from outside mean now."""
        self.forward = parse(self.f, self.node, self.room)
        check(self.forward)
        self.backward = inverted_program(self.forward, f"{self.f.__name__}_inverse")
        self.outside = Outside(self.f, self.forward.names, local_names(self.forward))
        self.uses: dict[Definition, int] = {}
        self.lowerings: dict[Any, Lowered] = {}
        self.programs: dict[World, Program] = {}
        self.updates: dict[World, set[str]] = {}
        self.positions: dict[tuple[Kind, ...], set[int]] = {}
        self.guess: tuple[World, set[str]] | None = None

    # -- the world outside

    def refresh(self) -> None:
        """Notice what the user's names mean now; drop what was lowered for other meanings."""
        if not self.stands(set()):
            self._begin()
            self.version += 1

    def make_room(self, seen: set[Definition]) -> bool:
        """Have more room in stacks and dictionaries without a capacity; whether there are any."""
        if self in seen:
            return False
        seen.add(self)
        grows = self.forward.grows
        for d in list(self.uses):
            grows |= d.make_room(seen)
        if self.forward.grows:
            self.room *= 2
            self._begin()
            self.version += 1
        return grows

    def stands(self, seen: set[Definition]) -> bool:
        """Whether what was lowered is valid, and what it calls, except those already seen."""
        if self in seen:
            return True
        seen.add(self)
        if not self.outside.stands():
            return False
        return all(d.version == v and d.stands(seen) for d, v in self.uses.items())

    def assumed(self, seen: set[Definition]) -> Iterator[tuple[Any, Any]]:
        """What tapes assume not to be replaced: places, and what stands there."""
        if self in seen:
            return
        seen.add(self)
        yield from self.outside.assumed()
        if self.forward.grows:
            yield ("attribute", self, "room"), self.room
        for d in self.uses:
            yield from d.assumed(seen)

    # -- calls, and what is updated

    def resolved(self, world: World) -> Program:
        """The program for these functions and classes among its arguments."""
        program = self.programs.get(world)
        if program is None:
            program = self.programs[world] = resolved(self.outside, self.forward, world)
        return program

    def updated(self, kinds: tuple[Kind, ...]) -> set[int]:
        """The positions of the values that are updated, among those that are passed to it."""
        positions = self.positions.get(kinds)
        if positions is None:
            known = dict(zip(self.forward.params, kinds, strict=True))
            updated = self.updated_paths(world_of(known))
            paths = [path for p, kind in known.items() for path in value_paths(p, kind)]
            positions = {at for at, path in enumerate(paths) if touches(updated, path)}
            self.positions[kinds] = positions
        return positions

    def updated_paths(self, world: World, caller: Outside | None = None) -> set[str]:
        """The parameters, and fields of them, that are updated.

        For a function that calls itself this is the least fixed point: its calls are first assumed
        to update nothing.
        """
        known = self.updates.get(world)
        if known is not None:
            return known
        if self.guess is not None:
            if caller is self.outside and self.guess[0] == world:
                return self.guess[1]
            return set(self.forward.params)  # functions that call one another: anything may be
        self.refresh()
        self.guess = world, set()
        try:
            while True:
                paths = updated_paths(self.outside, self.resolved(world).body, dict(world))
                paths = {p for p in paths if p.partition(".")[0] in self.forward.params}
                if paths == self.guess[1]:
                    break
                self.guess = world, paths
        finally:
            self.guess = None
        self.updates[world] = paths
        return paths

    def lowered(self, kinds: tuple[Kind, ...], inverse: bool, adjoint: bool) -> Lowered:
        """The function that runs for these kinds of arguments."""
        key = (kinds, inverse, adjoint)
        lowered = self.lowerings.get(key)
        if lowered is None:
            lowered = self._lower(key, kinds, inverse, adjoint)
        return lowered

    def _lower(self, key: Any, kinds: tuple[Kind, ...], inverse: bool, adjoint: bool) -> Lowered:
        program = self.backward if inverse else self.forward
        if len(kinds) != len(program.params):
            message = (
                f"{self.forward.name} takes {len(program.params)} arguments "
                f"({', '.join(program.params)}); got {len(kinds)}"
            )
            raise TypeError(message)
        name = program.name + ("_adjoint" if adjoint else "")
        meanings = self.outside.meanings
        others = {n for n, x in meanings.items() if getattr(x, "definition", None) is not self}
        lowered = self.lowerings[key] = Lowered(Names(others).fresh(name))
        try:
            self._fill(lowered, program, kinds, adjoint)
        except BaseException:  # half of a function must not be found
            del self.lowerings[key]
            raise
        return lowered

    def _fill(
        self, lowered: Lowered, program: Program, kinds: tuple[Kind, ...], adjoint: bool
    ) -> None:
        """Lower a program for some kinds of arguments, and define the function."""
        known = dict(zip(program.params, kinds, strict=True))
        forward = self.resolved(world_of(known))
        back = program is self.backward
        program = inverted_program(forward, program.name) if back else forward
        program, forward = flattened(program, known), flattened(forward, known)
        namespace = self._namespace(known)
        read_only = FunctionBuilder(forward, known, dict(namespace), checked=self.checked)
        infer_kinds(forward, Expressions(read_only))
        builder = FunctionBuilder(program, known, namespace, checked=self.checked)
        outside, functions = self.outside, dict(world_of(known))  # fields are variables now

        def updated_in(block: Block) -> set[str]:
            return {path.partition(".")[0] for path in updated_paths(outside, block, functions)}

        callee = functools.partial(self._called, builder)
        writing = Expressions(builder), callee, updated_in
        values = [p for p in program.params if is_value(known[p])]
        updated = self.updated(kinds)
        params = list(values)
        results = [p for k, p in enumerate(values) if k in updated and not known[p].is_array]
        if adjoint:
            backwards = AdjointWriter(builder, *writing, tolerance=self.tolerance)
            builder.names.taken.add(lowered.name)
            bars = backwards.cotangents.bars
            active = [p for p in values if known[p].active]
            params += [bars[p] for p in active]
            results += [bars[p] for p in active if not known[p].is_array]
            backwards.block(program.body)
        else:
            builder.names.taken.add(lowered.name)
            Writer(builder, *writing, tolerance=self.tolerance).block(program.body)
        lowered.definition = builder.function(lowered.name, params, results)
        lowered.function = define_function(lowered.definition, namespace, builder.locations)
        for there, name in lowered.links:
            there[name] = lowered.function

    def _namespace(self, kinds: dict[str, Kind]) -> dict[str, Any]:
        """The namespace of generated code: the world outside, and arguments without numbers."""
        namespace = {"__name__": self.f.__module__, WORLD: self.outside.place}
        namespace |= self.outside.known() | self.outside.defaults
        namespace |= {name: kind.value for name, kind in kinds.items() if not is_value(kind)}
        self.outside.namespaces.append(namespace)
        return namespace

    def pure(self, kinds: tuple[Kind, ...], inverse: bool, adjoint: bool) -> Lowered:
        """The function without side effects: it copies what it updates, and returns only that.

        With ``adjoint`` it takes all values and the cotangents of those that are updated, and
        returns the cotangents of all numbers and arrays that have one.
        """
        key = (kinds, inverse, adjoint, "pure")
        pure = self.lowerings.get(key)
        if pure is not None:
            return pure
        inner = self.lowered(kinds, inverse, adjoint)
        name, updated = f"{inner.name}_of_copies", self.updated(kinds)
        definition = on_copies(name, inner.definition, flat_kinds(kinds), updated, adjoint=adjoint)
        namespace = {"__name__": self.f.__module__, WORLD: self.outside.place, "np": np}
        namespace[inner.name] = inner.function
        function = define_function(definition, namespace)
        pure = self.lowerings[key] = Lowered(name, function)
        return pure

    def _called(
        self,
        builder: FunctionBuilder,
        s: Call,
        kinds: list[Kind],
        *,
        inverse: bool,
        adjoint: bool,
    ) -> tuple[str, set[int]]:
        """What a call in a program calls: the name of its function, and what it updates."""
        f = s.meant
        if f is None:
            message = (
                f"'{text(s.function)}' is not a reversible function: a statement can call only "
                "those, registered instructions and the keywords of the language"
            )
            raise IrreversibleError(message, location(self.forward.filename, s.node))
        inverse ^= f.inverse
        definition = f.definition
        definition.refresh()
        self.uses[definition] = definition.version
        lowered = definition.lowered(tuple(kinds), inverse, adjoint)
        name = builder.names.fresh(lowered.name)
        builder.namespace[name] = lowered.function
        if lowered.function is None:
            lowered.links.append((builder.namespace, name))
        return name, definition.updated(tuple(kinds))
