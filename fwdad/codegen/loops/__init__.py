"""Programs as Python source that Numba compiles: loops over elements, with checked indices.

In comes a program that ``codegen.passes`` have prepared; out come lines of source with the types
of their names. Begin with ``source.py``.
"""
