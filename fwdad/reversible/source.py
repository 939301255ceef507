"""A reversible program as Python source: plain NumPy code, for the kinds of its arguments."""

from __future__ import annotations

import ast
import linecache
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fwdad.errors import InvertibilityError, IrreversibleError
from fwdad.reversible import exact
from fwdad.reversible.invert import inverted_block
from fwdad.reversible.kinds import (
    Exact,
    Function,
    Kind,
    Numeric,
    Other,
    Record,
    kind_of,
    place_kind,
    traced_kind,
)
from fwdad.reversible.liveness import all_reads
from fwdad.reversible.parse import location
from fwdad.reversible.places import distance, leaves, metadata, replaced, text
from fwdad.reversible.program import (
    Allocate,
    Block,
    Call,
    Compute,
    Define,
    Flip,
    For,
    Free,
    If,
    Instruct,
    Program,
    Require,
    Statement,
    Swap,
    Unchecked,
    Update,
    While,
    root_of,
    walk,
    written_roots,
)
from fwdad.reversible.records import variables


class Names:
    """Names for generated code that the user's source does not have."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)

    def fresh(self, name: str) -> str:
        """The name, with a number behind it if need be."""
        found, k = name, 1
        while found in self.taken:
            k += 1
            found = f"{name}_{k}"
        self.taken.add(found)
        return found


def make_function(code: str, name: str, namespace: dict[str, Any]) -> Any:
    """Define a function of generated source, whose lines tracebacks and tracers find."""
    filename = f"<fwdad reversible {name} {zlib.crc32(code.encode()):08x}>"
    linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
    exec(compile(code, filename, "exec"), namespace)  # noqa: S102
    return namespace[name]


class Writer:
    """Writes statements, in the direction of time.

    Parameters
    ----------
    program : Program
        What is written, or a part of it.
    kinds : dict
        What the variables are: by name for parameters, by ``Variable`` for the others.
    namespace : dict
        Where the source will run; what it needs beside the user's names is put there.
    called : callable
        ``called(function, kinds, inverse, statement)`` names the function of a call.
    checked : bool
        Whether to write run-time checks.
    tolerance : float
        For ancillas that are floats.
    """

    def __init__(
        self,
        program: Program,
        kinds: dict[Any, Kind],
        namespace: dict[str, Any],
        called: Any,
        *,
        checked: bool,
        tolerance: float,
    ) -> None:
        self.program = program
        self.kinds = kinds
        self.namespace = namespace
        self.called = called
        self.checked = checked
        self.tolerance = tolerance
        self.env: dict[str, Kind] = {p: kinds[p] for p in program.params}
        self.fixed: list[str] = []  # what must not change now
        self.written: Callable[[Block], set[str]] = written_roots
        self.names = Names(program.names | set(namespace))
        self.lines: list[str] = []
        self.depth = 1
        self.np = self.given("np", np)

    # -- lines

    def line(self, code: str) -> None:
        """Write one line."""
        self.lines.append("    " * self.depth + code)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines that stand one step to the right; ``pass`` if there are none."""
        self.depth += 1
        before = len(self.lines)
        yield
        if all(text_.lstrip().startswith("#") for text_ in self.lines[before:]):
            self.line("pass")
        self.depth -= 1

    def given(self, name: str, value: Any) -> str:
        """A name of the namespace for a value."""
        if self.namespace.get(name) is value:
            return name
        for known, other in self.namespace.items():
            if other is value and known.startswith(name):
                return known
        name = self.names.fresh(name) if name in self.names.taken else name
        self.names.taken.add(name)
        self.namespace[name] = value
        return name

    def comment(self, s: Statement) -> None:
        """The user's line."""
        lineno = getattr(s.node, "lineno", None)
        if lineno is None:
            return
        user = linecache.getline(self.program.filename, lineno).strip()
        note = f"# {Path(self.program.filename).name}:{lineno}: {user}"
        indent = "    " * self.depth
        if not self.lines or self.lines[-1].strip() != note:
            self.lines.append(indent + note)

    def refuse(self, message: str, s: Statement) -> IrreversibleError:
        """An error at the user's line."""
        return IrreversibleError(message, location(self.program.filename, s.node))

    # -- kinds

    @property
    def numeric(self) -> set[str]:
        """The variables that are numbers or arrays now."""
        return {n for n, k in self.env.items() if not isinstance(k, (Function, Other))}

    def kind(self, place: ast.expr) -> Kind:
        """The kind of a place that is updated."""
        found = place_kind(place, self.env, self.kind_of_expression)
        if found is None:
            message = f"'{text(place)}' has an array for an index: two of its elements may be one"
            raise IrreversibleError(message, location(self.program.filename, place))
        return found

    def parts(self, expression: ast.expr) -> tuple[list[tuple[ast.expr, Kind]], list[ast.expr]]:
        """The places that an expression reads, with their kinds, and the shapes it asks for."""
        found: dict[str, tuple[ast.expr, Kind]] = {}
        todo = leaves(expression, self.numeric)
        shapes = {text(m): m for m in metadata(expression, self.numeric)}
        while todo:
            leaf = todo.pop(0)
            kind = place_kind(leaf, self.env, self.kind_of_expression)
            if kind is not None:
                found[text(leaf)] = (leaf, kind)
                continue
            # an array as an index: the base is read, and the index is a part of the expression
            base = leaf
            while place_kind(base, self.env, self.kind_of_expression) is None:
                if not isinstance(base, ast.Subscript):
                    break
                todo.extend(leaves(base.slice, self.numeric))
                shapes |= {text(m): m for m in metadata(base.slice, self.numeric)}
                base = base.value
            found[text(base)] = (base, place_kind(base, self.env, self.kind_of_expression))
        return list(found.values()), list(shapes.values())

    def kind_of_expression(self, e: ast.expr) -> Kind:
        """The kind of any value."""
        try:
            value = ast.literal_eval(e)
        except ValueError:
            pass
        else:
            return kind_of(value)
        made = exact.constructed(self, e)
        if made is not None:
            of = self.kind_of_expression(made[2])
            return Exact("float64", of.ndim, of.is_array, *made[:2])
        read, shapes = self.parts(e)
        if len(read) == 1 and text(read[0][0]) == text(e):
            return read[0][1]
        name, args = self.as_function("value", e, [(leaf, k) for leaf, k in read], shapes)
        kinds = [k for _, k in read]
        samples = [*kinds, *(_ShapeSample(m, self) for m in shapes)]
        del args
        return traced_kind(self.namespace[name], samples)

    def as_function(
        self,
        name: str,
        e: ast.expr,
        read: list[tuple[ast.expr, Kind]],
        shapes: list[ast.expr],
        *,
        before: str = "",
        wrap: str = "{}",
    ) -> tuple[str, list[str]]:
        """A function of what an expression reads; its name, and its arguments as they are here."""
        names = Names(self.program.names | set(self.namespace) | {before})
        by: dict[str, ast.expr] = {}
        args = []
        for leaf in (*(leaf for leaf, _ in read), *shapes):
            by[text(leaf)] = ast.Name(names.fresh(_readable(leaf)), ast.Load())
            args.append(self.code(leaf))
        params = [n.id for n in by.values()]  # type: ignore[attr-defined]
        if before:
            params.insert(0, before)
        body = wrap.format(text(replaced(e, by)))
        found = self.names.fresh(name)
        code = f"def {found}({', '.join(params)}):\n    return {body}\n"
        make_function(code, found, self.namespace)
        self.helper(found, code)
        return found, args

    def code(self, e: ast.expr) -> str:
        """An expression as source."""
        return exact.read(self, e)

    def helper(self, name: str, code: str) -> None:
        """Hear of a function that was defined for the source."""

    # -- statements

    def block(self, block: Block) -> None:
        """Write a block."""
        for s in block:
            self.statement(s)

    def statement(self, s: Statement) -> None:
        """Write a statement."""
        self.comment(s)
        self.check_apart(s)
        getattr(self, f"_write_{type(s).__name__.lower()}")(s)

    def _write_update(self, s: Update) -> None:
        self.update(s, s.op)

    def update(self, s: Update, op: str) -> None:
        """``place op= value``."""
        kind = self.kind(s.place)
        if isinstance(kind, Exact):
            exact.update(self, s, op, kind)
            return
        if op in "*/":
            message = (
                f"'{text(s.place)} {op}= ...' is not exact for {kind.dtype} numbers: use "
                "fwdad.Logarithmic numbers, or compute the product in an ancilla"
            )
            raise self.refuse(message, s)
        if not kind.active:
            given = self.kind_of_expression(s.value)
            if given.active or (op == "^") != (op == "^" and np.dtype(kind.dtype).kind in "biu"):
                message = (
                    f"'{text(s.place)}' is of dtype {kind.dtype}: what is added would be cut off; "
                    "begin it as a float (0.0)"
                )
                raise self.refuse(message, s)
        elif op == "^":
            message = f"'^=' is for integers and bools; '{text(s.place)}' is {kind.dtype}"
            raise self.refuse(message, s)
        self.line(f"{text(s.place)} {op}= {self.code(s.value)}")

    def _write_swap(self, s: Swap) -> None:
        self.swap(text(s.a), text(s.b), self.kind(s.a), self.kind(s.b), s)

    def swap(self, a: str, b: str, kind: Kind, other: Kind, s: Statement) -> None:
        """Exchange two values, or the contents of two arrays."""
        if kind != other:
            message = f"'{a}' and '{b}' are of different kinds: they cannot be swapped"
            raise self.refuse(message, s)
        if not kind.is_array:
            self.line(f"{a}, {b} = {b}, {a}")
            return
        kept = self.names.fresh("kept")
        self.line(f"{kept} = {self.np}.copy({a})")
        self.line(f"{a}[...] = {b}")
        self.line(f"{b}[...] = {kept}")

    def _write_flip(self, s: Flip) -> None:
        self.flip(text(s.place), s.op, self.kind(s.place), s)

    def flip(self, place: str, op: str, kind: Kind, s: Statement) -> None:
        """Negate."""
        dtype = np.dtype(kind.dtype)
        allowed = {"-": "ifc", "~": "biu", "not ": "b"}[op]
        if isinstance(kind, Exact) and kind.is_log:
            message = f"'{place}' is a Logarithmic number: it is never negative"
            raise self.refuse(message, s)
        if dtype.kind not in allowed or (op == "not " and kind.is_array):
            message = f"'{op}{place}' cannot be undone for dtype {dtype}"
            raise self.refuse(message, s)
        if op == "~" and dtype.kind == "b" and not kind.is_array:
            op = "not "
        self.line(f"{place}{'[...]' if kind.is_array else ''} = {op}{place}")

    def _write_instruct(self, s: Instruct) -> None:
        self.instruct(s, s.inverse)

    def instruct(self, s: Instruct, inverse: bool) -> None:
        """Call the function of an instruction, and store what it answers."""
        function = s.instruction.inverse if inverse else s.instruction.forward
        name = self.given(function.__name__.lstrip("_"), function)
        updated = s.args[: s.instruction.updated]
        exact.refuse_kept(self, s, map(self.kind, updated), f"'{s.name}'")
        self.assign(updated, f"{name}({', '.join(map(self.code, s.args))})")

    def assign(self, places: list[ast.expr], value: str) -> None:
        """Give places new values."""
        targets, stores = [], []
        for place in places:
            if self.kind(place).is_array:
                new = self.names.fresh("new")
                targets.append(new)
                stores.append(f"{text(place)}[...] = {new}")
            else:
                targets.append(text(place))
        self.line(f"{', '.join(targets)} = {value}")
        for store in stores:
            self.line(store)

    def _write_allocate(self, s: Allocate) -> None:
        self.begin(s)

    def begin(self, s: Allocate | Free) -> None:
        """Begin a variable."""
        variable, value = s.variable, s.value
        kind = self.kinds[variable]
        if isinstance(kind, Exact):
            exact.begin(self, s, kind)
            self.env[variable.name] = kind
            return
        code = self.code(value)
        if kind.is_array:
            code = code if self.is_new(value) else f"{self.np}.copy({code})"
        elif np.dtype(kind.dtype).kind == "f" and isinstance(value, ast.Constant):
            code = repr(float(value.value))  # type: ignore[arg-type]
        elif np.dtype(kind.dtype).kind == "c" and isinstance(value, ast.Constant):
            code = repr(complex(value.value))  # type: ignore[arg-type]
        self.line(f"{variable.name} = {code}")
        self.env[variable.name] = kind

    def is_new(self, value: ast.expr) -> bool:
        """Whether an expression makes an array that nobody else has."""
        if not isinstance(value, ast.Call):
            return isinstance(value, ast.BinOp)
        name = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        return name in {"zeros", "ones", "empty", "full", "array", "copy", "zeros_like", "arange"}

    def _write_free(self, s: Free) -> None:
        self.end(s)

    def end(self, s: Allocate | Free) -> None:
        """A variable ends, if it is what it must be."""
        kind = self.kinds[s.variable]
        name = s.variable.name
        if self.checked and isinstance(kind, Exact):
            exact.check_value(self, s, name, kind)
        elif self.checked:
            value = self.code(s.value)
            self.check_value(s, f"ancilla '{name}'", name, name, value, kind)
        self.env.pop(name, None)

    def _write_define(self, s: Define) -> None:
        self.define(s)
        with self.keeping(s.variable.name, s.value):
            self.block(s.body)

    @contextmanager
    def keeping(self, name: str, *values: ast.expr) -> Iterator[None]:
        """While a name holds, neither it nor what it stands for is updated by a call."""
        read = [n.id for v in values for leaf, _ in self.parts(v)[0] for n in _names(leaf)]
        before = len(self.fixed)
        self.fixed += [name, *read]
        yield
        del self.fixed[before:]

    def define(self, s: Define) -> None:
        """Give a value a name."""
        self.line(f"{s.variable.name} = {self.code(s.value)}")
        self.env[s.variable.name] = self.kinds[s.variable]

    def _write_if(self, s: If) -> None:
        self.branch(s, s.pre, s.post, s.body, s.orelse)

    def branch(self, s: If, pre: ast.expr, post: ast.expr, body: Block, orelse: Block) -> None:
        """A branch, and whether the other condition agrees afterwards."""
        sure = not self.checked or self.stays(pre, post, [*s.body, *s.orelse])
        way = self.code(pre)
        if not sure:
            name = self.names.fresh("way")
            self.line(f"{name} = {way}")
            way = name
        self.line(f"if {way}:")
        with self.indented():
            self.block(body)
        if orelse:
            self.line("else:")
            with self.indented():
                self.block(orelse)
        if not sure:
            after = self.names.fresh("after")
            self.line(f"{after} = {self.code(post)}")
            self.line(f"if {after} != {way}:")
            what = f"the condition '{text(post)}' after the branch"
            self.raise_it(s, what, text(post), way, after)

    def stays(self, pre: ast.expr, post: ast.expr, block: Block) -> bool:
        """Whether a condition cannot change."""
        if text(pre) != text(post):
            return False
        changed = self.written(block)
        read, _ = self.parts(pre)
        return not any(n.id in changed for leaf, _ in read for n in _names(leaf))

    def _write_while(self, s: While) -> None:
        self.loop(s, s.pre, s.post, s.body)

    def loop(self, s: While, pre: ast.expr, post: ast.expr, body: Block) -> None:
        """A loop, and whether its other condition is false before and true after each turn."""
        if self.checked:
            self.line(f"if {self.code(post)}:")
            what = f"the condition '{text(post)}' before the loop"
            self.raise_it(s, what, text(post), "False", "True")
        self.line(f"while {self.code(pre)}:")
        with self.indented():
            self.block(body)
            if self.checked:
                self.line(f"if not ({self.code(post)}):")
                what = f"the condition '{text(post)}' after a turn of the loop"
                self.raise_it(s, what, text(post), "True", "False")

    def _write_for(self, s: For) -> None:
        self.repeat(s, s.body, backwards=s.backwards)

    def repeat(self, s: For, body: Block, *, backwards: bool) -> None:
        """A loop over a range."""
        start, stop = self.code(s.start), self.code(s.stop)
        moving = s.moving and self.checked
        if moving:
            names = self.names.fresh("start"), self.names.fresh("stop")
            self.line(f"{names[0]}, {names[1]} = {start}, {stop}")
            over = _range(*names, s.step, backwards=backwards)
        else:
            over = _range(start, stop, s.step, backwards=backwards)
        self.line(f"for {s.variable.name} in {over}:")
        self.env[s.variable.name] = Numeric("int64")
        with self.indented(), self.keeping(s.variable.name):
            self.block(body)
        self.env.pop(s.variable.name, None)
        if moving:
            for name, end in zip(names, (start, stop), strict=True):
                if name and not end.lstrip("-").isdigit():
                    self.line(f"if {end} != {name}:")
                    self.raise_it(s, f"'{end}', an end of the loop's range", end, name, end)

    def _write_call(self, s: Call) -> None:
        self.call(s, inverse=s.inverse)

    def call(self, s: Call, *, inverse: bool) -> None:
        """Call a reversible function; numbers come back, arrays are updated in place."""
        kinds = [self.argument_kind(a, s) for a in s.args]
        name, updated = self.called(s, kinds, inverse, self)
        given = self.values(s, kinds)
        self.check_fixed(s, given, updated)
        targets = [text(a) for k, (a, of) in enumerate(given) if k in updated and not of.is_array]
        call = f"{name}({', '.join(text(a) for a, _ in given)})"
        self.line(f"{', '.join(targets)} = {call}" if targets else call)

    def check_fixed(self, s: Call, given: list[tuple[ast.expr, Kind]], updated: set[int]) -> None:
        """Raise if a call updates what a name stands for."""
        for k, (a, _) in enumerate(given):
            if k in updated and root_of(a) in self.fixed:
                message = (
                    f"'{text(a)}' is updated by this call, but a name stands for its value here, "
                    "or a loop goes through it: use fwdad.ancilla"
                )
                raise self.refuse(message, s)

    def values(self, s: Call, kinds: list[Kind]) -> list[tuple[ast.expr, Kind]]:
        """What a call is given: the fields of records, no functions."""
        found: list[tuple[ast.expr, Kind]] = []
        for a, kind in zip(s.args, kinds, strict=True):
            places = s.places(a)
            if isinstance(kind, Record) and places != [a]:
                found += zip(places, (k for _, k in kind.fields), strict=True)
            elif isinstance(kind, Record):
                for name, k in variables(text(a), kind):
                    found.append((ast.Name(name, ast.Load()), k))
            else:
                found.append((a, kind))
        return [(a, k) for a, k in found if is_value(k)]

    def argument_kind(self, a: ast.expr, s: Call) -> Kind:
        """The kind of an argument of a call, which may be a function."""
        own = s.own.get(a.id) if isinstance(a, ast.Name) else None
        if own is not None:
            return Record(own[0], tuple((name, self.env[v]) for name, v in own[1].items()))
        if isinstance(a, ast.Name) and a.id in self.env:
            return self.env[a.id]
        if isinstance(a, ast.Name) and isinstance(self.kinds.get(a.id), Record):
            return self.kinds[a.id]
        if isinstance(a, (ast.Name, ast.Attribute)) and not leaves(a, self.numeric):
            return Function(self.outside(a))
        return self.kind(a)

    def outside(self, node: ast.expr) -> Any:
        """What an expression of the world outside means."""
        return eval(text(node), self.namespace)  # noqa: S307  (a name of the user's source)

    def _write_compute(self, s: Compute) -> None:
        self.block(s.body)
        self.block(s.inside)
        if self.is_private(s):
            for name in own_variables(s.body):
                self.env.pop(name, None)
        else:
            self.block(inverted_block(s.body))

    def is_private(self, s: Compute) -> bool:
        """Whether nobody can see that a block is undone: it writes its own variables, it alone.

        What it reads must stay, too: else undoing it fails, which is to be seen.
        """
        own = own_variables(s.body)
        inside = self.written(s.inside)
        read = all_reads(s.body, self.numeric | own)
        return self.written(s.body) <= own and not inside & (own | read)

    def _write_require(self, s: Require) -> None:
        if self.checked:
            self.line(f"if not ({self.code(s.test)}):")
            self.raise_it(s, s.what, s.variable, repr(s.expected), self.code(s.found))

    def _write_unchecked(self, s: Unchecked) -> None:
        before, self.checked = self.checked, False
        self.block(s.body)
        self.checked = before

    # -- checks

    def check_value(
        self, s: Statement, what: str, variable: str, found: str, expected: str, kind: Kind
    ) -> None:
        """Raise if a value is not what it must be."""
        if kind.active:
            size = f"abs({expected})" if not kind.is_array else f"{self.np}.abs({expected})"
            largest = (
                f"max(1.0, {size})" if not kind.is_array else f"{self.np}.maximum(1.0, {size})"
            )
            try:
                bound = repr(self.tolerance * max(1.0, abs(complex(expected))))
            except ValueError:
                bound = f"{self.tolerance!r} * {largest}"
            if kind.is_array:
                test = f"not {self.np}.all({self.np}.abs({found} - ({expected})) <= {bound})"
            else:
                gap = found if expected in ("0.0", "0") else f"{found} - ({expected})"
                test = f"not abs({gap}) <= {bound}"
        else:
            test = f"{found} != {expected}"
            if kind.is_array:
                test = f"{self.np}.any({test})"
        self.line(f"if {test}:")
        self.raise_it(s, what, variable, expected, found)

    def check_apart(self, s: Statement) -> None:
        """Raise if two elements that must differ are the same."""
        if not self.checked:
            return
        for pairs in s.apart:
            tests = []
            for i, j, length in pairs:
                a, b, n = text(i), text(j), text(length)
                gap = distance(i, j)
                if gap is not None:  # they meet where one of them counts from the end
                    tests.append(f"{n} == {abs(gap)}")
                else:
                    tests.append(f"({a} - ({b}) in (0, {n}, -{n}))")
            self.line(f"if {' and '.join(tests)}:")
            what = "an element that is updated and read at once, at the indices"
            self.raise_it(s, what, text(pairs[0][0]), "'two different elements'", text(pairs[0][0]))

    def raise_it(self, s: Statement, what: str, variable: str, expected: str, found: str) -> None:
        """The line that raises."""
        error = self.given("InvertibilityError", InvertibilityError)
        place = (self.program.filename, getattr(s.node, "lineno", 0))
        with self.indented():
            self.line(
                f"raise {error}({what!r}, {variable!r}, {place[0]!r}, {place[1]}, {expected}, "
                f"{found})"
            )


class _ShapeSample:
    """Stands among kinds for a length or a shape."""

    def __init__(self, node: ast.expr, writer: Writer) -> None:
        base = node.args[0] if isinstance(node, ast.Call) else node.value  # type: ignore[attr-defined]
        kind = writer.kind(base)
        shape = (2,) * kind.ndim
        length = isinstance(node, ast.Call)
        name = "len" if length else node.attr  # type: ignore[attr-defined]
        values = {"len": 2, "shape": shape, "ndim": kind.ndim, "size": 2**kind.ndim}
        self._value: Any = np.dtype(kind.dtype) if name == "dtype" else values[name]

    def sample(self) -> Any:
        """Any value of it."""
        return self._value


def own_variables(block: Block) -> set[str]:
    """The ancillas that begin in a block."""
    return {s.variable.name for s in walk(block) if isinstance(s, Allocate)}


def infer_kinds(program: Program, writer: Writer) -> None:
    """Find the kinds of all variables of a program, in the direction in which it was written."""
    _infer(program.body, writer)


def _infer(block: Block, w: Writer) -> None:
    for s in block:
        if isinstance(s, (Allocate, Define)):
            kind = w.kind_of_expression(s.value)
            if isinstance(s, Define):
                read, _ = w.parts(s.value)
                if kind.active and any(k.active for _, k in read):
                    message = (
                        f"'{s.variable.name}' depends on numbers that are differentiated: it needs "
                        "a place of its own, fwdad.ancilla(...)"
                    )
                    raise w.refuse(message, s)
            w.kinds[s.variable] = w.env[s.variable.name] = kind
        elif isinstance(s, For):
            w.env[s.variable.name] = Numeric("int64")
        if isinstance(s, If):
            _infer(s.body, w)
            _infer(s.orelse, w)
        elif isinstance(s, Compute):
            _infer(s.body, w)
            _infer(s.inside, w)
        elif isinstance(s, (Define, While, For, Unchecked)):
            _infer(s.body, w)


def is_value(kind: Kind) -> bool:
    """Whether arguments of a kind are given to generated code."""
    return not isinstance(kind, (Function, Other))


def _range(start: str, stop: str, step: int, *, backwards: bool) -> str:
    if not backwards:
        return (
            f"range({stop})"
            if (start, step) == ("0", 1)
            else (f"range({start}, {stop})" if step == 1 else f"range({start}, {stop}, {step})")
        )
    before = "-1" if start == "0" else f"{start} - 1"
    after = f"{start} + 1"
    if step == 1:
        return f"range({stop} - 1, {before}, -1)"
    if step == -1:
        return f"range({stop} + 1, {after})"
    sign, end = (1, before) if step > 0 else (-1, after)
    last = f"({stop} - ({start}) - {sign}) // {step} * {step}"
    return f"range({start} + {last}, {end}, {-step})"


def _names(node: ast.AST) -> Iterator[ast.Name]:
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            yield n


def _readable(node: ast.expr) -> str:
    """A name for what an expression reads."""
    parts = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    word = "_".join(dict.fromkeys(parts)) or "value"
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute):
            word += f"_{n.attr}"
    return word if word.isidentifier() else "value"
