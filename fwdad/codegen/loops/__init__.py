"""Programs as Python source that Numba compiles: loops over elements, with checked indices.

Takes a program that ``codegen.passes`` have prepared; returns lines of source with the types of
their names. Begin with ``source.py``, which dispatches, and ``parts.py``, the parts that write.
"""
