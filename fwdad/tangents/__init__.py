"""Tangents: what N directions of a value are as one object.

In come primal values and directions; out come chunks, their linear operations (``laws``), and the
flattening of composite values. Nothing here knows a function's derivative.
"""
