"""Compiled code on disk, shared by later processes.

Takes the source of a function and its machine code; returns the function again, if the entry was
signed by this user and nobody else can have written it.
"""
