"""Whether an error says what stopped where, and what its reader can change."""

from __future__ import annotations

import re
from pathlib import Path

from fwdad.errors import FwdadError, is_package_file

HERE = str(Path(__file__).parent)
ADVICE = re.compile(
    r"(^|[.:;,(] |\bor |\bonly )"
    r"(call|choose|declare|draw|enter|give|make|pass|read|return|take|test|use|write)\b",
    re.IGNORECASE | re.MULTILINE,
)


def unexplained(error: FwdadError) -> list[str]:
    """What an error does not say; empty if it says all.

    The user's line is one of a file of this folder. Where the package stopped is a line of its
    source, or the user's own line, if that names what is compiled code, or an iterator of theirs.
    """
    text = "\n".join([error.msg, *getattr(error, "__notes__", ())])
    missing = []
    if not (error.filename or "").startswith(HERE) or not error.text:
        missing.append("the user's line")
    inside = error.inside
    if inside is not None and is_package_file(inside.filename):
        shown = bool(inside.text) and (inside.text or "").strip() in str(error)
    else:
        names = set(re.findall(r"[A-Za-z_]\w{3,}", error.text or ""))
        shown = bool(names.intersection(re.findall(r"[A-Za-z_]\w{3,}", error.msg)))
        shown = shown or ("iterator" in error.msg and "for " in (error.text or ""))
    if not shown:
        missing.append("the package's line")
    if not ADVICE.search(text):
        missing.append("what to do")
    return missing
