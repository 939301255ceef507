"""Frames: the namespaces of the functions that are being traced."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from inspect import Parameter, Signature, signature
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any

from fwdad.eager.lifting.source import Definition, children_of
from fwdad.frontend.syntax.symbols import OfFunction

WORLD = "__fwdad_world__"
"""In the namespace of generated code: where a name of it stands in the user's world, or None."""

FLOW = ("$break", "$continue", "$return")


@dataclass(eq=False)
class Frame:
    """One call of a function.

    ``cells`` are those of a real closure, ``outer`` is the frame in which a traced closure was
    made. ``locals`` also has the flags of the control flow.
    """

    node: ast.AST
    filename: str
    globals: dict[str, Any]
    cells: dict[str, CellType] = field(default_factory=dict)
    outer: Frame | None = None
    classes: tuple[str, ...] = ()
    locals: dict[str, Any] = field(default_factory=dict)
    names: Names = field(default_factory=lambda: Names())
    owner: Any = None  # __class__ of a method, for super()
    captured: bool = False  # by a function that was defined in it
    items: Any = None  # of a generator function: the iterator that the call returns
    caller: tuple[Frame | None, Any] = (None, None)  # and where it was called itself

    def home(self, name: str) -> Frame | None:
        """The frame in which a name is local; None if it is a cell, global or builtin."""
        if name in self.names.globals:
            return None
        if name in self.names.own:
            return self
        return self.outer.home(name) if self.outer is not None else None

    def find_cell(self, name: str) -> CellType | None:
        """The cell of a captured name."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.cells:
                return frame.cells[name]
            frame = frame.outer
        return None

    def mangled(self, name: str) -> str:
        """A private name as Python mangles it inside a class."""
        if not name.startswith("__") or name.endswith("__") or not self.classes:
            return name
        stem = self.classes[-1].lstrip("_")
        return f"_{stem}{name}" if stem else name

    @property
    def builtins(self) -> dict[str, Any]:
        """The builtin names."""
        found = self.globals.get("__builtins__", builtins)
        return found if isinstance(found, dict) else vars(found)


@dataclass
class Names:
    """The names that belong to a function, and whether it is a generator function."""

    own: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    yields: bool = False


@dataclass(eq=False, repr=False)
class Closure(OfFunction):
    """A function (``node``) that was defined in ``frame`` while tracing."""

    kind = FunctionType
    in_words = "a function defined inside the traced one"

    node: Definition
    frame: Frame
    defaults: tuple[Any, ...]
    kw_defaults: dict[str, Any]

    held: dict[str, Any] = field(default_factory=dict)

    @property
    def __name__(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    @property
    def __signature__(self) -> Signature:
        """The parameters, for :func:`inspect.signature` of what stands for the function."""
        wrapped = self.held.get("__wrapped__")
        if isinstance(wrapped, (Closure, FunctionType)):
            return wrapped.__signature__ if isinstance(wrapped, Closure) else signature(wrapped)
        a = self.node.args
        positional = [*a.posonlyargs, *a.args]
        found, first = [], len(positional) - len(self.defaults)
        for k, p in enumerate(positional):
            only = k < len(a.posonlyargs)
            way = Parameter.POSITIONAL_ONLY if only else Parameter.POSITIONAL_OR_KEYWORD
            default = Parameter.empty if k < first else self.defaults[k - first]
            found.append(Parameter(p.arg, way, default=default))
        if a.vararg is not None:
            found.append(Parameter(a.vararg.arg, Parameter.VAR_POSITIONAL))
        for p in a.kwonlyargs:
            default = self.kw_defaults.get(p.arg, Parameter.empty)
            found.append(Parameter(p.arg, Parameter.KEYWORD_ONLY, default=default))
        if a.kwarg is not None:
            found.append(Parameter(a.kwarg.arg, Parameter.VAR_KEYWORD))
        return Signature(found)


_BOUND_AS = {
    WrapperDescriptorType: MethodWrapperType,
    MethodDescriptorType: BuiltinMethodType,
}
"""The classes of bound methods that ``super()`` finds in classes in C."""


@dataclass(eq=False, repr=False)
class Method(OfFunction):
    """A function bound to one of the user's objects."""

    function: Any
    owner: Any

    @property
    def kind(self) -> type:  # type: ignore[override]
        """The class of the bound method."""
        return _BOUND_AS.get(type(self.function), MethodType)

    @property
    def like(self) -> Any:
        """The function itself, whose attributes a method has."""
        return self.function

    def __eq__(self, other: object) -> bool:
        """Compare as Python does: one function, bound to the same object."""
        if isinstance(other, Method):
            return self.function == other.function and self.owner is other.owner
        if isinstance(other, MethodType):
            return self.function == other.__func__ and self.owner is other.__self__
        return NotImplemented

    def __hash__(self) -> int:
        if isinstance(self.function, FunctionType):
            return hash(MethodType(self.function, self.owner))
        return hash((self.function, id(self.owner)))


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def names_of(node: Definition) -> Names:
    """The names that a function binds, and those that it declares global or nonlocal."""
    names = Names()
    a = node.args
    for parameter in [*a.posonlyargs, *a.args, *a.kwonlyargs]:
        names.own.add(parameter.arg)
    for extra in (a.vararg, a.kwarg):
        if extra is not None:
            names.own.add(extra.arg)
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    for statement in body:
        _collect(statement, names, inside=False)
    names.own -= names.globals | names.nonlocals
    return names


def _collect(node: ast.AST, found: Names, *, inside: bool) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found.own.add(node.name)
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, (ast.Store, ast.Del)) and not inside:
            found.own.add(node.id)
        return
    if isinstance(node, ast.Global):
        found.globals.update(node.names)
    elif isinstance(node, ast.Nonlocal):
        found.nonlocals.update(node.names)
    elif isinstance(node, ast.NamedExpr):
        found.own.add(node.target.id)  # also out of a comprehension
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        found.own.update((a.asname or a.name).split(".")[0] for a in node.names)
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        found.own.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        found.own.add(node.rest)
    elif isinstance(node, (ast.Yield, ast.YieldFrom)):
        found.yields = True
    inside = inside or isinstance(node, _COMPREHENSIONS)
    for child in children_of(node):
        _collect(child, found, inside=inside)


def cells_of(f: FunctionType) -> dict[str, CellType]:
    """The cells of a function by name."""
    return dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
