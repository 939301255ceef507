"""Settings that hold for a block and are restored whatever happens, even on an interrupt."""

from __future__ import annotations

from typing import Self


class EnteredTwice:
    """A context manager that is entered twice: ``with M() as m, m:``.

    An interrupt may arrive at any line of Python, those of ``__enter__`` and ``__exit__`` included.
    Entering the outer block sets nothing; entering the inner one does. If the inner one's beginning
    or end is interrupted, the end of the outer one does what is left. A generator under
    ``contextlib.contextmanager`` could not do this: its last part may only run when the traceback
    is dropped, much later.
    """

    _entered_once = False

    def __enter__(self) -> Self:
        if self._entered_once:
            self.begin()
        self._entered_once = True
        return self

    def __exit__(self, *_details: object) -> None:
        self.end()

    def begin(self) -> None:
        """Set what the block needs."""
        raise NotImplementedError

    def end(self) -> None:
        """Restore what was there when this was made; called twice, also after half a ``begin``."""
        raise NotImplementedError
