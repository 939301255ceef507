"""Operands that are no values, as source: constants, functions, and containers of operands."""

from __future__ import annotations

import builtins
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.leaves import Leaves
from fwdad.ir.names import Names
from fwdad.ir.notation import LOWEST, tuple_text
from fwdad.ir.ops import Operand, Program
from fwdad.rules.core.contract import watched

_PLAIN = {bool, int, str, bytes, type(None)}


class Globals:
    """What the functions of one source refer to by name.

    ``objects`` are global names; ``called`` are programs and their names, by their ids.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.called: dict[int, tuple[Program, str]] = {}
        self.functions: dict[int, str] = {}


class Literals:
    """Writes constants, functions and containers."""

    def __init__(self, names: Names, refers: Globals) -> None:
        self.names = names
        self.globals = refers

    def text(self, operand: Operand, level: int, item: Callable[[Operand], str]) -> str:
        """An operand that is no value as source; ``item`` writes those inside it."""
        if isinstance(operand, tuple):
            return tuple_text([item(x) for x in operand])
        if isinstance(operand, list):
            return f"[{', '.join(map(item, operand))}]"
        if type(operand) is dict:
            items = (f"{item(key)}: {item(x)}" for key, x in operand.items())
            return f"{{{', '.join(items)}}}"
        if isinstance(operand, slice):
            parts = (operand.start, operand.stop, operand.step)
            return f"slice({', '.join(map(item, parts))})"
        if operand is Ellipsis:
            return "..."
        return self._constant(operand, level)

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

    def function(self, f: Any) -> str:
        """The name of a function or class in the source; a global, unless builtin or NumPy's."""
        name = getattr(f, "__name__", type(f).__name__)
        module = getattr(f, "__module__", None) or ""
        if getattr(builtins, name, None) is f:
            return name
        numpy_name = _numpy_name(f)
        if numpy_name:
            return numpy_name
        if module == "math":
            return f"math.{name}"
        key, known = id(f), self.globals.functions
        if key not in known:
            short = self.names.unique(name if name.isidentifier() else "function")
            known[key] = short
            replacement = Leaves(watched(f.function)) if type(f) is Leaves else watched(f)
            self.globals.objects[short] = replacement
        return known[key]


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
