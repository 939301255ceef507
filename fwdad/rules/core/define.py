"""The ways to write a rule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fwdad.errors import MissingRuleError, UnsupportedTypeError, type_in_words
from fwdad.rules.core.binding import Binder, binder_for
from fwdad.rules.core.contract import check_given, checked
from fwdad.rules.core.partials import NoDerivative, narrowed, partial_of
from fwdad.rules.core.registry import (
    B,
    Rule,
    enter,
    find_rule,
    function_name,
    positions_written,
)
from fwdad.rules.core.reverse_rules import RRULES
from fwdad.tangents.chunk import LAWS, Chunk
from fwdad.tangents.lane_by_lane import map_lanes
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Undefined, Zero

REGISTERS_FOR_OTHERS = True  # its callers are who registers a rule


def frule(
    function: Any,
    *,
    argnums: int | str | Sequence[int | str] | None = None,
    signature: str | None = None,
    mutates: Sequence[int] = (),
    returns: str = "new",
    override: bool = False,
) -> Callable[[B], B]:
    """Register the decorated function as the forward rule of ``function``.

    Parameters
    ----------
    function : callable or str
        The primal, or its dotted name (its module is then not imported).
    argnums : int, str or sequence of these, optional
        The parameters that can be active, by position or name. Default: those without a default.
        They arrive in ``primals``; every other parameter arrives as a keyword option.
    signature : str, optional
        The primal's signature, where Python cannot tell it: ``"(a, b, /, *, axis=-1)"``.
    mutates : sequence of int, optional
        Positions of the primals that the function writes into, which must be arrays. The rule
        itself writes nothing: it returns ``(y, *new), (y_dot, *new_dot)`` with the new contents of
        these primals. In every mode such a call is a store of them.
    returns : {"new", "view", "either"}, default "new"
        Which memory the function returns, and its rule alike: new arrays, views of an argument, or
        either, as the arguments are. It is checked whenever one of them is run with real arrays.
    override : bool, default False
        Replace a rule that exists.

    Returns
    -------
    callable
        A decorator. The decorated ``rule(primals, tangents, **options)`` returns ``(y, y_dot)``;
        a tangent is a ``Chunk`` or ``ZERO``, and ``y_dot`` mirrors the structure of ``y``.

    Raises
    ------
    UnsupportedTypeError
        If ``function`` is neither a function nor a name.
    ValueError
        If ``argnums`` or ``mutates`` name no parameter, or ``signature`` is none; if ``returns`` is
        another word, or a function that writes returns views.
    DuplicateRuleError
        If ``function`` has a rule and ``override`` is False.

    Notes
    -----
    Where the rule runs, its tangents are checked: each is a ``Chunk`` or ``ZERO``, as wide as those
    that came, of the shape of its value, and real where that is (``ChunkMismatchError``). What it
    says of memory is checked likewise (``RuleError``).

    Derivatives of a view that is written into are not traced: reverse mode then records the
    function as it runs, and ``jit`` raises. Let the function return a copy where that matters.

    Examples
    --------
    >>> import numpy as np, fwdad
    >>> def cube(x):
    ...     return x**3
    >>> @fwdad.frule(cube)
    ... def cube_frule(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return x**3, 3 * x**2 * x_dot
    >>> fwdad.derivative(cube, 2.0)
    12.0
    """
    if not callable(function) and not isinstance(function, str):
        message = f"frule takes a function, or its dotted name; got {type_in_words(function)}"
        raise UnsupportedTypeError(message)
    _check_returns(returns, mutates)

    def register(body: B) -> B:
        if not callable(body):
            message = f"frule(f) decorates the rule, a function; got {type_in_words(body)}"
            raise UnsupportedTypeError(message)

        def make(resolved: Any) -> Rule:
            binder = _binder(function, resolved, signature, argnums)
            late = isinstance(function, str)
            written = positions_written(mutates, None if late else binder)
            return Rule(resolved, "frule", body, binder, mutates=written, returns=returns)

        enter(function, make, override=override)
        return body

    return register


def _binder(function: Any, resolved: Any, signature: str | None, argnums: Any) -> Binder:
    """The binder of a function; of one that is known by its dotted name, it looks later."""
    late = isinstance(function, str)
    return binder_for(resolved, function_name(resolved), signature, argnums, late=late)


def _check_returns(returns: str, mutates: Any = ()) -> None:
    if returns not in ("new", "view", "either"):
        raise ValueError(f'returns must be "new", "view" or "either", not {returns!r}')
    if mutates != () and returns != "new":
        raise ValueError(f"a function that writes (mutates={mutates!r}) must return new memory")


def elementwise(
    function: Any,
    *partials: Any,
    signature: str | None = None,
    returns: str = "new",
    override: bool = False,
) -> None:
    """Register an elementwise function by its partial derivatives.

    Parameters
    ----------
    function : callable or str
        A ufunc, or a function that acts element by element.
    *partials : callable or no_derivative
        One per argument; each takes all primals and then the output: ``lambda x, y: np.cos(x)``.
    signature, returns, override
        See :func:`frule`.

    Raises
    ------
    DuplicateRuleError
        If the function has a rule and ``override`` is False.
    TypeError
        If there are not as many partials as arguments, or one of them is no function.

    Notes
    -----
    A partial that is infinite or NaN contributes exactly zero where the tangent is exactly zero.
    Floating-point warnings inside a partial are silenced: the primal has given its own.

    Examples
    --------
    >>> import numpy as np
    >>> import fwdad
    >>> def softplus(x):
    ...     return np.logaddexp(0.0, x)
    >>> elementwise(softplus, lambda x, y: 1 / (1 + np.exp(-x)))
    >>> fwdad.jvp(softplus, np.zeros(2), np.ones(2))[1]
    array([0.5, 0.5])
    """
    _check_returns(returns)
    given = partials
    for p in given:
        if not callable(p) and not isinstance(p, NoDerivative):
            message = f"a partial is a function of primals and y; got {type_in_words(p)}"
            raise TypeError(message)

    def make(resolved: Any) -> Rule:
        binder = _binder(function, resolved, signature, None)
        late = isinstance(function, str)  # its signature is not looked at yet
        if not late and binder.variadic is None and len(given) != len(binder.primals):
            raise TypeError(
                f"{function_name(resolved)} has {len(binder.primals)} arguments, but got "
                f"{len(given)} partials: pass one for each, no_derivative(reason) where there "
                "is none"
            )
        partials = tuple(
            p.of(function_name(resolved), partial(binder.primal_name, k))
            if isinstance(p, NoDerivative)
            else p
            for k, p in enumerate(given)
        )

        def body(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
            y = resolved(*primals, **options)
            y_dot: Any = ZERO
            for k, x_dot in enumerate(tangents):
                if not isinstance(x_dot, Zero):
                    d = partial_of(partials[k], primals, y)
                    shape = np.shape(plain(y))
                    term = x_dot.scale(d, shape if np.shape(plain(d)) else None)
                    y_dot = y_dot + (term.broadcast_to(shape) if term.shape != shape else term)
            return y, narrowed(y_dot, y)

        return Rule(resolved, "elementwise", body, binder, partials=partials, returns=returns)

    enter(function, make, override=override)


def linear(
    function: Any,
    *,
    argnums: int | str = 0,
    signature: str | None = None,
    returns: str = "new",
    override: bool = False,
) -> None:
    """Register a function that is linear in one argument: the rule is the function itself.

    Parameters
    ----------
    function : callable or str
        If NumPy's own and in the closed list of :class:`Chunk`, it is applied to the chunk;
        otherwise it is applied lane by lane.
    argnums : int or str, default 0
        The parameter in which it is linear. The others must be inactive.
    signature, returns, override
        See :func:`frule`.

    Raises
    ------
    DuplicateRuleError
        If the function has a rule and ``override`` is False.

    Notes
    -----
    Lane by lane costs N calls. Reverse mode needs its adjoint: see :func:`transpose`.

    Examples
    --------
    >>> import numpy as np
    >>> import fwdad
    >>> def rolled(x):
    ...     return np.concatenate([x[-1:], x[:-1]])
    >>> linear(rolled)
    >>> fwdad.jvp(rolled, np.array([1.0, 2.0]), np.array([0.0, 5.0]))[1]
    array([5., 0.])
    """
    multilinear(
        function, argnums=(argnums,), signature=signature, returns=returns, override=override
    )


def multilinear(
    function: Any,
    *,
    argnums: Sequence[int | str] = (0, 1),
    signature: str | None = None,
    returns: str = "new",
    override: bool = False,
) -> None:
    """Register a function that is linear in each of several arguments, such as a product.

    Parameters
    ----------
    function : callable or str
        See :func:`linear`.
    argnums : sequence of int or str, default (0, 1)
        The parameters in which it is linear, each with the others fixed.
    signature, returns, override
        See :func:`frule`.

    Raises
    ------
    DuplicateRuleError
        If the function has a rule and ``override`` is False.
    """
    _check_returns(returns)

    def make(resolved: Any) -> Rule:
        binder = _binder(function, resolved, signature, argnums)
        count = len(binder.primals)
        scipy = str(getattr(resolved, "__module__", "")).startswith("scipy")

        def body(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
            if scipy and options.get("overwrite_x"):  # the tangent is that of x as it is
                options["overwrite_x"] = False
            args, kwargs = binder.unbind(primals, options)
            y = resolved(*args, **kwargs)
            y_dot: Any = ZERO
            for k, x_dot in enumerate(tangents):
                if isinstance(x_dot, Undefined):
                    x_dot.use()
                if isinstance(x_dot, Zero):
                    continue
                y_dot = y_dot + _linear_term(resolved, binder, primals, k, x_dot, options, y)
            return y, y_dot

        kind = "linear" if count == 1 else "multilinear"
        named = tuple(range(count))
        return Rule(resolved, kind, body, binder, linear_argnums=named, returns=returns)

    enter(function, make, override=override)


def _linear_term(
    function: Any,
    binder: Binder,
    primals: tuple[Any, ...],
    k: int,
    x_dot: Any,
    options: dict[str, Any],
    y: Any,
) -> Any:
    if type(x_dot) is not Chunk:
        for part in x_dot if isinstance(x_dot, (tuple, list)) else (x_dot,):
            if hasattr(part, "__fwdad_linear__"):  # a tangent that writes down what is done to it
                return part.__fwdad_linear__(
                    function,
                    (*primals[:k], x_dot, *primals[k + 1 :]),
                    options,
                    lambda value: _linear_term(function, binder, primals, k, value, options, y),
                    x_dot,
                    y,
                )
    if function in LAWS:
        args, kwargs = binder.unbind((*primals[:k], x_dot, *primals[k + 1 :]), options)
        return LAWS[function](*args, **kwargs)

    def one(lane: Any) -> Any:
        args, kwargs = binder.unbind((*primals[:k], lane, *primals[k + 1 :]), options)
        return function(*args, **kwargs)

    return map_lanes(one, x_dot)


def locally_constant(*functions: Any) -> None:
    """Declare functions whose output carries no tangent: comparisons, ``floor``, ``argmax``, ….

    Parameters
    ----------
    *functions : callable
        Called with the primals; the value comes back without a tangent.

    Raises
    ------
    DuplicateRuleError
        If one of them has a rule.
    """
    for function in functions:

        def make(resolved: Any) -> Rule:
            def body(primals: tuple[Any, ...], _tangents: Any, **options: Any) -> Any:
                return resolved(*primals, **options), ZERO

            binder = Binder(function_name(resolved), _ANYTHING, ("args",))
            return Rule(resolved, "constant", body, binder, returns="new")

        enter(function, make, override=False)


def _anything(*args: Any, **kwargs: Any) -> None: ...


_ANYTHING = inspect.signature(_anything)


def call_rule(
    function: Any, primals: Iterable[Any], tangents: Iterable[Any], **options: Any
) -> Any:
    """Use another function's rule inside a rule; :func:`fwdad.call_rule` takes any function."""
    primals, tangents = tuple(primals), tuple(tangents)
    rule = find_rule(function)
    if rule is None:
        raise MissingRuleError(f"no frule for {function_name(function)}")
    bound, rest = rule.binder.bind(primals, options)
    if len(bound) != len(tangents):
        tangents = tangents + (ZERO,) * (len(bound) - len(tangents))
    n = check_given(f"call_rule({rule.name})", bound, tangents)
    if function in RRULES:
        for t in tangents:
            if hasattr(t, "record"):
                return t.record.run_rule(rule, rule.body, bound, tangents, rest)
    result = rule.body(bound, tangents, **rest)
    return result if n is None or not rule.of_user else checked(rule, result, bound, n, rest)
