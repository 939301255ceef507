"""``autograd.extend``: rules as autograd writes them, registered as fwdad's.

A function needs no wrapper to be differentiated, so :func:`primitive` returns a copy that can have
rules of its own; ``defvjp`` registers an rrule for it, ``defjvp`` an frule.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fwdad.compat.conventions import conjugate, copy_of, refused
from fwdad.eager_reverse.define import rrule
from fwdad.rules.core.define import frule, locally_constant, multilinear
from fwdad.tangents.lane_by_lane import map_lanes
from fwdad.tangents.zero import ZERO, Zero

REGISTERS_FOR_OTHERS = True  # its callers are who registers a rule


def primitive(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that may have rules by :func:`defvjp` and :func:`defjvp`.

    Parameters
    ----------
    f : callable
        A Python function.

    Returns
    -------
    callable
        A copy of f. Without rules it is differentiated through its source.

    Raises
    ------
    UnsupportedTypeError
        If f is no Python function: NumPy's functions have their rules already.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat.autograd import grad
    >>> from fwdad.compat.autograd.extend import primitive, defvjp
    >>> @primitive
    ... def logsumexp(x):
    ...     top = np.max(x)
    ...     return top + np.log(np.sum(np.exp(x - top)))
    >>> defvjp(logsumexp, lambda ans, x: lambda g: g * np.exp(x - ans))
    >>> grad(logsumexp)(np.zeros(4))
    array([0.25, 0.25, 0.25, 0.25])
    """
    return copy_of(f)


def notrace_primitive(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function whose value is a constant.

    Parameters
    ----------
    f : callable
        A Python function, which gets plain arrays.

    Returns
    -------
    callable
        A copy of f.
    """
    made = copy_of(f)
    locally_constant(made)
    return made


def defvjp(fun: Callable[..., Any], *vjpmakers: Any, argnums: Iterable[int] | None = None) -> None:
    """Say how cotangents are pulled back through a primitive.

    Parameters
    ----------
    fun : callable
        Made by :func:`primitive`.
    *vjpmakers : callable or None
        For one argument each: ``vjpmaker(ans, *args, **kwargs)`` returns the function of a
        cotangent g. None means that the derivative is zero.
    argnums : iterable of int, optional
        The positions of these arguments; 0, 1, … by default.

    Raises
    ------
    DuplicateRuleError
        If fun has a reverse rule already.
    """
    positions = _positions(vjpmakers, argnums)
    makers = dict(zip(positions, vjpmakers, strict=True))

    def pulled(numbers: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Any:
        functions = [
            None if makers[k] is None else makers[k](ans, *args, **kwargs) for k in numbers
        ]
        return lambda g: tuple([ZERO if vjp is None else vjp(g) for vjp in functions])

    _register_reverse(fun, positions, pulled)


def defvjp_argnum(fun: Callable[..., Any], vjpmaker: Callable[..., Any]) -> None:
    """Say how cotangents are pulled back through a primitive, to one argument at a time.

    Parameters
    ----------
    fun : callable
        Made by :func:`primitive`.
    vjpmaker : callable
        ``vjpmaker(argnum, ans, args, kwargs)`` returns the function of a cotangent g.
    """

    def pulled(numbers: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Any:
        functions = [vjpmaker(k, ans, args, kwargs) for k in numbers]
        return lambda g: tuple([vjp(g) for vjp in functions])

    _register_reverse(fun, None, pulled)


def defvjp_argnums(fun: Callable[..., Any], vjpmaker: Callable[..., Any]) -> None:
    """Say how cotangents are pulled back through a primitive, to several arguments together.

    Parameters
    ----------
    fun : callable
        Made by :func:`primitive`.
    vjpmaker : callable
        ``vjpmaker(argnums, ans, args, kwargs)`` returns a function of a cotangent g that returns a
        tuple. It is always asked for all arguments.
    """

    def pulled(numbers: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Any:
        vjp = vjpmaker(tuple(numbers), ans, args, kwargs)
        return lambda g: tuple(vjp(g))

    _register_reverse(fun, None, pulled)


def defjvp(fun: Callable[..., Any], *jvpfuns: Any, argnums: Iterable[int] | None = None) -> None:
    """Say how tangents are pushed forward through a primitive.

    Parameters
    ----------
    fun : callable
        Made by :func:`primitive`.
    *jvpfuns : callable, "same" or None
        For one argument each: ``jvpfun(g, ans, *args, **kwargs)`` returns the tangent of the value
        for the tangent g of the argument. ``"same"`` means that fun is linear in it, None that the
        derivative is zero.
    argnums : iterable of int, optional
        The positions of these arguments; 0, 1, … by default.

    Raises
    ------
    DuplicateRuleError
        If fun has a forward rule already.
    """
    positions = _positions(jvpfuns, argnums)
    pushes = dict(zip(positions, jvpfuns, strict=True))

    def pushed(k: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        push = pushes[k]
        if push is None:
            return np.zeros_like(ans)
        if isinstance(push, str):
            return fun(*args[:k], g, *args[k + 1 :], **kwargs)
        return push(g, ans, *args, **kwargs)

    _register_forward(fun, positions, pushed)


def defjvp_argnum(fun: Callable[..., Any], jvpmaker: Callable[..., Any]) -> None:
    """Say how the tangent of one argument at a time is pushed forward through a primitive.

    Parameters
    ----------
    fun : callable
        Made by :func:`primitive`.
    jvpmaker : callable
        ``jvpmaker(argnum, g, ans, args, kwargs)`` returns the tangent of the value.
    """
    _register_forward(fun, None, jvpmaker)


def def_linear(fun: Callable[..., Any]) -> None:
    """Say that a primitive is linear in each of its arguments.

    Parameters
    ----------
    fun : callable
        Made by :func:`primitive`.
    """
    multilinear(fun, argnums=_all_positions(fun))


def _positions(rules: Sequence[Any], argnums: Iterable[int] | None) -> tuple[int, ...]:
    counted = itertools.count() if argnums is None else argnums
    return tuple([k for k, _ in zip(counted, rules, strict=False)])


def _all_positions(fun: Callable[..., Any]) -> tuple[int, ...]:
    """The parameters that autograd counts: those that may be passed by position."""
    parameters = inspect.signature(fun).parameters.values()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple([k for k, p in enumerate(parameters) if p.kind in by_position])


def _register_reverse(
    fun: Callable[..., Any], positions: tuple[int, ...] | None, pulled: Callable[..., Any]
) -> None:
    numbers = _all_positions(fun) if positions is None else positions
    call_of = _Calls(fun, numbers)

    @rrule(fun, argnums=numbers)
    def rule(primals: tuple[Any, ...], **options: Any) -> Any:
        args, kwargs = call_of(primals, options)
        ans = fun(*args, **kwargs)
        pull = pulled(numbers, ans, args, kwargs)
        return ans, lambda y_bar: conjugate(pull(conjugate(y_bar)))


def _register_forward(
    fun: Callable[..., Any], positions: tuple[int, ...] | None, pushed: Callable[..., Any]
) -> None:
    numbers = _all_positions(fun) if positions is None else positions
    call_of = _Calls(fun, numbers)

    @frule(fun, argnums=numbers)
    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
        args, kwargs = call_of(primals, options)
        ans = fun(*args, **kwargs)
        y_dot: Any = ZERO
        for k, x_dot in zip(numbers, tangents, strict=True):
            if not isinstance(x_dot, Zero):
                push = functools.partial(_pushed, pushed, k, ans, args, kwargs)
                y_dot = y_dot + map_lanes(push, x_dot)
        return ans, y_dot


def _pushed(
    push: Callable[..., Any], k: int, ans: Any, args: Any, kwargs: dict[str, Any], g: Any
) -> Any:
    return push(k, g, ans, args, kwargs)


class _Calls:
    """Puts the primals and options of a rule into the call that autograd would have seen."""

    def __init__(self, fun: Callable[..., Any], numbers: tuple[int, ...]) -> None:
        parameters = list(inspect.signature(fun).parameters.values())
        self.numbers = numbers
        self.names = [parameters[k].name for k in _all_positions(fun)]
        variadic = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
        self.rest = variadic[0] if variadic else None

    def __call__(
        self, primals: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs = dict(options)
        values = dict(zip(self.numbers, primals, strict=True))
        args = [values[k] if k in values else kwargs.pop(n) for k, n in enumerate(self.names)]
        args.extend(kwargs.pop(self.rest, ()) if self.rest else ())
        return tuple(args), kwargs


_BOXES = "There are no boxes or vector spaces: values are NumPy's while f runs"
Box = refused("autograd.extend.Box", f"{_BOXES}; test for np.ndarray")
VSpace = refused("autograd.extend.VSpace", f"{_BOXES}; write fwdad.register_tangent_type")
vspace = refused("autograd.extend.vspace", f"{_BOXES}; write fwdad.zero_tangent(x, 1)")
SparseObject = refused("autograd.extend.SparseObject", "Write fwdad.frule, which returns a tangent")
defjvp_argnums = refused("autograd.extend.defjvp_argnums", "Write fwdad.frule, or defjvp_argnum")
register_notrace = refused("autograd.extend.register_notrace", "Write notrace_primitive(f)")
