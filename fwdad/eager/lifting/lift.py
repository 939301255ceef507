"""Lifting: a function's source, recompiled with hooks on the user's own lines.

Every call, operator, attribute, subscript and iteration goes through a hook.

The hooks are free variables of the lifted code, bound to cells; nothing enters the user's globals.
Private names and ``super()`` keep working because the code is compiled inside classes of the same
names.
"""

from __future__ import annotations

import ast
import copy
import opcode
import sys
import threading
from types import CellType, CodeType, FunctionType
from typing import Any

from fwdad.core.lifted_code import LIFTED, ORIGINALS, SOURCELESS
from fwdad.eager.lifting.nodes import PREFIX
from fwdad.eager.lifting.rewrite import rewrite
from fwdad.eager.lifting.source import Definition, Source, find_source
from fwdad.eager.lifting.why_missing import why_missing
from fwdad.rules.core.registry import function_name

# -- from source to a function

_CELLS: dict[str, CellType] = {}
_CACHE: dict[int, tuple[CodeType, CodeType | None]] = {}
_CACHE_KEPT = 8192
_RAISES = (opcode.opmap["RAISE_VARARGS"], opcode.opmap["RERAISE"])
_LOCK = threading.RLock()
_LAST: dict[int, tuple[FunctionType, FunctionType]] = {}


def install_hooks(hooks: dict[str, Any]) -> None:
    """Give lifted code its hooks."""
    _CELLS.update({PREFIX + name: CellType(hook) for name, hook in hooks.items()})


def lift(f: FunctionType) -> FunctionType | None:
    """The lifted twin of a function; None if its source is unavailable.

    Reading and compiling costs about a millisecond, once per code object; a new closure over known
    code costs about a microsecond.
    """
    code = f.__code__
    last = _LAST.get(id(code))
    if last is not None and last[0] is f and _has_defaults_of(last[1], f):
        return last[1]
    entry = _CACHE.get(id(code))
    if entry is None:
        entry = _lift_code(f)
    lifted = entry[1]
    if lifted is None:
        return None
    cells = _CELLS
    if f.__closure__:
        closed_over = dict(zip(code.co_freevars, f.__closure__, strict=True))
        closure = tuple(
            closed_over[v] if v in closed_over else cells[v] for v in lifted.co_freevars
        )
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


def _has_defaults_of(twin: FunctionType, f: FunctionType) -> bool:
    return twin.__defaults__ is f.__defaults__ and twin.__kwdefaults__ is f.__kwdefaults__


def _lift_code(f: FunctionType) -> tuple[CodeType, CodeType | None]:
    with _LOCK:
        entry = _CACHE.get(id(f.__code__))
        if entry is not None:
            return entry
        source = find_source(f)
        lifted = None if source is None else _compile(f.__code__, source)
        if len(_CACHE) >= _CACHE_KEPT:
            for table in (_CACHE, _LAST, LIFTED, ORIGINALS, _KEPT_ALIVE, SOURCELESS):
                table.clear()
        entry = _CACHE[id(f.__code__)] = (f.__code__, lifted)
        if lifted is not None:
            _mark(lifted, f.__code__)
        else:
            SOURCELESS[id(f.__code__)] = (function_name(f), why_missing(f))
        return entry


def note_missing(error: BaseException, f: FunctionType) -> None:
    """Add to an error raised by C code that f ran on duals because its source is missing."""
    name, missing = SOURCELESS.get(id(f.__code__), ("", None))
    if missing is not None and not _is_raised_in_python(error):
        error.add_note(
            f"{name} has no source that can be read: {missing}. It was run unchanged, on values "
            "that carry derivatives"
        )


def _is_raised_in_python(error: BaseException) -> bool:
    """Whether a ``raise`` of the program has raised an exception."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_code[trace.tb_lasti] in _RAISES


_KEPT_ALIVE: list[CodeType] = []


def _mark(code: CodeType, original: CodeType | None) -> None:
    LIFTED.add(id(code))
    _KEPT_ALIVE.append(code)
    there = {} if original is None else _inner_code(original)
    if original is not None:
        ORIGINALS[id(code)] = original
    for key, lifted in _inner_code(code).items():
        same = there.get(key, ())
        known = same if len(same) == len(lifted) else [None] * len(lifted)
        for inner, its_original in zip(lifted, known, strict=True):
            _mark(inner, its_original)


def _inner_code(code: CodeType) -> dict[tuple[str, int], list[CodeType]]:
    """The functions that a function defines, in their order, by name and line."""
    found: dict[tuple[str, int], list[CodeType]] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.setdefault((constant.co_name, constant.co_firstlineno), []).append(constant)
    return found


def _all_args(args: ast.arguments) -> list[ast.arg]:
    extra = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *extra]


def _compile(code: CodeType, source: Source) -> CodeType:
    node: Definition = copy.deepcopy(source.node)
    # the defaults are the function's own objects; their expressions are not evaluated again
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    for arg in _all_args(node.args):
        arg.annotation = None
    rewrite(node, source.classes)
    if isinstance(node, ast.Lambda):
        statement: ast.stmt = ast.Return(node)
    else:
        # not applied again, but the first line, to which line numbers are relative, is theirs
        node.decorator_list = [
            ast.copy_location(ast.Constant(None), d) for d in node.decorator_list[:1]
        ]
        node.returns = None
        statement = node
    before: list[ast.stmt] = []
    name = code.co_name
    if not isinstance(node, ast.Lambda) and name not in code.co_freevars:
        # or a function that calls itself by its global name would find the factory's local
        before.append(ast.Global([name]))
    free = sorted({*code.co_freevars, *_CELLS} - {"__class__"})
    arguments = ast.arguments([], [ast.arg(v) for v in free], None, [], [], None, [])
    generic: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}
    body: ast.stmt = ast.FunctionDef(
        PREFIX + "factory", arguments, [*before, statement], [], **generic
    )
    for outer in reversed(source.classes):
        body = ast.ClassDef(outer, [], [], [body], [], **generic)
    for generated in ast.walk(body):
        if isinstance(generated, (ast.stmt, ast.expr, ast.arg)) and not hasattr(
            generated, "lineno"
        ):
            ast.copy_location(generated, source.node)
    tree = ast.fix_missing_locations(ast.Module([body], []))
    compiled = compile(tree, source.filename, "exec", source.flags, dont_inherit=True)
    lifted = _find(compiled, code.co_name, PREFIX + "factory")
    return lifted.replace(co_qualname=code.co_qualname)


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
