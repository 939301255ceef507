"""From a function's source to a program: its ``ast`` is evaluated on symbols.

In come a function and the kinds of its arguments; out comes a ``Tape``, a program with what it
assumes. ``syntax`` has Python's statements and expressions, ``calls`` what is called, and
``derivatives`` what calls of ``jvp`` and ``grad`` mean inside.
"""
