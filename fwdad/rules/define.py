"""The registry of rules, and the ways to write one."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fwdad.errors import DuplicateRuleError, MissingRuleError, UndefinedDerivativeError
from fwdad.rules.binding import Binder, binder_for
from fwdad.tangents.chunk import LAWS, Chunk, map_lanes, plain
from fwdad.tangents.quiet import quietly
from fwdad.tangents.zero import ZERO, Undefined, Zero

Body = Callable[..., tuple[Any, Any]]

# These take sequences of arrays; every other function of NumPy and SciPy makes arrays of lists.
SEQUENCE_TAKERS = {
    np.concatenate,
    inspect.unwrap(np.concatenate),
    np.stack,
    np.hstack,
    np.vstack,
    np.dstack,
    np.column_stack,
    np.choose,
    np.select,
    np.linalg.multi_dot,
    np.einsum,
    np.block,
}


@dataclass(eq=False)
class Rule:
    """One function's forward rule.

    Attributes
    ----------
    function : callable or str
        The primal; a dotted name until its module is imported.
    kind : str
        ``"frule"``, ``"elementwise"``, ``"linear"``, ``"multilinear"`` or ``"constant"``.
    body : callable
        ``body(primals, tangents, **options) -> (y, y_dot)``.
    binder : Binder
        Splits a call into primals and options.
    partials : tuple
        The derivatives of an elementwise rule, one per argument.
    linear_argnums : tuple of int
        The primals in which a linear or multilinear rule is linear.
    mutates : tuple of int
        The primals that the function writes into.
    origin : str
        File and line of the registration.
    """

    function: Any
    kind: str
    body: Body
    binder: Binder
    partials: tuple[Any, ...] = ()
    linear_argnums: tuple[int, ...] = ()
    mutates: tuple[int, ...] = ()
    origin: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        positional = self.binder.positional
        self.out_position = positional.index("out") if "out" in positional else None
        module = getattr(self.function, "__module__", None) or "numpy"
        self.takes_arrays = (
            self.kind != "constant"
            and module.startswith(("numpy", "scipy"))
            and self.function not in SEQUENCE_TAKERS
        )

    @property
    def name(self) -> str:
        """The function's name as a user would write it."""
        return function_name(self.function)


RULES: dict[Any, Rule] = {}
TRANSPOSES: dict[Any, dict[int, Callable[..., Any]]] = {}
_PENDING: dict[str, list[Callable[[Any], Any]]] = {}  # dotted name: what waits for its import
_NAMED: set[str] = set()  # the names in _PENDING that wait for a rule
_modules_seen = [0]
_build: list[Callable[..., Any]] = []


def function_name(function: Any) -> str:
    """A function's dotted name, as short as NumPy's users write it."""
    if isinstance(function, str):
        return function
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return f"{function_name(owner)}.{function.__name__}"
    if isinstance(function, np.ufunc):
        home = "numpy" if getattr(np, function.__name__, None) is function else "scipy.special"
        return f"{home}.{function.__name__}"
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    name = str(name or repr(function))
    if module.startswith("scipy."):
        public = [part for part in module.split(".") if not part.startswith("_")]
        module = ".".join(public[:2])
    return name if module in ("", "builtins", "__main__") else f"{module}.{name}"


def find_rule(function: Any) -> Rule | None:
    """The registered rule of a function, or None."""
    try:
        rule = RULES.get(function)
    except TypeError:  # an unhashable callable has no rule of its own
        return None
    if rule is None and _PENDING and len(sys.modules) != _modules_seen[0]:
        _modules_seen[0] = len(sys.modules)  # a module may have been imported since
        resolve_pending()
        return RULES.get(function)
    return rule


def when_imported(dotted: str, action: Callable[[Any], Any]) -> None:
    """Call ``action(function)`` once the function of that name can be had without an import.

    That is now, or before the first rule is looked up after somebody has imported its module.
    Actions for one name are taken in the order in which they came; the rule of that name is one.

    Parameters
    ----------
    dotted : str
        The name of a function or class.
    action : callable
        Takes the function itself.
    """
    _PENDING.setdefault(dotted, []).append(action)
    _modules_seen[0] = 0
    _resolve(dotted)


def _resolve(dotted: str) -> None:
    module, _, attribute = dotted.rpartition(".")
    if module in sys.modules and hasattr(sys.modules[module], attribute):
        _NAMED.discard(dotted)
        for action in _PENDING.pop(dotted, ()):
            action(getattr(sys.modules[module], attribute))


def resolve_pending() -> None:
    """Take the actions whose modules have been imported in the meantime."""
    for dotted in list(_PENDING):
        _resolve(dotted)


def import_pending() -> None:
    """Import every module that a rule by name waits for, and register those rules."""
    for dotted in list(_PENDING):
        importlib.import_module(dotted.rpartition(".")[0])
    resolve_pending()


def registered() -> Iterator[Rule]:
    """Every rule that is registered now."""
    return iter(list(RULES.values()))


def _caller() -> str:
    frame = sys._getframe(1)  # noqa: SLF001  (who registers is told in errors)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _register(function: Any, make: Callable[[Any], Rule], *, override: bool) -> None:
    origin = _caller()

    def register(resolved: Any) -> None:
        known = RULES.get(resolved)
        if known is not None and not override:
            message = (
                f"{function_name(resolved)} has a rule already, registered at {known.origin}; "
                "say override=True to replace it"
            )
            raise DuplicateRuleError(message)
        rule = make(resolved)
        rule.origin = origin
        RULES[resolved] = rule

    if not isinstance(function, str):
        register(function)
    elif function in _NAMED and not override:
        message = f"{function} has a rule already; say override=True to replace it"
        raise DuplicateRuleError(message)
    else:
        _NAMED.add(function)
        when_imported(function, register)


def frule(
    function: Any,
    *,
    argnums: int | str | Sequence[int | str] | None = None,
    signature: str | None = None,
    mutates: Sequence[int] = (),
    override: bool = False,
) -> Callable[[Body], Body]:
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
        Positions of the primals that the function writes into. The rule itself writes nothing: it
        answers ``(y, *new), (y_dot, *new_dot)`` with the new contents of these primals.
    override : bool, default False
        Replace a rule that exists.

    Returns
    -------
    callable
        A decorator. The decorated ``rule(primals, tangents, **options)`` answers ``(y, y_dot)``;
        a tangent is a ``Chunk`` or ``ZERO``, and ``y_dot`` mirrors the structure of ``y``.

    Raises
    ------
    DuplicateRuleError
        If ``function`` has a rule and ``override`` is False.

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

    def register(body: Body) -> Body:
        def make(resolved: Any) -> Rule:
            binder = binder_for(resolved, function_name(resolved), signature, argnums)
            return Rule(resolved, "frule", body, binder, mutates=tuple(mutates))

        _register(function, make, override=override)
        return body

    return register


def elementwise(
    function: Any, *partials: Any, signature: str | None = None, override: bool = False
) -> None:
    """Register an elementwise function by its partial derivatives.

    Parameters
    ----------
    function : callable or str
        A ufunc, or a function that acts element by element.
    *partials : callable or no_derivative
        One per argument; each takes all primals and then the output: ``lambda x, y: np.cos(x)``.
    signature : str, optional
        See :func:`frule`.
    override : bool, default False
        Replace a rule that exists.

    Notes
    -----
    A partial that is infinite or NaN contributes exactly zero where the tangent is exactly zero.
    Floating-point warnings inside a partial are silenced: the primal has given its own.
    """

    def make(resolved: Any) -> Rule:
        binder = binder_for(resolved, function_name(resolved), signature, None)

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

        return Rule(resolved, "elementwise", body, binder, partials=partials)

    _register(function, make, override=override)


def partial_of(partial: Any, primals: tuple[Any, ...], y: Any) -> Any:
    """Evaluate a partial, as a scaling of y's shape (or a number) that nobody else holds."""
    numbers = as_numpy_numbers(primals, y)
    return own_partial(quietly(partial, *numbers, y), numbers, y)


def as_numpy_numbers(primals: Iterable[Any], y: Any) -> list[Any]:
    """Python's numbers as NumPy's, in y's precision: 1/0.0 is then inf, as it is for arrays."""
    made = list(primals)
    for k, p in enumerate(made):
        if type(p) is float or type(p) is int:
            dtype = getattr(y, "dtype", None)
            if dtype is None or dtype == np.float64 or dtype.kind not in "fc":
                made[k] = np.float64(p)
            else:
                made[k] = np.zeros((), dtype).real.dtype.type(p)
    return made


def own_partial(d: Any, primals: Sequence[Any], y: Any) -> Any:
    """Make a partial's value floating and independent of every array that a user could write."""
    if type(d) is np.ndarray:
        shape, dtype = getattr(y, "shape", ()), _floating(d.dtype, y)
        if d.base is None and d.dtype == dtype and d.shape == shape:
            if d is not y and not _among(d, primals):
                return d
        return (d if d.shape == shape else np.broadcast_to(d, shape)).astype(dtype)
    if hasattr(d, "__fwdad_tag__"):  # a dual of an enclosing derivative
        shape = np.shape(plain(d))
        if shape not in ((), np.shape(plain(y))):
            return np.broadcast_to(d, np.shape(plain(y)))
        held = d is y or _among(d, primals)
        return +d if held and shape else d
    if isinstance(d, (float, int, np.floating, np.integer, np.bool_)):
        return float(d)
    if isinstance(d, (complex, np.complexfloating)):
        return complex(d)
    message = f"a partial must be a number or an array, not {type(d).__name__}"
    raise TypeError(message)


def _among(d: Any, primals: Sequence[Any]) -> bool:
    return any(d is p for p in primals)


_SINGLE = (np.dtype(np.float32), np.dtype(np.complex64))


def _floating(dtype: np.dtype[Any], y: Any) -> np.dtype[Any]:
    """The dtype of a scaling: Python numbers beside single precision do not widen it."""
    if getattr(y, "dtype", None) in _SINGLE:
        return np.dtype(np.complex64 if dtype.kind == "c" else np.float32)
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def narrowed(y_dot: Any, y: Any) -> Any:
    """The tangent of a single precision result, where a Python number brought wider lanes in."""
    if getattr(y, "dtype", None) not in _SINGLE or not isinstance(y_dot, Chunk):
        return y_dot
    return y_dot if np.can_cast(y_dot.dtype, y.dtype) else y_dot.astype(y.dtype)


class _NoDerivative:
    """Stands in the place of a partial that does not exist."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, *_args: Any) -> Any:
        message = f"no derivative with respect to this argument: {self.reason}"
        raise UndefinedDerivativeError(message)


def no_derivative(reason: str) -> Any:
    """Stand for the partial of an argument that has none, in :func:`elementwise`.

    Parameters
    ----------
    reason : str
        For the error message that an active argument there gets.
    """
    return _NoDerivative(reason)


def linear(
    function: Any,
    *,
    argnums: int | str = 0,
    signature: str | None = None,
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
    signature, override
        See :func:`frule`.
    """
    multilinear(function, argnums=(argnums,), signature=signature, override=override)


def multilinear(
    function: Any,
    *,
    argnums: Sequence[int | str] = (0, 1),
    signature: str | None = None,
    override: bool = False,
) -> None:
    """Register a function that is linear in each of several arguments, such as a product.

    Parameters
    ----------
    function : callable or str
        See :func:`linear`.
    argnums : sequence of int or str, default (0, 1)
        The parameters in which it is linear, each with the others fixed.
    signature, override
        See :func:`frule`.
    """

    def make(resolved: Any) -> Rule:
        binder = binder_for(resolved, function_name(resolved), signature, argnums)
        count = len(binder.primals)

        def body(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
            args, kwargs = _call_args(binder, primals, options)
            y = resolved(*args, **kwargs)
            y_dot: Any = ZERO
            for k, x_dot in enumerate(tangents):
                if isinstance(x_dot, Undefined):
                    x_dot.use()
                if isinstance(x_dot, Zero):
                    continue
                y_dot = y_dot + _linear_term(resolved, binder, primals, k, x_dot, options)
            return y, y_dot

        kind = "linear" if count == 1 else "multilinear"
        return Rule(resolved, kind, body, binder, linear_argnums=tuple(range(count)))

    _register(function, make, override=override)


def _call_args(
    binder: Binder, primals: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Put primals and options back into one call of the primal."""
    values = dict(zip(binder.primals, primals, strict=False))
    extra = primals[len(binder.primals) :]
    values.update(options)
    args = []
    for name in binder.positional:
        if name not in values:
            break
        args.append(values.pop(name))
    args.extend(extra)
    if binder.variadic is not None and not binder.variadic_active:
        args.extend(values.pop(binder.variadic, ()))
    return tuple(args), values


def call_primal(rule: Rule, primals: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a rule's function on bound primals and options."""
    args, kwargs = _call_args(rule.binder, primals, options)
    return rule.function(*args, **kwargs)


def _linear_term(
    function: Any,
    binder: Binder,
    primals: tuple[Any, ...],
    k: int,
    x_dot: Any,
    options: dict[str, Any],
) -> Any:
    if type(x_dot) is not Chunk:
        for part in x_dot if isinstance(x_dot, (tuple, list)) else (x_dot,):
            if hasattr(part, "__fwdad_linear__"):  # a tangent that writes down what is done to it
                return part.__fwdad_linear__(
                    function,
                    (*primals[:k], x_dot, *primals[k + 1 :]),
                    options,
                    lambda value: _linear_term(function, binder, primals, k, value, options),
                    x_dot,
                )
    if function in LAWS:
        args, kwargs = _call_args(binder, (*primals[:k], x_dot, *primals[k + 1 :]), options)
        return LAWS[function](*args, **kwargs)

    def one(lane: Any) -> Any:
        args, kwargs = _call_args(binder, (*primals[:k], lane, *primals[k + 1 :]), options)
        return function(*args, **kwargs)

    return map_lanes(one, x_dot)


def locally_constant(*functions: Any) -> None:
    """Declare functions whose output carries no tangent: comparisons, ``floor``, ``argmax``, ….

    Parameters
    ----------
    *functions : callable
        Called with the primals; the value comes back without a tangent.
    """
    for function in functions:

        def make(resolved: Any) -> Rule:
            def body(primals: tuple[Any, ...], _tangents: Any, **options: Any) -> Any:
                return resolved(*primals, **options), ZERO

            binder = Binder(function_name(resolved), _ANYTHING, ("args",))
            return Rule(resolved, "constant", body, binder)

        _register(function, make, override=False)


def _anything(*args: Any, **kwargs: Any) -> None: ...


_ANYTHING = inspect.signature(_anything)


@dataclass(frozen=True)
class Space:
    """Shape and dtype of an array whose value a transpose does not need."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=int))

    @classmethod
    def of(cls, value: Any) -> Space:
        """The space that a value lives in."""
        value = plain(value)
        return cls(tuple(np.shape(value)), np.asarray(value).dtype)


def transpose(
    function: Any, *, argnum: int = 0, override: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the adjoint of a linear primitive with respect to one argument.

    Parameters
    ----------
    function : callable
        A function registered as linear or multilinear, or one of the closed list.
    argnum : int, default 0
        The position, among its primals, of the linear argument.
    override : bool, default False
        Replace a transpose that exists.

    Returns
    -------
    callable
        A decorator. The decorated ``body(y_bar, *primals, **options)`` answers the cotangent of
        that argument; ``y_bar`` is a ``Chunk``, and the linear argument is given as a ``Space``
        (shape and dtype). It is the adjoint under Re<., .>.
    """

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        known = TRANSPOSES.setdefault(function, {})
        if argnum in known and not override:
            code = known[argnum].__code__
            message = (
                f"{function_name(function)} has a transpose for argument {argnum} already, "
                f"registered at {code.co_filename}:{code.co_firstlineno}"
            )
            raise DuplicateRuleError(message)
        known[argnum] = body
        return body

    return register


def set_builder(build: Callable[..., Any]) -> None:
    """Let ``call_rule`` reach functions that have no registered rule (the builder calls this)."""
    _build[:] = [build]


def call_rule(
    function: Any, primals: Iterable[Any], tangents: Iterable[Any], **options: Any
) -> Any:
    """Use another function's rule inside a rule.

    Parameters
    ----------
    function : callable
        Any function: with a registered rule, or one that the builder can differentiate.
    primals, tangents : sequence
        Positional arguments and their tangents (``Chunk`` or ``ZERO``).
    **options
        Passed on.

    Returns
    -------
    tuple
        ``(y, y_dot)``.
    """
    primals, tangents = tuple(primals), tuple(tangents)
    rule = find_rule(function)
    if rule is None:
        if not _build:
            message = f"no frule for {function_name(function)}"
            raise MissingRuleError(message)
        return _build[0](function)(primals, tangents, **options)
    bound, rest = rule.binder.bind(primals, options)
    if len(bound) != len(tangents):
        tangents = tangents + (ZERO,) * (len(bound) - len(tangents))
    return rule.body(bound, tangents, **rest)


__all__ = [
    "ZERO",
    "Chunk",
    "Rule",
    "Space",
    "call_rule",
    "elementwise",
    "frule",
    "linear",
    "locally_constant",
    "multilinear",
    "no_derivative",
    "transpose",
]
