"""Tangents: chunks, what may be done to them, and the values that they belong to."""
