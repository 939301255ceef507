"""Comprehensions, and sums of generators."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.frontend.syntax import generators, iteration
from fwdad.frontend.syntax.assignments import Assignments
from fwdad.frontend.syntax.frame import FLOW, Frame
from fwdad.frontend.syntax.iterators import Iterator
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
        return self.recorder.journal.fresh(self._comprehended(node.generators, node.elt))

    def eval_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        frame, run = self._comprehension(node.generators, node.elt)
        return Iterator(self.tracer, generators.resumed(self.tracer, frame, None, run))

    def eval_SetComp(self, node: ast.SetComp) -> Any:
        return self.recorder.journal.fresh(set(self._comprehended(node.generators, node.elt)))

    def eval_DictComp(self, node: ast.DictComp) -> Any:
        both = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        pairs = self._comprehended(node.generators, both)
        return self.recorder.journal.fresh({self.values.known(key): value for key, value in pairs})

    def _comprehended(self, clauses: list[ast.comprehension], element: ast.expr) -> list[Any]:
        frame, run = self._comprehension(clauses, element)
        with self.position.within(frame):
            return list(run)

    def _frame_inside(self) -> Frame:
        """A frame that sees the names of the current one."""
        outer = self.position.frame
        frame = Frame(outer.node, outer.filename, outer.globals, outer=outer, classes=outer.classes)
        self.recorder.journal.own(frame.locals, namespace=True)
        return frame

    def _comprehension(self, clauses: list[ast.comprehension], element: ast.expr) -> Any:
        """The frame of a comprehension, and a function that evaluates its elements there."""
        frame = self._frame_inside()
        for clause in clauses:
            for name in ast.walk(clause.target):
                if isinstance(name, ast.Name):
                    frame.names.own.add(name.id)
        first = self.tracer.evaluate(clauses[0].iter)
        return frame, self._nest(clauses, 0, first, element)

    def _holds(self, test: ast.expr) -> bool:
        """Whether an item is taken."""
        held = self.tracer.truth(self.tracer.evaluate(test))
        return self.values.decided(held, _UNDECIDED)

    def _nest(
        self, clauses: list[ast.comprehension], depth: int, values: Any, element: ast.expr
    ) -> Any:
        clause = clauses[depth]
        for value in iteration.walk(self.tracer, values):
            self.assignments.assign(clause.target, value)
            if not all(self._holds(test) for test in clause.ifs):
                continue
            if depth + 1 == len(clauses):
                yield self.tracer.evaluate(element)
            else:
                inner = self.tracer.evaluate(clauses[depth + 1].iter)
                yield from self._nest(clauses, depth + 1, inner, element)

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
        names = {n.id for g in generator.generators for n in ast.walk(g.target)
                 if isinstance(n, ast.Name)}  # fmt: skip
        total = "$sum"
        frame = self._frame_inside()
        frame.names.own |= {*names, total}
        frame.locals.update({total: 0, **dict.fromkeys((*FLOW, "$stop"), False)})
        statement: ast.stmt = ast.AugAssign(ast.Name(total, ast.Store()), ast.Add(), generator.elt)
        for g in reversed(generator.generators):
            for test in reversed(g.ifs):
                statement = ast.If(test, [statement], [])
            statement = ast.For(g.target, g.iter, [statement], [], None)
        ast.fix_missing_locations(ast.copy_location(statement, node))
        with self.position.within(frame):
            self.tracer.run(statement)
        return frame.locals[total]
