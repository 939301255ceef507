"""Checks of a reversible program before it runs: whether each statement has an inverse."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from fwdad.errors import IrreversibleError
from fwdad.reversible.language.aliasing import overlap
from fwdad.reversible.language.places import index_reads, reads, text
from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Call,
    Compute,
    Define,
    For,
    Free,
    If,
    Instruct,
    Program,
    Statement,
    Swap,
    Unchecked,
    Update,
    While,
    local_names,
    read_expressions,
    root_of,
    walk,
    written_places,
    written_roots,
)
from fwdad.reversible.language.syntax import location


def check(program: Program) -> None:
    """Raise if a program cannot be inverted; note in it the checks that only a run can make."""
    _Checker(program).run()


def check_call(program: Program, s: Call) -> None:
    """Check that the arguments of a call are apart: a method's owner is one of them."""
    s.apart = []
    _Checker(program).arguments(s)


class _Checker:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = local_names(program)
        self.live = set(program.params)
        self.constant: dict[str, str] = {}

    def run(self) -> None:
        self.block(self.program.body, [])
        left = self.live - set(self.program.params)
        for s in walk(self.program.body):
            if isinstance(s, Allocate) and s.variable.name in left:
                message = f"ancilla '{s.variable.name}' is never freed"
                raise self.refuse(message, s.node)

    def refuse(self, message: str, node: ast.AST) -> IrreversibleError:
        return IrreversibleError(message, location(self.program.filename, node))

    def block(self, block: Block, after: Block) -> None:
        """A block, and what runs behind it while its names still hold."""
        for s in block:
            self.statement(s, after)

    def statement(self, s: Statement, after: Block) -> None:
        for place in written_places(s):
            self.written(place, s)
        for expression in read_expressions(s):
            self.read(expression)
        rule = getattr(self, f"_{type(s).__name__.lower()}", None)
        if rule is not None:
            rule(s, after)

    def _update(self, s: Update, _after: Block) -> None:
        self.separate(s, s.place, [*reads(s.value, self.names), *self.indices(s.place)], "+=")

    def _swap(self, s: Swap, _after: Block) -> None:
        indices = [*self.indices(s.a), *self.indices(s.b)]
        self.separate(s, s.a, [s.b, *indices], "swap")
        self.separate(s, s.b, indices, "swap")

    def _allocate(self, s: Allocate, _after: Block) -> None:
        if s.variable.name in self.live:
            message = f"ancilla '{s.variable.name}' is not freed before it begins again"
            raise self.refuse(message, s.node)
        self.live.add(s.variable.name)

    def _free(self, s: Free, _after: Block) -> None:
        if s.variable.name in {root for root, _ in self.roots(s.value)}:
            message = f"'{s.variable.name}' cannot be freed with a value that depends on itself"
            raise self.refuse(message, s.node)
        self.live.discard(s.variable.name)

    def _if(self, s: If, _after: Block) -> None:
        self.block(s.body, [])
        self.block(s.orelse, [])

    def _while(self, s: While, _after: Block) -> None:
        self.block(s.body, [])

    def _unchecked(self, s: Unchecked, after: Block) -> None:
        self.block(s.body, after)

    def _compute(self, s: Compute, _after: Block) -> None:
        before = set(self.live)
        self.block(s.body, s.inside)
        self.block(s.inside, [])
        self.live = before

    # -- the rules

    def written(self, place: ast.expr, s: Statement) -> None:
        root = root_of(place)
        why = self.constant.get(root)
        if why is not None and not isinstance(s, Call):
            message = f"'{root}' {why}: it cannot be changed here"
            raise self.refuse(message, s.node)
        if root in self.names and root not in self.live:
            raise self.dead(root, s.node)
        for read in self.indices(place):
            self.read(read)

    def read(self, expression: ast.expr) -> None:
        for place in reads(expression, self.names):
            root = root_of(place)
            if root not in self.live:
                raise self.dead(root, place if hasattr(place, "lineno") else expression)

    def dead(self, name: str, node: ast.AST) -> IrreversibleError:
        message = f"'{name}' has no value here: it has not begun yet, or has been freed"
        return self.refuse(message, node)

    def indices(self, place: ast.expr) -> list[ast.expr]:
        return index_reads(place, self.names)

    def roots(self, expression: ast.expr) -> list[tuple[str, ast.expr]]:
        return [(root_of(p), p) for p in reads(expression, self.names)]

    def separate(
        self, s: Statement, place: ast.expr, others: Sequence[ast.expr], what: str
    ) -> None:
        for other in others:
            shared = overlap(place, other)
            if shared is True:
                name, by = text(place), text(other)
                detail = f"'{name}' is" if name == by else f"'{by}', a part of '{name}', is"
                if what == "swap":
                    message = f"'{name}' and '{by}' share memory: they cannot be swapped"
                elif what == "call":
                    message = (
                        f"'{name}' and '{by}' share memory, and this call updates both: pass a "
                        "copy, in an ancilla"
                    )
                else:
                    message = (
                        f"{detail} read by its own update, which has no inverse: give the value a "
                        "name of its own first (fwdad.reversible.ancilla)"
                    )
                raise self.refuse(message, s.node)
            if shared:
                s.apart.append(shared)

    def _call(self, s: Call | Instruct, _after: Block) -> None:
        self.arguments(s)

    def arguments(self, s: Call | Instruct) -> None:
        """The places that a call updates must be apart."""
        owner = s.owner if isinstance(s, Call) else None  # known to be one with its class
        updated = [p for p in written_places(s) if p is not owner]
        for k, place in enumerate(updated):
            if root_of(place) not in self.names:
                continue  # a function
            others = [*updated[k + 1 :], *(i for p in updated for i in self.indices(p))]
            if isinstance(s, Instruct):
                others += [p for a in s.args[s.instruction.updated :] for p in reads(a, self.names)]
            self.separate(s, place, others, "call")

    def _define(self, s: Define, after: Block) -> None:
        name = s.variable.name
        behind = list(walk([*s.body, *after]))
        # what a call updates is known when its function is: see Writer.call
        changed = {root_of(p) for t in behind if not isinstance(t, Call) for p in written_places(t)}
        changed |= {t.variable.name for t in behind if isinstance(t, (Allocate, Free))}
        for root, place in self.roots(s.value):
            if root in changed:
                message = (
                    f"'{name}' stands for '{text(s.value)}' until the end of its block, but "
                    f"'{text(place)}' is changed there: use fwdad.reversible.ancilla"
                )
                raise self.refuse(message, s.node)
        self.live.add(name)
        self.constant[name] = "is a name for a value that does not change"
        self.block(s.body, after)
        if not after:
            self.block_end(name)

    def block_end(self, name: str) -> None:
        self.live.discard(name)
        self.constant.pop(name, None)

    _instruct = _call

    def _for(self, s: For, _after: Block) -> None:
        name = s.variable.name
        changed = written_roots(s.body)
        for end in (s.start, s.stop):
            s.moving = s.moving or any(root in changed for root, _ in self.roots(end))
        self.live.add(name)
        self.constant[name] = "is what the loop goes through"
        self.block(s.body, [])
        self.block_end(name)
