"""Links of the repository's Markdown files, which some pages include, lead to pages of the site.

A link to a file that a page includes becomes a link to that page. Any other file is shown at the
repository's address, if the site knows one, else named without a link.
"""

import posixpath
import re
from pathlib import Path

from sphinx.application import Sphinx

INCLUDE = re.compile(r"^[`:]{3,}\{include\} +(\S+)", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:)([^)\s]*)\)")
NOTEBOOKS = "guide/notebooks"
# Sections that stand on a page of their own.
SECTIONS = {
    "fwdad/README.md#the-rule-contract": "guide/rules/contract.md",
    "README.md#what-is-tested-and-the-known-limits": "reference/limits.md",
}


def pages_of(docs: Path) -> dict[str, str]:
    """The page, relative to the source folder, that shows each file of the repository."""
    found = {}
    for page in sorted(docs.rglob("*.md")):
        for target in INCLUDE.findall(page.read_text(encoding="utf-8")):
            file = (page.parent / target).resolve().relative_to(docs.parent).as_posix()
            found.setdefault(file, page.relative_to(docs).as_posix())
    for notebook in (docs / NOTEBOOKS).glob("*.ipynb"):
        page = notebook.relative_to(docs).as_posix()
        found |= {f"notebooks/{notebook.stem}{kind}": page for kind in (".py", ".ipynb")}
    return found


def rewritten(app: Sphinx, own: str, content: str) -> str:
    """The text of the file ``own`` of the repository with links that lead to the site."""
    docs = Path(app.srcdir)
    pages = pages_of(docs)

    def replaced(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        file, _, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(own), file)) if file else own
        whole = f"{file}#{anchor}"
        if whole in SECTIONS:
            return f"[{text}](/{SECTIONS[whole]})"
        if file in pages:
            return f"[{text}](/{pages[file]}{f'#{anchor}' if anchor else ''})"
        if not (docs.parent / file).exists():
            raise FileNotFoundError(f"{own} has a link to {target}, which is not there")
        url = app.config.repository_url
        return f"[{text}]({url}/blob/main/{file})" if url else text

    return LINK.sub(replaced, content)


def rewrite(app: Sphinx, path: Path, _page: str, content: list[str]) -> None:
    """Replace the links in a file that is being included."""
    own = posixpath.normpath(posixpath.join(Path(app.srcdir).name, Path(path).as_posix()))
    content[0] = rewritten(app, own, content[0])


def setup(app: Sphinx):
    """Register the handler."""
    app.add_config_value("repository_url", "", "env")
    app.connect("include-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
