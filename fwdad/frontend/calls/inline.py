"""Python functions, which are traced in line."""

from __future__ import annotations

import ast
import contextlib
import functools
import types
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fwdad.core.bytecode import only_passes_on
from fwdad.core.generated_source import TRACES
from fwdad.core.tracebacks import behind_doors
from fwdad.eager.calls.dispatch import HANDLERS
from fwdad.eager.lifting.source import find_source
from fwdad.eager.lifting.why_missing import Missing, why_missing
from fwdad.errors import UntraceableError, is_library_file, note_place
from fwdad.frontend.calls.kinds import (
    C_FUNCTIONS,
    NUMPY_FUNCTION,
    mentions_symbols,
    public_function,
)
from fwdad.frontend.calls.operations import OperationCalls
from fwdad.frontend.calls.purity import is_of_files, is_of_package, is_trusted, shows
from fwdad.frontend.calls.recursion import Descent, Programs, RecursionFound
from fwdad.frontend.calls.sparse_products import is_product, product
from fwdad.frontend.guards import GENERATORS
from fwdad.frontend.numpy_sources.table import SOURCES
from fwdad.frontend.slots import class_attribute
from fwdad.frontend.syntax.blocks import Blocks
from fwdad.frontend.syntax.frame import FLOW, Closure, Frame, Method, cells_of, names_of
from fwdad.frontend.syntax.generators import Generators, managed
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.symbols import Maybe, Optional
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.abstract_eval.purity import leaves_arguments
from fwdad.ir.builder.heap_journal import set_content
from fwdad.ir.ops import Block, Value
from fwdad.ir.symbol import Symbol
from fwdad.ops import record_of
from fwdad.rules.core.registry import find_rule, function_name, is_declared_pure
from fwdad.tangents import sparse
from fwdad.tangents.namespaces import namespace_of

INLINED_AT_MOST = 16  # calls of one function inside each other; then it is a program of its own
REMEMBERED_AT_MOST = 256  # of a function whose results are kept, with known arguments
_INSIDE_AT_MOST = 128  # and so many inside the outermost one, as a tree of calls has them

_JITCLASS = Missing(
    "it is a method of a jitclass, which is machine code", "write a class in Python"
)

_DISPATCH_CODE = functools.singledispatch(len).dispatch.__code__
_MANAGER_CODE = contextlib.contextmanager(lambda: iter(())).__code__


def _has_state(x: Any) -> bool:
    """Whether something is an object with attributes, but no function, class or symbol."""
    passive = (type, types.ModuleType, types.FunctionType, types.MethodType, np.ufunc, Symbol,
               Closure, Method, functools.partial, *C_FUNCTIONS, NUMPY_FUNCTION)  # fmt: skip
    return bool(namespace_of(x)) and not isinstance(x, passive)


@dataclass
class KeptCalls:
    """What is known of functions under ``lru_cache``."""

    remembered: bool = False  # whether the next call's result is kept
    caches: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # those from outside
    returned: list[set[Value]] = field(default_factory=list)  # by call: arguments, and results


class InlineCalls:
    """Calls of functions whose source is traced."""

    def __init__(
        self,
        tracer: Tracer,
        blocks: Blocks,
        generators: Generators,
        operations: OperationCalls,
        programs: Programs,
        recursive: dict[Any, Any],
    ) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.outside = tracer.outside
        self.blocks = blocks
        self.generators = generators
        self.programs = programs
        self.operations = operations
        self.recursive = recursive  # code objects and definitions that become programs
        self.descent = Descent(tracer.recorder)
        self.inside: dict[int, int] = {}  # how many calls inside the outermost one of theirs
        self.kept = KeptCalls()

    def call_function(
        self, f: types.FunctionType, args: Any, kwargs: Any, public: Any = None
    ) -> Any:
        """Call a Python function; ``public`` is the function that it implements."""
        f = behind_doors(f)
        if find_rule(f) is not None or record_of(f).has_loop or is_declared_pure(f):
            return self.operations.call_native(f, args, kwargs)
        return self.call_by_source(f, args, kwargs, public)

    def call_by_source(self, f: Any, args: Any, kwargs: Any, public: Any = None) -> Any:
        """Call a function or callable object by its source, even if it has a rule."""
        if not isinstance(f, types.FunctionType):
            method = class_attribute(type(f), "__call__")
            if not isinstance(method, types.FunctionType):
                message = f"{function_name(f)} has no Python source, so it cannot be traced"
                raise UntraceableError(message, self.position.location())
            f, args = behind_doors(method), (f, *args)
        library = is_library_file(f.__code__.co_filename)
        if f.__code__ is _DISPATCH_CODE and not mentions_symbols(args):
            return self.tracer.outside.dispatched(f, *args)
        if f.__code__ is _MANAGER_CODE:
            return managed(self.tracer, f, args, kwargs)
        known = library and is_trusted(f) and not mentions_symbols((args, kwargs))
        known = known and not shows(f)
        draws = any(isinstance(a, GENERATORS) for a in args)
        if known and not (draws or self._makes_object(f, args) or self._is_own_object(args[:1])):
            return self.operations.call_native(f, args, kwargs)
        if library and is_of_files(f):
            self.operations.refuse_impure(public or public_function(f))
        if sparse.is_of_sparse_arrays(f):
            if is_product(f, args):
                return product(self.tracer, args)
            raise UntraceableError(sparse.UNTRACED, self.position.location())
        written: Any = SOURCES.get(f)
        if written is not None:
            f, public = written, f
        elif f in HANDLERS and is_of_package(f):
            message = f"the derivatives of {function_name(f)} are not those of its source"
            raise UntraceableError(message, self.position.location())
        numba = str(f.__globals__.get("__name__")).startswith("numba.")  # methods of a jitclass
        source = None if numba else find_source(f)
        if source is None:
            return self._without_source(f, args, kwargs, _JITCLASS if numba else why_missing(f))
        if isinstance(source.node, ast.AsyncFunctionDef):
            message = f"{function_name(f)} is an `async def`, which cannot be traced: write a `def`"
            raise UntraceableError(message, self.position.location())
        frame = Frame(
            source.node,
            source.filename,
            f.__globals__,
            cells_of(f),
            classes=source.classes,
            owner=cells_of(f).get("__class__"),
        )
        own = {frame.mangled(p.arg): p.arg for p in source.node.args.kwonlyargs}  # in a class
        by_name = {own.get(name, name): x for name, x in (f.__kwdefaults__ or {}).items()}
        options = (f.__defaults__ or (), by_name)
        if not library:
            self.outside.guard_function(f)
        try:
            bound = self._bind(source.node, *options, args, kwargs)
        except AlwaysRaises:
            if public is None:
                raise
            return self.recorder.apply(public, args, kwargs)  # with an option that is not known
        inside = is_library_file(self.position.frame.filename)
        if library and self.position.depth and (not inside or public in SOURCES):
            public = public or public_function(f)
            run = (frame, source.node, bound, f.__code__)
            return self._inline_or_apply(public, run, args, kwargs)
        return self._run_frame(frame, source.node, bound, f.__code__)

    def _without_source(self, f: types.FunctionType, args: Any, kwargs: Any, why: Any) -> Any:
        """What Python returns where a function only puts arguments together, or fills a tuple."""
        if not (only_passes_on(f.__code__) or _fills_named_tuple(f)):
            message = (
                f"{function_name(f)} has no source that can be read, so it cannot be traced: "
                f"{why}, or give it a rule (fwdad.frule)"
            )
            raise UntraceableError(message, self.position.location())
        made = native(lambda: f(*args, **kwargs))
        namespace = namespace_of(made)
        if namespace is not None and isinstance(made, tuple):
            self.recorder.journal.own(namespace, namespace=True)
        return made

    def _makes_object(self, f: types.FunctionType, args: Any) -> bool:
        """Whether a function makes an object of SciPy's, or writes the first attributes of one."""
        if f.__name__ == "__init__":
            return bool(args) and self.recorder.journal.is_own(namespace_of(args[0]))
        return f.__name__ == "__new__" and f.__module__.startswith("scipy.")

    def _is_own_object(self, args: Any) -> bool:
        """Whether a method is called on an object that the traced program has made.

        Objects of NumPy and SciPy that hold no values are not changed by their methods.
        """
        if not args or type(args[0]).__module__.startswith(("numpy", "scipy")):
            return False
        return self.recorder.journal.is_own(namespace_of(args[0]))

    def _inline_or_apply(self, public: Any, run: Any, args: Any, kwargs: Any) -> Any:
        """A library function in line, or as one operation if it cannot be traced."""
        block = Block()
        try:
            with self.recorder.region(block) as region:
                region.always = True
                y = self._run_frame(*run)
                if y is NotImplemented:
                    message = f"{function_name(public)} cannot be traced with these arguments"
                    raise UntraceableError(message, self.position.location())  # noqa: TRY301
                changes = region.changes()
                region.undo()
        except AlwaysRaises:
            self.recorder.adopt(block.ops)
            raise
        except UntraceableError as error:
            if any(map(_has_state, (*args, *kwargs.values()))):
                raise  # on samples, its methods would change the object itself
            try:
                args, kwargs = self.operations.static_options(public, args, kwargs)
                value = self.recorder.apply(public, args, kwargs)
            except UntraceableError:
                raise error from None
            if not leaves_arguments(public, self.recorder.operand((args, kwargs))):
                raise
            return value
        self.recorder.block.ops.extend(block.ops)
        for o, _, now in changes:
            self.recorder.journal.touch(o)
            set_content(o, now)
        return y

    def call_closure(self, f: Closure, args: Any, kwargs: Any) -> Any:
        """Call a function that was defined while tracing."""
        frame = Frame(
            f.node, f.frame.filename, f.frame.globals, outer=f.frame, classes=f.frame.classes
        )
        bound = self._bind(f.node, f.defaults, f.kw_defaults, args, kwargs)
        return self._run_frame(frame, f.node, bound, f.node)

    def _run_frame(self, frame: Frame, node: Any, bound: dict[str, Any], key: Any) -> Any:
        if id(key) in self.recursive and not self._is_inlined(key):
            name = getattr(node, "name", "function")
            return self.programs.call(
                name,
                bound,
                key,
                lambda given: self._run_body(replace(frame, locals={}), node, given, key),
                frame=frame,
            )
        remembered, self.kept.remembered = self.kept.remembered, False
        depth = sum(key is a for a in self.position.active)
        self.inside[id(key)] = self.inside.get(id(key), 0) + 1 if depth else 0
        few = depth < INLINED_AT_MOST and self.inside[id(key)] <= _INSIDE_AT_MOST
        if not few and not (remembered and depth < REMEMBERED_AT_MOST):
            raise RecursionFound(key)
        with self.descent.into(key, frame, bound):
            return self._run_body(frame, node, bound, key)

    def _is_inlined(self, key: Any) -> bool:
        """Whether a recursive function is traced in line inside of another one's program."""
        if not any((id(key), id(outer)) in self.recursive for outer in self.programs.are_open()):
            return False
        if any(a is key for a in self.position.active):
            name = getattr(key, "co_name", getattr(key, "name", "a lambda"))
            message = (
                f"{name} calls itself, and a function that calls it, to depths that values decide, "
                "which cannot be traced: let one of them do what both do"
            )
            raise UntraceableError(message, self.position.location())
        return True

    def _run_body(self, frame: Frame, node: Any, bound: dict[str, Any], key: Any) -> Any:
        frame.names = names_of(node)
        self.recorder.journal.own(frame.locals, namespace=True)
        frame.locals.update(dict.fromkeys((*FLOW, "$stop"), False))
        for name, value in bound.items():
            frame.locals[name] = value
            if type(value) is Symbol and value.value.name is None:
                value.value.name = name
        with self.position.inside(frame, key):
            try:
                self.position.returns_at(node)
                if isinstance(node, ast.Lambda):
                    return self.tracer.unread(node.body)
                if frame.names.yields:
                    frame.captured = True
                    return self.generators.generator(frame, node, key)
                self.blocks.run_block(node.body)
                return self._returned(frame)
            except AlwaysRaises as raised:
                raised.location = raised.location or self.position.location()
                raise
            except Exception as error:
                if not type(error).__module__.startswith("fwdad."):  # they have their location
                    note_place(error, self.position.location())
                raise
            finally:
                if not frame.captured:
                    self.recorder.journal.disown(frame.locals)

    def _returned(self, frame: Frame) -> Any:
        flag = frame.locals["$return"]
        if flag is False:
            return None
        value = frame.locals["$value"]
        if isinstance(value, Maybe):  # some paths end without a `return`: None
            if value.value is None:
                return None
            return Optional(value.flag, value.value) if flag is not True else value.value
        return value

    def _bind(
        self, node: Any, defaults: tuple[Any, ...], kw: dict[str, Any], args: Any, kwargs: Any
    ) -> dict[str, Any]:
        """Arguments bound to parameters by Python's rules."""
        a = node.args
        name = getattr(node, "name", "<lambda>")
        positional = [p.arg for p in [*a.posonlyargs, *a.args]]
        bound: dict[str, Any] = {}
        extra = dict(kwargs)
        bound.update(zip(positional, args, strict=False))
        rest = args[len(positional) :]
        if a.vararg is not None:
            bound[a.vararg.arg] = tuple(rest)
        elif rest:
            s, were = "s" * (len(positional) != 1), "was" if len(args) == 1 else "were"
            message = (
                f"{name}() takes {len(positional)} positional argument{s} but {len(args)} {were} "
                "given"
            )
            raise AlwaysRaises(TypeError, (message,))
        only = {p.arg for p in a.posonlyargs}
        for parameter in [*positional, *(p.arg for p in a.kwonlyargs)]:
            if parameter in extra and parameter not in only:
                if parameter in bound:
                    message = f"{name}() got multiple values for argument {parameter!r}"
                    raise AlwaysRaises(TypeError, (message,))
                bound[parameter] = extra.pop(parameter)
        for parameter, value in zip(reversed(positional), reversed(defaults), strict=False):
            if parameter not in bound:
                bound[parameter] = self.outside.bound(value, parameter)
        for parameter, value in kw.items():
            if parameter not in bound:
                bound[parameter] = self.outside.bound(value, parameter)
        missing = [p for p in [*positional, *(p.arg for p in a.kwonlyargs)] if p not in bound]
        if missing:
            raise AlwaysRaises(TypeError, (_missing(name, missing, positional),))
        if a.kwarg is not None:
            bound[a.kwarg.arg] = self.recorder.journal.fresh(extra)
        elif extra:
            message = f"{name}() got an unexpected keyword argument {next(iter(extra))!r}"
            raise AlwaysRaises(TypeError, (message,))
        return bound


TRACES[InlineCalls._run_body.__code__] = lambda frame: frame.f_locals["self"].position.deepest()


def _missing(name: str, missing: list[str], positional: list[str]) -> str:
    """Python's message for missing arguments, positional ones first."""
    positional_missing = [p for p in missing if p in positional]
    kind = "positional" if positional_missing else "keyword-only"
    names = [repr(p) for p in positional_missing or missing]
    said = " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])}, and {names[-1]}"
    s = "s" * (len(names) != 1)
    return f"{name}() missing {len(names)} required {kind} argument{s}: {said}"


def _fills_named_tuple(f: types.FunctionType) -> bool:
    """Whether a function was generated for a named tuple, or for SciPy's with attributes."""
    generated = str(f.__globals__.get("__name__")).startswith("namedtuple_")
    return generated and f.__name__ in ("__new__", "__init__")
