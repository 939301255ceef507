"""Functions made from functions: what ``grad(f)``, or ``jacobian(f)`` without a point, returns."""

from __future__ import annotations

import enum
import functools
from typing import Any, Final

from fwdad.core.tracebacks import leave
from fwdad.eager.lifting.reached import Carrier
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.arguments import argument_numbers, check_chunk
from fwdad.evaluation.signatures import Argnums, Function


class NotGiven(enum.Enum):
    """The class of :data:`NOT_GIVEN`."""

    NOT_GIVEN = enum.auto()

    def __repr__(self) -> str:
        return "<not given>"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN
"""The point of an evaluator that is called with a function alone."""


def at_once(f: Any, args: Any, kwargs: Any) -> Any:
    """Call an evaluator outside of a trace."""
    return f(*args, **kwargs)


class Transformed(Carrier):
    """A transformed function: it has f's signature, and pickles when f does, with its source."""

    def __init__(self, evaluate: Any, f: Function, argnums: Argnums, **options: Any) -> None:
        if not callable(f):
            raise UnsupportedTypeError(f"expected a function; got {type_in_words(f)}")
        self._evaluate = evaluate
        self._options = options
        self.argnums = argument_numbers(argnums)
        check_chunk(options["chunk"])
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative at some arguments of f."""
        try:
            return self.evaluate(at_once, args, kwargs)
        except BaseException as error:
            leave(error)
            raise

    def __repr__(self) -> str:
        return f"<fwdad.{self._name} of {self.__wrapped__!r}>"

    @property
    def _name(self) -> str:
        """The name of what has made it."""
        name: str = self._evaluate.__name__
        return name.removeprefix("_").removeprefix("call_")

    def evaluate(self, call: Any, args: Any, kwargs: Any) -> Any:
        """Call the evaluator by ``call``."""
        if not args:
            raise UnsupportedTypeError(
                "the argument to differentiate with respect to must be positional: write "
                f"{self._name}(f)(x), not {self._name}(f)(x=x)"
            )
        return self._evaluate(call, self.__wrapped__, self.argnums, args, kwargs, self._options)

    def _made_by(self) -> Any:
        return (_restore, (self._evaluate, self.__wrapped__, self.argnums, self._options))


def without_point(
    evaluate: Any, f: Function, args: Any, kwargs: Any, argnums: Argnums = 0, **options: Any
) -> Transformed:
    """What an evaluator returns that is given no point: the function that is given one."""
    made = Transformed(evaluate, f, argnums, **options)
    if args or kwargs:
        name = made._name  # noqa: SLF001  (in its own file)
        raise UnsupportedTypeError(
            f"args and kwargs are of f at a point, and there is none: write {name}(f, x, args=…), "
            f"or give them to the function that {name}(f) returns"
        )
    return made


def _restore(evaluate: Any, f: Function, argnums: Argnums, options: dict[str, Any]) -> Transformed:
    return Transformed(evaluate, f, argnums, **options)
