"""The rooms: api -> drivers -> frontend -> codegen -> transforms -> ir -> rules -> tangents -> ops.

Beside them evaluation -> eager -> rules. All of that is read from the imports.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.file_list import file_list, summary
from tests.registries import named_functions, registries

ROOT = Path(__file__).parent.parent

# Each room imports from itself and from those with a smaller number.
LAYERS = {
    "errors": 0,
    "core": 0,
    "display": 1,
    "ops": 1,
    "tangents": 2,
    "rules": 3,
    "ir": 4,
    "eager": 4,
    "eager_reverse": 5,
    "evaluation": 5,
    "transforms": 6,
    "codegen": 7,
    "colouring": 8,
    "frontend": 8,
    "drivers": 9,
    "api": 10,
    "reversible": 11,
    "scipy": 11,
}
# These stand on the public API. Only they may import `fwdad` itself.
USERS = {"": 12, "compat": 13, "testing": 13, "examples": 13, "__main__": 14}
# These are loaded when somebody asks for them; before, only type checkers see them in `fwdad`.
WHEN_ASKED_FOR = {
    *(("fwdad", f"fwdad.{room}") for room in ("compat", "examples", "scipy", "testing")),
    *(("fwdad.compat", f"fwdad.compat.{library}") for library in ("autograd", "jax")),
}
# These see rules through their registry only.
ABOVE_THE_RULES = LAYERS.keys() - {"errors", "core", "ops", "tangents", "rules"}
# Whoever stands above the rules sees them through their registry and their transposes, never one
# rule.
REGISTRY = {"fwdad.rules"} | {
    f"fwdad.rules.core.{name}"
    for name in (
        *("registry", "define", "partials", "adjoints", "recording", "containers"),
        "reverse_rules",
        "contract",  # of rules, whichever they are
        "binding",  # of any function's arguments
        "by_position",  # of functions, whatever their rules
    )
}


# The rooms inside reversible/, and those that each imports; its own files are the face on top.
INSIDE_REVERSIBLE = {
    "numbers": set(),
    "containers": set(),
    "arguments": {"containers", "numbers"},
    "language": {"containers"},
    "lowering": {"language", "arguments", "containers", "numbers"},
}


def module_name(path, package):
    """The dotted name of a file of the package."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module):
    """The entry of the tables that a module belongs to: fwdad.rules.linalg is in `rules`."""
    return module.split(".")[1] if "." in module else ""


def read_imports(path, package, modules):
    """Yield (line, module) for each import of the package in one file, wherever it stands."""
    importer = module_name(path, package)
    own_package = importer if path.name == "__init__.py" else importer.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = own_package.split(".")[: len(own_package.split(".")) - node.level + 1]
                base = ".".join([*up, *([base] if base else [])])
            # `from fwdad import errors` imports a module, `from fwdad import jvp` the package
            inner = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name in modules else base for name in inner]
        elif (
            isinstance(node, ast.Call)
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and ast.unparse(node.func) in {"importlib.import_module", "import_module", "__import__"}
        ):
            names = [node.args[0].value]
        else:
            continue
        for name in names:
            if name.split(".")[0] == package.name:
                yield node.lineno, name


def find_wrong_arrows(package):
    """Every import against the arrows, as `file:line: why`."""
    paths = sorted(package.rglob("*.py"))
    modules = {module_name(path, package) for path in paths}
    rank = LAYERS | USERS
    wrong = []
    for path in paths:
        importer = module_name(path, package)
        part = part_of(importer)
        if part not in rank:
            wrong.append(f"{path.name}: {importer} has no layer: give it one in this test")
            continue
        for line, imported in read_imports(path, package, modules):
            target = part_of(imported)
            where = f"{path.relative_to(package)}:{line}: {importer} imports {imported}"
            if (importer, imported) in WHEN_ASKED_FOR:
                continue
            if target not in rank or (target != part and rank[target] >= max(rank[part], 1)):
                wrong.append(f"{where}, against the arrow")
            elif target == "rules" and part in ABOVE_THE_RULES and imported not in REGISTRY:
                wrong.append(f"{where}, but sees rules through their registry only")
    return wrong


def test_arrows():
    package = ROOT / "fwdad"
    parts = {part_of(module_name(path, package)) for path in package.rglob("*.py")}
    assert parts >= LAYERS.keys() | USERS.keys(), "a layer is gone: was it renamed?"
    assert find_wrong_arrows(package) == []


def find_circles(package):
    """Groups of modules that import one another, also inside functions or for types alone."""
    modules = {module_name(path, package) for path in package.rglob("*.py")}
    imports = {
        module_name(path, package): {
            imported
            for _, imported in read_imports(path, package, modules)
            if imported in modules and (module_name(path, package), imported) not in WHEN_ASKED_FOR
        }
        for path in package.rglob("*.py")
    }
    while imports:  # what imports none of the others is in no circle, nor what none imports
        used = set().union(*imports.values())
        outer = {m for m, of in imports.items() if not (of & imports.keys() - {m}) or m not in used}
        if not outer:
            return sorted(imports)
        imports = {m: of - outer for m, of in imports.items() if m not in outer}
    return []


def test_no_module_imports_itself_over_others():
    assert find_circles(ROOT / "fwdad") == []


def test_circles_are_found(planted):
    planted("eager/build.py", "def f():\n    from fwdad.eager import run")
    planted(
        "eager/run.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import build",
    )
    assert set(find_circles(planted.package)) >= {"fwdad.eager.build", "fwdad.eager.run"}


# Registries that other modules fill when they are imported, and what they enter there. Through any
# other one a module would know what imports it.
PLUG_IN_POINTS = {
    # what is known of a function, or done for it, by whoever knows the function
    "fwdad.ops.record._RECORDS": "facts",
    "fwdad.ops.record._NAMED": "facts of functions whose modules are not imported for this",
    "fwdad.rules.core.adjoints.TRANSPOSES": "transposes",
    "fwdad.rules.core.adjoints.TAKE_ARRAYS": "transposes that need arrays",
    "fwdad.rules.core.registry._PENDING": "rules for modules that are not imported yet",
    "fwdad.tangents.chunk.LAWS": "how a function acts on a chunk",
    "fwdad.tangents.registrations._LAZY": "classes of modules that are not imported yet",
    "fwdad.codegen.loops.arrays.functions.HANDLERS": "how a function is written as loops",
    "fwdad.codegen.passes.decompositions._EXPANSIONS": "decompositions",
    "fwdad.transforms.sparsity.structures.STRUCTURES": "which elements a function's result needs",
    "fwdad.reversible.language.call_parser._CONTRACTS": "checks of calls of a function",
    "fwdad.core.generated_source.TRACES": "where a trace is: errors, below it, name that line",
    # what a call or a class means to lifted code, or to a trace
    "fwdad.eager.calls.dispatch.HANDLERS": "calls of a function",
    "fwdad.eager.calls.dispatch._BY_TYPE": "calls of objects of a class",
    "fwdad.eager.lifting.lift._CELLS": "the hooks, which themselves call lifted code",
    "fwdad.frontend.calls.tables.BUILTINS": "calls of a function",
    "fwdad.frontend.calls.tables.CALLED": "calls of objects of a class",
    "fwdad.frontend.calls.tables.METHODS_OF": "methods of a class",
    "fwdad.frontend.calls.tables.ATTRIBUTES_OF": "attributes of a stand-in",
    "fwdad.frontend.syntax.bound_methods.METHODS": "methods of arrays",
    "fwdad.frontend.syntax.iteration.OVER": "loops over a stand-in",
    "fwdad.frontend.numpy_sources.table.SOURCES": "sources of NumPy's functions",
    "fwdad.evaluation.by_tape._BY_TAPE": "derivatives by tapes, which drivers keep",
    "fwdad.evaluation.by_tape._ASKED": "what a call of an evaluator of the drivers asks of a tape",
    # who is told of events
    "fwdad.rules.core.registry._ON_CHANGE": "caches, which drop what was built from older rules",
    "fwdad.rules.core.registry._ON_WRITER": "reverse rules of functions that write",
    "fwdad.core.fallbacks._FOR_PROGRAMS": "functions that raise what the user's program would",
    "fwdad.evaluation.transformed._WRITERS": "derivatives that are written into `out`",
    "fwdad.ir.abstract_eval.infer._BY_SOURCE": "the tracer, which infers types from sources",
}


def parsed(package):
    return {
        module_name(path, package): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


@pytest.fixture(scope="module")
def trees():
    return parsed(ROOT / "fwdad")


def test_registries_that_others_fill(trees):
    found = registries(trees)
    assert found.keys() == PLUG_IN_POINTS.keys(), "import it, pass it, or say here what it is for"


@pytest.mark.parametrize(
    "filling",
    [
        "from fwdad.tangents.chunk import CALL\nCALL[:] = [print]",
        "from fwdad.tangents.chunk import CALL\nCALL.append(print)",
        "from fwdad.tangents import chunk\nchunk.CALL[0] = print",
        "from fwdad.tangents import chunk\nchunk.CALL = [print]",
        "from fwdad.tangents.chunk import calls\n@calls\ndef call(f): return f()",
        "from fwdad.tangents.chunk import calls\nfor f in (print,):\n    calls(f)",
        "from fwdad.tangents import chunk\nchunk.named(call=print)",
        "from fwdad.tangents.chunk import CALL\nCALL[0].setdefault('a', []).append(print)",
    ],
)
def test_filled_registries_are_found(planted, filling):
    planted(
        "tangents/chunk.py",
        "CALL = []\n"
        "def calls(f):\n    CALL.append(f)\n    return f\n"
        "def named(**calls):\n    CALL.extend(calls.values())\n"
        "def kept(n):\n    key = (n,)\n    CALL.append(key)",
    )
    planted(
        "eager/run.py", "from fwdad.tangents.chunk import kept\nkept(1)\nMINE = []\nMINE.append(1)"
    )
    assert registries(parsed(planted.package)) == {}
    planted("eager/build.py", filling)
    assert registries(parsed(planted.package)) == {
        "fwdad.tangents.chunk.CALL": {"fwdad.eager.build"}
    }


def test_no_function_is_known_by_its_name(trees):
    assert named_functions(trees) == []


@pytest.mark.parametrize(
    "source",
    [
        'def f(op):\n    return op.__name__ == "_identity"',
        'def f(op):\n    return getattr(op, "__qualname__", "") in {"sin", "length_of"}',
        'OURS = ("length_of", "_identity")\ndef f(op):\n    return own_function(op) not in OURS',
        'OURS: dict = {"length_of": 1}\ndef f(op):\n    return OURS.get(getattr(op, "__name__"))',
        'OURS = {"_identity": 1}\ndef f(op):\n    return OURS[op.__name__]',
    ],
)
def test_names_of_functions_are_found(planted, source):
    planted(
        "tangents/chunk.py", "def _identity(x): return x\n@own_op()\ndef length_of(x): return 1"
    )
    planted("eager/run.py", 'def f(op):\n    return op.__name__ == "sin" or op.kind == "_identity"')
    assert named_functions(parsed(planted.package)) == []
    planted("eager/build.py", source)
    assert [place.partition(":")[0] for place in named_functions(parsed(planted.package))] == [
        "fwdad.eager.build"
    ]


def test_arrows_inside_reversible():
    package = ROOT / "fwdad"
    modules = {module_name(path, package) for path in package.rglob("*.py")}
    for room, below in INSIDE_REVERSIBLE.items():
        for path in (package / "reversible" / room).rglob("*.py"):
            for line, imported in read_imports(path, package, modules):
                if imported.startswith("fwdad.reversible"):
                    target = imported.split(".")[2]
                    assert target in below | {room}, f"{path}:{line} imports {imported}"


@pytest.fixture
def planted(tmp_path):
    """A small package of the same layout, and a function that puts one file into it."""
    package = tmp_path / "fwdad"

    def plant(name, source):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
        return find_wrong_arrows(package)

    names = ("__init__", "evaluation/evaluators", "errors", "tangents/chunk", "rules/core/define")
    for name in (*names, "rules/linalg"):
        plant(f"{name}.py", "")
    for name in ("tangents", "rules", "rules/core", "eager", "evaluation"):
        plant(f"{name}/__init__.py", "")
    plant.package = package
    return plant


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (
            "__init__.py",
            "from fwdad.evaluation.evaluators import jvp\nfrom fwdad.rules.linalg import solve",
        ),
        ("evaluation/evaluators.py", "import fwdad.errors\nfrom fwdad.eager import build_frule"),
        (
            "eager/build.py",
            "from fwdad.rules.core.define import frule\nfrom ..tangents import chunk",
        ),
        ("rules/linalg.py", "from .registry import enter\nfrom fwdad import errors"),
        ("testing.py", "import fwdad\nfrom fwdad import jvp"),
        ("examples/demo.py", "import fwdad\nfrom fwdad.examples import pollu"),
        ("__main__.py", "def main():\n    from fwdad.examples import demo"),
        ("errors.py", "import numpy as fwdad_is_a_name_only"),
    ],
)
def test_right_arrows_pass(planted, name, source):
    assert planted(name, source) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("errors.py", "import fwdad"),
        ("errors.py", "from fwdad import jvp"),
        ("errors.py", "from fwdad.tangents.chunk import Chunk"),
        ("errors.py", "from . import tangents"),
        ("tangents/chunk.py", "from ..rules import registry"),
        ("tangents/chunk.py", "from fwdad import rules"),
        ("rules/linalg.py", "def rule():\n    from fwdad.eager import dispatch"),
        ("rules/linalg.py", "import importlib\nimportlib.import_module('fwdad.eager')"),
        ("eager/build.py", "import numpy, fwdad.evaluation.evaluators"),
        ("eager/build.py", "from fwdad.rules.linalg import solve_frule"),
        ("eager/build.py", "from fwdad.rules import linalg"),
        ("evaluation/evaluators.py", "from fwdad.testing import check_frule"),
        ("evaluation/evaluators.py", "from .. import testing"),
        ("testing.py", "from fwdad.__main__ import main"),
        ("utils.py", ""),
    ],
)
def test_wrong_arrows_are_found(planted, name, source):
    found = planted(name, source)
    assert len(found) == 1, found
    assert Path(name).name in found[0]


def test_import_is_light():
    """Optional and heavy packages are imported by who needs them, when they do."""
    heavy = {"numba", "pandas", "matplotlib", "scipy.stats", "jax", "torch", "hypothesis", "pytest"}
    code = f"import sys, fwdad; print(*sorted({heavy!r} & set(sys.modules)))"
    # -W error: the import itself is silent, too
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_import_test_sees_heavy_modules():
    """The test above can fail: the same question about what is loaded has a result."""
    wanted = "{'numpy', 'fwdad.evaluation.evaluators'}"
    code = f"import sys, fwdad; print(*sorted({wanted} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fwdad.evaluation.evaluators", "numpy"]


def test_package_is_typed():
    assert (ROOT / "fwdad" / "py.typed").is_file()


def test_every_file_is_listed():
    found = (ROOT / "fwdad" / "FILES.md").read_text(encoding="utf-8")
    assert found == file_list(), "run `python -m tests.file_list`"


def test_every_room_says_what_it_is_for():
    for path in (ROOT / "fwdad").rglob("__init__.py"):
        assert summary(path), path
