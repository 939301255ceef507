"""Operations without a compiled form, which compiled code calls under NumPy.

Takes a program; returns one in which these operations are calls of programs of their own, and the
functions that Python runs for them.
"""
