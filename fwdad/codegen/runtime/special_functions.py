"""SciPy's special functions of float64s for generated code: the C functions behind its ufuncs.

Importing this module needs Numba.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import get_cython_function_address, intrinsic

from fwdad.codegen.numba_support import SPECIAL_HELPERS

types: Any = _types
_LIBRARY = "scipy.special.cython_special"
_PREFIX = "special_"
_SIGNATURE = re.compile(r"double \(((?:double, )+)int __pyx_skip_dispatch\)")


def _symbol(name: str) -> str:
    return f"fwdad_{name}"


def provide(names: set[str]) -> None:
    """Register SciPy's functions among ``names``: before code that calls them is linked."""
    for name in names & SPECIAL_HELPERS:
        entry, _ = _entry(name)
        llvm.add_symbol(_symbol(name), get_cython_function_address(_LIBRARY, entry))


def _entry(name: str) -> tuple[str, int]:
    """The name of a function of doubles in Cython's table, and how many arguments it has."""
    table = importlib.import_module(_LIBRARY).__pyx_capi__  # slow: import it only when needed
    wanted = re.compile(rf"(?:__pyx_fuse_\d+(?:_\d+)?_?)?{name.removeprefix(_PREFIX)}")
    for entry, capsule in table.items():
        if wanted.fullmatch(entry):
            match = _SIGNATURE.search(str(capsule))
            if match is not None:
                return entry, match[1].count("double")
    raise AttributeError(f"SciPy has no C function {name.removeprefix(_PREFIX)} of float64s")


def __getattr__(name: str) -> Any:
    """A function that compiled code can call, created on first use."""
    if name not in SPECIAL_HELPERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _, arity = _entry(name)

    def typed(_typing, *given):
        held = given[0] if len(given) == 1 and isinstance(given[0], types.BaseTuple) else given
        if len(held) != arity or any(t is not types.float64 for t in held):
            return None

        def code(context, builder, _sig, args):
            double = context.get_value_type(types.float64)
            kinds = [double] * arity + [ir.IntType(32)]
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(double, kinds), _symbol(name)
            )
            for known in ("nounwind", "readnone"):  # so that equal calls are merged
                function.attributes.add(known)
            values = cgutils.unpack_tuple(builder, args[0], arity)
            return builder.call(function, [*values, ir.Constant(ir.IntType(32), 0)])

        return types.float64(types.StarArgTuple.from_types(held)), code

    typed.__name__ = typed.__qualname__ = name
    compiled = intrinsic(typed)
    globals()[name] = compiled
    return compiled
