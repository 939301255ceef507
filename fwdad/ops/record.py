"""The record of an operation, and the table of them."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from fwdad.ops.parameters import UNKNOWN, Parameters, Role

F = TypeVar("F", bound=Callable[..., Any])


class Memory(enum.Enum):
    """Whether the array that a function returns is memory of an argument."""

    UNKNOWN = "nothing is known"
    NEW = "never"
    VIEW = "always"
    IF_CONTIGUOUS = "if the argument is C-contiguous, else sometimes"
    MAYBE = "sometimes"


class Layout(enum.Enum):
    """The strides of the array that a function returns, where no ``order`` is given."""

    UNKNOWN = "nothing is known"
    C = "C-contiguous"
    KEPT = "the order of axes of what it is made of, if no stride there is zero"
    ELEMENTWISE = "the order of axes of what it is made of"
    SAME = "those of the argument"
    FALLING = "those of the argument, with other steps"
    REPEATED = "those of the argument, some of them zero"
    TURNED = "those of the argument, in another order"


class Risk(enum.IntEnum):
    """What an operation may do to the run, whatever the values of its operands.

    ``QUIET`` nothing, ``WARNS`` a NumPy warning, ``SHAPES`` an exception about shapes or indices,
    ``RAISES`` an exception about values. Operand types are correct, since tracing checked them;
    integers are assumed to fit into 64 bits.
    """

    QUIET = 0
    WARNS = 1
    SHAPES = 2
    RAISES = 3


class Algebra(enum.Enum):
    """The arithmetic that a function does: simplifications and registers need no more of it."""

    SUM = "+"
    DIFFERENCE = "-"
    PRODUCT = "*"
    QUOTIENT = "/"
    NEGATION = "neg"
    IDENTITY = "pos"
    MATRIX_PRODUCT = "@"


class Cost(enum.Enum):
    """What one element costs."""

    ARITHMETIC = "an instruction"
    DIVISION = "a slow instruction"
    ROOT = "a slower one, or a short library function"
    LIBRARY = "a library function that works on several elements at once"


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of one function.

    Attributes
    ----------
    own : bool
        It is one of the library's, which only tracing or a transform writes into a program.
    memory : Memory
        Whether its result is a view of an argument.
    aliased : tuple of int, optional
        The positions of the arguments that the result may be a view of; None is all.
    several, read_only : bool
        It returns several arrays; arrays that may not be written.
    mirrored : bool
        On lanes, laid out as the argument is, the same call returns a view where this one does.
    layout : Layout
        The strides of the result.
    order_at : int, optional
        The position of ``order``.
    by_layout, reads_in_order, sees_strides : bool
        The argument's layout decides whether the result is a view; it decides the order in which
        elements are read, on request; it can be seen in the result.
    risk : Risk, optional
        What it may raise; None is what functions of its kind may.
    risk_alone : Risk, optional
        The same, of a call with one argument.
    shape_only : tuple of int
        The positions of arguments of which only shape and dtype count.
    lengths_of_values : tuple of int
        The positions of arguments on whose values lengths of the result depend.
    dtype_of_values, complex_of_values, real_of_values : bool
        The dtype of the result depends on values; that of real numbers does; of complex ones.
    square, rectangular : bool
        The last two lengths are equal; the smaller one is a length of the result.
    writes : tuple of int
        The positions of arguments that it writes into.
    writes_early, out_as_made : bool
        It writes into ``out`` before it has read all of its arguments; it takes only an ``out``
        that is like the array which it would make: of its dtype, C-contiguous.
    stands_for : callable, optional
        The function of NumPy's that an operator, a builtin or a method is called in place of.
    fill : float, optional
        What it makes arrays of; 0 where nothing may be read before it is written.
    reduction, accumulation : ufunc, optional
        The ufunc of which it is the ``reduce`` or the ``accumulate``.
    start : float, optional
        What a reduction of nothing may start with, where the ufunc has no identity.
    algebra, cost
        What it computes, and what that costs.
    piecewise_linear : bool
        Between its kinks it is linear in each argument, of real numbers.
    constant, constant_of_reals : bool
        Its result carries no tangent, whatever its arguments do; a real result carries none.
    gathers, passes : bool
        It makes one array of nested values; of a single value, it returns that.
    of_arrays : bool
        It takes arrays, one by one or in a list, of lengths that need not agree.
    moves, joins : bool
        The elements of the result are those of the argument; of several ones, side by side.
    made_of_values : bool
        It makes arrays of the values of its arguments.
    about_types : bool
        It returns what is known of types or shapes, not an array.
    on_bools : ufunc, optional
        The ufunc of bits that does the same on truth values.
    libm, simd : str
        Its name in C's mathematical library; that of the instruction on vectors.
    numba, numba_complex : bool
        Numba has it under the same name, with the same meaning for floats; for complex numbers.
    doubled : str
        The kinds of numbers of single precision of which compiled code makes doubles.
    device : bool
        ``numba.cuda`` has it under the same name, with the same meaning for floats.
    has_loop : bool
        It makes arrays of numbers alone, by a loop in compiled code.
    cannot_carry : str
        What it makes, if that cannot carry derivatives.
    outside, reads_file : bool
        It reads or writes files or global options; it returns what a file holds.
    writes_file : int, optional
        The position of the file that it writes.
    parameters : Parameters
        What it does with each argument, where it reads iterables, calls functions or changes lists.
    pure : bool
        It reads only its arguments, writes nothing, and calls or keeps none of them.
    special_method : str
        The method by which a class says what it does.
    takes_polynomials : bool
        It asks whether an argument is an ``np.poly1d``, and returns one then.
    """

    own: bool = False
    memory: Memory = Memory.NEW
    aliased: tuple[int, ...] | None = None
    several: bool = False
    read_only: bool = False
    mirrored: bool = False
    layout: Layout = Layout.UNKNOWN
    order_at: int | None = None
    by_layout: bool = False
    reads_in_order: bool = False
    sees_strides: bool = False
    risk: Risk | None = None
    risk_alone: Risk | None = None
    shape_only: tuple[int, ...] = ()
    lengths_of_values: tuple[int, ...] = ()
    dtype_of_values: bool = False
    complex_of_values: bool = False
    real_of_values: bool = False
    square: bool = False
    rectangular: bool = False
    writes: tuple[int, ...] = ()
    writes_early: bool = False
    out_as_made: bool = False
    stands_for: Callable[..., Any] | None = None
    fill: float | None = None
    reduction: np.ufunc | None = None
    accumulation: np.ufunc | None = None
    start: float | None = None
    algebra: Algebra | None = None
    cost: Cost | None = None
    piecewise_linear: bool = False
    constant: bool = False
    constant_of_reals: bool = False
    gathers: bool = False
    passes: bool = False
    of_arrays: bool = False
    moves: bool = False
    joins: bool = False
    made_of_values: bool = False
    about_types: bool = False
    on_bools: np.ufunc | None = None
    libm: str = ""
    simd: str = ""
    numba: bool = False
    numba_complex: bool = False
    doubled: str = ""
    device: bool = False
    has_loop: bool = False
    cannot_carry: str = ""
    outside: bool = False
    reads_file: bool = False
    writes_file: int | None = None
    parameters: Parameters = UNKNOWN
    pure: bool = False
    special_method: str = ""
    takes_polynomials: bool = False

    @property
    def may_be_view(self) -> bool:
        """Whether it is known to return a view, at least of some arguments."""
        return self.memory not in (Memory.UNKNOWN, Memory.NEW)

    @property
    def rearranges(self) -> bool:
        """Whether it returns a view of all elements, each once, in another shape or order."""
        return self.moves and self.memory is Memory.VIEW and not self.read_only

    @property
    def changes_list(self) -> bool:
        """Whether it changes a list, by comparing its items."""
        return Role.LIST in self.parameters.named.values()

    @property
    def copies(self) -> bool:
        """Whether it returns a copy of its argument."""
        return self.moves and self.passes and self.memory is Memory.NEW


_RECORDS: dict[Any, Record] = {}
_NAMED: dict[str, dict[str, Record]] = {}
"""Of functions in modules that are not imported for this, by their names and these modules."""

_UNKNOWN = Record(memory=Memory.UNKNOWN)


def op(*functions: Any, **columns: Any) -> None:
    """Record what holds for each of some functions."""
    record = Record(**columns)
    for f in functions:
        if f in _RECORDS:
            message = f"{f!r} has a record already"
            raise ValueError(message)
        _RECORDS[f] = record


def also(*functions: Any, **columns: Any) -> None:
    """Add to what is known of functions; of one without a record, nothing else is known."""
    for f in functions:
        _RECORDS[f] = replace(_RECORDS.get(f, _UNKNOWN), **columns)


def named(module: str, names: str, **columns: Any) -> None:
    """The same for functions of a module that is not imported for this."""
    for name in names.split():
        known = _NAMED.get(name, {}).get(module, _UNKNOWN)
        _NAMED.setdefault(name, {})[module] = replace(known, **columns)


def own_op(**columns: Any) -> Callable[[F], F]:
    """Record a function of the library's own, which raises nothing unless ``risk`` says so."""
    record = Record(own=True, risk=Risk.QUIET)

    def enter(f: F) -> F:
        _RECORDS[f] = replace(record, **columns)
        return f

    return enter


def of_numpy(*names: str) -> Iterator[Any]:
    """The functions of NumPy's with these names that this version has."""
    return (getattr(np, name) for name in names if hasattr(np, name))


def full_name(f: Any) -> str:
    """The name by which a function is imported; modules with an underscore are private."""
    home = (getattr(f, "__module__", None) or "").partition("._")[0]
    return f"{home}.{getattr(f, '__name__', '')}"


def record_of(f: Any) -> Record:
    """What is known of a function; nothing, if it has no record."""
    try:
        record = _RECORDS.get(f)
    except TypeError:  # a callable object without a hash
        return _UNKNOWN
    if record is not None:
        return record
    for module, known in _NAMED.get(getattr(f, "__name__", ""), {}).items():
        if getattr(sys.modules.get(module), f.__name__, None) is f:
            return known
    return _UNKNOWN


def is_of_polynomials(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether a function is given a polynomial of which it asks the class, besides its array."""
    return np.poly1d in map(type, args) and record_of(f).takes_polynomials


def functions_with(holds: Callable[[Record], bool]) -> list[Any]:
    """The functions for whose records something holds."""
    return [f for f, record in _RECORDS.items() if holds(record)]
