"""The public functions besides the evaluators: transformers, ``jit`` and reports.

They take the user's functions and return functions with the same signature, or reports. The work
is done in ``drivers``.
"""
