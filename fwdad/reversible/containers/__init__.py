"""Stacks and dictionaries: arguments and ancillas that hold a varying count of numbers.

In come a capacity and a dtype. Out comes an object whose memory and count are arrays and numbers of
their own in a program; what it means to push or to insert is said in ``language/``.
"""
