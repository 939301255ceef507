"""Generated functions as device functions of ``numba.cuda``, which has no NumPy and no allocation.

In come generated functions, and what the user's expressions call. Out come functions compiled for
the device, in which arrays are a thread's own and NumPy's functions are those of single numbers.
"""
