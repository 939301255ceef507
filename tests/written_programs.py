"""Programs that a test writes: in a file, so that their source is found."""

import numpy as np


def compiled(source, folder):
    """The code of a source, which may be run more than once."""
    place = folder / "program.py"
    place.write_text(source)
    return compile(source, str(place), "exec")


def defined(source, folder):
    """The function f of a source."""
    names = {"np": np}
    exec(compiled(source, folder), names)
    return names["f"]
