"""``python -m notebooks.build``: run the notebooks, and write them with their outputs.

Each ``NN_name.py`` (jupytext's percent format) is the source; ``NN_name.ipynb`` beside it is what
readers open. Names as arguments choose notebooks, ``--to FOLDER`` writes elsewhere.
"""

import argparse
import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbclient
import nbformat

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
SECONDS_PER_CELL = 600
# Plots have twice the pixels, for screens that show them; the inline backend knows their size.
ARGUMENTS = ["--InlineBackend.figure_formats=retina", "--HistoryManager.enabled=False"]
METADATA = {
    "jupytext": {"formats": "ipynb,py:percent"},
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def sources():
    """The notebooks, in their order."""
    return sorted(FOLDER.glob("[0-9]*.py"))


def executed(path):
    """A notebook with its outputs, run in an empty folder by a kernel of this Python."""
    notebook = jupytext.read(path)
    with tempfile.TemporaryDirectory() as folder:
        # the kernel imports the fwdad that is here, and keeps what it caches in the folder
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        os.environ["IPYTHONDIR"] = str(Path(folder, "ipython"))
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        nbclient.NotebookClient(
            notebook,
            timeout=SECONDS_PER_CELL,
            kernel_name="python3",
            extra_arguments=ARGUMENTS,
            record_timing=False,  # differs from run to run
            resources={"metadata": {"path": folder}},
        ).execute()
    return notebook


def tidied(notebook):
    """A notebook with what a reader needs, and nothing that changes when it is built again."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen = {}
    for cell in notebook.cells:
        digest = hashlib.sha256(cell.source.encode()).hexdigest()[:8]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = f"{digest}-{seen[digest]}"  # a cell keeps its id when others come and go
        cell.metadata = nbformat.from_dict({})
        for output in cell.get("outputs", ()):
            output.get("metadata", {}).pop("needs_background", None)
    return notebook


def found_paths(notebook):
    """Paths of the machine that ran a notebook, in its outputs."""
    roots = {str(ROOT), str(Path.home()), tempfile.gettempdir(), sys.prefix}
    roots -= {"/"}
    text = "\n".join(
        str(said)
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        for said in (output.get("text", ""), *output.get("data", {}).values())
    )
    return sorted({root for root in roots if re.search(re.escape(root) + r"[/\\]", text)})


def main():
    """Build the notebooks that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.build", description=__doc__)
    parser.add_argument("names", nargs="*", help="such as 03, or 03_reverse_mode; all if none")
    parser.add_argument(
        "--to", type=Path, default=FOLDER, help="the folder; that of the sources if not given"
    )
    given = parser.parse_args()
    chosen = [p for p in sources() if not given.names or p.name.startswith(tuple(given.names))]
    if not chosen:
        parser.error(f"no notebook is called {', '.join(given.names)}")
    for path in chosen:
        notebook = tidied(executed(path))
        if roots := found_paths(notebook):
            sys.exit(f"{path.name}: its outputs have paths of this machine, below {roots}")
        target = given.to / f"{path.stem}.ipynb"
        nbformat.write(notebook, target)
        print(f"{target.name}: {target.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
