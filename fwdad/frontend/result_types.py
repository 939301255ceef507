"""Result types of functions with a rule, inferred from their source without calling them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.containers import of_class
from fwdad.eager.calls.dispatch import python_inside
from fwdad.errors import Location, RuleError, UntraceableError, type_in_words
from fwdad.frontend.arguments import UNKNOWN
from fwdad.frontend.captures import Captures
from fwdad.frontend.retrace import until_traced
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.ways import Places
from fwdad.ir.abstract_eval.infer import typed_by_source
from fwdad.ir.analysis.alias import memory_here
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Operand, is_array, map_values, values_in, walk
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, CannotInferError, Size, number_type
from fwdad.rules.core import containers
from fwdad.rules.core.contract import memory_of_argument, undeclared_write
from fwdad.rules.core.registry import Rule, find_rule, writer_of


@typed_by_source
def type_by_source(
    function: Callable[..., Any],
    args: Operand,
    kwargs: dict[str, Operand],
    known: dict[Size, int],
    place: Callable[[], Location | None],
) -> Any:
    """The type of a function's result, in its structure, from the function's source.

    The lengths that the source needs are added to ``known``.
    ``CannotInferError`` if the source cannot be read or traced.
    """
    writer = writer_of(function)
    if writer is not None:
        function = writer.function
    rule = find_rule(function)
    python: Any = python_inside(function) or function

    def attempt(recursive: dict[Any, Any], lists: dict[Any, Any], _ways: Places) -> Any:
        recorder = Recorder()
        recorder.lengths.known = assumed = dict(known)
        captures = Captures(recorder, 0, UNKNOWN)
        recorder.capture = captures.array
        tracer = Interpreter(recorder, captures, recursive, lists)
        given, named = map_values(lambda value: Symbol(value, recorder), [args, kwargs])
        returned = tracer.inline.call_by_source(python, tuple(given), named)
        y = _type(returned, recorder.lengths.resolved)
        if rule is not None and rule.of_user:
            _check_memory(rule, recorder, args, kwargs, returned, place)
        own = {d for v in values_in([args, kwargs]) for d in v.type.shape}
        known.update({d: n for d, n in assumed.items() if d in own})
        if writer is None:
            return y
        primals, _ = writer.binder.bind(tuple(given), named)
        return (y, *[_type(primals[k], recorder.lengths.resolved) for k in writer.mutates])

    try:
        return until_traced(attempt)
    except (UntraceableError, AlwaysRaises) as error:
        raise CannotInferError(str(error)) from error


def _check_memory(
    rule: Rule,
    recorder: Recorder,
    args: Any,
    kwargs: Any,
    returned: Any,
    place: Callable[[], Location | None],
) -> None:
    """Refuse a function that visibly writes or returns memory that its rule does not declare."""
    arguments = {v: at for at, x in [*enumerate(args), *kwargs.items()] for v in values_in(x)}
    if rule.returns == "new":
        arrays = {v for v in arguments if is_array(v)}
        for _, x in containers.walk(returned):
            if type(x) is Symbol and x.is_array and recorder.definitions.is_view(x.value, arrays):
                raise RuleError(memory_of_argument(rule), place())
    if rule.mutates:
        return
    roots = memory_here(recorder.block)
    for op in walk(recorder.block):
        for v in values_in(op.writes()):
            owners = roots.get(v, {v})
            written = owners & arguments.keys()
            if written and (v in arguments or v not in owners):  # else it may be a copy
                raise RuleError(undeclared_write(rule, arguments[written.pop()]), place())


def _type(y: Any, resolved: Callable[[Any], Any]) -> Any:
    """A traced result as types."""
    if type(y) is Symbol:
        return resolved(y.type)
    if isinstance(y, (tuple, list)):
        parts = [_type(item, resolved) for item in y]
        return of_class(type(y), parts)
    if isinstance(y, np.ndarray):
        return ArrayType(y.dtype, y.shape)
    number = number_type(y)
    if number is None and y is not None:
        raise CannotInferError(f"it returns {type_in_words(y)}, not numbers or arrays")
    return number
