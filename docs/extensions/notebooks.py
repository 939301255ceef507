"""The notebooks as pages: ``notebooks/`` is outside of the source folder, so they are copied in.

They were run where they were written, so the build does not run them again. One that is there as
text only is run with the pages.
"""

from pathlib import Path

import jupytext
import nbformat
from repository_links import NOTEBOOKS, rewritten
from sphinx.application import Sphinx


def copy(app: Sphinx, config):
    """Write each notebook into the folder of its page; one that is unchanged keeps its time."""
    folder = Path(app.srcdir) / NOTEBOOKS
    folder.mkdir(exist_ok=True)
    for path in sorted((Path(app.srcdir).parent / "notebooks").glob("[0-9]*.py")):
        executed = path.with_suffix(".ipynb")
        if executed.exists():
            config.nb_execution_excludepatterns.append(f"{NOTEBOOKS}/{executed.name}")
        notebook = jupytext.read(executed if executed.exists() else path)
        for number, cell in enumerate(notebook.cells):
            cell.id = str(number)  # else drawn by lot, and the page would never be unchanged
            if cell.cell_type == "markdown":
                cell.source = rewritten(app, f"notebooks/{path.name}", cell.source)
        text = nbformat.writes(notebook)
        page = folder / executed.name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app: Sphinx):
    """Register the handler, ahead of the one that reads which pages are run."""
    app.connect("config-inited", copy, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
