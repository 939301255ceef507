"""The shortest path from a call to its compiled code, without flattening its arguments.

What a tape assumes beside its arguments' types and shapes (functions that are not replaced) and
what it reads (numbers and arrays of closures, modules and objects) is looked up by a function
written for that tape: a call costs no loop and no object of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.evaluation.by_tape import MISS
from fwdad.frontend.captures import COMPARED, fetch
from fwdad.frontend.parts_of_calls import Parts, Place
from fwdad.frontend.slots import class_attribute
from fwdad.frontend.tape import Tape
from fwdad.ir.analysis.alias import pairs_apart, results_apart
from fwdad.ir.ops import Program, Value, is_array
from fwdad.ir.symbol import UNBOUND
from fwdad.ir.types import result_kind
from fwdad.tangents.objects import HEAP_TYPE

_PLAIN = (float, int, complex, np.float64)  # what is captured is of these classes, or an array


def shortcut(
    tape: Tape,
    run: Any,
    parts: Parts,
    hits: list[int],
    *,
    apart: bool = False,
    unless: tuple[Any, ...] = (),
    picked: int | None = None,
    instead: Callable[..., Any] | None = None,
    writes: bool = False,
) -> Callable[..., Any] | None:
    """A function of ``(args, kwargs)`` that returns f's value, or ``MISS``; None if impossible.

    ``run`` is the tape's compiled code, of leaves and captures; ``parts`` are those of a call that
    the tape serves. ``hits`` holds one number, which counts the shortcut's calls. The arrays
    that the tape returns are ``apart`` from its inputs if that is asked for. It misses while one of
    the containers ``unless`` holds anything. Of a tuple of results it returns the one ``picked``;
    where a function of the leaves is called ``instead``, what that returns. ``writes`` says that
    the program may write into arguments, and checks that they are C-contiguous.
    """
    if not parts.possible:
        return None
    written = [k for k, held in enumerate(tape.program.written) if held]
    if written and not (writes and written[-1] < len(parts.leaves)):
        return None
    captured = [c.fetch() for c in tape.captures]
    if not all(type(x) is np.ndarray or type(x) in _PLAIN for x in captured):
        return None
    namespace = parts.namespace
    namespace |= {"hits": hits, "run": run, "miss": MISS}
    checks = _guards(tape, namespace)
    if checks is None:
        return None
    for k, held in enumerate(unless):
        namespace[f"unless{k}"] = held
        checks += [f"if unless{k}:", "    return miss"]
    captures = _captures(tape, parts, captured)
    if captures is None:
        return None
    checks += captures
    leaves = [*parts.leaves, *(Place(f"c{k}", x) for k, x in enumerate(captured))]
    inputs = [leaf.name for leaf in leaves]
    arrays = [k for k, leaf in enumerate(leaves) if type(leaf.example) is np.ndarray]
    for k, value in tape.value_guards.items():
        namespace[f"value{k}"] = value
        checks += [f"if {inputs[k]} != value{k}:", "    return miss"]
    checked = pairs_apart(tape.program)
    for j, k in enumerate(arrays):
        for m in arrays[j + 1 :]:
            if (k in tape.alone or m in tape.alone) and frozenset((k, m)) not in checked:
                namespace["share"] = np.may_share_memory
                checks += [f"if share({inputs[k]}, {inputs[m]}):", "    return miss"]
    if tape.rows is not None:
        rows = " and ".join(f"{inputs[k]}.flags.c_contiguous" for k in arrays) or "True"
        checks += [f"if {'not ' if tape.rows else ''}({rows}):", "    return miss"]
        for k in tape.copied.intersection(arrays) if not tape.rows else ():
            checks += [f"if not {inputs[k]}.flags.c_contiguous:", "    return miss"]
    given = ", ".join(inputs)
    if instead is not None:
        namespace["instead"] = instead
        lines = [f"return instead({given})"]
        return _defined(tape.program.name, parts.lines(), checks, lines, namespace)
    lines = call_lines(run, inputs, namespace)
    program = tape.program
    values = [f"made[{k}]" for k in range(len(program.block.results))]
    if apart:
        values, copies = apart_lines(program, len(values), [inputs[k] for k in arrays])
        lines += copies
    for k in written:  # what the program returns of an argument that it writes is the argument
        for j, returned in enumerate(program.block.results):
            if returned is program.block.params[k]:
                values[j] = inputs[k]
    result = tape.rebuild.text(values, namespace, picked)
    if result is None:
        namespace["rebuild"] = tape.rebuild
        held = "".join(f"{c.name}, " for c in parts.containers)
        result = f"rebuild(({''.join(f'{v}, ' for v in values)}), ({held}))"
        result += "" if picked is None else f"[{picked}]"
    lines.append(f"return {result}")
    return _defined(tape.program.name, parts.lines(), checks, lines, namespace)


def bound_call(
    tape: Tape,
    entry: Any,
    parts: Parts,
    hits: list[int],
    again: Callable[[], Any],
    rules: list[int],
) -> Callable[[], Any] | None:
    """A function of nothing that runs a tape for the arguments of an example; None if impossible.

    ``entry`` is compiled code that returns the results of the program but the arguments that it
    writes. Where the tape does not hold any more, or it raises, ``again`` is called. ``rules`` has
    one number, another one once a rule has been registered since.
    """
    captured = [c.fetch() for c in tape.captures]
    if not all(type(x) is np.ndarray or type(x) in _PLAIN for x in captured):
        return None
    namespace = parts.namespace
    checks, captures = _guards(tape, namespace), _captures(tape, parts, captured)
    if checks is None or captures is None:
        return None
    namespace |= {"hits": hits, "entry": entry, "again": again, "rules": rules}
    names = [leaf.name for leaf in parts.leaves]
    for name, x in parts.leaves:  # what is done to the caller's object, as a new shape, is not
        namespace[name] = x[...] if type(x) is np.ndarray else x  # done to a view of it
        namespace[f"given_{name}"] = x
    inputs = [*names, *(f"c{k}" for k in range(len(captured)))]
    for k, x in enumerate(captured):
        if type(x) is np.ndarray:  # another one may lie otherwise, or where it is written
            namespace |= {f"very{k}": x, f"view{k}": x[...]}
            captures += [f"if c{k} is not very{k}:", "    return miss"]
            inputs[len(names) + k] = f"view{k}"
    values, count = [], 0
    params = tape.program.block.params
    for returned in tape.program.block.results:
        if type(returned) is Value and returned in params:
            values.append(f"given_{names[params.index(returned)]}")
            continue
        kind = result_kind(returned)
        namespace[f"as{count}"] = kind
        values.append(f"made[{count}]" if kind is None else f"as{count}(made[{count}])")
        count += 1
    result = tape.rebuild.text(values, namespace)
    if result is None:
        return None
    checks = [line.replace("return miss", "return again()") for line in [*checks, *captures]]
    checks = [f"if rules[0] != {rules[0]}:", "    return again()", *checks]
    lines = ["try:", f"    made = entry({', '.join(inputs)})", "except Exception:",
             "    pass", "else:", f"    return {result}", "return again()"]  # fmt: skip
    head = "shortcut()"
    return _defined(tape.program.name, [], checks, lines, namespace, head, "again()")


def _captures(tape: Tape, parts: Parts, captured: list[Any]) -> list[str] | None:
    """Lines that read what a tape captures, and test that it is like what was there before."""
    checks: list[str] = []
    for k, (capture, x) in enumerate(zip(tape.captures, captured, strict=True)):
        place = _place(capture.path, f"capture{k}", parts.namespace)
        if place is None:
            return None
        test = parts.same(f"c{k}", x)
        checks += [f"c{k} = {place}", f"if not ({test}):", "    return miss"]
    return checks


def apart_lines(
    program: Program, count: int, arrays: list[str], kept: Sequence[int] = ()
) -> tuple[list[str], list[str]]:
    """The names of the first results of a program, and the lines that make them.

    They are in memory of their own: copied are those of ``kept``, and what may be a view, or one of
    the inputs that are ``arrays``, or another result.
    """
    values: list[str] = []
    lines: list[str] = []
    before: list[str] = []
    own = results_apart(program)
    for k, result in enumerate(program.block.results[:count]):
        values.append(f"made[{k}]")
        if not is_array(result):
            continue
        y = values[k] = f"y{k}"
        tests = [f"type({y}.base) is ndarray" if own[k] else f"{y}.base is not None"]
        tests += [f"{y} is {other}" for other in (*arrays, *(() if own[k] else before))]
        test = "True" if k in kept else " or ".join(tests)
        lines += [f"{y} = made[{k}]", f"if type({y}) is ndarray and ({test}):",
                  f"    {y} = {y}.copy()"]  # fmt: skip
        if not own[k]:
            before.append(f"made[{k}]")
    return values, lines


class Caller:
    """Where a kernel is called that may be replaced; it is referred to weakly, and ends with it."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names


def call_lines(
    run: Any, inputs: list[str], namespace: dict[str, Any], otherwise: tuple[str, ...] = ()
) -> list[str]:
    """The lines that call a program's function, without the Python function around it if possible.

    ``otherwise`` replaces what that does when compiled code has raised.
    """
    given = ", ".join(inputs)
    if not hasattr(run, "direct"):
        namespace["run"] = run
        return [f"made = run({given})"]
    namespace["kernel"], namespace["failed"], kinds = run.direct
    if hasattr(run, "callers"):
        namespace["caller"] = Caller(namespace)
        run.callers.add(namespace["caller"])
    lines = ["try:", f"    made = kernel({given})"]
    if any(kind is not None for kind in kinds):
        namespace |= {f"as{k}": kind for k, kind in enumerate(kinds)}
        parts = [f"made[{k}]" if t is None else f"as{k}(made[{k}])" for k, t in enumerate(kinds)]
        lines.append(f"    made = ({', '.join(parts)},)")
    failed = f"    made = failed(error, ({given}{',' if inputs else ''}))"
    return [*lines, *(otherwise or ("except BaseException as error:", failed))]


def _guards(tape: Tape, namespace: dict[str, Any]) -> list[str] | None:
    """Tests of what a tape assumes not to be replaced; None if a place has no text."""
    checks: list[str] = []
    for k, (path, held) in enumerate(tape.object_guards):
        place = _place(path, f"guard{k}", namespace)
        if place is None:
            return None
        if held is UNBOUND and path[0] == "item":  # a builtin's name
            checks += [f"if {path[2]!r} in guard{k}:", "    return miss"]
            continue
        if path[0] == "class" and not any(path[2] in vars(c) for c in path[1].__mro__):
            checks += _lacks(path[1], path[2], namespace)
            continue
        namespace[f"wanted{k}"] = held
        differs = "!=" if path[0] in COMPARED else "is not"
        checks += [f"if {place} {differs} wanted{k}:", "    return miss"]
    for k, pair in enumerate(tape.same_objects):
        places = [_place(path, f"same{k}_{j}", namespace) for j, path in enumerate(pair)]
        if None in places:
            return None
        checks += [f"if {places[0]} is not {places[1]}:", "    return miss"]
    return checks


def _lacks(cls: type, name: str, namespace: dict[str, Any]) -> list[str]:
    """Tests that neither a class nor its bases have got a name, which `getattr` would search."""
    checks: list[str] = []
    if f"order{id(cls)}" not in namespace:
        namespace |= {f"class{id(cls)}": cls, f"order{id(cls)}": cls.__mro__}
        checks = [f"if class{id(cls)}.__mro__ is not order{id(cls)}:", "    return miss"]
    homes = [c for c in cls.__mro__ if c.__flags__ & HEAP_TYPE]  # those of C cannot be changed
    for c in homes:
        namespace[f"names{id(c)}"] = vars(c)
    found = " or ".join(f"{name!r} in names{id(c)}" for c in homes)
    return [*checks, f"if {found}:", "    return miss"] if homes else checks


def _place(path: Any, name: str, namespace: dict[str, Any]) -> str | None:
    """What is found at a path in the outside world, as a source text; None if it has none."""
    kind, *where = path
    namespace[name] = where[0]
    if kind == "cell" and fetch(path) is UNBOUND:
        namespace |= {"fetch": fetch, name: path}
        return f"fetch({name})"
    if kind == "item" and type(where[0]) is dict:
        return f"{name}[{where[1]!r}]"
    if kind == "attribute":
        return f"getattr({name}, {where[1]!r})"
    of_class = kind in ("class", "kind")
    if of_class and getattr(where[0], where[1], None) is class_attribute(*where):
        text = f"getattr({name}, {where[1]!r}, None)"
        return f"type({text})" if kind == "kind" else text
    if kind == "method":
        return f"getattr({name}, {where[1]!r}).__func__"
    if kind == "type":
        return f"type({name})"
    if kind == "after" and getattr(super(where[1], where[0]), where[2], None) is fetch(path):
        namespace[name] = super(where[1], where[0])
        return f"getattr({name}, {where[2]!r}, None)"
    if kind in (*COMPARED, "class", "kind", "after", "asked", "hooked", "dispatched"):
        namespace["fetch"], namespace[name] = fetch, path
        return f"fetch({name})"
    return {"cell": f"{name}.cell_contents", "object": name}.get(kind)


def _defined(
    title: str,
    parts: list[str],
    checks: list[str],
    last: list[str],
    namespace: dict[str, Any],
    head: str = "shortcut(args, kwargs)",
    missed: str = "miss",
) -> Callable[..., Any]:
    lines = [f"def {head}:", *(f"    {line}" for line in parts)]
    if checks:
        lines += ["    try:", *(f"        {line}" for line in checks)]
        # a name or an attribute that is gone, a cell that is empty
        lines += ["    except (KeyError, ValueError, AttributeError):", f"        return {missed}"]
    lines += ["    hits[0] += 1", *(f"    {line}" for line in last)]
    text = "\n".join(lines) + "\n"
    exec(compile(text, f"<fwdad shortcut of {title}>", "exec"), namespace)  # noqa: S102  (our own text)
    defined: Callable[..., Any] = namespace["shortcut"]
    return defined
