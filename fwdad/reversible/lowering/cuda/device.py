"""Generated functions, and what they call, compiled for a GPU."""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

import numpy as np

from fwdad.codegen.numpy_backend.source import numpy_source
from fwdad.drivers.jitted_function import Jitted
from fwdad.errors import UnsupportedTypeError
from fwdad.reversible.lowering.cotangents import SAMPLES
from fwdad.reversible.lowering.cuda.functions import of_device
from fwdad.reversible.lowering.cuda.rewriting import named, of_numbers, parsed, with_local_arrays
from fwdad.reversible.lowering.definition import Written
from fwdad.reversible.lowering.source import make_function


class DeviceFunctions:
    """Generated functions, and what they call, as functions of the device."""

    def __init__(self, cuda: Any) -> None:
        self.cuda = cuda
        self.made: dict[int, Any] = {}
        self.open: set[int] = set()

    def function(self, written: Written) -> Any:
        """A generated function."""
        return self.of(written.function)

    def of(self, f: Any) -> Any:
        """A function, generated or of the user's, with the functions that it calls."""
        compiled = self.made.get(id(f))
        if compiled is None:
            if id(f) in self.open:
                message = f"{f.__name__} calls itself: a kernel cannot be recursive"
                raise UnsupportedTypeError(message)
            self.open.add(id(f))
            known = inspect.getclosurevars(f)
            tree = with_local_arrays(parsed(f), f.__name__)
            compiled = self._compiled(tree, f.__name__, {**known.globals, **known.nonlocals})
            self.open.discard(id(f))
            self.made[id(f)] = compiled
        return compiled

    def pull(self, jitted: Jitted) -> Any:
        """The pull of an expression: its tape's source."""
        found = self.made.get(id(jitted))
        if found is None:
            samples, single = SAMPLES[jitted]
            tape = jitted.find(samples, {})[0].tape
            source = numpy_source(tape.program)
            tree = of_numbers(ast.parse(source.code))
            known = {**source.namespace, "invert": np.invert}
            inner = self._compiled(tree, source.name, known)
            names = ", ".join(f"a{k}" for k in range(len(samples)))
            marks = [_Result(f"found[{k}]") for k in range(len(tape.rebuild.operands))]
            pulled = tape.rebuild(marks)
            texts = [
                x.text if isinstance(x, _Result) else repr(float(x))
                for x in ((pulled,) if single else pulled)
            ]
            result = texts[0] if single else f"({', '.join(texts)})"
            code = f"def pull({names}):\n    found = inner({names})\n    return {result}\n"
            outer = make_function(code, "pull", {"inner": inner})
            found = self.made[id(jitted)] = self.cuda.jit(device=True)(outer)
        return found

    def value(self, x: Any) -> Any:
        """What a name of generated code means on the device."""
        if isinstance(x, Jitted):
            return self.pull(x)
        form = None if isinstance(x, types.ModuleType) else of_device(x)
        if form is not None and form is not x:
            return self._device_function(form)
        if isinstance(x, types.FunctionType):
            return self.of(x)
        return x

    def _compiled(self, tree: ast.Module, name: str, known: dict[str, Any]) -> Any:
        tree, meant = named(tree, known)
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        space = {k: self.value(v) for k, v in meant.items() if k in used}
        space["cuda"] = self.cuda
        return self.cuda.jit(device=True)(make_function(ast.unparse(tree), name, space))

    def _device_function(self, f: Any) -> Any:
        if not isinstance(f, types.FunctionType):
            return f
        compiled = self.made.get(id(f))
        if compiled is None:
            compiled = self.made[id(f)] = self.cuda.jit(device=True)(f)
        return compiled


class _Result:
    """Stands for a result of a program, to find its position among the results."""

    def __init__(self, text: str) -> None:
        self.text = text
