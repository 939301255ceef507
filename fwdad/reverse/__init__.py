"""Reverse mode: the frules, linearized and transposed, on tapes."""
