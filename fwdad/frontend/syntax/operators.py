"""Operators on values: the user's special methods, Python's own, and operations on the tape."""

from __future__ import annotations

import ast
import dataclasses
import operator
import types
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fwdad.eager.lifting.source import find_source
from fwdad.errors import UntraceableError
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.syntax import growing, growing_use
from fwdad.frontend.syntax.attributes import class_of
from fwdad.frontend.syntax.conditions import Conditions
from fwdad.frontend.syntax.iterators import CLASSES
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import Optional, Poison
from fwdad.frontend.syntax.texts import interpolated, known_part
from fwdad.ir.symbol import Symbol, UnknownText
from fwdad.ir.types import Number
from fwdad.tangents.namespaces import namespace_of


class Operators(Conditions):
    """Evaluation of operators."""

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        a, b = self.evaluate(node.left), self.evaluate(node.right)
        self.at(node)
        return self.binary(OPERATORS[type(node.op)], a, b)

    def binary(self, function: Callable[..., Any], a: Any, b: Any) -> Any:
        """An operator on two values."""
        a, b = self.number(a), self.number(b)
        if function is operator.mod and type(a) in (str, UnknownText) and mentions_symbols((a, b)):
            return self.native(lambda: interpolated(a, b, self.location()))
        if isinstance(a, UnknownText) or isinstance(b, UnknownText):
            if function is operator.add and isinstance(a, str) and isinstance(b, str):
                text = known_part(a) + known_part(b)
                return UnknownText(self.location(), text, (operator.add, a, b))
            self.refuse_text()
        if isinstance(a, growing.Items) or isinstance(b, growing.Items):
            return growing_use.operated(self, function, a, b)
        if isinstance(a, np.ndarray):
            a = self.recorder.as_symbol(a)
        if isinstance(b, np.ndarray):
            b = self.recorder.as_symbol(b)
        if type(a) in CLASSES or type(b) in CLASSES:
            message = "an operator on a range or an iterator cannot be traced: make a list of it"
            raise UntraceableError(message, self.location())
        if function in _DIVISIONS and type(a) is Symbol and type(b) in (bool, int, float, complex):
            self._check_divisor(function, a, b)
        name = function.__name__.strip("_")
        for x, y, special in ((a, b, f"__{name}__"), (b, a, f"__r{name}__")):
            method = self.python_method(x, special)
            if method is not None and _is_generated(x, method):
                if type(a) is not type(b):
                    continue
                parts = [tuple(vars(o)[f.name] for f in dataclasses.fields(o) if f.compare)
                         for o in (a, b)]  # fmt: skip
                return self.binary(function, *parts)
            if method is not None:
                value = self.call(method, (x, y), {})
                if value is not NotImplemented:
                    return value
        kind: Any = type(a)
        if function is operator.ne and kind.__ne__ is object.__ne__:
            if self.python_method(a, "__eq__") is not None:
                return self._negated(self.truth(self.binary(operator.eq, a, b)))
        if function in _ORDERS and type(a) is type(b) and isinstance(a, (tuple, list)):
            if mentions_symbols((a, b)):
                return self._in_order(function, a, b)
        if function in _EQUALITIES and mentions_symbols((a, b)):
            same = self._same_items(a, b)
            if same is not None:
                return same if function is operator.eq else self._negated(same)
        if function is operator.mul and isinstance(a, (list, tuple, str)) and _is_int(b):
            b = self.force(b)  # that many copies
        if function is operator.mul and isinstance(b, (list, tuple, str)) and _is_int(a):
            a = self.force(a)
        if type(a) is Symbol or type(b) is Symbol:
            a, b = self._numeric(function, a, b), self._numeric(function, b, a)
            if function in _ARITHMETIC and (type(a) in _SEQUENCES or type(b) in _SEQUENCES):
                names = [class_of(x).__name__ if type(x) is Symbol else type(x).__name__
                         for x in (a, b)]  # fmt: skip
                sign = _ARITHMETIC[function]
                message = f"unsupported operand type(s) for {sign}: {names[0]!r} and {names[1]!r}"
                self.raise_always(TypeError, message)
            return self.recorder.apply(function, (a, b), {})
        return self.made(self.native(function, a, b))

    def made(self, x: Any) -> Any:
        """The result of code without a Python source, with lists and the like marked as new."""
        return self.recorder.journal.fresh(x) if type(x) in (list, dict, set) else x

    def refuse_text(self) -> NoReturn:
        """Refuse a text of unknown numbers, which may only be used in messages."""
        message = (
            "the text of a number that is not known yet can only be the message of an error: as a "
            "key or a name take what is known, such as the counter of a loop over range(3)"
        )
        raise UntraceableError(message, self.location())

    def _numeric(self, function: Callable[..., Any], x: Any, other: Any) -> Any:
        """A list beside an array as an array; also beside NumPy's numbers, except in products."""
        if not isinstance(x, (list, tuple, range)) or type(other) is not Symbol:
            return x
        of_numpy = not getattr(other.type, "python", False)
        if other.is_array or (of_numpy and function is not operator.mul):
            return self.recorder.apply(np.array, (list(x) if type(x) is range else x,), {})
        return x

    def python_method(self, x: Any, name: str) -> Any:
        """A special method that the user's class defines in Python, or None."""
        if isinstance(x, growing.Items):
            return None
        found = getattr(type(x), name, None)
        if type(x) is Symbol or not isinstance(found, types.FunctionType):
            return None
        self.guard_class(type(x), name, found)
        return found

    def native(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function on known values; the program raises whatever it raises."""
        try:
            return function(*args)
        except UntraceableError:
            raise
        except Exception as error:  # whatever a function of the user's raises
            raise AlwaysRaises(error) from error

    def raise_always(self, exception: type[BaseException], message: str) -> NoReturn:
        """End this path through the program in an exception."""
        raise AlwaysRaises(exception, (message,))

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
            return  # complex numbers have no remainders, which is reported where they are computed

    def binary_add(self, a: Any, b: Any) -> Any:
        """``a + b`` of ints, which may be symbols."""
        if isinstance(a, int) and a == 0:
            return b
        if isinstance(b, int) and b == 0:
            return a
        return self.binary(operator.add, a, b)

    def binary_sub(self, a: Any, b: Any) -> Any:
        """``a - b`` of ints, which may be symbols."""
        return a if isinstance(b, int) and b == 0 else self.binary(operator.sub, a, b)

    def binary_mul(self, a: Any, b: Any) -> Any:
        """``a * b`` of ints, which may be symbols."""
        return a if isinstance(b, int) and b == 1 else self.binary(operator.mul, a, b)

    def range_length(self, start: Any, stop: Any, step: Any) -> Any:
        """The length of a range."""
        return self.recorder.apply(range_length, (start, stop, step), {})

    def shortest(self, lengths: list[Any]) -> Any:
        """The smallest of several lengths."""
        known = [n for n in lengths if isinstance(n, int)]
        others = [n for n in lengths if not isinstance(n, int)]
        values = {id(n.value) for n in others}
        if not known and len(values) == 1:
            return others[0]
        if not others:
            return min(known)
        return self.recorder.apply(min, (*([min(known)] if known else []), *others), {})

    def number(self, x: Any) -> Any:
        """A value used as a number; an optional one is checked not to be None."""
        if type(x) is Poison:
            message = f"this value cannot be used here: {x.reason}"
            raise UntraceableError(message, self.location())
        if isinstance(x, Optional):
            message = "unsupported operand type(s): 'NoneType'"
            self.recorder.check(x.flag, TypeError, (message,))
            return self.number(x.value)
        return x


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


def range_length(start: int, stop: int, step: int) -> int:
    """The number of items in a range."""
    return len(range(start, stop, step))


OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
}

_SEQUENCES = {list, tuple, range}
_ARITHMETIC = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    operator.floordiv: "//", operator.mod: "%", operator.pow: "** or pow()",
}  # fmt: skip
