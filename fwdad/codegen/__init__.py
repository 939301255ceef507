"""From a program to something that runs, under NumPy or as machine code by Numba.

In comes a program of ``ir``; ``passes`` prepare it, ``numpy_backend`` or ``loops`` write source,
``llvm`` emits code where Numba's own lowering is slower. Out comes a function of leaves, from
``call_entry``; ``cache`` keeps it on disk, and ``partition`` cuts what does not compile as a whole.
"""
