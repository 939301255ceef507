"""From a reversible program to a Python function, for the kinds of its arguments.

In come a program, whose calls are resolved here, and the kinds of its arguments. Out comes a
function that runs it, or runs its inverse with cotangents; :class:`Definition` keeps both.
"""
