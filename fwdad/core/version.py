"""The version: that of the installed package, or of the checkout that this is."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path


def version() -> str:
    """The version, which stands in ``pyproject.toml``."""
    project = Path(__file__).parents[2] / "pyproject.toml"
    if project.is_file():  # a checkout, whatever else is installed
        found = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        if found["name"] == "fwdad":
            return str(found["version"])
    return metadata.version("fwdad")
