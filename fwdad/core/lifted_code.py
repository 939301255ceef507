"""Which code is lifted, and which runs on duals as it is because its source is missing."""

from __future__ import annotations

from types import CodeType, FrameType

LIFTED: set[int] = set()
"""ids of the code objects that are lifted already (kept alive by the lifter's cache)."""

ORIGINALS: dict[int, CodeType] = {}
"""By the ids of lifted code, the code that Python has made of the same source."""

SOURCELESS: dict[int, tuple[str, object]] = {}
"""By the ids of code that runs on duals as it is (kept alive likewise): whose, and why."""


def running_without_source(frame: FrameType | None) -> str:
    """The beginning of a message where code that could not be lifted is running; or empty."""
    while frame is not None and id(frame.f_code) not in LIFTED:
        name, missing = SOURCELESS.get(id(frame.f_code), ("", None))
        if missing is not None:
            return f"{name} has no source that can be read: {missing}. Run as it is, "
        frame = frame.f_back
    return ""
