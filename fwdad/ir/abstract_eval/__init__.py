"""The types of results: from dtypes, ranks and lengths to dtypes, ranks and lengths.

In come a function and the types of its arguments; out comes the type of what it returns. A function
is tried on samples only if ``purity`` says that it may be.
"""
