"""Metadata that follows from the repository's address: the URLs, and the links of the README.

The address is in ``pyproject.toml``, at this hook, and nowhere else. The README's links are
relative, so that they work in a checkout and on every branch. On a package page they would lead
nowhere, so the metadata of a build has them absolute, at the tag of its version.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# `[text](target)`, `[name]: target` at the start of a line, and HTML's attributes
_LINK = re.compile(
    r"""(\]\(\s*<?|^\[[^\]\n]+\]:\s+<?|\b(?:src|srcset|href)=["'])([^\s)"'>]+)""", re.MULTILINE
)
# fenced blocks and code spans are shown as they are
_CODE = re.compile(r"^(```+|~~~+).*?^\1[^\n]*$|(`+)[^`].*?\2(?!`)", re.MULTILINE | re.DOTALL)
_WORKS_ANYWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
_IMAGES = (".png", ".svg", ".gif", ".jpg", ".jpeg", ".webp")


def urls(address: str) -> dict[str, str]:
    """The links beside the package, by labels that package indexes know."""
    return {
        "Source": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
    }


def absolute(page: str, address: str, version: str) -> str:
    """A Markdown page of the repository's root with absolute links."""
    at = "main" if ".dev" in version else f"v{version}"

    def replaced(found: re.Match[str]) -> str:
        before, target = found.groups()
        if _WORKS_ANYWHERE.match(target):
            return found[0]
        kind = "raw" if target.partition("#")[0].lower().endswith(_IMAGES) else "blob"
        return f"{before}{address}/{kind}/{at}/{target.removeprefix('./')}"

    parts, end = [], 0
    for code in _CODE.finditer(page):
        parts += [_LINK.sub(replaced, page[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, _LINK.sub(replaced, page[end:])])


class RepositoryHook(MetadataHookInterface):
    """Fills in ``urls`` and ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Write both, from the option ``repository``."""
        address = self.config["repository"].rstrip("/")
        page = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = urls(address)
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(page, address, metadata["version"]),
        }
