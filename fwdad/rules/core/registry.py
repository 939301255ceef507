"""The registry of rules: their registration and lookup, and actions that wait for an import."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import operator
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from fwdad.errors import (
    PACKAGE,
    AliasedArgumentError,
    DuplicateRuleError,
    UnsupportedTypeError,
    type_in_words,
)
from fwdad.rules.core.binding import Binder
from fwdad.tangents.plain import plain

REGISTERS_FOR_OTHERS = True  # its callers are who registers a rule

Body = Callable[..., tuple[Any, Any]]
B = TypeVar("B", bound=Body)
F = TypeVar("F")

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
    np.block,
}


@dataclass(eq=False)
class Rule:
    """One function's forward rule: ``body(primals, tangents, **options) -> (y, y_dot)``.

    ``kind`` is ``"frule"``, ``"elementwise"``, ``"linear"``, ``"multilinear"`` or ``"constant"``.
    ``function`` is a dotted name until its module is imported. ``stands_in`` marks a substitute for
    the missing frule of a function with an rrule. Of a function that writes, ``pure`` returns the
    new contents instead, and ``contents`` are the primals whose new contents the body returns.
    """

    function: Any
    kind: str
    body: Body
    binder: Binder
    partials: tuple[Any, ...] = ()
    linear_argnums: tuple[int, ...] = ()
    mutates: tuple[int, ...] = ()
    origin: str = ""
    stands_in: bool = False
    returns: str = "either"
    of_user: bool = False
    pure: Any = None
    contents: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        module = getattr(self.function, "__module__", None) or "numpy"
        self.takes_arrays = (
            self.kind != "constant"
            and module.startswith(("numpy", "scipy"))
            and self.function not in SEQUENCE_TAKERS
        )
        self.takes_sequences = self.function in SEQUENCE_TAKERS and self.function is not np.block

    def with_arrays(
        self, primals: Sequence[Any], make: Callable[[Any], Any], first: int = 0
    ) -> tuple[Any, ...]:
        """The primals, with ``make`` applied to the lists of which NumPy makes arrays.

        ``first`` is the position of the first one given; of arrays in a sequence, position 0 is the
        sequence.
        """
        if self.takes_sequences and not first:
            arrays, *others = primals
            if type(arrays) in _LISTS:
                arrays = type(arrays)([make(i) if type(i) in _LISTS else i for i in arrays])
            return (arrays, *[make(x) if type(x) in _LISTS else x for x in others])
        if self.takes_arrays or self.takes_sequences:
            return tuple([make(x) if type(x) in _LISTS else x for x in primals])
        return tuple(primals)

    def of_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Primals and options of a call; a ufunc's ``dtype`` and the like are NumPy's own."""
        if isinstance(self.function, np.ufunc):
            return args[: self.function.nin], kwargs
        return self.binder.bind(args, kwargs)

    def takes_only_primals(self, count: int) -> bool:
        """Whether a call with so many positional arguments is ``body(args, …)``, all of them read.

        Options have their defaults then. Elementwise functions have ways of their own.
        """
        return (
            self.kind != "elementwise" and not self.mutates and self.binder.are_all_primals(count)
        )

    @functools.cached_property
    def out_position(self) -> int | None:
        """Which argument by position the result may be written into."""
        positional = self.binder.positional
        return positional.index(self.out_name) if self.out_name in positional else None

    @functools.cached_property
    def out_name(self) -> str:
        """The name of the argument that the result is written into; see :func:`out_name`."""
        return out_name(self.function)

    @property
    def name(self) -> str:
        """The function's name as a user would write it."""
        return function_name(self.function)

    @property
    def place(self) -> str:
        """The rule, with file and line of one that is not the library's: for messages."""
        return f"the frule of {self.name}" + (f" ({self.origin})" if self.of_user else "")


_LISTS = (list, tuple)
_EFFORT = 10_000  # steps of NumPy's search for an element that two arrays share

RULES: dict[Any, Rule] = {}
_PENDING: dict[str, list[Callable[[Any], Any]]] = {}  # by dotted name
_NAMED: set[str] = set()  # the names in _PENDING that wait for a rule
_modules_seen = [0]
_ON_CHANGE: list[Callable[[], None]] = []
_ON_WRITER: list[Callable[[Rule], None]] = []


def function_name(function: Any) -> str:
    """A function's dotted name, as short as NumPy's users write it, or its class's.

    What an object without a name holds is not looked at: a text of it may be long, or unknown.
    """
    if isinstance(function, str):
        return function
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return f"{function_name(owner)}.{function.__name__}"
    if isinstance(function, np.ufunc):
        name = function.__name__
        for home in ("numpy", "scipy.special"):
            if getattr(sys.modules.get(home), name, None) is function:
                return f"{home}.{name}"
        return name  # made by numpy.frompyfunc, or by another library
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    name = str(name or type(function).__qualname__).removeprefix("function ")  # f2py's says so
    if module.startswith("scipy."):
        public = [part for part in module.split(".") if not part.startswith("_")]
        module = ".".join(public[:2])
    return name if module in ("", "builtins", "__main__") else f"{module}.{name}"


def out_name(function: Any) -> str:
    """The name of the argument that a library function writes its result into.

    It is ``output`` for functions of ``scipy.ndimage``, where it may be a dtype as well.
    """
    module = getattr(function, "__module__", None)
    return "output" if type(module) is str and module.startswith("scipy.ndimage") else "out"


def find_rule(function: Any) -> Rule | None:
    """The registered rule of a function, or None."""
    try:
        rule = RULES.get(function)
    except TypeError:  # an unhashable callable has no rule of its own
        return None
    if rule is None and _PENDING and len(sys.modules) != _modules_seen[0]:
        resolve_pending()  # a module may have been imported since
        return RULES.get(function)
    return rule


_PURE: set[Any] = set()  # what somebody has said `pure` of


def pure(function: F) -> F:
    """Say of a function that it reads nothing but its arguments, and changes nothing.

    Nothing of a program is ever called with values that nobody passed, but for functions that are
    known to be pure: NumPy's, those of ``math``, many of SciPy's. To write a program down, the
    type of what each function returns has to be known. Of a function in Python it is known from
    its source. A function of which the source cannot be read or traced (one in C, one that calls
    into a library through ``ctypes``, one with loops that values end) has no tape, unless it is
    said to be pure: then it is called on a few small arrays of ones, of lengths up to 19, and what
    it returns tells the type.

    Parameters
    ----------
    function : callable
        Any function. On a tape it is one operation; it has derivatives if it has a rule, too.

    Returns
    -------
    callable
        The function itself: ``pure`` can be used as a decorator.

    Raises
    ------
    UnsupportedTypeError
        If ``function`` is no function, or one that cannot be hashed.

    Examples
    --------
    >>> import numpy as np, fwdad
    >>> @fwdad.pure
    ... def length(x):
    ...     return float(str(float(np.linalg.norm(x))))
    >>> fwdad.jit(lambda x: 2 * length(x))(np.array([3.0, 4.0]))
    10.0
    """
    if not callable(function):
        raise UnsupportedTypeError(f"pure takes a function; got {type_in_words(function)}")
    try:
        _PURE.add(function)
    except TypeError:
        message = f"pure takes a hashable function; got {type_in_words(function)}"
        raise UnsupportedTypeError(message) from None
    changed()
    return function


def is_declared_pure(function: Any) -> bool:
    """Whether a function was declared by :func:`pure`."""
    try:
        return function in _PURE
    except TypeError:  # what cannot be hashed
        return False


def when_imported(dotted: str, action: Callable[[Any], Any]) -> None:
    """Call ``action(function)`` once the function of that dotted name needs no import.

    That is now, or before the first lookup of a rule after its module has been imported. Actions
    for one name, its rule among them, run in the order in which they were registered.
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
    """Run the actions whose modules have been imported in the meantime."""
    _modules_seen[0] = len(sys.modules)
    homes = {dotted: dotted.rpartition(".")[0] for dotted in _PENDING}
    for dotted in [dotted for dotted, home in homes.items() if home in sys.modules]:
        _resolve(dotted)


def import_pending() -> None:
    """Import every module that a rule by name waits for, and register those rules."""
    for dotted in list(_PENDING):
        with contextlib.suppress(ModuleNotFoundError):  # another version has it elsewhere
            importlib.import_module(dotted.rpartition(".")[0])
    resolve_pending()


_OWN_WAYS = (
    type,
    types.MethodType,
    functools.partial,
    functools.partialmethod,
    type(functools.lru_cache(len)),
    operator.attrgetter,
    operator.itemgetter,
    operator.methodcaller,
)


def is_looked_into(function: Any) -> bool:
    """Whether some calls of a callable go to what it is made of, past any rule of its own."""
    if isinstance(function, _OWN_WAYS):
        return True
    if hasattr(function, "nin") or type(function).__module__.split(".")[0] == "numba":
        return False
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, (types.ModuleType, np.ufunc)):
        # a method is a new object whenever it is read; functions of pybind11 own a record
        return hasattr(owner, function_name(function).rpartition(".")[2])
    return isinstance(getattr(type(function), "__call__", None), types.FunctionType)  # noqa: B004


def _check_callable(function: Any, *, of_user: bool) -> None:
    """Refuse a user's rule of what has none of its own: of a bound method, a class, an object."""
    try:
        looked_into = of_user and function not in RULES and is_looked_into(function)
    except TypeError:
        looked_into, how = True, "cannot be hashed"
    else:
        how = "is looked into where it is called"
    if looked_into:
        hint = "Call it in a function of your own, and write the rule for that"
        if isinstance(function, types.MethodType):
            owner: Any = function.__self__
            of_class = isinstance(owner, type)
            name = f"{(owner if of_class else type(owner)).__name__}.{function.__name__}"
            hint = f"Write it for {name}{'.__func__' if of_class else ''}"
        raise UnsupportedTypeError(
            f"a rule is for a function; got {type_in_words(function)}, {function_name(function)}, "
            f"which {how}. {hint}"
        )


def enter(function: Any, make: Callable[[Any], Rule], *, override: bool) -> None:
    """Put ``make(function)`` into the registry; for a dotted name, once its module is imported."""
    origin = registering_place()
    find_rule(function)  # one that waits for its module would come after what replaces it

    def register(resolved: Any) -> None:
        of_user = not origin.startswith(PACKAGE)
        _check_callable(resolved, of_user=of_user)
        existing = RULES.get(resolved)
        rule = make(resolved)
        rule.origin = origin
        rule.of_user = of_user
        stood_in = existing is not None and existing.stands_in
        if existing is not None and not override and not (stood_in and rule.kind == "frule"):
            raise DuplicateRuleError(
                f"{function_name(resolved)} already has a rule, registered at {existing.origin}; "
                "pass override=True to replace it"
            )
        if (
            existing is not None
            and stood_in
            and (rule.kind, rule.mutates) != ("frule", existing.mutates)
        ):
            raise DuplicateRuleError(
                f"{function_name(resolved)} has an rrule, registered at {existing.origin}: the "
                f"only rule beside it can be an frule with the same mutates={existing.mutates!r}"
            )
        RULES[resolved] = rule
        if existing is not None and existing.pure is not None:
            RULES.pop(existing.pure, None)
            _WRITER_OF.pop(existing.pure, None)
        if rule.mutates:
            rule.contents = rule.mutates
            rule.pure = pure = returning_contents(rule)
            RULES[pure] = replace(rule, function=pure, mutates=(), pure=None, returns="new")
            for action in _ON_WRITER:
                action(rule)
        if rule.of_user:
            changed()

    if not isinstance(function, str):
        register(function)
    elif function in _NAMED and not override:
        raise DuplicateRuleError(f"{function} already has a rule; pass override=True to replace it")
    else:
        _NAMED.add(function)
        when_imported(function, register)


def positions_written(mutates: Sequence[int] | int, binder: Binder | None) -> tuple[int, ...]:
    """The positions in ``mutates``; raises ValueError if one of them is not a primal."""
    written = (mutates,) if isinstance(mutates, int) else tuple(mutates)
    if binder is not None and not binder.variadic_active:
        if any(not 0 <= k < len(binder.primals) for k in written):
            raise ValueError(
                f"mutates={mutates!r} is out of range: {binder.name} has {len(binder.primals)} "
                "primals"
            )
    return written


def returning_contents(rule: Rule) -> Callable[..., Any]:
    """A function that returns ``(y, *new)`` in place of writing into its arguments."""
    function, binder, mutates = rule.function, rule.binder, rule.mutates

    @functools.wraps(function, updated=())
    def pure(*args: Any, **kwargs: Any) -> Any:
        primals, options = binder.bind(args, kwargs)
        check_apart(rule, primals)
        copies = tuple([x.copy() if k in mutates else x for k, x in enumerate(primals)])
        args, kwargs = binder.unbind(copies, options)
        return function(*args, **kwargs), *[copies[k] for k in mutates]

    del pure.__wrapped__  # it is not the same by another name
    if not hasattr(function, "__qualname__"):  # f2py's have a name only
        pure.__qualname__, pure.__module__ = function_name(function), ""
    _WRITER_OF[pure] = rule
    return pure


_WRITER_OF: dict[Any, Rule] = {}


def writer_of(function: Any) -> Rule | None:
    """The rule of the function that writes what this one does on copies, or None."""
    return next((rule for pure, rule in _WRITER_OF.items() if pure is function), None)


def share(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have an element in common."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=_EFFORT))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def check_apart(rule: Rule, primals: Sequence[Any]) -> None:
    """Raise if an argument to be written is not an array, or another argument views it."""
    arrays = {k: raw for k, x in enumerate(primals) if isinstance(raw := plain(x), np.ndarray)}
    for k in rule.mutates:
        if k not in arrays:
            raise UnsupportedTypeError(writes_no_array(rule, k, primals[k]))
        for j, other in arrays.items():
            if j != k and share(arrays[k], other):
                raise AliasedArgumentError(writes_shared(rule, k, j))


READ_WHILE_WRITTEN = (
    "values are stored one after another into the memory that they are read from, so that NumPy "
    "reads them while they change: store a copy of them (`.copy()`)"
)


def writes_no_array(rule: Rule, k: int, x: Any) -> str:
    """The message for a number or list that a function would write into."""
    return (
        f"{rule.name} writes into its argument `{rule.binder.primal_name(k)}`, as its rule at "
        f"{rule.origin} says, so that must be an array; got {type_in_words(plain(x))}"
    )


def writes_shared(rule: Rule, k: int, j: int) -> str:
    """The message for an array that a function writes, and that another argument views."""
    return (
        f"{rule.name} writes into `{rule.binder.primal_name(k)}`, which may share memory with "
        f"`{rule.binder.primal_name(j)}`: its rule assumes that they do not overlap. Pass a copy"
    )


def when_writes(action: Callable[[Rule], None]) -> None:
    """Call ``action(rule)`` whenever the rule of a function that writes is registered."""
    _ON_WRITER.append(action)


def when_changed(action: Callable[[], None]) -> None:
    """Call ``action()`` whenever somebody outside the library registers a rule.

    Whatever was built from the earlier rules must then be built again.
    """
    _ON_CHANGE.append(action)


def changed() -> None:
    """Run the actions of :func:`when_changed`."""
    for action in _ON_CHANGE:
        action()


def registering_place() -> str:
    """The file and line that registers a rule."""
    frame = sys._getframe(1)  # noqa: SLF001  (errors name who registers)
    while frame.f_back is not None and "REGISTERS_FOR_OTHERS" in frame.f_globals:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
