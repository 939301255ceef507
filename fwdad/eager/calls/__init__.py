"""The calls of lifted code: where each is sent, and what is done there.

In come a callable and arguments, among them duals; out comes the result, by a handler, a rule, the
lifted source, or the function itself. Begin with ``dispatch.py``.
"""
