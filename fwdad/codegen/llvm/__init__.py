"""LLVM code where Numba's own lowering is slower, or has no form.

Takes typed statements, arrays and vectors as Numba knows them; emits LLVM instructions, and modules
that are optimised once. Everything that depends on Numba's internals is here.
"""
