"""Python's statements and expressions on symbols.

In comes a node of a function's ``ast``; out come operations, and changes of the traced heap.
``interpreter.py`` is the whole of them.
"""
