"""Python's statements and expressions on symbols.

In comes a node of a function's ``ast``; out come operations, and changes of the traced heap. The
classes come together in ``interpreter.py``.
"""
