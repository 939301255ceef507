"""Loops over elements that are cut out of a source and compiled on a shorter path than Numba's.

In comes the source of a program; out come the source without these loops, and a function of LLVM
code for each.
"""
