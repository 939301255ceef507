"""Functions of fwdad's as functions of another library, which differentiates programs around them.

Each bridge calls the function on NumPy arrays, and answers the library's questions for derivatives
by ``jvp`` and ``vjp``. Derivatives of derivatives are those of the functions that ``functions.py``
makes, over the same bridge.
"""
