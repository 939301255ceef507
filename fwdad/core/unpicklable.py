"""A base class for objects that hold what one run of a function kept: not copied, not pickled."""

from __future__ import annotations

from typing import Any, NoReturn, Self


class OfOneRun:
    """A linear map at a point, which never changes: its copy is the map itself.

    ``made_by`` is the call by which another process makes its own.
    """

    made_by = ""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        message = (
            f"a {type(self).__name__} contains generated code and values kept from one run of f, "
            f"so it cannot be pickled: pickle f and x, and call {self.made_by} where you need it"
        )
        raise TypeError(message)
