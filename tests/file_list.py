"""``fwdad/FILES.md``: a line for each file of the package, made from the docstrings.

``python -m tests.file_list`` writes it; ``tests/test_layout.py`` compares.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "fwdad"
HEAD = (
    "# Files\n\nMade from the docstrings by `python -m tests.file_list`; "
    "what the rooms are for is in the [map](README.md).\n"
)


def summary(path):
    """The first paragraph of a file's docstring, as one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "`")


def file_list(package=PACKAGE):
    """The text of the list."""
    lines = [HEAD]
    for folder in sorted({path.parent for path in package.rglob("*.py")}):
        name = "/".join(("fwdad", *folder.relative_to(package).parts))
        lines += [f"## {name}/", "", summary(folder / "__init__.py"), "", "| file | |", "|---|---|"]
        files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        lines += [f"| `{path.name}` | {summary(path)} |" for path in files]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    (PACKAGE / "FILES.md").write_text(file_list(), encoding="utf-8")
