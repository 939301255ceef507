"""The search for a function's source from its code object, with a check that it is that source.

``inspect.getsource`` follows ``__wrapped__`` and so loses decorators; here the definition is found
by the code's own file, first line, name and positions, and is trusted only if compiling it gives
the function's own bytecode.
"""

from __future__ import annotations
import __future__

import ast
import sys
import threading
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from fwdad.core.gc_pause import NoCollection
from fwdad.core.lifted_code import ORIGINALS
from fwdad.eager.lifting.carried import show
from fwdad.eager.lifting.texts import texts
from fwdad.errors import MissingRuleError

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUTURES = __future__.annotations.compiler_flag


@dataclass
class Source:
    """A function's definition, and where it stands."""

    node: Definition
    classes: tuple[str, ...]
    flags: int
    filename: str


@dataclass
class _Module:
    name: str
    text: str
    tree: ast.Module
    definitions: dict[tuple[int, str], list[tuple[Definition, tuple[str, ...]]]]
    codes: dict[tuple[int, str], list[CodeType]] | None = None


_MODULES: dict[Any, _Module] = {}
_LOCK = threading.RLock()
_MODULES_KEPT = 512


def find_source(f: FunctionType) -> Source | None:
    """The definition of a function, or None if there is no source or it has changed since."""
    found = find_lines(f)
    return None if found is None else found.source


class Found(NamedTuple):
    """A function's source, and the lines of the text that it was found in."""

    source: Source
    lines: list[str]
    start: int
    end: int


def find_lines(f: FunctionType) -> Found | None:
    """The definition of a function, with the text and lines that it was found in; or None."""
    with _LOCK:
        for name, lines, carried in texts(f):
            if carried is not None and carried.had_rule(f.__code__):
                message = (
                    f"{f.__name__} was unpickled without its rule: the pickle of a derivative "
                    "contains the source of f, but no rules. Define the function and its rule in "
                    "a module that is imported where the pickle is loaded"
                )
                raise MissingRuleError(message)
            found = _found_in(f, name, lines) if lines else None
            if found is not None:
                if carried is not None:
                    found.source.filename = show(name, lines, carried)
                return found
    return None


def _found_in(f: FunctionType, name: str, lines: list[str]) -> Found | None:
    """The definition of a function in a text; None if it does not match the function."""
    code = ORIGINALS.get(id(f.__code__), f.__code__)
    start, end = _statement(lines, code)
    found = _find(code, _module(name, lines, start, end), _is_own)
    if found is None:
        start, end = 0, len(lines)
        own = _is_rewritten if _is_rewritten_by_pytest(f) else _is_own
        found = _find(code, _module(name, lines, start, end), own)
    return None if found is None else Found(found, lines, start, end)


def _find(code: CodeType, module: _Module | None, is_own: Any) -> Source | None:
    """The definition of code in a parsed text; None if it does not match the code."""
    if module is None:
        return None
    candidates = module.definitions.get((code.co_firstlineno, code.co_name), [])
    if len(candidates) > 1:
        candidates = [c for c in candidates if _covers(c[0], code)]
    if len(candidates) > 1 and not _is_placed(code):
        candidates = [c for c in candidates if _compiles_to(c[0], code)]
    if not candidates or not is_own(code, module):
        return None
    # lambdas inside a lambda cover its positions too: the innermost one is meant
    node, classes = min(candidates, key=lambda c: _extent(c[0]))
    return Source(node, classes, code.co_flags & _FUTURES, module.name)


def _statement(lines: list[str], code: CodeType) -> tuple[int, int]:
    """The lines of the module's statement in which code seems to be defined.

    Only the beginnings of lines are examined, and a line inside a string may look like a statement.
    A wrong guess does not compile to the function's bytecode, and then the whole module is read.
    """
    start = min(code.co_firstlineno, len(lines)) - 1
    end = max([start, *(line for _, _, line in code.co_lines() if line is not None)])
    while start > 0 and not _begins(lines[start]):
        start -= 1
    while end < len(lines) and not _begins(lines[end]):
        end += 1
    return start, end


def _begins(line: str) -> bool:
    return line[:1] not in " \t\r\n\f#)]}"


def imports_of(lines: list[str]) -> list[str]:
    """The first lines of a module, with nothing but its imports.

    Python calls a method of an imported module by other instructions than one of a variable.
    """
    imports = []
    last = ""  # what the last line of an import contains
    for line in lines:
        if last:
            imports.append(line)
            last = "" if last in line else last
        elif line.startswith(("import ", "from ")):
            imports.append(line)
            last = ")" if "(" in line and ")" not in line else ""
        else:
            imports.append("\n")
    return imports


def _module(name: str, lines: list[str], start: int, end: int) -> _Module | None:
    """Some lines of a module, parsed at their line numbers."""
    text = "".join(lines[start:end])
    held = _MODULES.get((name, start, end))
    if held is not None and held.text == text:
        return held
    try:
        # where it is collected meanwhile, another thread may parse, and Python mixes the two up
        with NoCollection() as resting, resting:  # (gh-106905, until 3.11.8 and 3.12.1)
            tree = ast.parse("".join(imports_of(lines[:start])) + text, name)
    except SyntaxError:
        return None
    if len(_MODULES) >= _MODULES_KEPT:
        _MODULES.clear()
    module = _MODULES[name, start, end] = _Module(name, text, tree, _definitions(tree))
    return module


def _definitions(
    tree: ast.Module,
) -> dict[tuple[int, str], list[tuple[Definition, tuple[str, ...]]]]:
    definitions: dict[tuple[int, str], list[tuple[Definition, tuple[str, ...]]]] = {}

    def visit(node: ast.AST, classes: tuple[str, ...]) -> None:
        for child in children_of(node):
            inside = classes
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                decorators = getattr(child, "decorator_list", [])
                first = min([child.lineno, *(d.lineno for d in decorators)])
                name = getattr(child, "name", "<lambda>")
                definitions.setdefault((first, name), []).append((child, classes))
            elif isinstance(child, ast.ClassDef):
                inside = (*classes, child.name)
            visit(child, inside)

    visit(tree, ())
    return definitions


def children_of(node: ast.AST) -> list[ast.AST]:
    """The nodes of :func:`ast.iter_child_nodes`, found faster, and without empty ones."""
    children: list[ast.AST] = []
    for name in node._fields:  # IPython gives nodes that all trees share, such as `>`, a parent
        value = getattr(node, name, None)
        if type(value) is list:
            children += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            children.append(value)
    return children


def _extent(node: Definition) -> tuple[int, int]:
    lines = (node.end_lineno or node.lineno) - node.lineno
    return lines, (node.end_col_offset or 0) - (node.col_offset if lines == 0 else 0)


def _covers(node: Definition, code: CodeType) -> bool:
    """Whether all positions of a code object lie inside a definition."""
    start = (node.lineno, node.col_offset)
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    body = node.body if isinstance(node, ast.Lambda) else None
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if (line, column) == (code.co_firstlineno, 0) == (line, end_column):
            continue  # the RESUME instruction stands at column 0 of the first line
        if not (start <= (line, column) and (end_line, end_column) <= end):
            return False
        if body is not None:
            within = (body.lineno, body.col_offset)
            until = (body.end_lineno or body.lineno, body.end_col_offset or 0)
            if not (within <= (line, column) and (end_line, end_column) <= until):
                return False
    return True


def _is_placed(code: CodeType) -> bool:
    """Whether some instruction has column positions.

    Python 3.12 has none for a lambda that returns a constant, and no Python has any if started
    without them.
    """
    return any(end for _, _, _, end in code.co_positions())


def is_told_apart(f: FunctionType) -> bool:
    """Whether a function's code identifies it among several lambdas on one line."""
    return f.__code__.co_name != "<lambda>" or _is_placed(f.__code__)


def _compiles_to(node: Definition, code: CodeType) -> bool:
    """Whether a lambda's source by itself compiles to a code object."""
    if not isinstance(node, ast.Lambda):
        return True
    compiled = compile(ast.Expression(node), code.co_filename, "eval", dont_inherit=True)
    return any(isinstance(c, CodeType) and _same(c, code) for c in compiled.co_consts)


def _is_own(code: CodeType, module: _Module) -> bool:
    """Whether compiling a module gives the function's own bytecode."""
    if module.codes is None:
        module.codes = _codes(module.tree, code)
    codes = module.codes.get((code.co_firstlineno, code.co_name), [])
    return any(_same(code, other) for other in codes) or _is_own_alone(code, module)


def _is_own_alone(code: CodeType, module: _Module) -> bool:
    """Whether compiling its statement alone does, as IPython and Python's prompt compile.

    Where no import is seen, Python calls the methods of a module by other instructions.
    """
    for statement in module.tree.body:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)) and (
            statement.lineno <= code.co_firstlineno <= (statement.end_lineno or 0)
            or code.co_firstlineno in [d.lineno for d in getattr(statement, "decorator_list", ())]
        ):
            codes = _codes(ast.Module([statement], []), code)
            own = codes.get((code.co_firstlineno, code.co_name), [])
            if any(_same(code, other) for other in own):
                return True
    return False


def _codes(tree: ast.Module, code: CodeType) -> dict[tuple[int, str], list[CodeType]]:
    """All code objects of a text, by their first lines and names."""
    codes: dict[tuple[int, str], list[CodeType]] = {}
    try:
        flags = code.co_flags & _FUTURES
        top = compile(tree, code.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return codes
    _collect(top, codes)
    return codes


def _is_rewritten(_code: CodeType, _module: _Module) -> bool:
    """Accept any code: rewritten code does not have its source's bytecode."""
    return True


def _collect(code: CodeType, into: dict[tuple[int, str], list[CodeType]]) -> None:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            into.setdefault((constant.co_firstlineno, constant.co_name), []).append(constant)
            _collect(constant, into)


def _same(a: CodeType, b: CodeType) -> bool:
    if (a.co_code, a.co_names, a.co_varnames, a.co_freevars) != (
        b.co_code,
        b.co_names,
        b.co_varnames,
        b.co_freevars,
    ):
        return False
    if len(a.co_consts) != len(b.co_consts):
        return False
    return all(
        _same(x, y) if isinstance(x, CodeType) and isinstance(y, CodeType) else _equal(x, y)
        for x, y in zip(a.co_consts, b.co_consts, strict=True)
    )


def _equal(x: Any, y: Any) -> bool:
    return type(x) is type(y) and (x == y or repr(x) == repr(y))


def _is_rewritten_by_pytest(f: FunctionType) -> bool:
    """Whether pytest has rewritten a function's asserts, so that its bytecode is another."""
    loader = f.__globals__.get("__loader__")
    if type(loader).__name__ == "AssertionRewritingHook":
        return True
    spec = getattr(sys.modules.get(f.__module__ or ""), "__spec__", None)
    return type(getattr(spec, "loader", None)).__name__ == "AssertionRewritingHook"
