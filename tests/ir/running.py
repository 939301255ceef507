"""Running tapes: their results bit by bit, and the exceptions."""

import copy

import numpy as np

from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.frontend.trace import trace
from fwdad.ir.check import check_program
from fwdad.ir.ops import walk


def traced(f, *args):
    tape = trace(f, *copy.deepcopy(args))
    check_program(tape.program)
    return tape


def bits(x):
    """A value as something that is equal only if type, dtype and every bit are."""
    if isinstance(x, (tuple, list)):
        return (type(x), *map(bits, x))
    if isinstance(x, (np.ndarray, np.generic)):
        return (type(x), x.dtype, x.shape, x.tobytes())
    if isinstance(x, float):
        return (float, np.float64(x).tobytes())
    return (type(x), x)


def run(tape, args):
    """What a tape returns and what it leaves in its arguments, or the exception that it raises."""
    args = copy.deepcopy(args)
    function = compiled(numpy_source(tape.program))
    leaves = [*args, *(copy.deepcopy(c.fetch()) for c in tape.captures)]
    try:
        found = tape.rebuild(list(function(*leaves)))
    except Exception as error:  # noqa: BLE001  (whatever it is, it is compared)
        return (type(error), str(error))
    return bits(found), bits(list(args))


def call(f, args):
    """The same of the Python function itself, for comparisons of values."""
    args = copy.deepcopy(args)
    return f(*args), args


def values(x):
    """The numbers in a result."""
    if isinstance(x, (tuple, list)):
        return [v for item in x for v in values(item)]
    return np.ravel(np.asarray(x, complex)).tolist()


def count(tape, function):
    """How many operations call a function."""
    return sum(getattr(op, "function", None) is function for op in walk(tape.program.block))
