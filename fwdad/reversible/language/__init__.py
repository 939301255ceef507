"""The language of reversible programs: statements that each have an inverse.

In comes the definition of a function under ``@reversible``, with what its names mean outside of it.
Out comes a :class:`Program`, checked for having an inverse, which can be inverted and printed.
"""
