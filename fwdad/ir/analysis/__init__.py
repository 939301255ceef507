"""Facts about programs, each computed in one place: aliasing, effects, layout, dependence, uses.

In comes a program or an operation; out come facts to rely on. Nothing is rewritten.
"""
