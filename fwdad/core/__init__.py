"""Infrastructure that the other packages share: tracebacks, contexts, generated source, fallbacks.

Nothing here concerns derivatives, nor does what is known of Python itself: its operators,
containers and ``match``, which lifted code and the tracer read alike. The exceptions themselves are
in ``fwdad.errors``, which users import. In come source files, frames and functions that may fail;
out go errors that point at the user's own line, and calls of a slower method where a faster one has
a bug.
"""
