"""Reverse mode: a program, followed by its reverse pass.

In comes a program, first brought into a normal form (``normalize``); the rules of its calls are
linearized and transposed. Out comes a program that computes the value, keeps the residuals, and
accumulates the cotangents of its arguments. Begin with ``pull.py``.
"""
