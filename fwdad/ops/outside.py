"""Functions that read or write files or global options."""

from __future__ import annotations

import json
import pickle

import numpy as np

from fwdad.ops.record import of_numpy, op

# -- the position of the file that is written
op(np.save, np.savez, np.savez_compressed, np.savetxt, outside=True, writes_file=0)
op(np.ndarray.tofile, np.ndarray.dump, outside=True, writes_file=1)
op(json.dump, pickle.dump, outside=True, writes_file=1)

# -- what is read
op(np.load, np.loadtxt, np.genfromtxt, np.fromfile, outside=True, reads_file=True)
op(json.load, pickle.load, outside=True, reads_file=True)
op(np.fromregex, outside=True)

# -- options
op(
    *of_numpy(
        "get_printoptions", "geterr", "geterrcall", "getbufsize", "info", "printoptions",
        "set_printoptions", "setbufsize", "seterr", "seterrcall", "show_config", "show_runtime",
        "test",
    ),
    outside=True,
)  # fmt: skip
