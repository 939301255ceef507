"""Exceptions from nowhere: raised at a line of whatever runs, counted from the beginning."""

import _weakrefset
import dis
import functools
import gc
import sys
import weakref

_OF_GARBAGE = {_weakrefset.__file__, weakref.__file__}
"""Its callbacks run when something is collected, whenever that is: Python drops what they raise."""


class Stepping:
    """Counts the lines that run, and raises at one of them.

    Parameters
    ----------
    wanted : callable
        ``wanted(code)``: whether the lines of a code object count.
    at : int
        Which line raises, counted from 1; none does if it is -1.
    error : type
        What is raised.
    """

    def __init__(self, wanted, at=-1, error=KeyboardInterrupt):
        self.lines = 0
        self.wanted = wanted
        self.at = at
        self.error = error
        self.place = None

    def __call__(self, frame, event, _):
        """Trace, as :func:`sys.settrace` wants it."""
        code = frame.f_code
        if not self.wanted(code) or code.co_filename in _OF_GARBAGE:
            return None
        if event == "line" and frame.f_lasti not in between(code):
            self.lines += 1
            if self.lines == self.at:
                sys.settrace(None)
                self.place = (code.co_filename, frame.f_lineno)
                raise self.error
        return self

    def run(self, call):
        """Whether the call was left by the exception.

        It is made in a generator, which has exceptions of its own: where a tracer raises at the end
        of a handler, CPython goes on handling that handler's exception, until the generator ends.
        """
        return next(self._steps(call))

    def _steps(self, call):
        yield self._run(call)

    def _run(self, call):
        old, callbacks = sys.gettrace(), gc.callbacks[:]
        gc.callbacks.clear()  # hypothesis has one: Python drops what it raises
        sys.settrace(self)
        try:
            call()
        except self.error:
            return True
        finally:
            sys.settrace(old)
            gc.callbacks[:] = callbacks
        return False


@functools.cache
def between(code):
    """Where an exception of a tracer's ends what one of a signal's would not.

    A ``with`` has left its block, and has not called ``__exit__`` yet: no signal is handled there,
    and no manager could do anything about it. Or a comprehension jumps back, which Python 3.12
    and later write into the code around it: signals are handled there, and reach the ``with``
    around it, but what a tracer raises passes that by.
    """
    found = set()
    steps = list(dis.get_instructions(code))
    for k in range(len(steps) - 3):
        nones = [s.opname == "LOAD_CONST" and s.argval is None for s in steps[k : k + 3]]
        if all(nones) and steps[k + 3].opname in ("PRECALL", "CALL"):
            found.update(s.offset for s in steps[max(0, k - 4) : k + 1])
    jumps = {s.offset for s in steps if s.opname == "JUMP_BACKWARD"}
    return found | jumps if sys.version_info >= (3, 12) else found


def count_lines(call, wanted):
    """How many lines of a call count."""
    stepping = Stepping(wanted)
    assert not stepping.run(call)
    return stepping.lines


def interrupted(call, at, wanted, error=KeyboardInterrupt):
    """Whether a call was left at its line ``at``."""
    return Stepping(wanted, at, error).run(call)
