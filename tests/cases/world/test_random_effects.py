"""Random programs with effects: after a derivative the world is as one plain call leaves it.

A program is run anew for each call, in a world of its own; the plain call is the only reference.
"""

import contextlib
import io
import logging
import random
import re
import traceback

import numpy as np
import pytest

import fwdad
from fwdad.eager.memory.shadow import SHADOWED
from tests.cases.world import transforms
from tests.cases.world.programs import Kept, files, said
from tests.cases.world.random_effects import PROLOGUE, Author
from tests.cases.world.seen import world_after
from tests.cases.world.test_compiled_effects import WAYS
from tests.cases.world.transforms import COMPILED, DERIVATIVES, LOOKS, V
from tests.differences import central_differences
from tests.written_programs import compiled

X = np.array([0.7, 1.3, 2.1, 0.4, 1.6])
POINTS = [X, X[::-1].copy(), -0.5 * X, X]  # at which branches go other ways


class Program:
    """The source of a seed; each of its worlds is made anew."""

    def __init__(self, seed, folder):
        draws = random.Random(seed)
        source = Author(draws).program(draws.randint(1, 6))
        self.text = source.removeprefix(PROLOGUE)
        folder.mkdir(parents=True, exist_ok=True)
        self.code, self.folder = compiled(source, folder), folder / "world"

    def make(self, folder):
        names = {"PLACE": str(folder), "__name__": "tests_world_random"}
        exec(self.code, names)
        logger, handler = logging.getLogger("tests.world.random"), Kept()
        logger.handlers[:], logger.propagate = [handler], False
        logger.setLevel(logging.DEBUG)

        def look():
            held, draws, text = names["look"]()
            return said(list(held)), said(list(draws)), text, handler.records, files(folder)

        return names["f"], look

    def after(self, run):
        """What a run returns, or raises, and what it leaves."""

        def tried(f):
            try:
                return run(f)
            except Exception as error:  # noqa: BLE001 - it is compared
                return error

        answer, world = world_after(self.make, self.folder, tried)
        assert not SHADOWED
        return answer, world


def unlike(found, wanted):
    """The innermost parts in which two worlds differ."""
    if (
        isinstance(found, (tuple, list))
        and type(found) is type(wanted)
        and len(found) == len(wanted)
    ):
        return [pair for two in zip(found, wanted, strict=True) for pair in unlike(*two)]
    return [] if found == wanted else [(found, wanted)]


def same(found, wanted, what, source):
    assert found == wanted, f"{what}: {unlike(found, wanted)}\n{source}"


def like(found, wanted, *, words=True):
    """Whether one exception is the other; the words of compiled code may be others."""
    if not isinstance(wanted, Exception):
        return not isinstance(found, Exception)
    return type(found).__name__ == type(wanted).__name__ and (
        not words or found.args == wanted.args
    )


def told(found):
    return "".join(traceback.format_exception(found)) if isinstance(found, Exception) else found


def check_derivatives(program):
    wanted, plain = program.after(lambda f: f(X.copy()))
    gradient = None
    if not isinstance(wanted, Exception):
        with contextlib.suppress(ArithmeticError):  # a branch within the step
            gradient = central_differences(lambda x: program.after(lambda f: f(x))[0], X)
    for name, transform in DERIVATIVES.items():
        x = X.copy()
        found, derived = program.after(lambda f, t=transform, x=x: t(f, x))
        assert like(found, wanted), f"{name}: {told(found)}\n{program.text}"
        same(derived, plain, name, program.text)
        assert x.tobytes() == X.tobytes()
        if gradient is not None:
            check_value(name, found, wanted, gradient)


def check_value(name, found, value, gradient):
    """The first derivatives."""
    if name in ("hessian", "hvp", "nested"):
        return
    if name == "jvp":
        expected = value, gradient @ V[:5]
    elif name == "jvp of three":
        expected = value, gradient[:3]
    elif name == "value_and_grad":
        expected = value, gradient
    elif name == "linearize":
        expected = gradient @ V[:5], gradient, gradient
    elif name == "vjp":
        expected = gradient, 2.0 * gradient
    else:
        expected, found = (gradient,), (found,)
    for one, other in zip(found, expected, strict=True):
        one, other = np.ravel(one), np.ravel(other)
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6, err_msg=name)


def check_looks(program):
    _, before = program.after(lambda _f: None)
    for name, look in LOOKS.items():
        _, after = program.after(lambda f, look=look: look(f, X.copy()))
        same(after, before, name, program.text)


NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]\d+)?|-?\d+e[+-]\d+")


def rounded(world):
    """A world but for last bits, and the types of numbers: compiled code has its own sines."""
    if isinstance(world, tuple) and world[:1] == ("array",):
        world = np.frombuffer(world[3], world[1]).tolist()
    elif isinstance(world, tuple) and len(world) == 2 and world[0] in ("float", "float64"):
        world = float(world[1].removeprefix("np.float64(").removesuffix(")"))
    elif isinstance(world, bytes) and world.startswith(b"\x93NUMPY"):
        world = np.load(io.BytesIO(world)).tolist()
    if isinstance(world, (tuple, list)):
        return [rounded(part) for part in world]
    if isinstance(world, dict):
        return {key: rounded(part) for key, part in world.items()}
    if isinstance(world, (bytes, str)):
        text = world.decode("latin-1") if isinstance(world, bytes) else world
        return NUMBER.sub(lambda found: str(rounded(float(found[0]))), text)
    return float(f"{world:.9g}") + 0.0 if isinstance(world, float) else world


def check_compiled(program, ways):
    """Effects are those of plain calls, or the program is refused with a line of the user's."""
    wanted, plain = program.after(lambda f: f(X.copy()))
    _, before = program.after(lambda _f: None)
    ran = 0
    for name, way in ways.items():
        found, after = program.after(lambda f, way=way: way(f, X.copy()))
        said = f"{name}: {told(found)}\n{program.text}"
        if isinstance(found, fwdad.errors.FwdadError):
            assert isinstance(found, fwdad.errors.UntraceableError), said
            assert found.filename in (program.code.co_filename, transforms.__file__), said
            same(after, before, name, program.text)
            continue
        ran += 1
        assert like(found, wanted, words=False), said
        same(rounded(after), rounded(plain), name, program.text)
    return ran


def each_call(f):
    """What each call raises; the next one is made all the same."""
    raised = []
    for x in POINTS:
        try:
            f(x.copy())
        except fwdad.errors.UntraceableError:
            raise
        except Exception as error:  # noqa: BLE001 - it is compared
            raised.append(type(error).__name__)
        else:
            raised.append(None)
    return raised


def check_calls(program, names):
    """One compiled function, called at several points."""
    wanted, plain = program.after(each_call)
    for name in names:
        found, after = program.after(lambda f, way=WAYS[name]: each_call(way(f)))
        if isinstance(found, fwdad.errors.UntraceableError):
            continue
        assert found == wanted, f"{name}: {told(found)}\n{program.text}"
        same(rounded(after), rounded(plain), name, program.text)


def seeds(short, most):
    return [
        *short,
        *(pytest.param(k, marks=pytest.mark.slow) for k in range(most) if k not in short),
    ]


@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
@pytest.mark.parametrize("seed", seeds((1, 3), 150))
def test_derivatives(seed, tmp_path):
    check_derivatives(Program(seed, tmp_path))


@pytest.mark.parametrize("seed", seeds((1, 5), 100))
def test_looks(seed, tmp_path):
    check_looks(Program(seed, tmp_path))


BY_NUMPY = {name: way for name, way in COMPILED.items() if name not in ("jit", "jit(grad)")}


@pytest.mark.parametrize("seed", seeds((8, 19), 150))
def test_compiled(seed, tmp_path):
    program = Program(seed, tmp_path)
    check_compiled(program, BY_NUMPY)
    check_calls(program, ("jit, numpy", "jit(grad), numpy"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 120, 3))
def test_compiled_by_numba(seed, tmp_path):
    check_compiled(Program(seed, tmp_path), {name: COMPILED[name] for name in ("jit", "jit(grad)")})


def test_many_programs_are_traced(tmp_path):
    """Else the tests of compiled code would be of refusals."""
    way = {"jit, numpy": COMPILED["jit, numpy"]}
    assert sum(check_compiled(Program(k, tmp_path / str(k)), way) for k in range(10)) >= 3
