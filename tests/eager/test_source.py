"""A function's definition is found by its code object, and believed only if it is its own."""

import ast
import functools
import importlib.util
import linecache
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fwdad
from fwdad.eager.lifting.carried import Text, key_of, receive
from fwdad.eager.lifting.source import find_source


def found(f):
    source = find_source(f)
    return None if source is None else ast.unparse(source.node)


def test_lambdas_on_one_line():
    f, g = lambda x: x * 2, lambda x: x * 3
    assert found(f) == "lambda x: x * 2"
    assert found(g) == "lambda x: x * 3"


def test_lambdas_that_return_constants_on_one_line():
    f, g, h, k = lambda x: 1.0, lambda x: -1.0, lambda x: x, lambda x: 1
    assert found(f) == "lambda x: 1.0"
    assert found(g) == "lambda x: -1.0"
    assert found(h) == "lambda x: x"
    assert found(k) == "lambda x: 1"


def test_lambdas_whose_columns_nobody_knows(tmp_path):
    program = (
        "import fwdad, inspect\n"
        "from fwdad.eager.lifting.source import find_source\n"
        "def make(c):\n"
        "    return lambda x: c * x, lambda x: c + x, lambda x: 2 * x, lambda x: 3 * x\n"
        "*closed, two, three = make(5.0)\n"
        "assert find_source(two).node.body.left.value == 2\n"
        "assert find_source(three).node.body.left.value == 3\n"
        "assert [find_source(f) for f in closed] == [None, None]\n"
        "assert [fwdad.derivative(f, 1.0) for f in make(5.0)] == [5.0, 1.0, 2.0, 3.0]\n"
    )
    path = tmp_path / "program.py"
    path.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(fwdad.__file__).parents[1])}
    command = [sys.executable, "-X", "no_debug_ranges", path]
    subprocess.run(command, check=True, env=environment)


def test_lambdas_inside_lambdas():
    three = lambda a: lambda b: lambda c: a * b * c  # noqa: E731
    assert found(three) == "lambda a: lambda b: lambda c: a * b * c"
    assert found(three(1)) == "lambda b: lambda c: a * b * c"
    assert found(three(1)(2)) == "lambda c: a * b * c"


def test_lambda_over_several_lines():
    f = lambda x: (  # noqa: E731
        x * 2
    )
    assert found(f) == "lambda x: x * 2"


def test_identical_lambdas_on_one_line():
    f, g = lambda x: x * 2, lambda x: x * 2
    assert found(f) == found(g) == "lambda x: x * 2"
    assert fwdad.derivative(f, 3.0) == fwdad.derivative(g, 3.0) == 2.0


def tripled(f):
    @functools.wraps(f)
    def wrapper(x):
        return 3 * f(x)

    return wrapper


@tripled
@tripled
def decorated(x):
    return x * x


def test_wrapper_is_not_mistaken_for_what_it_wraps():
    assert found(decorated).startswith("@functools.wraps(f)\ndef wrapper")
    assert found(decorated.__wrapped__.__wrapped__).startswith("@tripled")
    assert fwdad.derivative(decorated, 2.0) == 36.0


class Outer:
    class Inner:
        def method(self):
            return self

    def method(self):
        return 1


def test_methods_know_their_classes():
    assert find_source(Outer.Inner.method).classes == ("Outer", "Inner")
    assert find_source(Outer.method).classes == ("Outer",)
    assert found(Outer.method) == "def method(self):\n    return 1"


def test_redefined_on_the_same_line_and_name():
    functions = [eval(f"lambda x: x * {k}") for k in (2, 3)]
    assert [found(f) for f in functions] == [None, None]
    assert [fwdad.derivative(f, 1.0) for f in functions] == [2.0, 3.0]


def write(folder, name, text):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, path


AWKWARD = '''
class Holder:
    text = """
def inside_a_string(x):
"""

    def first(self, x):
        """Text
at the margin."""
        return self.__private + x  # mangled with the name of the class

# a comment at the margin
    def second(self, x):
        return [
x,
            lambda y: (
y + x
            ),
]

if True:
    def third(x):
        return x
else:
    def third(x):
        return -x

fourth, fifth = (
lambda x: x + 1,
lambda x: (x
* 2),
)

def outer(a):
    """
def not_a_function(x):
    """
    def sixth(x):
        return a * x

    return sixth

def seventh(x): return """
at the end""" * x
'''


def test_lines_that_begin_like_statements(tmp_path):
    module, _ = write(tmp_path, "awkward_lines", AWKWARD)
    whole = {
        (node.lineno, getattr(node, "name", "<lambda>")): ast.dump(node, include_attributes=True)
        for node in ast.walk(ast.parse(AWKWARD))
        if isinstance(node, (ast.FunctionDef, ast.Lambda))
    }
    holder = module.Holder()
    functions = (
        module.Holder.first, module.Holder.second, holder.second(1)[1], module.third,
        module.fourth, module.fifth, module.outer, module.outer(2), module.seventh,
    )  # fmt: skip
    for f in functions:
        source = find_source(f)
        key = (f.__code__.co_firstlineno, f.__name__)
        assert ast.dump(source.node, include_attributes=True) == whole[key]
        inside = f in functions[:3]
        assert source.classes == (("Holder",) if inside else ())


def test_changed_file_counts_as_sourceless(tmp_path):
    module, path = write(tmp_path, "changes_on_disk", "def f(x):\n    return 2 * x\n")
    path.write_text("def f(x):\n    return 5 * x\n")
    linecache.checkcache(str(path))
    assert found(module.f) is None
    assert fwdad.derivative(module.f, 1.0) == 2.0


def test_reloaded_file_has_its_new_source(tmp_path):
    module, path = write(tmp_path, "reloads", "def f(x):\n    return 2 * x\n")
    assert fwdad.derivative(module.f, 1.0) == 2.0
    path.write_text("def f(x):\n\n    return 7 * x\n")
    linecache.checkcache(str(path))
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    assert fwdad.derivative(module.f, 1.0) == 7.0


def test_missing_file_counts_as_sourceless(tmp_path):
    module, path = write(
        tmp_path, "is_removed", "import numpy as np\ndef f(x):\n    return np.sin(x) * 2\n"
    )
    path.unlink()
    linecache.checkcache(str(path))
    assert found(module.f) is None
    x = np.array([0.3, 0.4])
    np.testing.assert_allclose(fwdad.jacobian(module.f, x), np.diag(2 * np.cos(x)))


def test_future_annotations_are_kept(tmp_path):
    text = """from __future__ import annotations

def f(x: Missing) -> Nothing:
    y: Unknown = 2 * x
    return y
"""
    module, _ = write(tmp_path, "with_future", text)
    assert find_source(module.f).flags
    assert fwdad.derivative(module.f, 1.0) == 2.0


@pytest.mark.parametrize("text", ["", "def g(x): return x\n", "def f(x:\n"])
def test_file_without_the_function(tmp_path, text):
    module, path = write(tmp_path, "is_replaced", "def f(x):\n    return 2 * x\n")
    path.write_text(text)
    linecache.checkcache(str(path))
    assert found(module.f) is None


def test_what_came_with_a_pickle_from_another_file():
    f, _ = lambda x: x + 1, None
    key = key_of(f.__code__)
    lines = ((f.__code__.co_firstlineno - 1, "f = lambda x: x * 2\n"),)
    held = receive((Text("elsewhere.py", lines, frozenset({key}), frozenset()),))
    assert found(f) == "lambda x: x + 1"
    assert held.texts(key)


def test_threads_parse_at_once():
    """gh-106905: Python counted the nesting of what two threads parse together."""
    script = textwrap.dedent(
        """
        import gc, threading, time
        from fwdad.eager.lifting import source

        class Slow:
            def __del__(self):
                time.sleep(0)  # lets another thread run

        lines = ["def f(x):\\n", "    return [x, (x + 1) * 2, {1: x}]\\n"] * 100
        errors = []

        def parse():
            try:
                for _ in range(50):
                    slow = Slow()
                    slow.itself = slow
                    del slow
                    source._MODULES.clear()
                    assert source._module("a.py", lines, 0, len(lines)) is not None
            except BaseException as error:
                errors.append(error)

        gc.set_threshold(200, 1, 1)
        threads = [threading.Thread(target=parse) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not errors, errors
        assert gc.isenabled()
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
