"""Names of values, and operations as source expressions."""

from __future__ import annotations

import builtins
import keyword
import math
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.ir.analysis.def_use import count_uses, used_in_own_block
from fwdad.ir.coalescing import shared_names
from fwdad.ir.leaves import Leaves
from fwdad.ir.notation import ATOM, INFIX, LOWEST, PREFIX
from fwdad.ir.ops import (
    Apply,
    Load,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
)
from fwdad.rules.core.contract import watched

_PLAIN = {bool, int, str, bytes, type(None)}
_TAKEN = {"np", "math"}


class Expressions:
    """The names, lines and expressions of a program.

    ``coalesce``: values share a name where they can, for languages with untyped variables.
    ``sketch``: the source is only for reading, so that what is unused is left out.
    """

    def __init__(self, program: Program, *, coalesce: bool = False, sketch: bool = False) -> None:
        self.program = program
        self.coalesce = coalesce
        self.sketch = sketch
        self.lines: list[str] = []
        self.places: list[Any] = []  # the user's location of each line
        self.globals: dict[str, Any] = {}
        self._names: dict[Value, str] = {}
        self._used: Counter[str] = Counter()
        self._uses = count_uses(program.block)
        self._single = used_in_own_block(program.block, self._uses)
        self._groups: dict[Value, list[Value]] = {}
        if coalesce:
            unused = {v for op in program.walk() for v in op.outputs if not self._uses[v]}
            self._groups = shared_names(program, self._single, unused)
        self._inlined: dict[Value, tuple[str, int]] = {}
        self._reading: set[Value] = set()  # inlined values that read memory
        self._pending: list[Value] = []  # those of them that no line uses yet
        self._places: dict[Value, Any] = {}  # of values that are written where they are used
        self._here: Any = None  # of the last of them that was used
        self._indent = 0
        self._functions: dict[int, str] = {}
        self.called: dict[int, tuple[Program, str]] = {}  # programs, and their names

    # -- names

    def name(self, value: Value) -> str:
        """A value's name: the user's if it has one, made unique by a number."""
        if value not in self._names:
            group = self._groups.get(value, [value])
            wanted = next((v.name for v in group if v.name is not None), _hint(value))
            self._names.update(dict.fromkeys(group, self._unique(wanted)))
        return self._names[value]

    def names_of_arrays(self) -> set[str]:
        """The names given so far to arrays."""
        return {name for value, name in self._names.items() if is_array(value)}

    def _unique(self, wanted: str) -> str:
        wanted = wanted if wanted.isidentifier() else "t"
        while True:
            self._used[wanted] += 1
            k = self._used[wanted]
            made = wanted if k == 1 else f"{wanted}_{k}"
            if not keyword.iskeyword(made) and not hasattr(builtins, made) and made not in _TAKEN:
                if k == 1:
                    return made
                if made not in self._used:
                    self._used[made] += 1  # the user may have a name like that, too
                    return made

    def reserve(self, name: str) -> None:
        """Reserve a name, so that no value gets it."""
        self._used[name] += 1

    def alias(self, value: Value, like: Value) -> None:
        """Give a value the name of another."""
        self._names[value] = self.name(like)

    # -- lines

    def line(self, text: str, op: Op | None = None) -> None:
        """Append one line."""
        self.lines.append("    " * self._indent + text)
        self.places.append(op.location if op is not None else self._here)
        self._here = None

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent the lines of a block."""
        self._indent += 1
        yield
        self._indent -= 1

    # -- expressions

    def text(self, operand: Operand, level: int = LOWEST) -> str:
        """An operand as source, in parentheses if it binds more weakly than ``level``."""
        if isinstance(operand, Value):
            if operand in self._inlined:
                if operand in self._pending:
                    self._pending.remove(operand)
                text, own = self._inlined[operand]
                self._here = self._here or self._places.get(operand)
                return f"({text})" if own < level else text
            return self.name(operand)
        if isinstance(operand, tuple):
            inner = ", ".join(self.text(x) for x in operand)
            return f"({inner},)" if len(operand) == 1 else f"({inner})"
        if isinstance(operand, list):
            return f"[{', '.join(self.text(x) for x in operand)}]"
        if type(operand) is dict:
            items = (f"{self.text(key)}: {self.text(x)}" for key, x in operand.items())
            return f"{{{', '.join(items)}}}"
        if isinstance(operand, slice):
            parts = (operand.start, operand.stop, operand.step)
            return f"slice({', '.join(self.text(x) for x in parts)})"
        if operand is Ellipsis:
            return "..."
        if isinstance(operand, Missing):
            return self.missing(operand)
        return self._constant(operand, level)

    def missing(self, _operand: Missing) -> str:
        """The source of a value that is never used."""
        return "None"

    def _constant(self, x: Any, level: int) -> str:
        if isinstance(x, (bool, int, str, bytes, type(None))) and type(x) in _PLAIN:
            text = repr(x)
            return f"({text})" if text.startswith("-") and level > 6 else text
        if type(x) is float and math.isfinite(x):
            text = repr(x)
            return f"({text})" if text.startswith("-") and level > 6 else text
        if type(x) is float:
            return f'float("{x}")'
        if type(x) is complex:
            parts = (self._constant(part, LOWEST) for part in (x.real, x.imag))
            return f"complex({', '.join(parts)})"
        if isinstance(x, np.dtype):
            return f'np.dtype("{x.str}")'
        if isinstance(x, np.generic) and not isinstance(x.item(), np.generic):
            name = "bool_" if x.dtype.kind == "b" else x.dtype.name
            return f"np.{name}({self._constant(x.item(), LOWEST)})"
        return self.function(x)

    def _slice(self, s: slice) -> str:
        start, stop = ("" if x is None else self.text(x) for x in (s.start, s.stop))
        return f"{start}:{stop}" + ("" if s.step is None else f":{self.text(s.step)}")

    def _index(self, index: tuple[Operand, ...]) -> str:
        if not index:
            return "()"
        inner = ", ".join(self._slice(i) if isinstance(i, slice) else self.text(i) for i in index)
        return f"{inner}," if len(index) == 1 and isinstance(index[0], tuple) else inner

    def _target(self, op: Store | Update) -> str:
        return f"{self.text(op.array, ATOM)}[{self._index(op.index)}]"

    def _load(self, op: Load) -> tuple[str, int]:
        return f"{self.text(op.array, ATOM)}[{self._index(op.index)}]", ATOM

    def _call(self, op: Apply) -> tuple[str, int]:
        f, args = op.function, op.args
        if f in INFIX and len(args) == 2 and not op.kwargs:
            symbol, level = INFIX[f]
            if level == 8:
                return f"{self.text(args[0], 9)}**{self.text(args[1], 8)}", 8
            left, right = self.text(args[0], level + (level == 0)), self.text(args[1], level + 1)
            return f"{left} {symbol} {right}", level
        if f in PREFIX and len(args) == 1:
            symbol, level = PREFIX[f]
            return f"{symbol}{self.text(args[0], level + (level < 0))}", level
        special = _SPECIAL.get(getattr(f, "__qualname__", ""))
        if special is not None and getattr(f, "__module__", "").startswith("fwdad."):
            return special(self, *args), ATOM
        kwargs = [f"{key}={self.text(x)}" for key, x in op.kwargs.items()]
        if type(f).__name__ == "method_descriptor":
            rest = ", ".join([*(self.text(a) for a in args[1:]), *kwargs])
            return f"{self.text(args[0], ATOM)}.{f.__name__}({rest})", ATOM
        return f"{self.function(f)}({', '.join([*(self.text(a) for a in args), *kwargs])})", ATOM

    def function(self, f: Any) -> str:
        """The name of a function or class in the source; a global, unless builtin or NumPy's."""
        name = getattr(f, "__name__", type(f).__name__)
        module = getattr(f, "__module__", None) or ""
        if getattr(builtins, name, None) is f:
            return name
        found = _numpy_name(f)
        if found:
            return found
        if module == "math":
            return f"math.{name}"
        key = id(f)
        if key not in self._functions:
            short = self._unique(name if name.isidentifier() else "function")
            self._functions[key] = short
            self.globals[short] = Leaves(watched(f.function)) if type(f) is Leaves else watched(f)
        return self._functions[key]


_SPECIAL: dict[str, Callable[..., str]] = {
    "length_of": lambda w, a, axis: f"{w.text(a, ATOM)}.shape[{axis}]",
    "range_length": lambda w, *bounds: f"len(range({', '.join(w.text(b) for b in bounds)}))",
    "_identity": lambda w, x: w.text(x),
}


def _hint(value: Value) -> str:
    return "a" if is_array(value) else "t"


def _numpy_name(f: Any) -> str | None:
    name = getattr(f, "__name__", "")
    for prefix, module in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft)):
        if getattr(module, name, None) is f:
            return f"{prefix}.{name}"
    owner = getattr(f, "__self__", None)
    if isinstance(owner, np.ufunc):
        return f"np.{owner.__name__}.{name}"
    if isinstance(f, types.BuiltinFunctionType) and getattr(np, name, None) is f:
        return f"np.{name}"
    return None
