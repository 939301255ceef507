"""The layers: evaluators -> builder -> rules -> tangents -> errors, read from the imports.

Beside them compilation -> tracing -> backends -> tape -> rules.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Each layer imports from itself and from the layers above it in this table.
LAYERS = {
    "errors": 0,
    "entering": 0,
    "put_back": 0,
    "generated": 0,
    "defects": 0,
    "debuggers": 0,
    "tracebacks": 0,
    "tangents": 1,
    "rules": 2,
    "tape": 3,
    "reverse": 4,
    "backends": 4,
    "builder": 5,
    "recorded": 6,
    "arguments": 6,
    "jacobian_operator": 6,
    "layouts": 6,
    "one_run": 0,
    "evaluators": 7,
    "support": 7,
    "roots": 8,
    "tracing": 9,
    "checkpoints": 10,
    "runners": 10,
    "jitted": 10,
    "jitted_on_duals": 10,
    "compilation": 10,
    "numba_call_source": 10,
    "numba_calls": 10,
    "kept_tapes": 11,
    "paths": 11,
    "gradients": 11,
    "linearized": 12,
    "sweeps": 11,
    "pullbacks": 12,
    "jacobian_rows": 12,
    "explaining": 13,
    "measured_run": 12,
    "saved_memory": 13,
    "transformers": 12,
    "reversible": 13,
}
# These stand on the public API. Only they may import `fwdad` itself.
USERS = {"": 14, "testing": 15, "examples": 15, "__main__": 16}
# These see rules through their registry only.
ABOVE_THE_RULES = {
    *(
        "tape",
        "reverse",
        "backends",
        "builder",
        "recorded",
        "arguments",
        "layouts",
        "evaluators",
        "transformers",
    ),
    *(
        "tracing",
        "runners",
        "jitted",
        "jitted_on_duals",
        "compilation",
        "kept_tapes",
        "paths",
        "gradients",
        "sweeps",
        "pullbacks",
        "jacobian_rows",
    ),
    *("numba_calls", "numba_call_source"),
}
# Whoever stands above the rules sees them through their registry and their transposes, never one
# rule.
REGISTRY = {
    f"fwdad.rules{name}"
    for name in (
        *("", ".registry", ".define", ".partials", ".adjoints", ".recording", ".containers"),
        ".reverse_rules",
        ".contract",  # of rules, whichever they are
        ".lifter",  # of rules' functions, whatever they are
        ".by_position",  # of functions, whatever their rules
    )
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
            and ast.unparse(node.func) in {"importlib.import_module", "import_module", "__import__"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
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
            if target not in rank or rank[target] > rank[part]:
                wrong.append(f"{where}, against the arrow")
            elif target == "rules" and part in ABOVE_THE_RULES and imported not in REGISTRY:
                wrong.append(f"{where}, but sees rules through their registry only")
    return wrong


def test_arrows():
    package = ROOT / "fwdad"
    parts = {part_of(module_name(path, package)) for path in package.rglob("*.py")}
    assert parts >= LAYERS.keys() | USERS.keys(), "a layer is gone: was it renamed?"
    assert find_wrong_arrows(package) == []


@pytest.fixture
def planted(tmp_path):
    """A small package of the same layout, and a function that puts one file into it."""
    package = tmp_path / "fwdad"

    def plant(name, source):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
        return find_wrong_arrows(package)

    for name in (
        "__init__",
        "evaluators",
        "errors",
        "tangents/chunk",
        "rules/define",
        "rules/linalg",
    ):
        plant(f"{name}.py", "")
    for name in ("tangents", "rules", "builder"):
        plant(f"{name}/__init__.py", "")
    return plant


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("__init__.py", "from fwdad.evaluators import jvp\nfrom fwdad.rules.linalg import solve"),
        ("evaluators.py", "import fwdad.errors\nfrom fwdad.builder import build_frule"),
        ("builder/build.py", "from fwdad.rules.define import frule\nfrom ..tangents import chunk"),
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
        ("rules/linalg.py", "def rule():\n    from fwdad.builder import dispatch"),
        ("rules/linalg.py", "import importlib\nimportlib.import_module('fwdad.builder')"),
        ("builder/build.py", "import numpy, fwdad.evaluators"),
        ("builder/build.py", "from fwdad.rules.linalg import solve_frule"),
        ("builder/build.py", "from fwdad.rules import linalg"),
        ("evaluators.py", "from fwdad.testing import check_frule"),
        ("evaluators.py", "from . import testing"),
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
    """The test above can fail: the same question about what is loaded has an answer."""
    code = "import sys, fwdad; print(*sorted({'numpy', 'fwdad.evaluators'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fwdad.evaluators", "numpy"]


def test_package_is_typed():
    assert (ROOT / "fwdad" / "py.typed").is_file()


def find_unnamed(paths, text):
    """The files that a map does not name, between backticks and without their suffix."""
    quoted = " ".join(re.findall("`([^`]*)`", text))
    names = set(re.findall(r"\w+", quoted))
    return [path.name for path in paths if path.stem not in names | {"__init__"}]


def test_map_names_every_file():
    package = ROOT / "fwdad"
    folders, _, _ = (package / "README.md").read_text(encoding="utf-8").partition("## How one call")
    laws = package / "tangents" / "laws"  # the map names this folder as a whole
    paths = [path for path in sorted(package.rglob("*.py")) if path.parent != laws]
    assert find_unnamed(paths, folders) == []


def test_a_file_that_the_map_forgot_is_found():
    text = "| `chunk.py`, `laws/` | lanes |\n| `sorting shaping` | places |"
    names = ["chunk.py", "shaping.py", "lanes.py", "__init__.py", "sort.py"]
    assert find_unnamed(map(Path, names), text) == ["lanes.py", "sort.py"]
