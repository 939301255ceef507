"""Calls, which each kind of callable directs elsewhere."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any, NoReturn

import numpy as np

from fwdad.core.debuggers import stops
from fwdad.eager.calls.dispatch import python_inside
from fwdad.errors import UntraceableError, is_library_file, type_in_words
from fwdad.frontend.calls import array_protocols, growing_arrays
from fwdad.frontend.calls.classes import ClassCalls, generated_for
from fwdad.frontend.calls.inline import InlineCalls
from fwdad.frontend.calls.kinds import AXES, C_FUNCTIONS, NUMPY_FUNCTION, mentions_symbols, writes
from fwdad.frontend.calls.known_calls import are_known, known_call
from fwdad.frontend.calls.operations import OperationCalls
from fwdad.frontend.calls.outputs import append, emit, puts_out
from fwdad.frontend.calls.purity import is_impure, is_of_package
from fwdad.frontend.calls.python_calls import call_python, explain
from fwdad.frontend.calls.tables import BUILTINS, CALLED, METHODS_OF
from fwdad.frontend.guards import held_by_partial
from fwdad.frontend.numpy_sources.row_by_row import Flat
from fwdad.frontend.numpy_sources.table import SOURCES
from fwdad.frontend.syntax import iteration, static_arrays
from fwdad.frontend.syntax.attributes import class_of
from fwdad.frontend.syntax.control import branch
from fwdad.frontend.syntax.frame import Closure, Method
from fwdad.frontend.syntax.iterators import Range
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.symbols import Optional, Poison
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.ways import OfCall
from fwdad.ir.analysis.alias import makes_its_own
from fwdad.ir.symbol import Symbol
from fwdad.ops import is_of_polynomials
from fwdad.rules.core.by_position import by_position
from fwdad.rules.core.registry import find_rule, function_name

_QUESTIONS = {isinstance, type, hasattr, getattr, callable, bool, round, abs, float, int, len}
"""Those that can be asked about None."""


class Calls:
    """Calls of values of any kind."""

    def __init__(
        self, tracer: Tracer, operations: OperationCalls, inline: InlineCalls, classes: ClassCalls
    ) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.outside = tracer.outside
        self.values = tracer.values
        self.operations = operations
        self.inline = inline
        self.classes = classes
        self._around: list[Any] = []  # functions and arguments of calls that may be values

    def call(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a value; what a package does that cannot be traced, Python does at each run."""
        ways = self.recorder.ways
        if ways is None or not is_of_package(f):
            return self._call(f, args, kwargs)
        place, given = OfCall(ways.exact()), (f, args, kwargs)
        inside, known = is_library_file(self.position.frame.filename), not mentions_symbols(given)
        if place in ways.places:
            refusal = ways.places.refusals[place]
            if not known and not inside:
                return call_python(self.tracer, f, args, kwargs, refusal)
            if known and place not in ways.places.inside:
                try:
                    return known_call(self.tracer, f, args, kwargs)
                except UntraceableError as error:
                    explain(refusal, function_name(f), error.msg)
                    ways.places.inside.add(place)
            known = False
        self._around += [given] * known
        try:
            return self._call(f, args, kwargs)
        except UntraceableError as error:
            first = next((g for g in self._around if are_known(self.tracer, g)), None)
            if (first is not given) if first is not None else inside:
                raise  # an outer call may be a value
            if place in ways.places:
                raise ways.places.refusals[place] from None
            raise ways.needed(place, error) from error.__cause__
        finally:
            del self._around[len(self._around) - known :]

    def _call(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(f, Poison):
            self.values.refuse_poison(f, "this function")
        if type(f) is Symbol:
            self._refuse_calling(f)
        if stops(f):
            message = (
                f"{getattr(f, '__qualname__', 'breakpoint')}() stops a running program, and this "
                "one is being traced, without values: take the call out, or call the function, or "
                "its derivative, without jit"
            )
            raise UntraceableError(message, self.position.location())
        if f is functools.singledispatch:  # it reads annotations, which closures here do not have
            message = (
                "`functools.singledispatch` cannot be applied in a traced function: define the "
                "generic function outside"
            )
            raise UntraceableError(message, self.position.location())
        if type(kwargs.get("argnums")) is Symbol:  # a global, which decides what is written
            kwargs = {**kwargs, "argnums": self.values.known(kwargs["argnums"])}
        if isinstance(f, Closure):
            return self.inline.call_closure(f, args, kwargs)
        if isinstance(f, Method):
            return self.call(f.function, (f.owner, *args), kwargs)
        if type(f) in (types.MethodWrapperType, types.BuiltinMethodType):
            unbound = _unbound(f)
            if unbound in BUILTINS:
                return self.call(unbound, (f.__self__, *args), kwargs)
        if isinstance(f, functools.partial):
            self.outside.guard(("partial", f), held_by_partial(f))
            bound_keywords = {key: self.outside.bound(x, key) for key, x in f.keywords.items()}
            first = [self.outside.bound(x, "a") for x in f.args]
            return self.call(f.func, (*first, *args), {**bound_keywords, **kwargs})
        if kwargs:
            args, kwargs = by_position(f, args, kwargs)
        if growing_arrays.is_among(args, kwargs):
            result = growing_arrays.in_numpy(f, args, kwargs)
            if result is not NotImplemented:
                return result
            args, kwargs = growing_arrays.as_arrays(f, args, kwargs)
        of_numpy = getattr(f, "__module__", None) == "numpy" and type(f).__hash__ is not None
        if of_numpy or isinstance(f, (NUMPY_FUNCTION, np.ufunc)):
            y = array_protocols.answered(self.tracer, f, args, kwargs)
            if y is not NotImplemented:
                return y
            args, kwargs = self._as_arrays(f, args, kwargs)
            args, kwargs = self.operations.static_options(f, args, kwargs, AXES)
            if static_arrays.are_given(args, kwargs) and not mentions_symbols((args, kwargs)):
                if not (is_impure(f) or writes(f)):
                    return static_arrays.made(self.tracer, native(lambda: f(*args, **kwargs)))
        try:
            handle = BUILTINS.get(f)
        except TypeError:
            handle = None
        if handle is not None:
            if f in _QUESTIONS and args and isinstance(args[0], Optional):
                return self._asked_of_both(f, args, kwargs)
            return self._handled(handle, f, args, kwargs)
        if type(f) in CALLED:
            return CALLED[type(f)](self.tracer, f, args, kwargs)
        if puts_out(f):
            return emit(self.tracer, f, args, kwargs)
        if isinstance(f, types.MethodType):
            return self._call_bound(f, args, kwargs)
        if isinstance(f, types.FunctionType):
            return self._call_function(f, args, kwargs)
        if isinstance(f, type):
            return self.classes.call_class(f, args, kwargs)
        if type(f).__module__.startswith("numba."):
            return self._call_numba(f, args, kwargs)
        if _is_under_jit(f) or (type(f).__module__ == "functools" and hasattr(f, "__wrapped__")):
            return self.call(f.__wrapped__, args, kwargs)  # or of several methods
        if isinstance(f, NUMPY_FUNCTION) and find_rule(f) is None:
            return self.call_numpy(f, args, kwargs)
        if isinstance(f, (*C_FUNCTIONS, NUMPY_FUNCTION)) or callable(f):
            return self._call_object(f, args, kwargs)
        return self._refuse_calling(f)

    def _refuse_calling(self, f: Any) -> NoReturn:
        """Raise what Python raises where something that is called has no ``__call__`` now."""
        self.outside.guard_special(f, "__call__")
        name = function_name(class_of(f)) if type(f) is Symbol else type(f).__name__
        raise AlwaysRaises(TypeError, (f"{name!r} object is not callable",))

    def _call_function(self, f: types.FunctionType, args: Any, kwargs: Any) -> Any:
        """Call a Python function by its source, or as the ``__init__`` of a dataclass's fields."""
        cls = generated_for(f, args)
        if cls is not None:  # as `super().__init__(…)`
            return self.classes.fill_dataclass(cls, args[0], f, args[1:], kwargs)
        return self.inline.call_function(f, _without_jit(f, args), kwargs)

    def _call_object(self, f: Any, args: Any, kwargs: Any) -> Any:
        """Call an object by its ``__call__`` in Python, or else as a function in C."""
        method = self.outside.guard_special(f, "__call__")
        if isinstance(method, types.FunctionType):
            return self.call(method, (f, *args), kwargs)
        return self.operations.call_native(f, args, kwargs)

    def _handled(self, handle: Any, f: Any, args: Any, kwargs: Any) -> Any:
        """The result of a handler, or the TypeError that Python raises for misfitting arguments."""
        self.values.check_kinds(args, kwargs)
        try:
            return handle(self.tracer, *args, **kwargs)
        except TypeError as error:
            message = _misfit(f, args, kwargs)
            if message is None:
                raise
            raise AlwaysRaises(TypeError, (message,)) from error

    def _as_arrays(self, f: Any, args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Arguments of a NumPy function: ``a.flat`` and what has ``__array__`` as arrays.

        Without a ``like=`` of arrays.
        """
        # they may take it for the copy that they make, or ask for its class
        if f is not np.array and f is not np.copy and not is_of_polynomials(f, args):
            args = tuple(map(self._by_protocol, args))
        like = kwargs.get("like", ())
        if like is None or type(like) is Symbol or type(like) is np.ndarray:
            kwargs = {key: x for key, x in kwargs.items() if key != "like"}
        # `np.array(a.flat)` is a view of a
        fresh = isinstance(f, np.ufunc) or (isinstance(f, NUMPY_FUNCTION) and makes_its_own(f))
        if fresh and not writes(f) and any(type(x) is Flat for x in (*args, *kwargs.values())):

            def array(x: Any) -> Any:
                return self.call(np.ravel, (x.array,), {}) if type(x) is Flat else x

            args = tuple(map(array, args))
            kwargs = {key: array(x) for key, x in kwargs.items()}
        return args, kwargs

    def _by_protocol(self, x: Any) -> Any:
        """An object of values as what its ``__array__`` in Python returns; ranges as arrays."""
        method = None
        if type(x) is Range:
            return self.call(np.arange, (x.start, x.stop, x.step), {})
        if type(x) in (list, tuple) and Range in map(type, x):
            return type(x)(map(self._by_protocol, x))
        if not isinstance(x, (tuple, list)):  # of those NumPy may ask for the items
            method = self.values.python_method(x, "__array__")
        return x if method is None or not mentions_symbols(x) else self.call(method, (x,), {})

    def _asked_of_both(self, f: Any, args: Any, kwargs: Any) -> Any:
        """A call on a value that may be None: a branch with the value or None as the argument."""
        first, *rest = args
        return branch(
            self.recorder,
            first.flag,
            lambda: self.call(f, (first.value, *rest), kwargs),
            lambda: self.call(f, (None, *rest), kwargs),
        )

    def _call_numba(self, f: Any, args: Any, kwargs: Any) -> Any:
        """Call a function under ``numba.njit`` by its Python source, or a Numba ufunc as it is."""
        python = python_inside(f)
        if find_rule(f) is not None or hasattr(f, "nin"):
            args = tuple(iteration.listed(self.tracer, self.values.number(a)) for a in args)
            return self.recorder.apply(f, args, kwargs)
        if python is not None:
            return self.call(python, args, kwargs)
        message = f"{type_in_words(f)} of Numba has no Python source to trace"
        raise UntraceableError(message, self.position.location())

    def _call_bound(self, f: types.MethodType, args: Any, kwargs: Any) -> Any:
        if type(f.__self__) in METHODS_OF:
            return METHODS_OF[type(f.__self__)](self.tracer, f, args, kwargs)
        return self.call(f.__func__, (f.__self__, *args), kwargs)

    def appended_outside(self, items: Any, x: Any) -> None:
        """``items.append(x)`` to a list from outside, done whenever the program runs."""
        self.outside.note_append(items)
        emit(self.tracer, functools.partial(append, items), (x,), {})

    def call_numpy(self, f: Any, args: Any, kwargs: Any) -> Any:
        """Call a NumPy function without a rule: in line, by its Python source."""
        written = SOURCES.get(f) or getattr(f, "_implementation", None)
        if isinstance(written, types.FunctionType) and mentions_symbols((args, kwargs)):
            return self.inline.call_function(written, args, kwargs, f)
        return self.operations.call_native(f, args, kwargs)


def _unbound(f: Any) -> Any:
    """What `o.__setattr__`, or `cls.__subclasses__`, is in the class of what it is bound to."""
    if type(f) is types.MethodWrapperType:
        return getattr(f.__objclass__, f.__name__)
    found = vars(type).get(f.__name__) if isinstance(f.__self__, type) else None
    return found if type(found) is types.MethodDescriptorType else None


def _is_under_jit(f: Any) -> bool:
    return type(f).__module__ == "fwdad.drivers.jitted_function" and hasattr(f, "__wrapped__")


def _without_jit(f: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of a transform: a function under ``jit`` would ask for tapes of its own."""
    if not (f.__module__ or "").startswith("fwdad.api."):
        return args
    return tuple(x.__wrapped__ if _is_under_jit(x) else x for x in args)


def _misfit(f: Any, args: Any, kwargs: Any) -> str | None:
    """Python's message for arguments that do not fit a known function; or None."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # it has no signature
        return None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return f"{function_name(f)}() {error}"
    return None
