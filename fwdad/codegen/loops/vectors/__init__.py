"""Loops whose bodies compute several elements at once, in vectors of the processor's.

In come elementwise operations and bodies of loops; out go lines that call our vector functions, or
nothing where an operation has no vector form, and the loop is written for single elements.
"""
