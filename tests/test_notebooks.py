"""Every notebook runs, asserts its own numbers, and is there with its outputs."""

import ast
import base64
import os
import re
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

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("[0-9]*.py"))
LARGEST = 3_000_000  # bytes of all of notebooks/


class CellError(Exception):
    """A notebook raised, or could not be run; the message is what was printed then."""


def build(folder, *names, source=FOLDER):
    """Run `python -m notebooks.build` on a folder of sources; return the notebooks it made.

    What talks to a kernel brings threads in C and an event loop, which stay out of the process that
    tests compiled code.
    """
    code = (
        "import sys; from pathlib import Path; from notebooks import build;"
        "build.FOLDER = Path(sys.argv.pop(1)); build.main()"
    )
    # the kernel must import the fwdad that is under test, installed or not
    paths = [str(Path(fwdad.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", code, str(source), *names, "--to", str(folder)],
        capture_output=True,
        encoding="utf-8",
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONIOENCODING": "utf-8",
        },
        cwd=FOLDER.parent,
        check=False,
    )
    if done.returncode:
        raise CellError(done.stderr)
    return [nbformat.read(path, as_version=4) for path in sorted(folder.glob("*.ipynb"))]


def outputs_of(notebook):
    """All that the cells of a notebook show."""
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def code_of(notebook):
    """The sources of its cells, each with what it is."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


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


@pytest.mark.slow_cases(
    "02_from_a_tape_to_microseconds",
    "04_an_inverse_problem",
    "05_reversible_programs",
    "06_sparse_jacobians",
)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path):
    assert count_checks(jupytext.read(path)) >= 3, "a notebook asserts the numbers that it shows"
    (notebook,) = build(tmp_path, path.stem)
    warned = [each.text for each in outputs_of(notebook) if each.get("name") == "stderr"]
    assert warned == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_with_outputs_is_the_one_of_the_source(path):
    """If this fails, run `python -m notebooks.build`, look at what changed, and commit it."""
    held = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    assert code_of(held) == code_of(jupytext.read(path))
    cells = [cell for cell in held.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert {output.output_type for output in outputs_of(held)} <= {
        "stream", "display_data", "execute_result",
    }  # fmt: skip
    assert not [output for output in outputs_of(held) if output.get("name") == "stderr"]
    nbformat.validate(held)
    assert held.metadata.keys() == {"jupytext", "kernelspec", "language_info"}
    assert held.metadata.language_info == {"name": "python"}  # not the version that ran it
    assert all(cell.metadata == {} for cell in held.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_pictures_and_words_of_no_machine(path):
    held = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    shown = [o.get("data", {}) for o in outputs_of(held)]
    plots = [base64.b64decode(data["image/png"]) for data in shown if "image/png" in data]
    assert all(plot.startswith(b"\x89PNG") for plot in plots)
    assert plots, "a notebook shows a plot"
    words = "\n".join(str(o.get("text", o.get("data"))) for o in outputs_of(held))
    words = re.sub(r"'image/png': '[^']*'", "", words)
    found = re.findall(r"(?:/tmp|/home|/root|/Users|C:\\\\Users|site-packages)[/\\]\S*", words)
    assert found == []
    assert not re.search(r"\bat 0x[0-9a-f]{6,}", words)


def test_notebooks_are_small():
    sizes = {path.name: path.stat().st_size for path in FOLDER.glob("*.*")}
    assert sum(sizes.values()) < LARGEST, sizes


@pytest.mark.slow
def test_building_twice_gives_the_same(tmp_path):
    """But for what the cells measure: nothing else differs from run to run."""
    sources, first, second = (tmp_path / name for name in ("sources", "first", "second"))
    for folder in (sources, first, second):
        folder.mkdir()
    cells = [
        "import matplotlib.pyplot as plt\nimport numpy as np\n\nimport fwdad",
        "def f(x):\n    for _ in range(3):\n        x = x * np.sin(x)\n    return np.sum(x)",
        "plt.plot(np.arange(3.0))\nplt.show()",
        "fwdad.trace(fwdad.grad(f), np.ones(3))",
        "fwdad.memory_report(f, np.ones(3))",
    ]
    (sources / "1_twice.py").write_text("".join(f"# %%\n{cell}\n\n" for cell in cells))
    made = [build(folder, source=sources)[0] for folder in (first, second)]
    assert made[0] == made[1]
    assert "image/png" in outputs_of(made[0])[0].data
    assert "In[2]:3" in outputs_of(made[0])[1].data["text/html"]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("x = 1\nassert x == 2, 'planted'", "planted"),
        ("import os\nprint(os.getcwd() + '/planted')", "paths of this machine"),
    ],
)
def test_a_wrong_number_or_a_path_fails(tmp_path, cell, words):
    (tmp_path / "1_wrong.py").write_text(f"# %%\n{cell}\n")
    with pytest.raises(CellError, match=words):
        build(tmp_path, source=tmp_path)
    assert not list(tmp_path.glob("*.ipynb"))


def test_checks_are_counted():
    notebook = jupytext.reads("# %%\nassert 1\nnp.testing.assert_allclose(1, 1)\n", "py:percent")
    assert count_checks(notebook) == 2


def test_the_kernel_has_this_fwdad(tmp_path):
    code = (
        f"import fwdad\nfrom pathlib import Path\nPath(fwdad.__file__) == Path({fwdad.__file__!r})"
    )
    (tmp_path / "1_where.py").write_text(f"# %%\n{code}\n")
    (notebook,) = build(tmp_path, source=tmp_path)
    (output,) = outputs_of(notebook)
    assert output.data["text/plain"] == "True"
