"""Operators on values: the user's special methods, Python's own, and operations on the tape."""

from __future__ import annotations

import ast
import dataclasses
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.core.operators import BY_FUNCTION, OPERATORS, numpy_defers, reads_as_array
from fwdad.eager.lifting.source import find_source
from fwdad.errors import UntraceableError, type_in_words
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.syntax import static_arrays
from fwdad.frontend.syntax.attributes import class_of
from fwdad.frontend.syntax.conditions import Conditions
from fwdad.frontend.syntax.growing_lists import growing_use
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.growing_lists.making import list_of
from fwdad.frontend.syntax.iterators import CLASSES
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.texts import interpolated, known_part
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import UNBOUND, Symbol, UnknownText
from fwdad.ir.types import Number, is_static_array
from fwdad.tangents.namespaces import namespace_of


class Operators:
    """Evaluation of operators."""

    def __init__(self, tracer: Tracer, conditions: Conditions) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.values = tracer.values
        self.conditions = conditions

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        a, b = self.tracer.evaluate(node.left), self.tracer.evaluate(node.right)
        self.position.at(node)
        return self.binary(OPERATORS[type(node.op)].function, a, b)

    def binary(self, function: Callable[..., Any], a: Any, b: Any) -> Any:
        """An operator on two values."""
        a, b = self.values.number(a), self.values.number(b)
        if function is operator.mod and type(a) in (str, UnknownText) and mentions_symbols((a, b)):
            return native(lambda: interpolated(a, b, self.position.location()))
        if isinstance(a, UnknownText) or isinstance(b, UnknownText):
            if function is operator.add and isinstance(a, str) and isinstance(b, str):
                text = known_part(a) + known_part(b)
                return UnknownText(self.position.location(), text, (operator.add, a, b))
            self.values.refuse_text()
        if isinstance(a, Items) or isinstance(b, Items):
            return growing_use.operated(self.tracer, function, a, b)
        if is_static_array(a) or is_static_array(b):
            return static_arrays.operated(self.tracer, function, a, b)
        known = BY_FUNCTION[function]
        a, b = self._of_numpy(a, b, known.reflected)
        if type(a) in CLASSES or type(b) in CLASSES:
            message = "an operator on a range or an iterator cannot be traced: make a list of it"
            raise UntraceableError(message, self.position.location())
        if function in _DIVISIONS and type(a) is Symbol and type(b) in (bool, int, float, complex):
            self._check_divisor(function, a, b)
        for x, y, method in self._methods(function, a, b):
            if _is_generated(x, method):
                if type(a) is not type(b):
                    continue
                parts = [tuple(self.tracer.attribute(o, f.name)
                               for f in dataclasses.fields(o) if f.compare)
                         for o in (a, b)]  # fmt: skip
                return self.binary(function, *parts)
            value = self.tracer.call(method, (x, y), {})
            if value is not NotImplemented:
                return value
        kind: Any = type(a)
        if function is operator.ne and kind.__ne__ is object.__ne__:
            if self.values.python_method(a, "__eq__") is not None:
                return self.conditions.negated(self.tracer.truth(self.binary(operator.eq, a, b)))
        if function in _ORDERS and type(a) is type(b) and isinstance(a, (tuple, list)):
            if mentions_symbols((a, b)):
                return self.conditions.in_order(function, a, b)
        if function in _EQUALITIES and mentions_symbols((a, b)):
            same = self.conditions.same_items(a, b)
            if same is not None:
                return same if function is operator.eq else self.conditions.negated(same)
        if function is operator.mul and (_is_int(a) or _is_int(b)):
            for x, times in ((a, b), (b, a)):
                if isinstance(x, (list, tuple, str)):
                    return self._copies(x, times)
        for x in (a, b):
            if getattr(type(x), "__array_ufunc__", ...) is None and mentions_symbols(vars(x)):
                what = f"`{known.sign}` of {type_in_words(x)}"  # which has not done it, traced
                raise UntraceableError(f"{what} cannot be traced", self.position.location())
        if type(a) is Symbol or type(b) is Symbol:
            a, b = self._numeric(function, a, b), self._numeric(function, b, a)
            if function in _ARITHMETIC and (type(a) in _SEQUENCES or type(b) in _SEQUENCES):
                names = [class_of(x).__name__ if type(x) is Symbol else type(x).__name__
                         for x in (a, b)]  # fmt: skip
                sign = _ARITHMETIC[function]
                message = f"unsupported operand type(s) for {sign}: {names[0]!r} and {names[1]!r}"
                raise AlwaysRaises(TypeError, (message,))
            return self.recorder.apply(function, (a, b), {})
        made = self._of_known(function, a, b)
        return list_of(self.tracer, made) if type(made) is list else self.values.made(made)

    def _copies(self, x: Any, times: Symbol) -> Any:
        """``x * times`` of a sequence: as many copies as in the example, unless values tell it."""
        if type(x) is list and self.recorder.examples.forced(times.value) is UNBOUND:
            items = growing_use.known_items(self.tracer, x)
            if items is not None:
                return list_of(self.tracer, growing_use.repeated(self.tracer, items, times))
        return self.binary(operator.mul, x, self.values.force(times))

    def _methods(
        self, function: Callable[..., Any], a: Any, b: Any
    ) -> Iterator[tuple[Any, Any, Any]]:
        """The user's methods for an operator, each with its arguments, in Python's order.

        That of a subclass goes first; of arithmetic only if it is not the one that it inherits.
        """
        known = BY_FUNCTION[function]
        compares = function in _EQUALITIES or function in _ORDERS
        own = self.values.python_method(a, known.method)
        other = None
        if compares or type(a) is not type(b):
            other = self.values.python_method(b, known.reflected)
        if other is not None and type(a) is not type(b) and type(a) in type(b).__mro__:
            if compares or other is not self.values.python_method(a, known.reflected):
                yield b, a, other
                other = None
        if own is not None:
            yield a, b, own
        if other is not None:
            yield b, a, other

    def _of_numpy(self, a: Any, b: Any, reflected: str) -> tuple[Any, Any]:
        """The operands, with arrays as symbols; NumPy reads what it does not defer to as one."""
        a, b = (self.recorder.as_symbol(x) if isinstance(x, np.ndarray) else x for x in (a, b))
        if type(a) is Symbol and not getattr(a.type, "python", False):
            overrides = hasattr(type(b), "__array_ufunc__")  # ufuncs, as its own operator does
            reads = self.values.python_method(b, reflected) is not None and not overrides
            if reads and reads_as_array(b):
                if not numpy_defers(b, number=not a.is_array):
                    b = self.tracer.call(np.asarray, (b,), {})
        return a, b

    def _of_known(self, function: Callable[..., Any], a: Any, b: Any) -> Any:
        """An operator on what is known, by Python."""
        if function in _EQUALITIES or function in _ORDERS:
            self.tracer.outside.read_compared(a, b)
            return native(function, a, b)
        return self.tracer.outside.in_c(function, a, b)

    def _numeric(self, function: Callable[..., Any], x: Any, other: Any) -> Any:
        """A list beside an array as an array; also beside NumPy's numbers, except in products."""
        if not isinstance(x, (list, tuple, range)) or type(other) is not Symbol:
            return x
        of_numpy = not getattr(other.type, "python", False)
        if other.is_array or (of_numpy and function is not operator.mul):
            return self.recorder.apply(np.array, (list(x) if type(x) is range else x,), {})
        return x

    def _check_divisor(self, function: Callable[..., Any], a: Symbol, b: Any) -> None:
        """Raise what dividing a Python number by a known zero raises."""
        if b or not isinstance(a.type, Number) or not a.type.python:
            return
        example = {"b": True, "i": 1, "f": 1.0, "c": 1j}[a.type.dtype.kind]
        try:
            function(example, b)
        except ZeroDivisionError as error:
            raise AlwaysRaises(error) from error
        except TypeError:
            return


# complex numbers have no remainders, which is reported where they are computed


_DIVISIONS = (operator.truediv, operator.floordiv, operator.mod)
_EQUALITIES = (operator.eq, operator.ne)
_ORDERS = (operator.lt, operator.le, operator.gt, operator.ge)


def _is_generated(x: Any, method: Any) -> bool:
    """Whether a comparison is one that ``dataclass`` has generated."""
    if not dataclasses.is_dataclass(x) or method.__name__ not in _COMPARING:
        return False
    return namespace_of(x) is not None and find_source(method) is None


_COMPARING = ("__eq__", "__lt__", "__le__", "__gt__", "__ge__")


def _is_int(x: Any) -> bool:
    return type(x) is Symbol and isinstance(x.type, Number) and x.type.dtype.kind in "iu"


_SEQUENCES = {list, tuple, range}
_ARITHMETIC = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    operator.floordiv: "//", operator.mod: "%", operator.pow: "** or pow()",
}  # fmt: skip
