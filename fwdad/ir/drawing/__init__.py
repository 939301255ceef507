"""What a program looks like: its lines as HTML, and its graph as a picture.

In comes a program. Out come a listing that folds, or source in Graphviz's language, which lays it
out.
"""
