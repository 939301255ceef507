"""Programs that Numba cannot compile as a whole, cut into pieces where it cannot.

In comes a program; out come programs that compile, and the Python function that calls them and
what lies between.
"""
