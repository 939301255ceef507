"""The arguments of reversible functions, as generated code takes them.

In come a caller's numbers, arrays, records and functions. Out come their kinds, for which programs
are lowered, and their numbers and arrays as one flat list, from which arguments are rebuilt.
"""
