"""NumPy's functions of whole arrays as loops, by kind.

Takes one call of a program; writes the lines that compute it.
"""
