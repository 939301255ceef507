"""NumPy's functions of whole arrays as loops, by kind.

In comes one call of a program; out come the lines that compute it.
"""
