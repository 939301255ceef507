"""A reversible function's program, and the source written for it in each direction."""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from fwdad.errors import IrreversibleError
from fwdad.frontend.syntax.frame import WORLD
from fwdad.reversible.arguments.kinds import Function, Kind, Other
from fwdad.reversible.arguments.records import flat_kinds
from fwdad.reversible.containers.container import FIRST_ROOM
from fwdad.reversible.language.instructions import instruction_of
from fwdad.reversible.language.invert import inverted_program
from fwdad.reversible.language.parser import parse, read
from fwdad.reversible.language.places import text
from fwdad.reversible.language.program import Block, Call, Program, local_names
from fwdad.reversible.language.static_checks import check
from fwdad.reversible.language.syntax import location, outside, place_outside
from fwdad.reversible.lowering.adjoint import AdjointWriter
from fwdad.reversible.lowering.call_resolution import World, resolved, value_paths, world_of
from fwdad.reversible.lowering.calls import is_value
from fwdad.reversible.lowering.effects import touches, updated_paths
from fwdad.reversible.lowering.expressions import Expressions, infer_kinds
from fwdad.reversible.lowering.record_fields import flattened
from fwdad.reversible.lowering.source import Names, Source, make_function
from fwdad.reversible.lowering.writer import Writer
from fwdad.reversible.numbers.grid import Grid

_MISSING = object()


@dataclass(eq=False)
class Written:
    """A program written as source for some kinds, in one direction; what it calls is in ``calls``.

    ``function`` is None while it is being written.
    """

    name: str
    code: str = ""
    function: Any = None
    calls: list[Written] = field(default_factory=list)
    links: list[tuple[dict[str, Any], str]] = field(default_factory=list)


class Definition:
    """A program, its world, and the source written for it; shared by a function and its inverse.

    Names from outside mean what they mean when it runs. Where they mean another function, or
    another kind of number, the source is dropped. ``version`` counts how often it became stale;
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
        self.local = local_names(self.forward)
        self.held = {n: outside(self.f, n, _MISSING) for n in self.forward.names - self.local}
        self.baked: list[tuple[ast.expr, Any]] = []  # attributes that are called
        self.defaults: dict[str, Any] = {}
        self.uses: dict[Definition, int] = {}
        self.written: dict[Any, Written] = {}
        self.spaces: list[dict[str, Any]] = []
        self.programs: dict[World, Program] = {}
        self.updates: dict[World, set[str]] = {}
        self.positions: dict[tuple[Kind, ...], set[int]] = {}
        self.guess: tuple[World, set[str]] | None = None

    # -- the world outside

    def refresh(self) -> None:
        """Notice what the user's names mean now; drop what was written for other meanings."""
        if not self.stands(set()):
            self._begin()
            self.version += 1

    def make_room(self, seen: set[Definition]) -> bool:
        """Have more room in stacks and dictionaries without a capacity; whether there are any."""
        if self in seen:
            return False
        seen.add(self)
        found = self.forward.grows
        for d in list(self.uses):
            found |= d.make_room(seen)
        if self.forward.grows:
            self.room *= 2
            self._begin()
            self.version += 1
        return found

    def stands(self, seen: set[Definition]) -> bool:
        """Whether the source is valid, and that of what it calls, except those already seen."""
        if self in seen:
            return True
        seen.add(self)
        for name, held in self.held.items():
            now = outside(self.f, name, _MISSING)
            if now is held:
                continue
            if not _alike(now, held):
                return False
            self.held[name] = now
            for space in self.spaces:
                space[name] = now
        if any(self._evaluated(node) is not f for node, f in self.baked):
            return False
        return all(d.version == v and d.stands(seen) for d, v in self.uses.items())

    def _evaluated(self, node: ast.expr) -> Any:
        try:
            return eval(text(node), {"__builtins__": builtins, **self.names()})  # noqa: S307  (a name in the user's source)
        except (NameError, AttributeError):
            return None

    def names(self) -> dict[str, Any]:
        """What the user's names mean."""
        return {n: x for n, x in self.held.items() if x is not _MISSING}

    def meaning(self, node: ast.expr) -> Any:
        """What a function of the world outside is; None if there is none."""
        if isinstance(node, ast.Name):
            found = self.held.get(node.id, _MISSING)
            return None if found is _MISSING else found
        found = self._evaluated(node)
        self.baked.append((node, found))
        return found

    def assumed(self, seen: set[Definition]) -> Iterator[tuple[Any, Any]]:
        """What tapes assume not to be replaced: places, and what stands there."""
        if self in seen:
            return
        seen.add(self)
        for name, held in self.held.items():
            path = place_outside(self.f, name)
            kept = (
                isinstance(held, (Grid, type))
                or hasattr(held, "definition")
                or instruction_of(held) is not None
            )
            if path is not None and kept:
                yield path, held
        for node, f in self.baked:
            if isinstance(node, ast.Attribute):
                yield ("attribute", self._evaluated(node.value), node.attr), f
        if self.forward.grows:
            yield ("attribute", self, "room"), self.room
        for d in self.uses:
            yield from d.assumed(seen)

    def place(self, name: str) -> Any:
        """The place of a name of generated code in the user's world; None for our own names."""
        return place_outside(self.f, name) if name in self.held else None

    def named(self, taken: set[str], name: str, value: Any) -> ast.expr:
        """A name in generated code for the default value of a parameter."""
        while name in taken or self.defaults.get(name, value) is not value:
            name += "_"
        taken.add(name)
        self.defaults[name] = value
        return ast.Name(name, ast.Load())

    # -- calls, and what is updated

    def resolved(self, world: World) -> Program:
        """The program for these functions and classes among its arguments."""
        found = self.programs.get(world)
        if found is None:
            found = self.programs[world] = resolved(self, self.forward, world)
        return found

    def updated(self, kinds: tuple[Kind, ...]) -> set[int]:
        """The positions of the values that are updated, among those that its source is given."""
        found = self.positions.get(kinds)
        if found is None:
            known = dict(zip(self.forward.params, kinds, strict=True))
            written = self.updated_paths(world_of(known))
            paths = [path for p, kind in known.items() for path in value_paths(p, kind)]
            found = {at for at, path in enumerate(paths) if touches(written, path)}
            self.positions[kinds] = found
        return found

    def updated_paths(self, world: World, caller: Definition | None = None) -> set[str]:
        """The parameters, and fields of them, that are updated.

        For a function that calls itself this is the least fixed point: its calls are first assumed
        to update nothing.
        """
        known = self.updates.get(world)
        if known is not None:
            return known
        if self.guess is not None:
            if caller is self and self.guess[0] == world:
                return self.guess[1]
            return set(self.forward.params)  # functions that call one another: anything may be
        self.refresh()
        self.guess = world, set()
        try:
            while True:
                found = updated_paths(self, self.resolved(world).body, dict(world))
                found = {p for p in found if p.partition(".")[0] in self.forward.params}
                if found == self.guess[1]:
                    break
                self.guess = world, found
        finally:
            self.guess = None
        self.updates[world] = found
        return found

    def source(self, kinds: tuple[Kind, ...], inverse: bool, adjoint: bool) -> Written:
        """The function that runs for these kinds of arguments."""
        key = (kinds, inverse, adjoint)
        found = self.written.get(key)
        if found is None:
            found = self._write(key, kinds, inverse, adjoint)
        return found

    def _write(self, key: Any, kinds: tuple[Kind, ...], inverse: bool, adjoint: bool) -> Written:
        program = self.backward if inverse else self.forward
        if len(kinds) != len(program.params):
            message = (
                f"{self.forward.name} takes {len(program.params)} arguments "
                f"({', '.join(program.params)}); got {len(kinds)}"
            )
            raise TypeError(message)
        name = program.name + ("_adjoint" if adjoint else "")
        others = {n for n, x in self.held.items() if getattr(x, "definition", None) is not self}
        written = self.written[key] = Written(Names(others).fresh(name))
        try:
            self._fill(written, program, kinds, adjoint)
        except BaseException:  # half of a function must not be found
            del self.written[key]
            raise
        return written

    def _fill(
        self, written: Written, program: Program, kinds: tuple[Kind, ...], adjoint: bool
    ) -> None:
        known = dict(zip(program.params, kinds, strict=True))
        world = world_of(known)
        forward = self.resolved(world)
        back = program is self.backward
        program = inverted_program(forward, program.name) if back else forward
        program, forward = flattened(program, known), flattened(forward, known)
        namespace = {"__name__": self.f.__module__, WORLD: self.place, **self.names()}
        namespace |= self.defaults
        for name, kind in known.items():
            if isinstance(kind, (Function, Other)):
                namespace[name] = kind.value
        self.spaces.append(namespace)
        known_before = Source(forward, known, dict(namespace), checked=self.checked)
        infer_kinds(forward, Expressions(known_before))
        source = Source(program, known, namespace, checked=self.checked)
        functions = dict(world_of(known))  # those among fields have names of their own now

        def updated_in(block: Block) -> set[str]:
            return {path.partition(".")[0] for path in updated_paths(self, block, functions)}

        writing = Expressions(source), functools.partial(self._called, written, source), updated_in
        values = [p for p in program.params if is_value(known[p])]
        updated = self.updated(kinds)
        params = list(values)
        results = [p for k, p in enumerate(values) if k in updated and not known[p].is_array]
        helpers = ""
        if adjoint:
            backwards = AdjointWriter(source, *writing, tolerance=self.tolerance)
            source.names.taken.add(written.name)
            bars = backwards.cotangents.bars
            active = [p for p in values if known[p].active]
            params += [bars[p] for p in active]
            results += [bars[p] for p in active if not known[p].is_array]
            backwards.block(program.body)
            helpers = "".join(backwards.cotangents.helpers)
        else:
            source.names.taken.add(written.name)
            Writer(source, *writing, tolerance=self.tolerance).block(program.body)
        if results:
            source.line(f"return {', '.join(results)}")
        elif all(line.lstrip().startswith("#") for line in source.lines):
            source.line("pass")
        body = "\n".join(source.lines)
        code = f"def {written.name}({', '.join(params)}):\n{body}\n"
        written.function = make_function(code, written.name, namespace)
        written.code = helpers + code
        for there, name in written.links:
            there[name] = written.function

    def whole(self, kinds: tuple[Kind, ...], inverse: bool, adjoint: bool) -> Written:
        """The source without side effects: it copies what it updates, and returns only that.

        With ``adjoint`` it takes all values and the cotangents of those that are updated, and
        returns the cotangents of all numbers and arrays that have one.
        """
        key = (kinds, inverse, adjoint, "whole")
        found = self.written.get(key)
        if found is not None:
            return found
        inner = self.source(kinds, inverse, adjoint)
        code = inner.code[inner.code.index(f"def {inner.name}(") :]
        node = ast.parse(code).body[0]
        params = [a.arg for a in node.args.args]  # type: ignore[attr-defined]
        last = node.body[-1]  # type: ignore[attr-defined]
        values = flat_kinds(kinds)
        updated = self.updated(kinds)
        count = len(values)
        lines = [
            f"    {params[k]} = {params[k]}.copy()" for k in sorted(updated) if values[k].is_array
        ]
        given = params[:count]
        answer = [params[k] for k in sorted(updated)]
        if adjoint:
            active = [k for k, kind in enumerate(values) if kind.active]
            answer = params[count:]
            for k, bar in zip(active, answer, strict=True):
                if k not in updated:
                    lines.append(f"    {bar} = {_zero(values[k], params[k])}")
                    continue
                given.append(bar)
                if values[k].is_array:
                    lines.append(f"    {bar} = {bar}.copy()")
        call = f"{inner.name}({', '.join(params)})"
        if isinstance(last, ast.Return) and last.value is not None:
            call = f"{ast.unparse(last.value).strip('()')} = {call}"
        lines += [f"    {call}", f"    return ({', '.join(answer)}{',' if answer else ''})"]
        name = f"{inner.name}_of_copies"
        code = f"def {name}({', '.join(given)}):\n" + "\n".join(lines) + "\n"
        namespace = {"__name__": self.f.__module__, WORLD: self.place, "np": np}
        namespace[inner.name] = inner.function
        made = self.written[key] = Written(name, code)
        made.function = make_function(code, name, namespace)
        return made

    def _called(
        self,
        caller: Written,
        source: Source,
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
                f"'{text(s.function)}' is no reversible function: as a statement only those, "
                "registered instructions and the words of the language can be called"
            )
            raise IrreversibleError(message, location(self.forward.filename, s.node))
        inverse ^= f.inverse
        definition = f.definition
        definition.refresh()
        self.uses[definition] = definition.version
        written = definition.source(tuple(kinds), inverse, adjoint)
        caller.calls.append(written)
        name = source.names.fresh(written.name)
        source.namespace[name] = written.function
        if written.function is None:
            written.links.append((source.namespace, name))
        return name, definition.updated(tuple(kinds))


def _zero(kind: Kind, name: str) -> str:
    """The source of a cotangent of zero."""
    if kind.is_array:
        return f"np.zeros_like({name})"
    return "0j" if kind.is_complex else "0.0"


def _alike(now: Any, held: Any) -> bool:
    """Whether source written for one meaning of a name is valid for another."""
    if type(now) is not type(held):
        return False
    if isinstance(now, np.ndarray):
        return now.dtype == held.dtype and now.ndim == held.ndim
    return isinstance(now, (float, complex, np.inexact))
