"""Every notebook runs from top to bottom, and asserts its own numbers."""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import fwdad

jupytext = pytest.importorskip("jupytext", reason="pip install '.[notebooks]'")
nbformat = pytest.importorskip("nbformat", reason="pip install '.[notebooks]'")
if find_spec("nbclient") is None or find_spec("ipykernel") is None:
    pytest.skip("pip install '.[notebooks]'", allow_module_level=True)

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("[0-9]*.py"))
SECONDS_PER_CELL = 120
# What talks to a kernel brings threads in C and an event loop, which stay out of the process that
# tests compiled code. Standard output is the notebook's own.
EXECUTE = """
import sys
import nbclient, nbformat

notebook = nbformat.reads(sys.stdin.read(), as_version=4)
nbclient.NotebookClient(
    notebook,
    timeout=int(sys.argv[1]),
    kernel_name="python3",
    resources={"metadata": {"path": sys.argv[2]}},
).execute()
sys.stdout.write(nbformat.writes(notebook))
"""


class CellError(Exception):
    """A notebook raised, or could not be run; the message is what was printed then."""


def execute(notebook, folder):
    """Run a notebook in a kernel of this Python that starts in `folder`; return its outputs."""
    # the kernel must import the fwdad that is under test, installed or not
    paths = [str(Path(fwdad.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        # what the kernel caches and configures stays in `folder`
        "IPYTHONDIR": str(folder / "ipython"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(SECONDS_PER_CELL), str(folder)],
        input=nbformat.writes(notebook),
        capture_output=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )
    if done.returncode:
        raise CellError(done.stderr)
    ran = nbformat.reads(done.stdout, as_version=4)
    return [output for cell in ran.cells for output in cell.get("outputs", ())]


def is_check(node):
    """Tell `assert …` and `assert_allclose(…)` from the rest of a program."""
    if isinstance(node, ast.Assert):
        return True
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1].startswith("assert")


def count_checks(notebook):
    """Count the asserts of a notebook's cells."""
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return sum(is_check(node) for source in sources for node in ast.walk(ast.parse(source)))


def test_there_are_notebooks():
    assert NOTEBOOKS, "notebooks/ holds no numbered notebook"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path):
    notebook = jupytext.read(path)
    assert count_checks(notebook) >= 3, "a notebook asserts the numbers that it shows"
    outputs = execute(notebook, tmp_path)
    warned = [each.text for each in outputs if each.get("name") == "stderr"]
    assert warned == []


def test_a_wrong_number_fails(tmp_path):
    notebook = jupytext.reads("# %%\nx = 1\n\n# %%\nassert x == 2, 'planted'\n", fmt="py:percent")
    assert count_checks(notebook) == 1
    with pytest.raises(CellError, match="planted"):
        execute(notebook, tmp_path)


def test_the_kernel_has_this_fwdad(tmp_path):
    notebook = jupytext.reads("# %%\nimport fwdad\nprint(fwdad.__file__)\n", fmt="py:percent")
    (output,) = execute(notebook, tmp_path)
    assert output.text.strip() == fwdad.__file__
