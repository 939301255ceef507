"""Tangents: N directions of a value as one object.

This package makes chunks of primal values and directions, defines their linear operations
(``laws``), and flattens composite values. Nothing here knows a function's derivative.
"""
