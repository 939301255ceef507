"""What every room stands on: tracebacks, contexts, generated source, the log of fallbacks.

Nothing of derivatives is here. The exceptions themselves are in ``fwdad.errors``, which users
import. In come source files, frames and functions that may fail; out go errors that show the
user's own line, and calls of a slower method where a faster one has a mistake.
"""
