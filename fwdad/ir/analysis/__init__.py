"""Facts about programs, each computed in one place: aliasing, effects, layout, dependence, uses.

In comes a program or an operation; out comes what may be relied on. Nothing is rewritten.
"""
