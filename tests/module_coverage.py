"""Which modules are not run by the tests that `tests/modules.py` has for them.

``python -m tests.module_coverage [room ...]``, with `coverage` installed, runs some tests of each
file that is named there, and prints the modules of which they run less than half: of the lines
inside functions, since the others run when a module is imported. It ends with 1 if there are any.
What runs in other processes, or compiled, is not seen, and left out.
"""

import ast
import random
import sys
from collections import defaultdict

import coverage
import pytest

from tests.modules import FWDAD, TESTS, files_of

SAMPLE = 60  # tests of a file
ENOUGH = 0.5
UNSEEN = ("codegen/runtime/", "codegen/test_parallel.py", "reversible/test_cuda.py")


class Sample:
    """A plugin of pytest: few tests of each file, first one of each test function."""

    def __init__(self, measured):
        self.measured = measured

    def pytest_collection_modifyitems(self, items):
        files = defaultdict(lambda: defaultdict(list))
        for item in items:
            files[item.path][item.originalname].append(item)
        items.clear()
        for functions in files.values():
            for tests in functions.values():
                random.Random(0).shuffle(tests)
            rounds = (tests[k : k + 1] for k in range(SAMPLE) for tests in functions.values())
            items += [test for tests in rounds for test in tests][:SAMPLE]

    def pytest_runtest_logstart(self, nodeid):
        self.measured.switch_context(nodeid.split("::")[0].removeprefix("tests/"))


def lines_of_functions(module):
    """The first lines of the statements that stand inside functions."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse((FWDAD / module).read_text(encoding="utf-8"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, functions)]
    inside = [s for body in bodies for part in body for s in ast.walk(part)]
    return {s.lineno for s in inside if isinstance(s, ast.stmt) and not _is_docstring(s)}


def _is_docstring(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def run(rooms):
    """The share of each module that its tests run."""
    modules = sorted(p.relative_to(FWDAD) for p in FWDAD.rglob("*.py") if p.name != "__init__.py")
    modules = [m for m in modules if not rooms or m.parts[0] in rooms]
    modules = [m for m in modules if not any(n.startswith(UNSEEN) for n in (str(m), *files_of(m)))]
    files = sorted({file for m in modules for file in files_of(m)})
    measured = coverage.Coverage(data_file=None, source=[str(FWDAD)], config_file=False)
    measured.start()
    measured.switch_context("import")
    pytest.main(["-q", *(str(TESTS / file) for file in files)], plugins=[Sample(measured)])
    measured.stop()
    data, shares = measured.get_data(), {}
    for module in modules:
        data.set_query_contexts([f"^{file}$" for file in files_of(module)])
        inside = lines_of_functions(module)
        executed = inside & set(data.lines(str(FWDAD / module)) or ())
        shares[module] = len(executed) / len(inside) if inside else 1.0
    return shares


if __name__ == "__main__":
    few = {m: share for m, share in run(sys.argv[1:]).items() if share < ENOUGH}
    for module, share in few.items():
        print(f"{share:4.0%}  {module}: {', '.join(files_of(module))}")
    sys.exit(bool(few))
