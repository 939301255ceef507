"""What a run of something does to the world: its files, objects, output, warnings and records."""

import contextlib
import io
import shutil
import warnings


def world_after(make, folder, run):
    """Make a program anew, run something with it, and return its result and how the world looks."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    f, look = make(folder)
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        answer = run(f)
    said = [(str(w.message), w.filename, w.lineno) for w in caught]
    said = [w for w in said if "has no effect on" not in w[0]]  # fwdad's own, of checkpoint
    return answer, (look(), out.getvalue(), err.getvalue(), said)
