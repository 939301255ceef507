"""From programs to programs: passes, forward mode and reverse mode.

In comes a program of ``ir``; out comes one that computes the same, or derivatives too. Every
result passes the checker in ``ir.check``; nothing here knows source code or machine code.
"""
