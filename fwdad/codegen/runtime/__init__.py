"""What generated code calls at run time: arithmetic as Python and NumPy define it, LAPACK, tables.

Takes and returns numbers and arrays of compiled code, bit for bit as NumPy's where that is
promised.
"""
