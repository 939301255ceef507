"""``@reversible``: functions that run backwards."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, overload

import numpy as np

from fwdad.core.tracebacks import leave
from fwdad.display.html import beside, framed, mono
from fwdad.display.source import listing, plain_lines
from fwdad.errors import AliasedArgumentError, CapacityError, UnsupportedTypeError, type_in_words
from fwdad.reversible.arguments.kinds import Kind, Record, kind_of
from fwdad.reversible.arguments.records import (
    check_mutable,
    flat_kinds,
    flat_values,
    rebuilt,
    shared_records,
    updated_in_place,
    with_room,
)
from fwdad.reversible.language.printer import show_program
from fwdad.reversible.language.program import Program
from fwdad.reversible.lowering.definition import Definition
from fwdad.reversible.numbers.grid import ExactNumber
from fwdad.reversible.numbers.logarithmic import Logarithmic, value_of


class Reversible:
    """A reversible function: see :func:`reversible`.

    Calling it returns the updated arguments, a tuple unless there is one; ``~f`` undoes it.

    Attributes
    ----------
    definition : Definition
        Shared with the inverse.
    inverse : bool
        Whether this is the inverse of what was written.
    """

    def __init__(self, definition: Definition, inverse: bool, other: Reversible | None) -> None:
        self.definition = definition
        self.inverse = inverse
        functools.update_wrapper(self, definition.f)
        if inverse:
            self.__name__ = self.program.name
        self._other = other if other is not None else Reversible(definition, not inverse, self)

    @property
    def __loss__(self) -> Callable[..., Any]:
        """The function whose value is the loss alone: what gradients are taken of."""
        return Loss(self)

    @property
    def program(self) -> Program:
        """What it does."""
        return self.definition.backward if self.inverse else self.definition.forward

    def __invert__(self) -> Reversible:
        return self._other

    def __show__(self) -> str:
        """What ``show`` returns: the program."""
        return show_program(self.program)

    def __repr__(self) -> str:
        return f"<reversible function {self.__name__}>"

    def _repr_html_(self) -> str:
        both = (listing(plain_lines(f.__show__())) for f in (self, self._other))
        names = f"{self.__name__}, and beside it ~{self.__name__}"
        return framed(mono(names), beside(*both), note="a reversible function and its inverse")

    def __get__(self, owner: Any, _cls: type | None = None) -> Any:
        return self if owner is None else Bound(self, owner)

    def __reduce__(self) -> Any:
        return (operator.invert, (self._other,)) if self.inverse else self.definition.f.__qualname__

    def __call__(self, *args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        """Update the arguments, and return them.

        Parameters
        ----------
        *args, **kwargs : object
            Numbers, arrays, records of them, functions: one for each parameter.
        inplace : bool, default False
            Whether the caller's arrays and objects are updated, too: at the end, when nothing can
            fail any more. They are copied in any case.

        Returns
        -------
        tuple or object
            All arguments in their order, new where they were updated; one alone as it is.
        """
        try:
            args = self.arguments(args, kwargs)
            return growing(
                self, args, lambda arguments: self._run(arguments, inplace), inplace=inplace
            )
        except BaseException as error:
            leave(error)
            raise

    def _run(self, args: tuple[Any, ...], inplace: bool) -> Any:
        self.definition.refresh()
        kinds = tuple(kind_of(a) for a in args)
        lowered = self.definition.lowered(kinds, self.inverse, False)
        values = flat_values(args, kinds)
        flat = flat_kinds(kinds)
        updated = self.definition.updated(kinds)
        self._check_apart(values, flat, updated)
        has_records = any(isinstance(k, Record) for k in kinds)
        if has_records and shared_records(args, kinds, updated):
            message = (
                f"two arguments of {self.__name__} are one object, which it updates: pass a copy "
                "as one of them"
            )
            raise AliasedArgumentError(message)
        if inplace:
            check_mutable(args, kinds, updated)
        copies = [v.copy() if k.is_array else v for v, k in zip(values, flat, strict=True)]
        new = lowered.function(*copies)
        places = [k for k in sorted(updated) if not flat[k].is_array]
        for k, value in zip(places, new if len(places) > 1 else (new,), strict=False):
            copies[k] = value
        if inplace:
            for k, (a, b) in enumerate(zip(values, copies, strict=True)):
                if flat[k].is_array:
                    a[...] = b
                    copies[k] = a
            result = updated_in_place(args, kinds, iter(copies))
        else:
            result = rebuilt(args, kinds, iter(copies))
        return result[0] if len(result) == 1 else tuple(result)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call, one for each parameter.

        Raises
        ------
        TypeError
            If they do not fit.
        """
        if not kwargs and len(args) == len(self.definition.forward.params):
            return args
        try:
            bound = inspect.signature(self.definition.f).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _check_apart(self, values: list[Any], kinds: list[Kind], updated: set[int]) -> None:
        """Raise if an array that is updated shares memory with another."""
        arrays = [k for k, kind in enumerate(kinds) if kind.is_array]
        for k in updated & set(arrays):
            for j in arrays:
                if j != k and np.may_share_memory(values[j], values[k]):
                    message = (
                        f"two arguments of {self.__name__} share memory, and it updates one of "
                        "them: pass a copy of it"
                    )
                    raise AliasedArgumentError(message)


def growing(
    f: Reversible,
    args: tuple[Any, ...],
    run: Callable[[tuple[Any, ...]], Any],
    *,
    inplace: bool = False,
) -> Any:
    """Run a function again with more room while a stack or dictionary that may grow is full.

    ``run(args)`` must leave the arguments as they are if it raises. With ``inplace`` the containers
    among the arguments get more room themselves, otherwise copies of them do.
    """
    last: Any = None
    while True:
        try:
            return run(args)
        except CapacityError as error:
            full = (error.variable, error.line, error.found)
            if full == last:  # more room elsewhere has not helped: this one does not grow
                raise
            grown = with_room(args, inplace=inplace)
            if not f.definition.make_room(set()) and grown is None:
                raise
            args = args if grown is None else grown
            last = full


class Bound:
    """A reversible function as a method of an object, which is its first parameter.

    Calling it returns the updated object, followed by the updated arguments.
    """

    def __init__(self, function: Reversible, owner: Any) -> None:
        self.function = function
        self.owner = owner
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        """Update the object and the arguments, and return them, as the function does."""
        return self.function(self.owner, *args, inplace=inplace, **kwargs)

    @property
    def __loss__(self) -> Callable[..., Any]:
        """The function whose value is the loss alone: the first parameter after the object."""
        return Loss(self, at=1)

    def __invert__(self) -> Bound:
        return Bound(~self.function, self.owner)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bound):
            return NotImplemented
        return self.function is other.function and self.owner is other.owner

    def __hash__(self) -> int:
        return hash((self.function, id(self.owner)))

    def __show__(self) -> str:
        """What ``show`` returns: the program."""
        return self.function.__show__()

    def __repr__(self) -> str:
        return f"<reversible method {self.function.__name__} of {self.owner!r}>"

    def _repr_html_(self) -> str:
        return self.function._repr_html_()


class Loss:
    """The function whose value is one updated parameter of a reversible function."""

    def __init__(self, f: Reversible | Bound, at: int = 0) -> None:
        self.f = f
        self.at = at
        functools.update_wrapper(self, f, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The loss."""
        return self.pick(self.f(*args, **kwargs), lambda f, x: f(x))

    def pick(self, result: Any, call: Callable[[Any, Any], Any]) -> Any:
        """Select the loss from what the function returns, as a float.

        ``call(f, x)`` calls a function where the result was computed: in a trace, or on duals.
        """
        loss = result[self.at] if type(result) is tuple else result
        if isinstance(loss, Logarithmic):
            return call(value_of, loss.stored)
        return loss.stored if isinstance(loss, ExactNumber) else loss


@overload
def reversible(
    f: Callable[..., Any], *, check: bool = True, tolerance: float = 1e-8
) -> Reversible: ...
@overload
def reversible(
    f: None = None, *, check: bool = True, tolerance: float = 1e-8
) -> Callable[[Callable[..., Any]], Reversible]: ...
def reversible(
    f: Callable[..., Any] | None = None, *, check: bool = True, tolerance: float = 1e-8
) -> Any:
    """Make a function reversible: a decorator.

    Parameters
    ----------
    f : function
        Its body is read, never run: each statement must be one of the language's (see the page on
        reversible programs).
    check : bool, default True
        Whether run-time checks are made. Without them a program that breaks its promises has an
        inverse that is silently wrong.
    tolerance : float, default 1e-8
        How far a float may be from the value with which it is freed, over ``max(1, |value|)``.

    Returns
    -------
    Reversible

    Raises
    ------
    IrreversibleError
        If a statement has no inverse; with file, line and variable.
    """
    if f is None:
        return functools.partial(reversible, check=check, tolerance=tolerance)
    if not isinstance(f, FunctionType):
        message = f"@reversible takes a function that 'def' defines; got {type_in_words(f)}"
        raise UnsupportedTypeError(message)
    return Reversible(Definition(f, checked=check, tolerance=tolerance), False, None)
