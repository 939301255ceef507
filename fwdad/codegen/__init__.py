"""From a program to something that runs, under NumPy or as machine code by Numba.

Takes a program of ``ir``: ``passes`` prepare it, ``numpy_backend`` or ``loops`` write source, and
``llvm`` emits code where Numba's own lowering is slower. ``call_entry`` returns a function of
leaves; ``cache`` keeps it on disk, and ``callbacks`` are what it calls of NumPy's.
"""
