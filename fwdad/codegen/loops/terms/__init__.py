"""The text of one element: a number computed by NumPy's rules, or by Python's.

In comes a function of numbers and the terms of its arguments; out goes a term, which is a text with
its type and how tightly it binds. What has no text raises ``CannotCompileError``.
"""
