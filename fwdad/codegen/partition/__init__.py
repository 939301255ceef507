"""Programs that Numba cannot compile as a whole, cut into pieces where it cannot.

Takes a program; returns programs that compile, and the Python function that calls them and runs the
rest.
"""
