"""Conditions: truth values, comparisons, `and` and `or`."""

from __future__ import annotations

import ast
import functools
import operator
from typing import Any

import numpy as np

from fwdad.core.operators import OPERATORS
from fwdad.errors import UntraceableError
from fwdad.frontend.syntax import early_ends, iteration, iterators, static_arrays
from fwdad.frontend.syntax.control import branch, truth
from fwdad.frontend.syntax.growing_lists.growing_use import contains
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.iterators import ITERATORS
from fwdad.frontend.syntax.lengths import length_of_range
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.symbols import Maybe, Optional, Poison
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.analysis.layout import order_of
from fwdad.ir.ops import Apply
from fwdad.ir.primitives.argument_memory import is_c_contiguous
from fwdad.ir.symbol import UNBOUND, Symbol, UnknownText
from fwdad.ir.types import INT, ArrayType, Number, Type, is_static_array, number_type
from fwdad.ops import Memory, record_of

_IN_ORDER = {np.ascontiguousarray: "C", np.asfortranarray: "F"}
"""Functions that return an array in one memory order: itself, if it is in that order."""


class Conditions:
    """Evaluation of conditions."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.values = tracer.values

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        x = self.tracer.evaluate(node.operand)
        self.position.at(node)
        if isinstance(node.op, ast.Not):
            x = self.truth(x)
            return self.recorder.apply(operator.not_, (x,), {}) if type(x) is Symbol else not x
        known = OPERATORS[type(node.op)]
        function: Any = known.function
        x = self.values.number(x)
        method = self.values.python_method(x, known.method)
        if method is not None:
            return self.tracer.call(method, (x,), {})
        if is_static_array(x):
            return static_arrays.operated(self.tracer, function, x)
        if isinstance(x, np.ndarray):
            x = self.recorder.as_symbol(x)
        if type(x) is Symbol:
            return self.recorder.apply(function, (x,), {})
        return self.tracer.outside.in_c(function, x)

    def truth(self, x: Any) -> Any:
        """The truth of a value: a bool, or a symbol of one."""
        if isinstance(x, Optional):
            return branch(self.recorder, x.flag, lambda: self.truth(x.value), lambda: False)
        method = self.values.python_method(x, "__bool__")
        if method is not None:
            return self.truth(self.tracer.call(method, (x,), {}))
        method = self.values.python_method(x, "__len__")
        if method is not None:
            return self.truth(self.tracer.call(method, (x,), {}))
        if type(x) is iterators.Range:
            return self.truth(length_of_range(self.recorder, x.start, x.stop, x.step))
        if isinstance(x, np.ndarray) and not is_static_array(x):
            x = self.recorder.as_symbol(x)
        if isinstance(x, Items):
            x = x.length()
        return truth(self.recorder, x)

    def test(self, node: ast.expr) -> Any:
        """The truth of an expression that is only asked for it: `a and b` may be of two kinds."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.negated(self.test(node.operand))
        if isinstance(node, ast.BoolOp):
            return self._tests(node.values, isinstance(node.op, ast.And))
        return self.truth(self.tracer.evaluate(node))

    def _tests(self, nodes: list[ast.expr], conjunction: bool) -> Any:
        held = self.test(nodes[0])
        if len(nodes) == 1:
            return held
        rest = functools.partial(self._tests, nodes[1:], conjunction)
        if type(held) is not Symbol:
            return rest() if held is conjunction else held
        sides = (rest, lambda: False) if conjunction else (lambda: True, rest)
        return branch(self.recorder, held, *sides)

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._chain(node.values, isinstance(node.op, ast.And))

    def _chain(self, nodes: list[ast.expr], conjunction: bool) -> Any:
        first = self.tracer.evaluate(nodes[0])
        if len(nodes) == 1:
            return first
        held = self.truth(first)
        if type(held) is not Symbol:
            go_on = held if conjunction else not held
            return self._chain(nodes[1:], conjunction) if go_on else first
        rest = lambda: self._chain(nodes[1:], conjunction)  # noqa: E731
        sides = (rest, lambda: first) if conjunction else (lambda: first, rest)
        return branch(self.recorder, held, *sides)

    def eval_Compare(self, node: ast.Compare) -> Any:
        left = self.tracer.evaluate(node.left)
        return self._compared(left, list(zip(node.ops, node.comparators, strict=True)), node)

    def _compared(self, left: Any, rest: list[Any], node: ast.AST) -> Any:
        (op, right_node), later = rest[0], rest[1:]
        right = self.tracer.evaluate(right_node)
        self.position.at(node)
        value = self.compare(op, left, right)
        if not later:
            return value
        held = self.truth(value)
        if type(held) is Symbol:
            return branch(
                self.recorder, held, lambda: self._compared(right, later, node), lambda: value
            )
        return self._compared(right, later, node) if held else value

    def compare(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        """One comparison."""
        if isinstance(a, UnknownText) or isinstance(b, UnknownText):
            self.values.refuse_text()
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self._is(a, b, isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)):
            contained = self._contains(b, a)
            return contained if isinstance(op, ast.In) else self.negated(contained)
        function = OPERATORS[type(op)].function
        if function in (operator.eq, operator.ne) and Optional in (type(a), type(b)):
            return self._equals_optional(op, *((a, b) if type(a) is Optional else (b, a)))
        return self.tracer.binary(function, a, b)

    def _equals_optional(self, op: ast.cmpop, a: Optional, b: Any) -> Any:
        """``a == b`` where a may be None."""
        if b is None:
            return self._is(a, b, isinstance(op, ast.Eq))
        sides = (lambda: self.compare(op, a.value, b)), (lambda: self.compare(op, None, b))
        return branch(self.recorder, a.flag, *sides)

    def _is(self, a: Any, b: Any, same: bool) -> Any:
        a, b = (self.values.number(x) if type(x) is Poison else x for x in (a, b))
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Optional) and y is None:
                present = x.flag
                if not same:
                    return present
                return (
                    self.recorder.apply(operator.not_, (present,), {})
                    if type(present) is Symbol
                    else not present
                )
        found: Any = a is b
        if not found and isinstance(a, Items) and isinstance(b, Items):
            found = a.is_same(b)
            return found if same else self.negated(found)
        for x, y in ((a, b), (b, a)):
            order = self._order_of_itself(x, y)
            if order is None:
                continue
            found = self._is_in_order(y, order)
            return found if same else self.negated(found)
        if Symbol in (type(a), type(b)):
            found = type(a) is type(b) and a.value is b.value
            t = self._of_few_objects(a, b)
            if not found and isinstance(t, Number) and t.dtype.kind == "b":
                function = operator.eq if same else operator.ne
                return self.values.python_bool(self.recorder.apply(function, (a, b), {}))
            if not found and t is not None:
                found = self._is_same_number(a, b)
        return found if same else not found

    def _order_of_itself(self, a: Any, b: Any) -> Any:
        """The memory order in which a call returns its argument b itself as a, or None."""
        if not type(a) is type(b) is Symbol or a.type != b.type:
            return None
        op = self.recorder.definitions.made_by(a.value)
        if not isinstance(op, Apply) or op.args[:1] != (b.value,):
            return None
        record = record_of(op.function)
        if not record.passes or record.memory is not Memory.MAYBE or not aliased_arguments(op):
            return None
        return _IN_ORDER.get(op.function) or order_of(op, "K")

    def _is_in_order(self, a: Symbol, order: str) -> Any:
        """Whether an array is contiguous in an order, so that it need not be copied."""
        if order not in ("C", "F", "K"):
            message = f"`is` of an array and what is made of it in order {order!r} cannot be traced"
            raise UntraceableError(message, self.position.location())
        if order == "F":
            a = self.recorder.apply(np.transpose, (a,), {})
        return order == "K" or self.recorder.apply(is_c_contiguous, (a,), {})

    def _is_same_number(self, *numbers: Any) -> bool:
        """Whether two numbers are one object: of those from outside, the objects must stay."""
        outside = self.tracer.outside
        one, other = (outside.object_of(x) if type(x) is Symbol else x for x in numbers)
        if one is UNBOUND or other is UNBOUND:
            message = "`is` between values that may be the same object cannot be traced: use `==`"
            raise UntraceableError(message, self.position.location())
        return one is other

    def _of_few_objects(self, a: Any, b: Any) -> Type | None:
        """The type of values that may be one object: inputs, ints, one of two truth values."""
        t, other = (x.type if type(x) is Symbol else number_type(x) for x in (a, b))
        values = [x.value for x in (a, b) if type(x) is Symbol]
        if type(t) is type(other) is ArrayType:  # what was merged may be one of either length
            known = zip(t.shape, other.shape, strict=False)
            unlike = any(type(m) is type(n) is int and m != n for m, n in known)
            if unlike or (t.dtype, t.ndim) != (other.dtype, other.ndim):
                return None
        elif t != other:
            return None
        if isinstance(t, Number):
            are_inputs = all(v in self.recorder.examples.of for v in values)
            return t if t.dtype.kind == "b" or t == INT or are_inputs else None
        return t if any(map(self.recorder.definitions.is_merged, values)) else None

    def _contains(self, container: Any, item: Any) -> Any:
        method = self.values.python_method(container, "__contains__")
        if method is not None:
            return self.values.python_bool(
                self.truth(self.tracer.call(method, (container, item), {}))
            )
        if isinstance(container, ITERATORS) or iteration.is_lazy(self.tracer, container):
            return early_ends.met(
                self.tracer, container, lambda x: self.truth(self.compare(ast.Eq(), item, x))
            )
        if is_static_array(container):
            return static_arrays.operated(self.tracer, operator.contains, container, item)
        if isinstance(container, np.ndarray):
            container = self.recorder.as_symbol(container)
        if type(container) is Symbol and container.is_array:
            met = self.tracer.call(np.any, (self.tracer.binary(operator.eq, container, item),), {})
            return self.values.python_bool(met)
        if isinstance(container, Items):
            return self.tracer.call(contains, (container, item), {})
        open_items = isinstance(container, (list, tuple)) and Optional in map(type, container)
        if isinstance(container, (set, frozenset, dict)):  # as a key is
            item = self.values.known(self.values.number(item))
            self.tracer.outside.looked_up(container, item)
        if type(container) is Symbol or type(item) in (Symbol, Optional) or open_items:
            items = iteration.sequence(container)
            if items is None:
                message = "`in` on a value that is unknown until run time cannot be traced"
                raise UntraceableError(message, self.position.location())
            found: Any = False
            for x in items:
                same = self.truth(self.compare(ast.Eq(), item, x))
                if found is False:
                    found = same
                elif type(found) is Symbol or type(same) is Symbol:
                    found = self.recorder.apply(operator.or_, (found, same), {})
                else:
                    found = found or same
            return self.values.python_bool(found)
        if not isinstance(item, str):
            keys = list(container) if isinstance(container, dict) else container
            self.tracer.outside.read_compared(keys, item)
        maybe = dict.get(container, item) if isinstance(container, dict) else None
        if isinstance(maybe, Maybe):  # of `vars(o)`: what is set on some paths only
            return maybe.flag
        return native(operator.contains, container, item)

    def in_order(self, function: Any, a: Any, b: Any) -> Any:
        """``a < b`` and the like of two tuples or lists: the first items that differ decide."""
        strict = operator.lt if function in (operator.lt, operator.le) else operator.gt
        if not a or not b:
            return function(len(a), len(b))
        if len(a) == len(b) == 1:
            return self.truth(self.tracer.binary(function, a[0], b[0]))
        is_less = self.truth(self.tracer.binary(strict, a[0], b[0]))
        same = self.truth(self.tracer.binary(operator.eq, a[0], b[0]))
        if is_less is True or same is False:
            return is_less
        rest = self.in_order(function, a[1:], b[1:])
        return self._either(is_less, self._both(same, rest))

    def _both(self, a: Any, b: Any) -> Any:
        if type(a) is Symbol and type(b) is Symbol:
            return self.recorder.apply(operator.and_, (a, b), {})
        known, other = (a, b) if type(a) is not Symbol else (b, a)
        return other if known else False

    def _either(self, a: Any, b: Any) -> Any:
        if type(a) is Symbol and type(b) is Symbol:
            return self.recorder.apply(operator.or_, (a, b), {})
        known, other = (a, b) if type(a) is not Symbol else (b, a)
        return True if known else other

    def same_items(self, a: Any, b: Any) -> Any:
        """Whether two tuples or lists (such as shapes) are equal; None for anything else."""
        if type(a) is not type(b) or not isinstance(a, (tuple, list)):
            return None
        if len(a) != len(b):
            return False
        found: Any = True
        for x, y in zip(a, b, strict=True):
            if x is y or _same_length(x, y):
                continue
            same = self.truth(self.tracer.binary(operator.eq, x, y))
            if type(same) is not Symbol:
                if not same:
                    return False
            elif found is True:
                found = same
            else:
                found = self.recorder.apply(operator.and_, (found, same), {})
        return self.values.python_bool(found)

    def negated(self, held: Any) -> Any:
        if type(held) is not Symbol:
            return not held
        return self.recorder.apply(operator.not_, (held,), {})

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.test(node.test)
        self.position.at(node)
        return branch(
            self.recorder,
            condition,
            lambda: self.tracer.unread(node.body),
            lambda: self.tracer.unread(node.orelse),
        )


def _same_length(x: Any, y: Any) -> bool:
    """Whether two values are lengths that are known to be equal."""
    if type(x) is not Symbol or type(y) is not Symbol:
        return False
    m, n = x.type, y.type
    if not isinstance(m, Number) or not isinstance(n, Number):
        return False
    return m.size is not None and m.size is n.size
