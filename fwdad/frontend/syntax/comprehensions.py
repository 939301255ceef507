"""Comprehensions, and sums of generators."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax import generators, iteration
from fwdad.frontend.syntax.assignments import Assignments
from fwdad.frontend.syntax.frame import FLOW, Frame
from fwdad.frontend.syntax.growing_lists.filled import by_loop, list_all
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.growing_lists.making import growing_list, list_of
from fwdad.frontend.syntax.iterators import Iterator, Mapped
from fwdad.frontend.syntax.loops import WithoutWarnings
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.scopes import Scopes
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Block
from fwdad.ir.symbol import Symbol

_UNDECIDED = (
    "a comprehension whose length depends on values cannot be traced: use np.where or a mask"
)

_FIRST, _ITEMS, _SUM = "$first", "$items", "$sum"
"""Names that no program has: the iterable of the outermost clause, and what a loop makes."""


_TAKE_ALL = (min, max, sorted, list, tuple, set, frozenset, math.fsum)
"""Functions that ask for all items before they do anything else."""


class _Chosen(NamedTuple):
    """A comprehension some of whose items may be left out: what it is over, and its generator."""

    values: Any  # None if they can be asked for once only
    frame: Frame
    run: Any


class Comprehensions:
    """Evaluation of comprehensions."""

    def __init__(self, tracer: Tracer, scopes: Scopes, assignments: Assignments) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.values = tracer.values
        self.scopes = scopes
        self.assignments = assignments

    def eval_ListComp(self, node: ast.ListComp) -> Any:
        source = self._source(node.generators, node.elt)
        self.position.at(node)
        made = list_all(self.tracer, source) if isinstance(source, Mapped) else None
        if made is None:
            made = self._grown(node, source)
        if made is None:
            made = self._all(source)
        self.position.at(node)
        return list_of(self.tracer, made)

    def eval_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        source = self._source(node.generators, node.elt)
        if isinstance(source, Mapped):
            return source
        run = generators.resumed(self.tracer, source.frame, None, source.run)
        return Iterator(self.tracer, run)

    def eval_SetComp(self, node: ast.SetComp) -> Any:
        items = self._all(self._source(node.generators, node.elt))
        return self.recorder.journal.fresh(set(items))

    def eval_DictComp(self, node: ast.DictComp) -> Any:
        both = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        pairs = self._all(self._source(node.generators, both))
        return self.recorder.journal.fresh({self.values.known(key): value for key, value in pairs})

    def _all(self, source: Any) -> list[Any]:
        """All items of a comprehension, one by one."""
        if isinstance(source, Mapped):
            return iteration.items(self.tracer, source)
        with self.position.within(source.frame):
            return list(source.run)

    def _source(self, clauses: list[ast.comprehension], element: ast.expr) -> Any:
        """The items of a comprehension; where some may be left out, how they are found."""
        first, outer = self.tracer.evaluate(clauses[0].iter), self.position.frame
        plain, lazy = (
            len(clauses) == 1 and not clauses[0].ifs,
            iteration.is_lazy(self.tracer, first),
        )
        if lazy or not plain:
            values = first if lazy else iteration.again(self.tracer, first)
            items = iteration.walk(self.tracer, values)
            frame = self._frame_inside(outer, clauses)
            return _Chosen(None if lazy else values, frame, self._nest(clauses, 0, items, element))

        def begin() -> Callable[[Any], Any]:
            frame = self._frame_inside(outer, clauses)

            def item(x: Any) -> Any:
                with self.position.inside(frame, None):
                    self.assignments.assign(clauses[0].target, x)
                    return self.tracer.evaluate(element)

            return item

        return Mapped(first, begin)

    def _frame_inside(self, outer: Frame, clauses: list[ast.comprehension]) -> Frame:
        """A frame with a comprehension's own names, which sees those around it."""
        frame = Frame(outer.node, outer.filename, outer.globals, outer=outer, classes=outer.classes)
        self.recorder.journal.own_resumed(frame.locals)
        for clause in clauses:
            for name in ast.walk(clause.target):
                if isinstance(name, ast.Name):
                    frame.names.own.add(name.id)
        return frame

    def _holds(self, test: ast.expr) -> bool:
        """Whether an item is taken."""
        held = self.tracer.test(test)
        return self.values.decided(held, _UNDECIDED)

    def _nest(
        self, clauses: list[ast.comprehension], depth: int, values: Any, element: ast.expr
    ) -> Any:
        clause = clauses[depth]
        for value in values:
            self.assignments.assign(clause.target, value)
            if not all(self._holds(test) for test in clause.ifs):
                continue
            if depth + 1 == len(clauses):
                yield self.tracer.evaluate(element)
            else:
                inner = self.tracer.evaluate(clauses[depth + 1].iter)
                items = iteration.walk(self.tracer, inner)
                yield from self._nest(clauses, depth + 1, items, element)

    def _grown(self, node: ast.ListComp, source: _Chosen) -> Any:
        """The list that a loop appends to, where values decide what is on it; else None."""
        if source.values is None or not self._is_chosen(node, source.values):
            return None
        put = ast.Attribute(ast.Name(_ITEMS, ast.Load()), "append", ast.Load())
        statement = ast.Expr(ast.Call(put, [node.elt], []))

        def run(place: Any) -> Items:
            items = growing_list(self.tracer, [], place)
            with WithoutWarnings():
                self._loop(node, node.generators, source.values, statement, {_ITEMS: items})
            return items

        return by_loop(self.tracer, run)

    def _is_chosen(self, node: ast.ListComp, values: Any) -> bool:
        """Whether values decide if the first item is taken, as far as can be seen there."""
        block = Block()
        try:
            with self.recorder.region(block) as region:
                region.repeats = True
                frame = self._frame_inside(self.position.frame, node.generators)
                with self.position.within(frame):
                    chosen = self._is_chosen_in(node.generators, values)
                region.undo()
        except (UntraceableError, AlwaysRaises):
            return False
        return chosen

    def _is_chosen_in(self, clauses: list[ast.comprehension], values: Any) -> bool:
        for clause in clauses:
            values = values if clause is clauses[0] else self.tracer.evaluate(clause.iter)
            item = next(iteration.walk(self.tracer, iteration.again(self.tracer, values)), None)
            if item is None:
                return False
            self.assignments.assign(clause.target, item)
            held = [self.tracer.test(test) for test in clause.ifs]
            if any(type(h) is Symbol for h in held):
                return True
            if not all(held):
                return False
        return False

    def _loop(
        self,
        node: ast.expr,
        clauses: list[ast.comprehension],
        values: Any,
        statement: ast.stmt,
        names: dict[str, Any],
    ) -> Frame:
        """Execute a statement for each item that clauses take, with some more names; the frame."""
        frame = self._frame_inside(self.position.frame, clauses)
        names = {_FIRST: values, **names}
        frame.names.own |= names.keys()
        frame.locals.update({**names, **dict.fromkeys((*FLOW, "$stop"), False)})
        for clause in reversed(clauses):
            for test in reversed(clause.ifs):
                statement = ast.If(test, [statement], [])
            outermost = clause is clauses[0]
            over = ast.Name(_FIRST, ast.Load()) if outermost else clause.iter
            statement = ast.For(clause.target, over, [statement], [], None)
        ast.fix_missing_locations(ast.copy_location(statement, node))
        with self.position.within(frame):
            self.tracer.run(statement)
        return frame

    def taken_whole(self, f: Any, arguments: list[ast.expr]) -> list[ast.expr]:
        """Arguments of a call, with a list for a generator of which it takes all items at once.

        A loop can fill that list, where values decide which items are left out.
        """
        first = arguments[0] if arguments else None
        if not isinstance(first, ast.GeneratorExp) or not any(f is g for g in _TAKE_ALL):
            return arguments
        if len(first.generators) == 1 and not first.generators[0].ifs:
            return arguments  # which is lazy, but no more than a list
        return [ast.copy_location(ast.ListComp(first.elt, first.generators), first), *arguments[1:]]

    def is_sum_of_generator(self, node: ast.Call) -> bool:
        return (
            isinstance(node.func, ast.Name)
            and node.func.id == "sum"
            and len(node.args) == 1
            and not node.keywords
            and isinstance(node.args[0], ast.GeneratorExp)
            and self.scopes.lookup("sum") is sum
        )

    def sum_of_generator(self, node: ast.Call) -> Any:
        """``sum(… for …)`` as a loop, so that its length need not be known."""
        generator = node.args[0]
        assert isinstance(generator, ast.GeneratorExp)
        values = self.tracer.evaluate(generator.generators[0].iter)  # outside of its own names
        add = ast.AugAssign(ast.Name(_SUM, ast.Store()), ast.Add(), generator.elt)
        return self._loop(node, generator.generators, values, add, {_SUM: 0}).locals[_SUM]
