"""What objects show in a notebook: the pieces of HTML that their ``_repr_html_`` are made of.

In come texts and numbers; out come fragments of HTML that need nothing else, no script and no file.
What an object says of itself stands beside its class; here is only how that looks.
"""
