"""Programs as device functions of ``numba.cuda``, which has no NumPy and no allocation.

In comes a program in which all lengths are known. Out comes source in which arrays are a thread's
own memory, operations on them are loops, and NumPy's functions are those of single numbers.
"""
