"""Speed and memory of fwdad, as ratios to the program itself and beside its peers.

Run from the checkout: ``python -m benchmarks.forward``, ``python -m benchmarks.jit``,
``python -m benchmarks.reverse``,
``python -m benchmarks.chunk_choice``, ``python -m benchmarks.profile_scalar``.
"""

import os

# One thread for everybody, on the processor: a ratio of two times means something only if both
# ran on the same hardware. These are read when NumPy, XLA and torch are loaded, hence here.
SINGLE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}
for _name, _value in SINGLE_THREAD.items():
    os.environ.setdefault(_name, _value)
