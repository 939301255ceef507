"""The notebooks as pages: ``notebooks/`` is outside of the source folder, so they are copied in.

They were run where they were written, and the build does not run them again.
"""

from pathlib import Path

import nbformat
from repository_links import NOTEBOOKS, rewritten
from sphinx.application import Sphinx


def copy(app: Sphinx, _config):
    """Write each notebook into the folder of its page; one that is unchanged keeps its time."""
    folder = Path(app.srcdir) / NOTEBOOKS
    folder.mkdir(exist_ok=True)
    for path in sorted((Path(app.srcdir).parent / "notebooks").glob("[0-9]*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = rewritten(app, f"notebooks/{path.name}", cell.source)
        text = nbformat.writes(notebook)
        page = folder / path.name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app: Sphinx):
    """Register the handler."""
    app.connect("config-inited", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
