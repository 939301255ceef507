"""Loops over elements that are cut out of a source and compiled by a shorter path than Numba's.

Takes the source of a program; returns the source without these loops, and a function of LLVM code
for each.
"""
