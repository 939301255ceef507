"""What generated code calls when it runs: arithmetic as Python and NumPy mean it, LAPACK, tables.

In come numbers and arrays of compiled code; out come the same, bit for bit as NumPy's where that
is promised.
"""
