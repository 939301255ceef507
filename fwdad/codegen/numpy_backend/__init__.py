"""Programs as Python source that runs under NumPy.

In comes a program; out comes source in which arrays are freed once nothing reads them.
"""
