"""Numbers whose updates have exact inverses: fixed-point numbers, and logarithmic ones.

In come floats and arrays of floats. Out come numbers that are stored as multiples of a power of
two, and the functions by which generated code updates what is stored.
"""
