"""Sparsity patterns: which elements of a program's results depend on which of its arguments."""
