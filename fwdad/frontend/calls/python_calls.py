"""Calls that no tape holds: a function of an installed package that Python runs, at each run.

It is one operation, and its result is flattened as arguments are. Its derivatives are those of
the evaluator without a tape, which runs the function on duals, or records it.
"""

from __future__ import annotations

import ast
import copy
import enum
import importlib.util
import itertools
import marshal
import pickle
import types
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.display.words import file_in_words
from fwdad.eager.activity import is_active
from fwdad.eager.build import Run as Watched
from fwdad.eager.calls.dispatch import call
from fwdad.errors import (
    FwdadError,
    UnpicklableTapeError,
    UntraceableError,
    message_of,
    type_in_words,
)
from fwdad.frontend.arguments import Build, Flattened, new_object
from fwdad.frontend.calls.known_calls import WRITES, drawn_from, draws, numbers_kept, watched
from fwdad.frontend.calls.purity import is_of_package
from fwdad.frontend.guards import CONSTANT, INPUT, contents, kind_of
from fwdad.frontend.pickled_tapes import names_in_pickle
from fwdad.frontend.result_parts import Again, MethodOf, Run, Take
from fwdad.frontend.results import Results
from fwdad.frontend.syntax.frame import Closure, Method
from fwdad.frontend.syntax.merge import container_of
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Apply, Program, Value
from fwdad.ir.other_way import OtherWayError
from fwdad.ir.primitives.opaque_call import Whole
from fwdad.ir.symbol import UNBOUND, Symbol, UnknownText
from fwdad.ir.types import BOOL, ArrayType, Size, number_type
from fwdad.rules.core.registry import function_name
from fwdad.tangents import sparse
from fwdad.tangents.fields import has_finalizer
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import attributes_of, has_fields
from fwdad.tangents.plain import plain


class PythonCall(Whole):
    """A call as a function of the values that its arguments hold.

    ``take`` makes function and arguments of these values, the last of them by ``names``;
    ``outside`` are the objects among them that stay as they are from call to call, and must not be
    changed.
    """

    makes_its_own = True
    differentiates = False

    def __init__(self, f: Any, take: Take, names: tuple[str, ...], outside: list[Any]) -> None:
        self.function = f
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.key: Any = None  # the structure of the result
        self._take = take
        self._names = names
        self._outside = outside

    def look(self, values: tuple[Any, ...]) -> Flattened:
        """The result for the example, of a run that leaves the world as it was.

        Raises if it writes outside, or puts anything out: derivatives make further runs. Only what
        the first of all calls keeps for the others, which is the same at other values, may stay.
        """
        with watched() as (run, existed):
            flat = self._result(values, run)
            reaches = run.log.reaches(existed)
            if draws(run, existed) or (drawn_from(run) and not self._repeats(values, flat)):
                raise OtherWayError(WRITES)
            if not reaches:
                return flat
            kept = numbers_kept(run, existed)
            with watched() as (second, existed_by_now):
                self._result(values, second)
                if kept is None or second.log.reaches(existed_by_now):
                    raise OtherWayError(WRITES)
        with watched() as (run, existed):
            self._result(tuple(map(_another, values)), run)
            if numbers_kept(run, existed) != kept:
                raise OtherWayError(WRITES)
        return flat

    def _repeats(self, values: tuple[Any, ...], first: Flattened) -> bool:
        """Whether another run has the same result: its own generators begin alike."""
        with watched() as (run, _):
            again = self._result(values, run)
        return pickle.dumps(again.notes) == pickle.dumps(first.notes)

    def _result(self, values: tuple[Any, ...], watched: Watched | None = None) -> Flattened:
        """The result, flattened; its leaves, as they are, are the ``notes``."""
        given = [_own(x) for x in values]
        run = Run(list(given), [])
        f, args, named = self._take(run)
        before = [(x, _content(x)) for x in run.made.values() if container_of(x) is not None]
        inside: list[Any] = []  # arrays that objects from outside hold
        held = [contents(x, inside) for x in self._outside]
        kwargs = dict(zip(self._names, named, strict=True))
        dispatched = watched is not None or _is_nested(values)
        y = call(f, *args, **kwargs) if dispatched else f(*args, **kwargs)
        changed = any(not _same(_content(x), old) for x, old in before)
        changed = changed or any(not _equal(a, b) for a, b in zip(given, values, strict=True))
        if changed or any(contents(x) != old for x, old in zip(self._outside, held, strict=True)):
            raise OtherWayError("it changes what it is given")
        flat = _Result((y,), {}, split=lambda x: (plain(x), x))
        known = map(id, (*run.made.values(), *self._outside))
        if not {id(x) for x in flat.containers}.isdisjoint(known):
            raise OtherWayError("it returns what it is given")
        arrays = [x for x in flat.notes if type(x) is np.ndarray]
        if any(np.may_share_memory(a, b) for a, b in itertools.product(arrays, inside)):
            raise OtherWayError("it returns a view of what it is given")
        if watched is not None:
            watched.log.taken_from([y, *flat.notes, *run.made.values(), *given]).restore()
        return flat

    def run(self, /, *values: Any) -> Any:
        """The leaves of the result."""
        try:
            flat = self._result(values)
        except (FwdadError, OtherWayError):
            raise
        except Exception as error:
            raise OtherWayError("it raises") from error  # for Python to raise, or to catch
        known = _kinds(self.key) if _is_nested(values) else self.key
        if (_kinds(flat.key) if _is_nested(values) else flat.key) != known:
            raise OtherWayError("its result is another one than that of its tape")
        leaves = [_own(x) for x in flat.notes]  # the package may keep what it returns
        return leaves[0] if len(leaves) == 1 else tuple(leaves) or True


def _is_nested(values: tuple[Any, ...]) -> bool:
    """Whether there are duals among some values."""
    return any(hasattr(type(x), "__fwdad_tag__") for x in values)


def _kinds(key: Any) -> Any:
    """A structure without the classes of numbers: a dual of a Python number is NumPy's."""
    if not isinstance(key, tuple):
        return key
    if len(key) == 2 and isinstance(key[0], np.dtype) and isinstance(key[1], bool):
        return key[:1]
    return tuple(map(_kinds, key))


def _own(x: Any) -> Any:
    """A value that may be written into, with the tangents that its memory carries."""
    if not isinstance(plain(x), np.ndarray):
        return x
    return call(np.ndarray.copy, x) if is_active((x,)) else x.copy()


def _another(x: Any) -> Any:
    """A value close to one of an argument, of the same type."""
    t = number_type(x)
    if t is not None and t.dtype.kind in "fc":
        return type(x)(x * (1.0 + 1e-7) + 1e-9)
    return x * (1.0 + 1e-7) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x


def _equal(a: Any, b: Any) -> bool:
    return type(a) is not np.ndarray or a.tobytes() == b.tobytes()


def _content(x: Any) -> Any:
    return copy.copy(x) if isinstance(x, (list, dict)) else dict(attributes_of(x))


def _same(now: Any, old: Any) -> bool:
    if isinstance(now, list):
        return len(now) == len(old) and all(a is b for a, b in zip(now, old, strict=True))
    return list(now) == list(old) and all(now[k] is old[k] for k in now)


class _Result(Flattened):
    """What a call returns, flattened: numbers and arrays, and what can hold them.

    Anything else might have been made of numbers, whose derivatives would be lost.
    """

    def _take(self, x: Any) -> tuple[Hashable, Build]:
        held = plain(x)
        if isinstance(held, tuple) and namespace_of(held):
            return self._with_attributes(held)
        if isinstance(held, (list, dict)) and type(held) not in (list, dict):
            return self._of_subclass(held)
        if isinstance(held, str) and any(map(str.isdigit, held)):
            text = UnknownText(None)  # perhaps of numbers
            return (str, "…"), lambda *_: text
        a_leaf = number_type(held) is not None or isinstance(held, np.ndarray)
        if not (a_leaf or isinstance(held, tuple) or self._is_container(held)):
            if held is not None and not isinstance(held, _UNCHANGING):
                raise UntraceableError(f"its result is, or holds, {type_in_words(held)}")
        return super()._take(x)

    def _is_container(self, x: Any) -> bool:
        return super()._is_container(x) or _is_all_attributes(x)

    def _with_attributes(self, x: Any) -> tuple[Hashable, Build]:
        """A tuple with attributes beside its items."""
        held, k = namespace_of(x), len(self.containers)
        assert held is not None
        self.containers.append(x)
        (items, fill), (keys, builds) = self._take(tuple(x)), self._all(held.items())
        names = tuple(held)

        def build(leaves: list[Any], made: dict[int, Any]) -> Any:
            y = made[k] = tuple.__new__(type(x), fill(leaves, made))
            vars(y).update(zip(names, (b(leaves, made) for b in builds), strict=True))
            return y

        return (type(x), items, names, keys), build

    def _of_subclass(self, x: Any) -> tuple[Hashable, Build]:
        """A list or a dict of a class of its own."""
        cls = type(x)
        if namespace_of(x):
            raise UntraceableError(f"its result is {type_in_words(x)} with attributes")
        k = len(self.containers)
        self.containers.append(x)
        is_list = isinstance(x, list)
        keys, builds = self._all(enumerate(list.__iter__(x)) if is_list else dict.items(x))
        names = None if is_list else tuple(dict.keys(x))

        def build(leaves: list[Any], made: dict[int, Any]) -> Any:
            y = made[k] = new_object(cls)
            items = (b(leaves, made) for b in builds)
            if names is None:
                list.extend(y, items)
            else:
                dict.update(y, zip(names, items, strict=True))
            return y

        return (cls, names, keys), build


def _is_all_attributes(x: Any) -> bool:
    """Whether an object is one of a package's that has no state beside its attributes."""
    cls = type(x)
    if not is_of_package(cls) or sparse.is_of_sparse_arrays(cls):
        return False
    return type(namespace_of(x)) is dict and has_fields(cls) and not has_finalizer(cls)


_UNCHANGING = (str, bytes, type, types.FunctionType, types.ModuleType, np.dtype, enum.Enum)


@dataclass(frozen=True, eq=False)
class FunctionOf(Take):
    """A function that is defined inside, with what it reads from around it.

    ``names`` are its own, and those of its defaults that are given by name.
    """

    key: int
    code: types.CodeType
    namespace: dict[str, Any]
    names: tuple[str, tuple[str, ...]]
    parts: dict[str, Take]
    defaults: Take
    named: Take

    def __reduce__(self) -> Any:
        code = (importlib.util.MAGIC_NUMBER, marshal.dumps(self.code))
        names = names_in_pickle(self.namespace, self.code)
        return (_restored, (self.key, code, names, *list(vars(self).values())[3:]))

    def __call__(self, run: Run) -> Any:
        """The function, one object in a run."""
        if self.key not in run.made:
            cells = [types.CellType() for _ in self.code.co_freevars]
            name, keywords = self.names
            function = types.FunctionType(
                self.code, self.namespace, name, self.defaults(run), tuple(cells)
            )
            function.__kwdefaults__ = dict(zip(keywords, self.named(run), strict=True))
            run.made[self.key] = function
            for name, cell in zip(self.code.co_freevars, cells, strict=True):
                if name in self.parts:
                    cell.cell_contents = self.parts[name](run)
        return run.made[self.key]


def _restored(key: int, code: tuple[bytes, bytes], *rest: Any) -> FunctionOf:
    magic, text = code
    if magic != importlib.util.MAGIC_NUMBER:
        raise UnpicklableTapeError(
            "a tape was pickled by another version of Python, and holds a function in that "
            "version's bytecode: trace the function again"
        )
    return FunctionOf(key, marshal.loads(text), *rest)  # noqa: S302  (a pickle is code, too)


class _Taken(Results):
    """The function and arguments of a call, flattened; closures become functions of Python's."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(tracer.recorder, [], [])
        self._tracer = tracer
        self.outside: list[Any] = []

    def of(self, x: Any) -> Take:
        """What makes a value of those that it holds."""
        return self._take(x)

    def _take(self, x: Any) -> Take:
        if isinstance(x, Method):
            return MethodOf(self._take(x.function), self._take(x.owner))
        if isinstance(x, types.MethodType):
            return MethodOf(self._take(x.__func__), self._take(x.__self__))
        if isinstance(x, Closure):
            if id(x) not in self._memo:
                self._memo[id(x)] = Again(id(x))
                self._kept.append(x)
                self._memo[id(x)] = self._closure(x)
            return self._memo[id(x)]
        if type(x) is not Symbol and container_of(x) is not None and self._is_outside(x):
            self.outside.append(x)
        return super()._take(x)

    def _is_outside(self, x: Any) -> bool:
        if self._recorder.journal.is_own(container_of(x)):
            return False
        return kind_of(x) not in (INPUT, CONSTANT)

    def _closure(self, f: Closure) -> Take:
        """A function that is defined inside, with what it reads from around it."""
        code = _code_of(f)
        held = {name: self._read(f, name) for name in code.co_freevars}
        parts = {name: self._take(x) for name, x in held.items() if x is not UNBOUND}
        defaults, named = self._take(f.defaults), self._take(tuple(f.kw_defaults.values()))
        names = (f.__name__, tuple(f.kw_defaults))
        return FunctionOf(id(f), code, f.frame.globals, names, parts, defaults, named)

    def _read(self, f: Closure, name: str) -> Any:
        """What a name around a function holds now."""
        home = f.frame.home(name)
        if home is not None:
            return home.locals.get(name, UNBOUND)
        cell = f.frame.find_cell(name)
        assert cell is not None
        return self._tracer.outside.captured(cell.cell_contents, ("cell", cell), name)


def _code_of(f: Closure) -> types.CodeType:
    """The code of a function that is defined inside, whose free names are those around it."""
    node: Any = copy.copy(f.node)
    node.args = copy.copy(node.args)
    node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
    inner = list(ast.walk(node))
    if any(isinstance(n, (ast.Nonlocal, ast.Global)) for n in inner):
        message = f"{f.__name__} binds names of the functions around it"
        raise UntraceableError(message)
    names = sorted({n.id for n in inner if isinstance(n, ast.Name)})
    around = [n for n in names if f.frame.home(n) is not None or f.frame.find_cell(n) is not None]
    outer = ast.parse(f"def outer({', '.join(around)}): pass")
    if isinstance(node, ast.Lambda):
        body: ast.stmt = ast.Expr(node)
    else:
        node.decorator_list, body = [], node
    outer.body[0].body = [body]  # type: ignore[attr-defined]
    made = compile(ast.fix_missing_locations(outer), f.frame.filename, "exec")
    (factory,) = (c for c in made.co_consts if isinstance(c, types.CodeType))
    return next(c for c in factory.co_consts if isinstance(c, types.CodeType))


def call_python(tracer: Tracer, f: Any, args: Any, kwargs: Any, refusal: UntraceableError) -> Any:
    """The result of a call that Python makes at each run; its structure is that of the example."""
    recorder, place = tracer.recorder, tracer.position.location()
    taken = _Taken(tracer)
    try:
        take = taken.of((f, args, tuple(kwargs.values())))
        op = PythonCall(f, take, tuple(kwargs), taken.outside)
        flat = op.look(recorder.ways.observed(taken.operands))
    except Exception as error:  # noqa: BLE001  (whatever a package raises)
        explain(refusal, function_name(f), message_of(error))
        raise refusal from None
    op.because(refusal.msg, place)
    op.key = flat.key
    outputs = tuple([_output(x) for x in flat.leaves] or [Value(BOOL)])
    for v in _sharing_memory(outputs, flat.notes):
        recorder.unwritten[v] = _ONE_MEMORY.format(function_name(f))
    recorder.emit(Apply(op, tuple(taken.operands), outputs=outputs))
    recorder.ways.calls(place)
    (y,), _, containers = flat.rebuild([Symbol(v, recorder) for v in outputs])
    for x in containers:
        if isinstance(x, (list, dict)):
            recorder.journal.own(x)
        else:
            recorder.journal.own(namespace_of(x), namespace=True)
    return y


_ONE_MEMORY = (
    "that {} returns, and another one that it returns has the same memory; Python calls it at each "
    "run, and they become arrays of their own: write into a copy"
)


def _sharing_memory(values: tuple[Value, ...], found: list[Any]) -> set[Value]:
    """The values of arrays that are, or view, the memory of others among them."""
    arrays = [(v, x) for v, x in zip(values, found, strict=False) if type(x) is np.ndarray]
    pairs = itertools.combinations(arrays, 2)
    return {v for a, b in pairs if np.may_share_memory(a[1], b[1]) for v in (a[0], b[0])}


def explain(refusal: UntraceableError, name: str, why: str) -> None:
    """Say of a call that no tape holds why Python cannot make it either, and what can be done."""
    note = (
        f"Python cannot make the call of {name} at each run either: {why}. Take the derivative "
        f"without jit, or give {name} a rule (fwdad.frule)"
    )
    if note not in getattr(refusal, "__notes__", ()):  # the trace may meet the call again
        refusal.add_note(note)


def _output(x: Any) -> Value:
    """The value of one leaf of a result, whose lengths are another time others."""
    t = number_type(x)
    if t is not None:
        return Value(t)
    return Value(ArrayType(x.dtype, tuple(n if n < 2 else Size() for n in x.shape)))


def in_words(program: Program) -> str:
    """The calls that Python makes, each with the reason, one per line."""
    calls: dict[str, None] = {}
    for op in program.walk():
        whole = getattr(op, "function", None)
        while isinstance(whole, Whole) and not isinstance(whole, PythonCall):
            whole = whole.function
        if isinstance(whole, PythonCall):
            at = whole.location
            where = "" if at is None else f" at {file_in_words(at.filename)}:{at.line}"
            name = function_name(whole.function)
            calls[f"\n  Python calls {name}{where}, because: {whole.reason}"] = None
    return "".join(calls)
