"""A program traced once and replayed: every bit, type and exception is plain Python's."""

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.frontend.syntax.loops import TraceWarning
from fwdad.frontend.trace import trace
from fwdad.ir.check import check_program


@dataclass
class Program:
    """A function, the arguments that it is traced at, and those that it is replayed at."""

    f: Any
    example: tuple
    replays: tuple
    widens: bool = False

    def __str__(self):
        return self.f.__name__


class Programs(list):
    """A table of programs; an instance is a decorator that enters one."""

    def __call__(self, example, *replays):
        def enter(f):
            self.append(Program(f, example, replays))
            return f

        return enter

    def widening(self, example, *replays):
        """Enter a program whose tape returns the widest of the types of its ways."""

        def enter(f):
            self.append(Program(f, example, replays, widens=True))
            return f

        return enter


def bits(x):
    """A value as something that is equal only if structure, types and every bit are."""
    if isinstance(x, (tuple, list)):
        return (type(x), *map(bits, x))
    if isinstance(x, dict):
        return (type(x), *((key, bits(item)) for key, item in x.items()))
    if isinstance(x, (np.ndarray, np.generic)):
        return (type(x), x.dtype, x.shape, x.tobytes())
    if isinstance(x, (float, complex)):
        return (type(x), np.asarray(x).tobytes())
    if x is None or isinstance(x, (bool, int, str, set, frozenset, type)) or callable(x):
        return (type(x), x)
    slots = [s for cls in type(x).__mro__ for s in getattr(cls, "__slots__", ())]
    held = {**getattr(x, "__dict__", {}), **{s: getattr(x, s) for s in slots if hasattr(x, s)}}
    return (type(x), bits(held))


def wide(x):
    """A value with all numbers as complex ones: equal if they are, whatever their types."""
    if isinstance(x, (tuple, list)):
        return (type(x), *map(wide, x))
    if isinstance(x, dict):
        return (type(x), *((key, wide(item)) for key, item in x.items()))
    return bits(complex(x)) if isinstance(x, (int, float, complex, np.generic)) else bits(x)


def outcome(f, args, bits=bits):
    """What a call returns or raises, and what it leaves in its arguments."""
    args = copy.deepcopy(args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", TraceWarning)
        try:
            answer = bits(f(*args))
        except Exception as error:
            if type(error) is TypeError and "was traced for" in str(error):
                raise
            answer = type(error)
    return answer, bits(args)


def traced(f, args):
    """The checked tape of a function."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TraceWarning)
        tape = trace(f, *copy.deepcopy(args))
    check_program(tape.program)
    return tape


def assert_agrees(program):
    """The program's one tape does at all its arguments what Python does."""
    tape = traced(program.f, program.example)
    as_bits = wide if program.widens else bits
    for args in (program.example, *program.replays):
        found, wanted = (outcome(f, args, as_bits) for f in (tape, program.f))
        assert found == wanted, (args, str(tape))
