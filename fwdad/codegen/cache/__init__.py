"""Compiled code on disk, for the processes to come.

In come the source of a function and its machine code; out comes the function again, if the entry
was signed by this user and nobody else can have written it.
"""
