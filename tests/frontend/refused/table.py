"""The table of programs that are refused, and what several of its files need."""

import numpy as np

V = np.array([0.5, 1.25, 2.0, 3.5])


class Refused(list):
    """Rows of program, its arguments, the item of the page, and a part of the message."""

    def __call__(self, item, *args, part=""):
        """Enter a program; the line that is marked by ``# here`` is the one that is named."""

        def enter(f):
            self.append((f, args, item, part))
            return f

        return enter


class Body:
    held = 0.0

    def __init__(self, x):
        self.x = x
