"""Programs as Python source that runs under NumPy.

Takes a program; returns source in which arrays are freed once nothing reads them.
"""
