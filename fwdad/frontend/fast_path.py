"""The shortest path from a call to its compiled code, for arguments that need no flattening.

What a tape assumes beside its arguments' types and shapes (functions that are not replaced) and
what it reads (numbers and arrays of closures, modules and objects) is looked up by a function
written for that tape: a call costs no loop and no object of ours.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.frontend.captures import COMPARED, fetch
from fwdad.frontend.tape import Tape
from fwdad.ir.ops import is_array
from fwdad.ir.symbol import UNBOUND

MISS = object()
"""What a shortcut returns for other arguments, and where the tape does not hold any more."""

# Arguments of these classes, and arrays, can be distinguished without flattening them.
_PLAIN = (float, int, complex, np.float64)


def key_of(args: tuple[Any, ...]) -> Any:
    """A key that is equal for calls that can take the same shortcut."""
    return tuple([(a.dtype, a.shape) if type(a) is np.ndarray else type(a) for a in args])


def shortcut(
    tape: Tape,
    run: Callable[..., Any],
    args: tuple[Any, ...],
    hits: list[int],
    *,
    apart: bool = False,
) -> Callable[..., Any] | None:
    """A function of a tuple of arguments that returns f's value, or ``MISS``; None if impossible.

    ``run`` is the tape's compiled code, of leaves and captures; ``args`` are those of a call that
    the tape serves. ``hits`` holds one number, which counts the shortcut's calls. The arrays that
    the tape returns are ``apart`` from its inputs if that is asked for.
    """
    if tape.value_guards or any(tape.program.written):
        return None
    if not all(type(a) is np.ndarray or type(a) in _PLAIN for a in args):
        return None
    captured = [c.fetch() for c in tape.captures]
    if not all(type(x) is np.ndarray or type(x) in _PLAIN for x in captured):
        return None
    namespace: dict[str, Any] = {"hits": hits, "run": run, "miss": MISS, "ndarray": np.ndarray}
    checks: list[str] = []
    for k, (path, held) in enumerate(tape.object_guards):
        place = _place(path, f"guard{k}", namespace)
        if place is None:
            return None
        if held is UNBOUND and path[0] == "item":  # a builtin's name
            checks += [f"if {path[2]!r} in guard{k}:", "    return miss"]
            continue
        namespace[f"held{k}"] = held
        differs = "!=" if path[0] in COMPARED else "is not"
        checks += [f"if {place} {differs} held{k}:", "    return miss"]
    for k, pair in enumerate(tape.same_objects):
        places = [_place(path, f"same{k}_{j}", namespace) for j, path in enumerate(pair)]
        if None in places:
            return None
        checks += [f"if {places[0]} is not {places[1]}:", "    return miss"]
    for k, (capture, x) in enumerate(zip(tape.captures, captured, strict=True)):
        place = _place(capture.path, f"capture{k}", namespace)
        if place is None:
            return None
        test = _same(f"c{k}", x, namespace)
        checks += [f"c{k} = {place}", f"if not ({test}):", "    return miss"]
    names = [f"x{k}" for k in range(len(args))]
    inputs = [*names, *(f"c{k}" for k in range(len(captured)))]
    arrays = [k for k, x in enumerate((*args, *captured)) if type(x) is np.ndarray]
    for j, k in enumerate(arrays):
        for m in arrays[j + 1 :]:
            if k in tape.alone or m in tape.alone:
                namespace["share"] = np.may_share_memory
                checks += [f"if share({inputs[k]}, {inputs[m]}):", "    return miss"]
    if tape.rows is not None:
        rows = " and ".join(f"{inputs[k]}.flags.c_contiguous" for k in arrays) or "True"
        checks += [f"if {'not ' if tape.rows else ''}({rows}):", "    return miss"]
        for k in tape.copied.intersection(arrays) if not tape.rows else ():
            checks += [f"if not {inputs[k]}.flags.c_contiguous:", "    return miss"]
    same = [_same(name, a, namespace) for name, a in zip(names, args, strict=True)]
    leaves = ", ".join(inputs)
    lines = [f"made = run({leaves})"]
    if hasattr(run, "direct"):  # saves a Python call
        namespace["kernel"], namespace["failed"] = run.direct
        lines = ["try:", f"    made = kernel({leaves})", "except BaseException as error:",
                 f"    made = failed(error, ({leaves}{',' if leaves else ''}))"]  # fmt: skip
    values = [f"made[{k}]" for k in range(len(tape.program.block.results))]
    for k, result in enumerate(tape.program.block.results):
        if apart and is_array(result):  # in memory that is not its inputs'
            y = values[k] = f"y{k}"
            owner = " or ".join([f"{y}.base is not None", *(f"{y} is {inputs[j]}" for j in arrays)])
            lines += [f"{y} = made[{k}]", f"if type({y}) is ndarray and ({owner}):",
                      f"    {y} = {y}.copy()"]  # fmt: skip
    result = tape.rebuild.text(values, namespace)
    if result is None:
        namespace["rebuild"] = tape.rebuild
        result = f"rebuild(({''.join(f'{v}, ' for v in values)}), ())"
    lines.append(f"return {result}")
    return _defined(tape.program.name, names, [" and ".join(same), *checks], lines, namespace)


def _same(name: str, a: Any, namespace: dict[str, Any]) -> str:
    """A source text that tests whether an input is like a, as :func:`key_of` compares them."""
    namespace.update({f"class_{name}": type(a)})
    test = f"type({name}) is class_{name}"
    if type(a) is not np.ndarray:
        return test
    namespace.update({f"dtype_{name}": a.dtype, f"shape_{name}": a.shape})
    dtype = f"({name}.dtype is dtype_{name} or {name}.dtype == dtype_{name})"
    return f"{test} and {dtype} and {name}.shape == shape_{name}"


def _place(path: Any, name: str, namespace: dict[str, Any]) -> str | None:
    """What is found at a path in the outside world, as a source text; None if it has none."""
    kind, *where = path
    namespace[name] = where[0]
    if kind == "item" and type(where[0]) is dict:
        return f"{name}[{where[1]!r}]"
    if kind == "attribute":
        return f"getattr({name}, {where[1]!r})"
    if kind == "class" and isinstance(getattr(where[0], where[1], None), types.FunctionType):
        return f"getattr({name}, {where[1]!r})"
    if kind == "method":
        return f"getattr({name}, {where[1]!r}).__func__"
    if kind in (*COMPARED, "class", "asked"):
        namespace["fetch"], namespace[name] = fetch, path
        return f"fetch({name})"
    return {"cell": f"{name}.cell_contents", "object": name}.get(kind)


def _defined(
    title: str, names: list[str], tests: list[str], last: list[str], namespace: dict[str, Any]
) -> Callable[..., Any]:
    same, *checks = tests
    lines = ["def shortcut(args):", f"    if len(args) != {len(names)}:", "        return miss"]
    if names:
        lines += [f"    {', '.join(names)}{',' if len(names) == 1 else ''} = args"]
        lines += [f"    if not ({same}):", "        return miss"]
    if checks:
        lines += ["    try:", *(f"        {line}" for line in checks)]
        # a name or an attribute that is gone, a cell that is empty
        lines += ["    except (KeyError, ValueError, AttributeError):", "        return miss"]
    lines += ["    hits[0] += 1", *(f"    {line}" for line in last)]
    text = "\n".join(lines) + "\n"
    exec(compile(text, f"<fwdad shortcut of {title}>", "exec"), namespace)  # noqa: S102  (our own text)
    defined: Callable[..., Any] = namespace["shortcut"]
    return defined


def never(_args: tuple[Any, ...]) -> Any:
    """The shortcut before there is one."""
    return MISS
