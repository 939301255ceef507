"""What is set for the time of a block, and is restored whatever happens, an interrupt too."""

from __future__ import annotations

from typing import Self


class EnteredTwice:
    """A context manager that is entered twice: ``with M() as m, m:``.

    An interrupt may come in any line of Python, those of ``__enter__`` and ``__exit__`` among them.
    What only the outer block is entered for sets nothing; the inner one sets; and if its
    beginning or its end is left in the middle, the outer one's end does what is left to do.
    A generator under ``contextlib.contextmanager`` could not: what it does last may be done when
    the traceback is dropped, much later.
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
        """Set it."""
        raise NotImplementedError

    def end(self) -> None:
        """Put back what was there when this was made; called twice, and after half a beginning."""
        raise NotImplementedError
