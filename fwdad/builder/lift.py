"""Lifting: a function's source, sent through the dispatcher on the user's own lines.

Every call, operator, attribute, subscript and iteration goes through a hook.

The hooks are free variables of the lifted code, bound to cells; nothing enters the user's
globals. Private names and ``super()`` keep working because the code is compiled inside classes of
the same names.
"""

from __future__ import annotations

import ast
import copy
import sys
import threading
from types import CellType, CodeType, FunctionType
from typing import Any

from fwdad.builder.source import Definition, Source, find_source

_PREFIX = "_fwdad_"

_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.BitAnd: "and_",
}

_UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_COMPARISONS = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}

# these read the caller's frame: called in place
_FRAME_BOUND = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "__import__"}

HOOKS = (
    "slice",
    "call",
    "method",
    "attr",
    "getitem",
    "setitem",
    "delitem",
    "set_attr",
    "del_attr",
    "neg",
    "iterate",
    "enter",
    "decorate",
    "write_cells",
    "write_global",
    "aug_setitem",
    *_BINARY.values(),
    *("i" + name.rstrip("_") for name in _BINARY.values()),
)


class _Lifter(ast.NodeTransformer):
    """Rewrites one function definition."""

    def __init__(self, classes: tuple[str, ...]) -> None:
        self._temporaries = 0
        self._classes = list(classes)

    def _mangled(self, name: str) -> str:
        """A private name as Python writes it inside a class."""
        if not _is_private(name) or not self._classes:
            return name
        stem = self._classes[-1].lstrip("_")
        return f"_{stem}{name}" if stem else name

    # -- building blocks

    def _hook(self, name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
        function = ast.copy_location(ast.Name(_PREFIX + name, ast.Load()), at)
        return ast.copy_location(ast.Call(function, list(args), []), at)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"{_PREFIX}t{self._temporaries}"

    def _name(self, name: str, context: ast.expr_context, at: ast.AST) -> ast.Name:
        return ast.copy_location(ast.Name(name, context), at)

    def _constant(self, value: Any, at: ast.AST) -> ast.Constant:
        return ast.copy_location(ast.Constant(value), at)

    # -- expressions

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in _FRAME_BOUND:
            name = node.func.id
            self.generic_visit(node)
            if name in ("eval", "exec"):
                check = self._hook("check_eval", node)
                both = ast.copy_location(ast.Tuple([check, node], ast.Load()), node)
                index = self._constant(1, node)
                return ast.copy_location(ast.Subscript(both, index, ast.Load()), node)
            return node
        args = [self.visit(a) for a in node.args]
        keywords = [
            ast.copy_location(ast.keyword(k.arg, self.visit(k.value)), k) for k in node.keywords
        ]
        if isinstance(node.func, ast.Attribute):
            hook = self._hook(
                "method",
                node,
                self.visit(node.func.value),
                self._constant(self._mangled(node.func.attr), node.func),
            )
        else:
            hook = self._hook("call", node, self.visit(node.func))
        hook.args.extend(args)
        hook.keywords = keywords
        return hook

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._hook("iterate", node.value, node.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            name = self._constant(self._mangled(node.attr), node)
            return self._hook("attr", node, node.value, name)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            return self._hook("getitem", node, node.value, _index(node.slice))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._hook(_BINARY[type(node.op)], node, node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        hook = _UNARY.get(type(node.op))
        if hook is not None and not isinstance(node.operand, ast.Constant):
            return self._hook(hook, node, node.operand)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1:  # a chain evaluates its middle once: left to Python
            return node
        (op,), (right,) = node.ops, node.comparators
        hook = _COMPARISONS.get(type(op))
        if hook is not None:
            return self._hook(hook, node, node.left, right)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = self._hook("contains", node, node.left, right)
            if isinstance(op, ast.In):
                return found
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        self.generic_visit(node)
        node.value = self._hook("iterate", node.value, node.value)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if not node.is_async:
            hook = "iterate" if isinstance(node.target, ast.Name) else "iterate_deep"
            node.iter = self._hook(hook, node.iter, node.iter)
        return node

    # -- definitions inside the function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [
            self._hook("decorate", d, self.visit(d)) for d in node.decorator_list
        ]
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        node.decorator_list = [
            self._hook("decorate", d, self.visit(d)) for d in node.decorator_list
        ]
        return self._function(node)

    def _function(self, node: Any) -> Any:
        node.args = self.visit(node.args)
        node.body = self._block(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self._classes.append(node.name)
        self.generic_visit(node)
        self._classes.pop()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return node
        if isinstance(node.target, ast.Name):
            node.value = self.visit(node.value)
            return node
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(plain)

    # -- statements

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            made.extend(result if isinstance(result, list) else [result])
        return made

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        body = [self._name(n, ast.Load(), node) for n in node.names]
        arguments = ast.arguments([], [], None, [], [], None, [])
        reader = ast.copy_location(
            ast.Lambda(arguments, ast.copy_location(ast.Tuple(list(body), ast.Load()), node)), node
        )
        call = self._hook("write_cells", node, reader)
        return [node, ast.copy_location(ast.Expr(call), node)]

    def visit_Global(self, node: ast.Global) -> Any:
        namespace = ast.copy_location(
            ast.Call(self._name("globals", ast.Load(), node), [], []), node
        )
        names = [self._constant(n, node) for n in node.names]
        call = self._hook("write_global", node, namespace, *names)
        return [node, ast.copy_location(ast.Expr(call), node)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                node.value = value
                return node
            if isinstance(target, (ast.Subscript, ast.Attribute)):
                return self._store(target, value, node)
        elif all(isinstance(t, ast.Name) for t in node.targets):
            node.value = value
            return node
        held = self._temporary()
        first = ast.Assign([self._name(held, ast.Store(), node)], value)
        made: list[ast.stmt] = [ast.copy_location(first, node)]
        for target in node.targets:
            made.extend(self._assign(target, self._name(held, ast.Load(), node), node))
        made.append(self._forget(held, node))
        return made

    def _forget(self, name: str, at: ast.AST) -> ast.stmt:
        return ast.copy_location(ast.Delete([self._name(name, ast.Del(), at)]), at)

    def _assign(self, target: ast.expr, value: ast.expr, at: ast.AST) -> list[ast.stmt]:
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            return [self._store(target, value, at)]
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = [self._pattern(e) for e in target.elts]
            unpacked = type(target)([part for part, _ in parts], ast.Store())
            spread = self._hook("iterate", at, value)
            first = ast.Assign([ast.copy_location(unpacked, target)], spread)
            rest = [statement for _, after in parts for statement in after]
            return [ast.copy_location(first, at), *rest]
        return [ast.copy_location(ast.Assign([target], value), at)]

    def _pattern(self, target: ast.expr) -> tuple[ast.expr, list[ast.stmt]]:
        """A target that stores to a name only, and the statements that store on from there."""
        if isinstance(target, ast.Name):
            return target, []
        if isinstance(target, ast.Starred):
            inner, after = self._pattern(target.value)
            return ast.copy_location(ast.Starred(inner, ast.Store()), target), after
        held = self._temporary()
        after = self._assign(target, self._name(held, ast.Load(), target), target)
        return self._name(held, ast.Store(), target), [*after, self._forget(held, target)]

    def _subscript_index(self, target: ast.Subscript) -> ast.expr:
        return _index(self.visit(target.slice))

    def _store(self, target: ast.expr, value: ast.expr, at: ast.AST) -> ast.stmt:
        if isinstance(target, ast.Subscript):
            o, index = self.visit(target.value), self._subscript_index(target)
            call = self._hook("setitem", target, value, o, index)
        else:
            assert isinstance(target, ast.Attribute)
            o = self.visit(target.value)
            name = self._constant(self._mangled(target.attr), target)
            call = self._hook("set_attr", target, value, o, name)
        # the value comes first among the arguments, because Python evaluates it first
        return ast.copy_location(ast.Expr(call), at)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        hook = "i" + _BINARY[type(node.op)].rstrip("_")
        if isinstance(node.target, ast.Name):
            read = self._name(node.target.id, ast.Load(), node.target)
            value = self._hook(hook, node, read, self.visit(node.value))
            return ast.copy_location(ast.Assign([node.target], value), node)
        o, old = self._temporary(), self._temporary()
        made: list[ast.stmt] = []

        def bind(name: str, value: ast.expr) -> None:
            made.append(
                ast.copy_location(ast.Assign([self._name(name, ast.Store(), node)], value), node)
            )

        def load(name: str) -> ast.Name:
            return self._name(name, ast.Load(), node.target)

        target = node.target
        bind(o, self.visit(target.value))
        names = [o, old]
        if isinstance(target, ast.Subscript):
            index = self._temporary()
            names.append(index)
            bind(index, self._subscript_index(target))
            bind(old, self._hook("getitem", target, load(o), load(index)))
            new = self._hook(hook, node, load(old), self.visit(node.value))
            stored = self._hook("aug_setitem", node, load(o), load(index), load(old), new)
            made.append(ast.copy_location(ast.Expr(stored), node))
        else:
            attribute = self._constant(self._mangled(target.attr), target)
            bind(old, self._hook("attr", target, load(o), attribute))
            new = self._hook(hook, node, load(old), self.visit(node.value))
            call = self._hook("set_attr", node, new, load(o), attribute)
            made.append(ast.copy_location(ast.Expr(call), node))
        made.extend(self._forget(name, node) for name in names)
        return made

    def visit_Delete(self, node: ast.Delete) -> Any:
        made: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                index = self._subscript_index(target)
                call = self._hook("delitem", target, self.visit(target.value), index)
                made.append(ast.copy_location(ast.Expr(call), node))
            elif isinstance(target, ast.Attribute):
                name = self._constant(self._mangled(target.attr), target)
                call = self._hook("del_attr", target, self.visit(target.value), name)
                made.append(ast.copy_location(ast.Expr(call), node))
            else:
                made.append(ast.copy_location(ast.Delete([target]), node))
        return made

    def visit_For(self, node: ast.For) -> Any:
        node.target, after = self._pattern(node.target)
        node.iter = self._hook("iterate", node.iter, self.visit(node.iter))
        node.body = [*after, *self._block(node.body)]
        node.orelse = self._block(node.orelse)
        return node

    def visit_match_case(self, node: ast.match_case) -> Any:
        # patterns are no expressions; a dual answers for its primal's class by itself
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body = self._block(node.body)
        return node

    def visit_With(self, node: ast.With) -> Any:
        after: list[ast.stmt] = []
        for item in node.items:
            manager = self.visit(item.context_expr)
            item.context_expr = self._hook("enter", item.context_expr, manager)
            if item.optional_vars is not None:
                item.optional_vars, more = self._pattern(item.optional_vars)
                after.extend(more)
        node.body = [*after, *self._block(node.body)]
        return node


def _is_private(name: str) -> bool:
    """Whether Python mangles an attribute name: left to Python, inside the right class."""
    return name.startswith("__") and not name.endswith("__")


def _index(node: ast.expr) -> ast.expr:
    """A subscript's index as an expression that may stand anywhere: slices become calls."""
    if isinstance(node, ast.Slice):
        parts = [
            p if p is not None else ast.Constant(None) for p in (node.lower, node.upper, node.step)
        ]
        call = ast.Call(ast.Name(_PREFIX + "slice", ast.Load()), parts, [])
        return ast.copy_location(call, node)
    if isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts):
        return ast.copy_location(ast.Tuple([_index(e) for e in node.elts], ast.Load()), node)
    return node


def _all_args(args: ast.arguments) -> list[ast.arg]:
    extra = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *extra]


# -- from source to a function

_CELLS: dict[str, CellType] = {}
LIFTED: set[int] = set()
"""ids of the code objects that are lifted already (kept alive by the cache)."""

_CACHE: dict[int, tuple[CodeType, CodeType | None]] = {}
_CACHE_KEPT = 8192
_LOCK = threading.RLock()
_LAST: dict[int, tuple[FunctionType, FunctionType]] = {}


def install_hooks(hooks: dict[str, Any]) -> None:
    """Give lifted code its dispatcher."""
    _CELLS.update({_PREFIX + name: CellType(hook) for name, hook in hooks.items()})


def lift(f: FunctionType) -> FunctionType | None:
    """The lifted twin of a function; None if its source is not to be had.

    Notes
    -----
    Reading and compiling costs about a millisecond, once per code object; a fresh closure over
    known code costs about a microsecond.
    """
    code = f.__code__
    last = _LAST.get(id(code))
    if last is not None and last[0] is f and last[1].__defaults__ is f.__defaults__:
        return last[1]
    held = _CACHE.get(id(code))
    if held is None:
        held = _lift_code(f)
    lifted = held[1]
    if lifted is None:
        return None
    cells = _CELLS
    if f.__closure__:
        own = dict(zip(code.co_freevars, f.__closure__, strict=True))
        closure = tuple(own[v] if v in own else cells[v] for v in lifted.co_freevars)
    else:
        closure = tuple(cells[v] for v in lifted.co_freevars)
    twin = FunctionType(lifted, f.__globals__, f.__name__, f.__defaults__, closure)
    twin.__kwdefaults__ = f.__kwdefaults__
    twin.__qualname__ = f.__qualname__
    twin.__module__ = f.__module__
    if not f.__closure__:
        if len(_LAST) >= _CACHE_KEPT:
            _LAST.clear()
        _LAST[id(code)] = (f, twin)
    return twin


def _lift_code(f: FunctionType) -> tuple[CodeType, CodeType | None]:
    with _LOCK:
        held = _CACHE.get(id(f.__code__))
        if held is not None:
            return held
        source = find_source(f)
        lifted = None if source is None else _compile(f.__code__, source)
        if len(_CACHE) >= _CACHE_KEPT:
            for kept in (_CACHE, _LAST, LIFTED, _KEPT_ALIVE):
                kept.clear()
        held = _CACHE[id(f.__code__)] = (f.__code__, lifted)
        if lifted is not None:
            _mark(lifted)
        return held


_KEPT_ALIVE: list[CodeType] = []


def _mark(code: CodeType) -> None:
    LIFTED.add(id(code))
    _KEPT_ALIVE.append(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _mark(constant)


def _compile(code: CodeType, source: Source) -> CodeType:
    node: Definition = copy.deepcopy(source.node)
    lifter = _Lifter(source.classes)
    # the defaults are the function's own objects; their expressions are not evaluated again
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    for arg in _all_args(node.args):
        arg.annotation = None
    if isinstance(node, ast.Lambda):
        node.body = lifter.visit(node.body)
        statement: ast.stmt = ast.Return(node)
    else:
        node.decorator_list = []
        node.returns = None
        statement = lifter._function(node)
    before: list[ast.stmt] = []
    name = code.co_name
    if not isinstance(node, ast.Lambda) and name not in code.co_freevars:
        # or a function that calls itself by its global name would find the factory's local
        before.append(ast.Global([name]))
    free = sorted({*code.co_freevars, *_CELLS} - {"__class__"})
    arguments = ast.arguments([], [ast.arg(v) for v in free], None, [], [], None, [])
    generic: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}
    body: ast.stmt = ast.FunctionDef(
        _PREFIX + "factory", arguments, [*before, statement], [], **generic
    )
    for outer in reversed(source.classes):
        body = ast.ClassDef(outer, [], [], [body], [], **generic)
    for generated in ast.walk(body):
        if isinstance(generated, (ast.stmt, ast.expr, ast.arg)) and not hasattr(
            generated, "lineno"
        ):
            ast.copy_location(generated, source.node)
    tree = ast.fix_missing_locations(ast.Module([body], []))
    compiled = compile(tree, code.co_filename, "exec", source.flags, dont_inherit=True)
    lifted = _find(compiled, code.co_name, _PREFIX + "factory")
    return lifted.replace(co_firstlineno=code.co_firstlineno, co_qualname=code.co_qualname)


def _find(code: CodeType, name: str, factory: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == factory:
                return next(
                    c for c in constant.co_consts if isinstance(c, CodeType) and c.co_name == name
                )
            try:
                return _find(constant, name, factory)
            except LookupError:
                continue
    message = f"no code for {name}"
    raise LookupError(message)
