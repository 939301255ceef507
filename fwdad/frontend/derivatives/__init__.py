"""Calls of ``jvp``, ``grad`` and the like inside a traced function.

In comes a call of one of them on symbols; out come the operations that compute it, written by
``transforms`` into the program that is open.
"""
