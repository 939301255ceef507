"""The intermediate representation: a program as data.

Operations on values in blocks (``ops``), their types, the checker and the printer. ``builder``
writes programs, ``analysis`` derives facts about them, ``primitives`` are the operations that NumPy
does not have. Nothing here reads source code or differentiates a function.
"""
