"""Comprehensions, and sums of generators."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.frontend.syntax import generators, iteration
from fwdad.frontend.syntax.assignments import Assignments
from fwdad.frontend.syntax.frame import FLOW, Frame
from fwdad.frontend.syntax.growing_lists.filled import list_all
from fwdad.frontend.syntax.iterators import Iterator, Mapped
from fwdad.frontend.syntax.scopes import Scopes
from fwdad.frontend.syntax.tracer import Tracer

_UNDECIDED = (
    "a comprehension whose length depends on values cannot be traced: use np.where or a mask"
)


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
        made = list_all(self.tracer, source) if isinstance(source, Mapped) else self._all(source)
        return self.recorder.journal.fresh(made) if type(made) is list else made

    def eval_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        source = self._source(node.generators, node.elt)
        if isinstance(source, Mapped):
            return source
        frame, run = source
        return Iterator(self.tracer, generators.resumed(self.tracer, frame, None, run))

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
        frame, run = source
        with self.position.within(frame):
            return list(run)

    def _source(self, clauses: list[ast.comprehension], element: ast.expr) -> Any:
        """The items of a comprehension; where some may be left out, a frame and a generator."""
        first, outer = self.tracer.evaluate(clauses[0].iter), self.position.frame
        plain = len(clauses) == 1 and not clauses[0].ifs
        if not plain or iteration.is_lazy(self.tracer, first):
            frame = self._frame_inside(outer, clauses)
            return frame, self._nest(clauses, 0, iteration.walk(self.tracer, first), element)

        def item(x: Any) -> Any:
            with self.position.inside(self._frame_inside(outer, clauses), None):
                self.assignments.assign(clauses[0].target, x)
                return self.tracer.evaluate(element)

        return Mapped(first, item)

    def _frame_inside(self, outer: Frame, clauses: list[ast.comprehension]) -> Frame:
        """A frame with a comprehension's own names, which sees those around it."""
        frame = Frame(outer.node, outer.filename, outer.globals, outer=outer, classes=outer.classes)
        self.recorder.journal.own(frame.locals, namespace=True)
        for clause in clauses:
            for name in ast.walk(clause.target):
                if isinstance(name, ast.Name):
                    frame.names.own.add(name.id)
        return frame

    def _holds(self, test: ast.expr) -> bool:
        """Whether an item is taken."""
        held = self.tracer.truth(self.tracer.evaluate(test))
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
        total, first = "$sum", "$first"
        values = self.tracer.evaluate(generator.generators[0].iter)  # outside of its own names
        frame = self._frame_inside(self.position.frame, generator.generators)
        frame.names.own |= {total, first}
        frame.locals.update({total: 0, first: values, **dict.fromkeys((*FLOW, "$stop"), False)})
        statement: ast.stmt = ast.AugAssign(ast.Name(total, ast.Store()), ast.Add(), generator.elt)
        for g in reversed(generator.generators):
            for test in reversed(g.ifs):
                statement = ast.If(test, [statement], [])
            outermost = g is generator.generators[0]
            over = ast.Name(first, ast.Load()) if outermost else g.iter
            statement = ast.For(g.target, over, [statement], [], None)
        ast.fix_missing_locations(ast.copy_location(statement, node))
        with self.position.within(frame):
            self.tracer.run(statement)
        return frame.locals[total]
