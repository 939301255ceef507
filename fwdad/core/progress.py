"""A bar that shows how far a long derivative is, by tqdm: nothing in the first second."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

_SILENT = 1.0  # seconds


class Progress:
    """A bar, which begins when it is known of how many columns or rows; one that shows nothing."""

    def __init__(self, *, shown: bool, of: str, unit: str = "columns") -> None:
        self._of = of
        self._unit = unit
        self._bar: Any = None
        self._make: Any = None
        if not shown:
            return
        try:
            from tqdm import tqdm  # noqa: PLC0415  (an extra)
        except ImportError as error:
            raise ImportError(
                "progress=True shows a bar of tqdm, which is not installed: pip install "
                "'fwdad[progress]', or leave progress out"
            ) from error
        self._make = tqdm

    def begin(self, total: int, unit: str = "") -> None:
        """Begin to count, instead of what was counted before; what, if it is another unit."""
        unit = unit or self._unit
        self.close()
        if self._make is not None:
            self._bar = self._make(total=total, desc=self._of, unit=f" {unit}", delay=_SILENT)

    def update(self, count: int) -> None:
        """Note that so many more are done."""
        if self._bar is not None:
            self._bar.update(count)

    def close(self) -> None:
        """End the bar, and leave it where it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()
