"""Reverse mode: a program, and behind it the program backwards.

In comes a program, first brought into a normal form (``normalize``); the rules of its calls are
linearized and transposed. Out comes a program that computes the value, keeps the residuals, and
adds up the cotangents of its arguments. Begin with ``pull.py``.
"""
