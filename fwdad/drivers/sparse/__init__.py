"""Sparse Jacobians: products with the seeds of a colouring, decompressed."""
