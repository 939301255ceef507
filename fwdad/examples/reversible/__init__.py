"""Reversible programs: sparse sums, mixtures, orbits, waves and an invertible network."""
