"""Python's statements and expressions on symbols; ``interpreter.py`` is the whole of them."""
