"""Programs that a test writes: in a file, so that their source is found."""

import numpy as np


def defined(source, folder):
    """The function f of a source."""
    place = folder / "program.py"
    place.write_text(source)
    names = {"np": np}
    exec(compile(source, str(place), "exec"), names)
    return names["f"]
