"""How Sphinx builds this site; docs/README.md says how to run it."""

import os
import sys
import tomllib
from importlib.metadata import version as version_of
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
EXTENSIONS = str(DOCS / "extensions")

with (ROOT / "pyproject.toml").open("rb") as _file:
    _hooks = tomllib.load(_file)["tool"]["hatch"]["metadata"]["hooks"]

project = "fwdad"
author = "The fwdad developers"
project_copyright = author
version = release = version_of("fwdad")
repository_url = _hooks["custom"]["repository"]
if ".invalid/" in repository_url:  # a placeholder leads nowhere
    repository_url = ""

# The kernels that run the pages inherit the environment: our helpers, our way to draw, one thread.
sys.path.insert(0, EXTENSIONS)
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [EXTENSIONS, os.environ.get("PYTHONPATH", "")])
)
os.environ["MATPLOTLIBRC"] = str(DOCS / "matplotlibrc")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "repository_links",
    "notebooks",
    "outputs",
]
exclude_patterns = ["README.md", "reference/support_table.md", "_build", "**.ipynb_checkpoints"]
templates_path = ["_templates"]
nitpicky = True
suppress_warnings = [
    "myst.header",  # the map's headings start at the second level, below its title
]

# -- pages, and the cells in them ----------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS / "_build" / ".jupyter_cache")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_execution_excludepatterns = ["guide/notebooks/*"]  # they were run where they were written
nb_output_stderr = "error"  # a warning in a cell is a mistake of the page's
nb_merge_streams = True

# -- reference -----------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections tell the types
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# -- looks ---------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "fwdad"
html_static_path = ["_static"]
html_css_files = ["fwdad.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {
        "text": "fwdad",
        "image_light": "_static/favicon.svg",
        "image_dark": "_static/favicon.svg",
    },
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "back_to_top_button": False,
    "pygments_dark_style": "github-dark-high-contrast",  # comments are quieter than code
    "search_as_you_type": True,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version", "theme-version"],
    "icon_links": (
        [{"name": "Source", "url": repository_url, "icon": "fa-brands fa-git-alt"}]
        if repository_url
        else []
    ),
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "start/quick_start": []}
