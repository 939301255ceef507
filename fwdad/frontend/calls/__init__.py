"""What is called while a function is traced: in line, as an operation, or by its meaning.

In come a callable and its arguments, perhaps symbols; out comes what the call returns. Begin with
``calls.py``.
"""
