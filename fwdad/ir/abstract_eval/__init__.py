"""Abstract evaluation: from dtypes, ranks and lengths of arguments to those of results.

In come a function and the types of its arguments; out comes the type of what it returns. A function
is called on samples only if ``purity`` allows it.
"""
