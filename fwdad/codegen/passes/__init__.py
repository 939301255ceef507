"""What is rewritten or decided before code is written, for what compilers gain from.

In comes a program; out comes one that computes the same with cheaper operations, or a decision
about it: axis order, fusion, values in SIMD registers.
"""
