"""The rewriting of a function's syntax tree: everything that could meet a dual becomes a hook.

Calls, operators, comparisons, attributes, subscripts, stores, iteration, ``with`` and ``match``
turn into calls of free variables, on the positions of the user's own expressions.
"""

from __future__ import annotations

import ast
from typing import Any

PREFIX = "_fwdad_"

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

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

# these read the caller's frame: called in place
_FRAME_BOUND = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "__import__"}


class _Lifter(ast.NodeTransformer):
    """Rewrites one function definition."""

    def __init__(self, classes: tuple[str, ...]) -> None:
        self._temporaries = 0
        self._classes = list(classes)
        self._scopes: list[list[str] | None] = []
        """Of each enclosing scope: the temporaries of a class body, None for a function."""
        self._without_walrus = 0

    def _mangled(self, name: str) -> str:
        """A private name as Python writes it inside a class."""
        if not _is_private(name) or not self._classes:
            return name
        stem = self._classes[-1].lstrip("_")
        return f"_{stem}{name}" if stem else name

    # -- building blocks

    def _hook(self, name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
        function = ast.copy_location(ast.Name(PREFIX + name, ast.Load()), at)
        return ast.copy_location(ast.Call(function, list(args), []), at)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"{PREFIX}t{self._temporaries}"

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
            if name in ("locals", "vars", "dir") and not (node.args or node.keywords):
                if not self._scopes or self._scopes[-1] is None:  # a class's own are the namespace
                    return self._hook("own_names", node, node)
            return node
        args = [self.visit(a) for a in node.args]
        keywords = [ast.copy_location(self._keyword(k), k) for k in node.keywords]
        if isinstance(node.func, ast.Attribute):
            one = len(args) == 1 and not keywords and not isinstance(args[0], ast.Starred)
            hook = self._hook(
                "method_of_one" if one else "method",
                node,
                self.visit(node.func.value),
                self._constant(self._mangled(node.func.attr), node.func),
            )
        else:
            hook = self._hook("call", node, self.visit(node.func))
        hook.args.extend(args)
        hook.keywords = keywords
        return hook

    def _keyword(self, node: ast.keyword) -> ast.keyword:
        value = self.visit(node.value)
        return ast.keyword(node.arg, value if node.arg else self._hook("mapping", value, value))

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        values = [
            self.visit(v) if k is not None else self._hook("mapping", v, self.visit(v))
            for k, v in zip(node.keys, node.values, strict=True)
        ]
        keys = [None if k is None else self.visit(k) for k in node.keys]
        return ast.copy_location(ast.Dict(keys, values), node)

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
        if len(node.ops) == 1:
            self.generic_visit(node)
            return self._compare(node.ops[0], node.left, node.comparators[0], node)
        return self._chain(node, self.visit(node.left), node.ops, node.comparators)

    def _compare(self, op: ast.cmpop, left: ast.expr, right: ast.expr, at: ast.AST) -> ast.expr:
        hook = _COMPARISONS.get(type(op))
        if hook is not None:
            return self._hook(hook, at, left, right)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = self._hook("contains", at, left, right)
            if isinstance(op, ast.In):
                return found
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), at)
        return ast.copy_location(ast.Compare(left, [op], [right]), at)

    def _chain(
        self, at: ast.Compare, left: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr]
    ) -> ast.expr:
        """``a < b < c`` as ``a < b and b < c``, with b evaluated once and c only if need be."""
        if len(ops) == 1:
            return self._compare(ops[0], left, self.visit(rest[0]), at)
        middle = rest[0]
        if self._without_walrus:
            held = self._temporary()
            arguments = ast.arguments([], [ast.arg(held)], None, [], [], None, [])
            then = self._chain(at, self._name(held, ast.Load(), at), ops[1:], rest[1:])
            later = ast.copy_location(ast.Lambda(arguments, then), at)
            first = ast.Lambda(
                ast.arguments([], [ast.arg("a"), ast.arg("b")], None, [], [], None, []),
                self._compare(
                    ops[0], self._name("a", ast.Load(), at), self._name("b", ast.Load(), at), at
                ),
            )
            compare = ast.copy_location(first, at)
            return self._hook("compare_then", at, compare, left, self.visit(middle), later)
        held = self._kept_temporary()
        keep = ast.NamedExpr(self._name(held, ast.Store(), at), self.visit(middle))
        one = self._compare(ops[0], left, ast.copy_location(keep, middle), at)
        two = self._chain(at, self._name(held, ast.Load(), at), ops[1:], rest[1:])
        return ast.copy_location(ast.BoolOp(ast.And(), [one, two]), at)

    def _kept_temporary(self) -> str:
        """A temporary that an expression binds: a class body deletes its own at its end."""
        name = self._temporary()
        if self._scopes and self._scopes[-1] is not None:
            self._scopes[-1].append(name)
        return name

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _COMPREHENSIONS):
            return self._comprehension(node)
        return super().visit(node)

    def _comprehension(self, node: Any) -> Any:
        in_class = bool(self._scopes) and self._scopes[-1] is not None
        self._without_walrus += in_class  # the language has no `:=` in these places
        self.generic_visit(node)
        self._without_walrus -= in_class
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        self.generic_visit(node)
        node.value = self._hook("iterate", node.value, node.value)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self._without_walrus += 1
        node.iter = self.visit(node.iter)
        self._without_walrus -= 1
        node.target = self.visit(node.target)
        node.ifs = [self.visit(condition) for condition in node.ifs]
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
        self._scopes.append(None)
        node.body = self._block(node.body)
        self._scopes.pop()
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.args = self.visit(node.args)
        self._scopes.append(None)
        node.body = self.visit(node.body)
        self._scopes.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        names: list[str] = []
        self._classes.append(node.name)
        self._scopes.append(names)
        self.generic_visit(node)
        self._scopes.pop()
        self._classes.pop()
        if names:  # which a branch may have left unbound
            start = 0 if ast.get_docstring(node, clean=False) is None else 1
            bind: list[ast.expr] = [self._name(n, ast.Store(), node) for n in names]
            unbound: ast.stmt = ast.Assign(bind, self._constant(None, node))
            node.body.insert(start, ast.copy_location(unbound, node))
            node.body += [self._forget(n, node) for n in names]
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

    def visit_Match(self, node: ast.Match) -> Any:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            self._case(case)
        return node

    def _case(self, case: ast.match_case) -> None:
        """Turn a pattern into a guard that asks a hook; Python itself reads nothing then."""
        pattern = case.pattern
        guard = None if case.guard is None else self.visit(case.guard)
        if not (isinstance(pattern, ast.MatchAs) and pattern.pattern is None):
            subject = self._kept_temporary()
            tests = self._tests(pattern, subject)
            case.pattern = ast.copy_location(ast.MatchAs(None, subject), pattern)
            if guard is not None:
                tests.append(guard)
            guard = (
                tests[0]
                if len(tests) == 1
                else ast.copy_location(ast.BoolOp(ast.And(), tests), pattern)
            )
        case.guard = guard
        case.body = self._block(case.body)

    def _tests(self, pattern: ast.pattern, subject: str) -> list[ast.expr]:
        read = self._name(subject, ast.Load(), pattern)
        if isinstance(pattern, ast.MatchValue):
            return [self._hook("eq", pattern, read, self.visit(pattern.value))]
        names: list[str] = []
        data = self._pattern_data(pattern, names)
        asked = self._hook("matches", pattern, read, data)
        found = self._kept_temporary()
        kept = ast.NamedExpr(self._name(found, ast.Store(), pattern), asked)
        nothing = self._constant(None, pattern)
        tests: list[ast.expr] = [
            ast.copy_location(
                ast.Compare(ast.copy_location(kept, pattern), [ast.IsNot()], [nothing]), pattern
            )
        ]
        if names:
            bound: list[ast.expr] = []
            for name in dict.fromkeys(names):
                item = ast.Subscript(
                    self._name(found, ast.Load(), pattern),
                    self._constant(name, pattern),
                    ast.Load(),
                )
                value = ast.copy_location(item, pattern)
                target = self._name(name, ast.Store(), pattern)
                bound.append(ast.copy_location(ast.NamedExpr(target, value), pattern))
            tests.append(ast.copy_location(ast.List(bound, ast.Load()), pattern))
        return tests

    def _pattern_data(self, pattern: ast.pattern, names: list[str]) -> ast.expr:
        """A pattern as the tuple that :mod:`fwdad.builder.matching` reads."""

        def data(kind: str, *parts: Any) -> ast.expr:
            return tuple_of([self._constant(kind, pattern), *(literal(p) for p in parts)])

        def tuple_of(items: list[ast.expr]) -> ast.expr:
            return ast.copy_location(ast.Tuple(items, ast.Load()), pattern)

        def literal(part: Any) -> ast.expr:
            return part if isinstance(part, ast.expr) else self._constant(part, pattern)

        def inner(parts: list[ast.pattern]) -> list[ast.expr]:
            return [self._pattern_data(p, names) for p in parts]

        def later(value: ast.expr) -> ast.expr:
            if self._scopes and self._scopes[-1] is not None:  # a lambda has no class variables
                return self._hook("constantly", pattern, self.visit(value))
            nothing = ast.arguments([], [], None, [], [], None, [])
            return ast.copy_location(ast.Lambda(nothing, self.visit(value)), pattern)

        def bind(name: str | None) -> str | None:
            if name is not None:
                names.append(name)
            return name

        match pattern:
            case ast.MatchValue():
                return data("value", later(pattern.value))
            case ast.MatchSingleton():
                return data("singleton", pattern.value)
            case ast.MatchOr():
                return data("or", *inner(pattern.patterns))
            case ast.MatchAs():
                held = None if pattern.pattern is None else inner([pattern.pattern])[0]
                return data("as", held, bind(pattern.name))
            case ast.MatchSequence():
                star, rest = -1, None
                parts = []
                for k, part in enumerate(pattern.patterns):
                    if isinstance(part, ast.MatchStar):
                        star, rest = k, bind(part.name)
                    else:
                        parts.extend(inner([part]))
                return data("sequence", star, rest, *parts)
            case ast.MatchMapping():
                keys = tuple_of([later(k) for k in pattern.keys])
                return data("mapping", keys, tuple_of(inner(pattern.patterns)), bind(pattern.rest))
            case ast.MatchClass():
                attributes = tuple_of([self._constant(n, pattern) for n in pattern.kwd_attrs])
                return data(
                    "class",
                    later(pattern.cls),
                    tuple_of(inner(pattern.patterns)),
                    attributes,
                    tuple_of(inner(pattern.kwd_patterns)),
                )
        message = f"a pattern of a kind that Python has not had: {type(pattern).__name__}"
        raise NotImplementedError(message)

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
        call = ast.Call(ast.Name(PREFIX + "slice", ast.Load()), parts, [])
        return ast.copy_location(call, node)
    if isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts):
        return ast.copy_location(ast.Tuple([_index(e) for e in node.elts], ast.Load()), node)
    return node


def rewrite(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, classes: tuple[str, ...]
) -> None:
    """Put hooks into the body of a definition, in place.

    Parameters
    ----------
    node : ast.FunctionDef, ast.AsyncFunctionDef or ast.Lambda
        The definition.
    classes : tuple of str
        The classes around it, outermost first: private names are mangled as theirs.
    """
    lifter = _Lifter(classes)
    if isinstance(node, ast.Lambda):
        node.body = lifter.visit(node.body)
    else:
        lifter._function(node)
