"""How a derivative that was asked for is computed: by a tape, by a recorded run, or forward.

In come a function and its arguments. Its tape is found or traced, transformed, compiled and kept
for the next call, with what it assumes; out go values, gradients and pullbacks.
"""
