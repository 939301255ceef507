"""Programs as Numba has them: what they return, and their text."""

from fwdad.codegen.call_entry import compile_program
from fwdad.frontend.trace import trace
from fwdad.transforms.passes import optimise


def prepared(f, *example):
    """The compiled program of a function, which must not fall back on NumPy, and its text."""
    tape = trace(f, *example)
    optimise(tape.program)
    made = compile_program(tape.program)

    def call(*args):
        captured = [c.fetch() for c in tape.captures]
        y = tape.rebuild(list(made.call(*args, *captured)))
        assert made.backend == "numba", made.left
        return y

    return call, made.source.text
