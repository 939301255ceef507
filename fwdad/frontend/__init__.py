"""From a function's source to a program: its ``ast`` is evaluated on symbols.

In come a function and the types of its arguments; out comes a ``Tape``, a program with its
assumptions. ``syntax`` has Python's statements and expressions, ``calls`` what is called, and
``derivatives`` calls of ``jvp``, ``grad`` and the like inside.
"""
