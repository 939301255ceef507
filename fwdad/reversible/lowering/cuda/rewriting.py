"""Generated source, and the user's, rewritten for a GPU: it has no NumPy and cannot allocate."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from typing import Any

from fwdad.errors import UnsupportedTypeError


def parsed(f: Any) -> ast.Module:
    """Read a function's definition, without decorators."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(f)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        message = f"{f.__name__} is called in a kernel: define it with 'def'"
        raise UnsupportedTypeError(message)
    definition.decorator_list = []
    return ast.Module([definition], [])


class _OfNumbers(ast.NodeTransformer):
    """Rewrites what a tape does with arrays without axes to do it with numbers."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        return node.value if _is_empty(node.slice) else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Invert):
            return node  # of True the device would make -2, as Python does and NumPy does not
        return ast.Call(ast.Name("invert", ast.Load()), [node.operand], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Attribute) and ast.unparse(f.value) == "np" and len(node.args) == 2:
            if f.attr == "full" and _is_empty(node.args[0]):
                return node.args[1]
            if f.attr == "broadcast_to" and _is_empty(node.args[1]):
                return node.args[0]
        return node


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple) and not node.elts


class _Names(ast.NodeTransformer):
    """Names for what attributes of modules mean: ``np.sin`` becomes ``np_sin``."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known
        self.found: dict[str, Any] = {}

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        x = self._meant(node)
        if x is None or isinstance(x, types.ModuleType):
            self.generic_visit(node)
            return node
        name = ast.unparse(node).replace(".", "_")
        while name in self.known:
            name += "_"
        self.found[name] = x
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _meant(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            x = self.known.get(node.id)
            return x if isinstance(x, types.ModuleType) else None
        if isinstance(node, ast.Attribute):
            owner = self._meant(node.value)
            return getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None
        return None


class _Local(ast.NodeTransformer):
    """A thread's own memory for arrays of zeros and ones whose lengths are written out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lengths: dict[str, list[int]] = {}
        self.dtypes: dict[str, str] = {}

    def visit_Assign(self, node: ast.Assign) -> Any:
        call, target = node.value, node.targets[0]
        if not _makes_array(call) or not isinstance(target, ast.Name):
            self.generic_visit(node)
            return node
        word = call.func.attr  # type: ignore[attr-defined]
        first, *rest = call.args  # type: ignore[attr-defined]
        lengths = self._lengths(first)
        if lengths is None or word.removesuffix("_like") not in {"zeros", "ones"}:
            return self._refuse(node)
        self.lengths[target.id] = lengths
        options = [*rest, *(k.value for k in call.keywords)]  # type: ignore[attr-defined]
        dtype = ast.unparse(options[0]) if options else "np.float64"
        if word.endswith("_like"):
            dtype = self.dtypes[first.id]
        dtype = {"float": "np.float64", "int": "np.int64", "complex": "np.complex128"}.get(
            dtype, dtype
        )
        self.dtypes[target.id] = dtype
        names = [f"{target.id}_{k}" for k in range(len(lengths))]
        lines = [f"{target.id} = cuda.local.array({tuple(lengths)}, {dtype})"]
        for k, (name, n) in enumerate(zip(names, lengths, strict=True)):
            lines.append(f"{'    ' * k}for {name} in range({n}):")
        value = int(word.startswith("ones"))
        lines.append(f"{'    ' * len(names)}{target.id}[{', '.join(names)}] = {value}")
        return ast.parse("\n".join(lines)).body

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return self._refuse(node) if _makes_array(node) else node

    def _lengths(self, shape: ast.expr) -> list[int] | None:
        if isinstance(shape, ast.Name):
            return self.lengths.get(shape.id)
        try:
            lengths = ast.literal_eval(shape)
        except ValueError:
            return None
        return list(lengths) if isinstance(lengths, tuple) else [lengths]

    def _refuse(self, node: ast.AST) -> Any:
        message = (
            f"'{ast.unparse(node)}' in {self.name}: in a kernel an array begins as np.zeros or "
            "np.ones, with lengths that are written out as numbers"
        )
        raise UnsupportedTypeError(message)


def _makes_array(node: ast.expr) -> bool:
    f = node.func if isinstance(node, ast.Call) else None
    of_numpy = isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == "np"
    return of_numpy and f.attr.removesuffix("_like") in _MAKERS  # type: ignore[union-attr]


_MAKERS = frozenset({"zeros", "ones", "empty", "full", "array", "copy", "arange", "stack"})


def with_local_arrays(tree: ast.Module, name: str) -> ast.Module:
    """Make arrays that begin in a function its thread's own memory."""
    rewritten: ast.Module = _Local(name).visit(tree)
    return rewritten


def of_numbers(tree: ast.Module) -> ast.Module:
    """Write arrays without axes as numbers."""
    rewritten: ast.Module = _OfNumbers().visit(tree)
    return rewritten


def named(tree: ast.Module, known: dict[str, Any]) -> tuple[ast.Module, dict[str, Any]]:
    """Write ``np_sin`` for ``np.sin``; and what all names mean then."""
    names = _Names(known)
    rewritten: ast.Module = ast.fix_missing_locations(names.visit(tree))
    return rewritten, {**known, **names.found}


__all__ = ["named", "of_numbers", "parsed", "with_local_arrays"]
