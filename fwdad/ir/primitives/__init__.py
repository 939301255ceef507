"""Functions that programs call and NumPy does not have: stacks, logs, sums over broadcast axes.

Each runs under NumPy as it is; the compiler has its own code for it. In come arrays at run
time; out come arrays, or elements that are written.
"""
