"""Calls in a traced function: in line, as an operation, or by the meaning of what is called.

In come a callable and its arguments, perhaps symbols; out comes the result of the call. Begin with
``calls.py``.
"""
