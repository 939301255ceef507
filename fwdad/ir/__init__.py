"""The intermediate representation: a program as data.

Operations on values in blocks (``ops``), their types, the checker and the printer. ``builder``
writes programs, ``analysis`` knows facts about them, ``primitives`` are the operations that NumPy
does not have. Nothing here knows source code, and no function is differentiated here.
"""
