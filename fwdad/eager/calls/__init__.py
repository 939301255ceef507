"""What lifted code calls: where each call is sent, and what is done there.

In come a callable and arguments, duals among them; out comes what it returns, by a handler, a
rule, its lifted source, or the function itself. Begin with ``dispatch.py``.
"""
