"""Which functions may be called on samples: those that read only their arguments and write nothing.

Every other function that a program calls is traced from its source, or runs on the values that it
is given.
"""

from __future__ import annotations

import enum
import inspect
import sys
import types
from typing import Any

import numpy as np

from fwdad.errors import PACKAGE
from fwdad.ir.ops import Missing, Operand, Value
from fwdad.ops import record_of
from fwdad.ops.record import full_name
from fwdad.rules.core.registry import find_rule, function_name, is_declared_pure, writer_of

_UFUNCS_OF_SCIPY = ("scipy.special", "scipy.special._ufuncs", "scipy.special._special_ufuncs")
_UFUNC_METHODS = {"accumulate", "outer", "reduce", "reduceat"}

# Operands on which no method of the user's is called.
_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, type, range,
    types.EllipsisType, types.GenericAlias, enum.Enum, Missing, Value,
)  # fmt: skip
_LIBRARIES = {"fwdad", "numpy", "scipy"}
FACTORS = {"SuperLU"}
"""Classes of objects that are constants to whoever is given one."""


def is_pure(function: Any) -> bool:
    """Whether a function is listed as reading only its arguments and writing nothing."""
    if isinstance(function, np.ufunc):
        return _is_pure_ufunc(function)
    if isinstance(function, type) and issubclass(function, np.generic):
        return True
    if _has_own_rule(function) or is_declared_pure(function) or record_of(function).pure:
        return True
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return function.__name__ in _UFUNC_METHODS and _is_pure_ufunc(owner)
    return False


def _has_own_rule(function: Any) -> bool:
    """Whether the library itself has registered a rule: a user's says nothing about effects."""
    rule = find_rule(function)
    if rule is None or not rule.origin.startswith(PACKAGE):
        return False
    return not function_name(function).startswith("numpy.random")


def trusts_lengths(function: Any) -> bool:
    """Whether it may read beyond its arguments: SciPy's internal code, unless it is listed as pure.

    It is called by code of SciPy's that knows which lengths and values go together.
    """
    home = getattr(function, "__module__", None) or ""  # f2py's have none
    if isinstance(function, np.ufunc) or (home and not home.startswith("scipy.")):
        return False
    writer = writer_of(function)
    own = function if writer is None else writer.function
    if record_of(own).pure or is_declared_pure(own):
        return False
    if not home:
        return type(own).__name__ == "fortran"
    public, _, name = full_name(own).rpartition(".")
    found: Any = getattr(sys.modules.get(public), name, None)
    return inspect.unwrap(found) is not inspect.unwrap(own)


def _is_pure_ufunc(function: np.ufunc) -> bool:
    """Whether a ufunc is NumPy's or SciPy's; any other may wrap arbitrary Python code."""
    name = function.__name__
    if getattr(np, name, None) is function or _has_own_rule(function):
        return True
    homes = (sys.modules.get(home) for home in _UFUNCS_OF_SCIPY)
    return any(getattr(home, name, None) is function for home in homes)


def are_plain(operands: Operand) -> bool:
    """Whether no function can reach user code through these operands."""
    if isinstance(operands, _PLAIN) or type(operands) is np.ndarray:
        return True
    if isinstance(operands, (list, tuple, set, frozenset)):
        return all(map(are_plain, operands))
    if isinstance(operands, dict):
        return all(map(are_plain, operands.values()))
    if isinstance(operands, slice):
        return are_plain((operands.start, operands.stop, operands.step))
    if callable(operands):
        return is_pure(operands)
    if type(operands).__name__ in FACTORS:
        return True
    return type(operands).__module__.partition(".")[0] in _LIBRARIES


def leaves_arguments(function: Any, operands: Operand) -> bool:
    """Whether a call with ``(args, kwargs)`` writes into none of its arguments."""
    _, kwargs = operands
    overwrites = any(key.startswith("overwrite") and x is not False for key, x in kwargs.items())
    return is_pure(function) and are_plain(operands) and not overwrites
