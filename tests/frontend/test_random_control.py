"""Random control flow, traced once and replayed: plain Python is the only reference."""

import importlib.util
import random
import sys

import numpy as np
import pytest

from fwdad.api.jit import jit
from fwdad.errors import UntraceableError
from tests.frontend.agreement import outcome, traced, wide
from tests.frontend.random_control import Author

A = np.array([0.5, -1.25, 2.0])
B = np.array([1.5, 0.25, -0.5])
C = np.array([-0.3, 0.8, 0.1, 2.0, 1.1])
ARGUMENTS = [(0.7, 3, A, B), (-1.2, 4, B, A), (2.5, 0, C, C[::-1]), (60.0, 1, A, B), (0.1, 2, B, A)]
SEEDS = [*range(8), *(pytest.param(k, marks=pytest.mark.slow) for k in range(8, 200))]


def load(source, name, folder):
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_control(seed, tmp_path):
    draws = random.Random(seed)
    done = 0
    for k in range(12):
        source = Author(draws).program(draws.randint(2, 6))
        name = f"random_control_{seed}_{k}"
        f = load(source, name, tmp_path)
        try:
            tape = traced(f, ARGUMENTS[k % 2])
        except UntraceableError:  # a list that is one of two: refused, never wrong
            continue
        finally:
            del sys.modules[name]
        done += 1
        compiled = jit(f, backend="numpy")
        for args in ARGUMENTS:
            wanted = outcome(f, args, wide)
            assert outcome(compiled, args, wide) == wanted, (args, source)
            try:
                found = outcome(tape, args, wide)
            except TypeError as error:  # written for other lengths or numbers
                assert "was traced for" in str(error)  # noqa: PT017
            else:
                assert found == wanted, (args, source)
    assert done >= 1
