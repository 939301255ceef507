"""Every notebook runs from top to bottom, and asserts its own numbers."""

import ast
import os
from pathlib import Path

import pytest

import fwdad

jupytext = pytest.importorskip("jupytext", reason="pip install '.[notebooks]'")
nbclient = pytest.importorskip("nbclient", reason="pip install '.[notebooks]'")
pytest.importorskip("ipykernel", reason="pip install '.[notebooks]'")

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("[0-9]*.py"))
SECONDS_PER_CELL = 120


def execute(notebook, folder, monkeypatch):
    """Run a notebook in a kernel of this Python that starts in `folder`; return its outputs."""
    # the kernel must import the fwdad that is under test, installed or not
    monkeypatch.setenv("PYTHONPATH", str(Path(fwdad.__file__).parent.parent), prepend=os.pathsep)
    # what the kernel caches and configures stays in `folder`
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    client = nbclient.NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


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
def test_notebook(path, tmp_path, monkeypatch):
    notebook = jupytext.read(path)
    assert count_checks(notebook) >= 3, "a notebook asserts the numbers that it shows"
    outputs = execute(notebook, tmp_path, monkeypatch)
    warned = [each.text for each in outputs if each.get("name") == "stderr"]
    assert warned == []


def test_a_wrong_number_fails(tmp_path, monkeypatch):
    notebook = jupytext.reads("# %%\nx = 1\n\n# %%\nassert x == 2, 'planted'\n", fmt="py:percent")
    assert count_checks(notebook) == 1
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="planted"):
        execute(notebook, tmp_path, monkeypatch)


def test_the_kernel_has_this_fwdad(tmp_path, monkeypatch):
    notebook = jupytext.reads("# %%\nimport fwdad\nprint(fwdad.__file__)\n", fmt="py:percent")
    (output,) = execute(notebook, tmp_path, monkeypatch)
    assert output.text.strip() == fwdad.__file__
