"""From a function's own source to the function with hooks in it.

In comes a function; out comes the same function whose calls, operators and stores go through
``eager.hooks``, or the reason why its source cannot be found.
"""
