"""Builtins of numbers, and operators as functions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.operators import BINARY, COMPARISONS
from fwdad.errors import UntraceableError
from fwdad.frontend.calls.tables import BUILTINS, builtin
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol, UnknownText
from fwdad.ir.types import FLOAT, number_type


@builtin(abs)
def _abs(tracer: Tracer, x: Any) -> Any:
    x = tracer.values.number(x)
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol:
        return tracer.recorder.apply(abs, (x,), {})
    return tracer.outside.in_c(abs, x)


def _conversion(cls: type) -> Callable[..., Any]:
    def handle(tracer: Tracer, *args: Any) -> Any:
        args = tuple(tracer.values.number(a) for a in args)
        if len(args) == 1 and cls is not bool:
            special = tracer.values.python_method(args[0], f"__{cls.__name__}__")
            if special is not None:
                args = (tracer.call(special, args, {}),)
        elif len(args) == 1 and type(args[0]) is not Symbol:
            return tracer.values.python_bool(tracer.truth(args[0]))
        if any(isinstance(a, UnknownText) for a in args):
            tracer.values.refuse_text()
        if not any(type(a) is Symbol for a in args):
            return tracer.outside.in_c(cls, *args)
        (x,) = args if len(args) == 1 else (None,)
        if x is not None and x.type == FLOAT and cls is float:
            return x
        if cls is bool:
            return tracer.values.python_bool(tracer.truth(x))
        return tracer.recorder.apply(cls, args, {})

    return handle


for _cls in (int, float, complex, bool):
    BUILTINS[_cls] = _conversion(_cls)


@builtin(round)
def _round(tracer: Tracer, x: Any, ndigits: Any = None) -> Any:
    args = (x,) if ndigits is None else (x, ndigits)
    if type(x) is Symbol:
        return tracer.recorder.apply(round, args, {})
    return tracer.outside.in_c(round, *args)


@builtin(divmod)
def _divmod(tracer: Tracer, a: Any, b: Any) -> Any:
    return tracer.binary(operator.floordiv, a, b), tracer.binary(operator.mod, a, b)


@builtin(pow)
def _pow(tracer: Tracer, base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is not None:
        return native(pow, *(tracer.values.known(x) for x in (base, exp, mod)))
    return tracer.binary(operator.pow, base, exp)


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tracer, a, b: tracer.binary(function, a, b)


for _known in (*BINARY, *COMPARISONS):
    BUILTINS[_known.function] = _operator(_known.function)


@builtin(operator.is_)
def _is(tracer: Interpreter, a: Any, b: Any) -> Any:
    return tracer.conditions.compare(ast.Is(), a, b)


@builtin(operator.is_not)
def _is_not(tracer: Interpreter, a: Any, b: Any) -> Any:
    return tracer.conditions.compare(ast.IsNot(), a, b)


def _by_name(function: Any, *, swapped: bool = False) -> Any:
    """The meaning of ``float.__mul__(a, b)`` and the like: the operator, between two numbers."""

    def call(tracer: Tracer, a: Any, b: Any) -> Any:
        if not all(_is_number(x) for x in (a, b)):
            return NotImplemented
        return tracer.binary(function, b, a) if swapped else tracer.binary(function, a, b)

    return call


def _is_number(x: Any) -> bool:
    return not x.is_array if type(x) is Symbol else number_type(x) is not None


for _op in (*BINARY, *COMPARISONS):
    if hasattr(float, _op.method):
        builtin(getattr(float, _op.method))(_by_name(_op.function))
    if _op.reflected and _op in BINARY and hasattr(float, _op.reflected):
        builtin(getattr(float, _op.reflected))(_by_name(_op.function, swapped=True))


@builtin(np.seterr)
def _seterr(tracer: Tracer, all: Any = None, **given: Any) -> Any:  # noqa: A002
    """The settings as they are: operations of a tape give no warnings."""
    if {all, *given.values()} & {"raise", "call", "print", "log"}:
        message = "`np.seterr` that raises, prints or calls cannot be traced: call it outside"
        raise UntraceableError(message, tracer.position.location())
    return dict(np.geterr())
