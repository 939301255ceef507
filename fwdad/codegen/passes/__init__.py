"""Rewrites and decisions that precede code generation, for what compilers gain from them.

Takes a program; returns one that computes the same with cheaper operations, or a decision about it:
axis order, fusion, values in SIMD registers.
"""
