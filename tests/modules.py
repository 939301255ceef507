"""Which tests a module of `fwdad/` has.

A module `fwdad/a/b/c.py` is tested by `test_c.py` in `tests/a/b/` or in `tests/a/`. The other
modules are tested in groups, by the files that `GROUPS` has for them: the first pattern that fits a
module counts. `tests/module_coverage.py` measures that its tests run it.
"""

from fnmatch import fnmatch
from pathlib import Path

TESTS = Path(__file__).parent
FWDAD = TESTS.parent / "fwdad"

GROUPS = {
    "errors": ("cases/test_errors.py", "cases/test_user_errors.py"),
    "api/checkpoint": ("transforms/reverse/test_checkpoints.py",),
    "api/sample_calls": ("api/test_support.py",),
    "api/second_derivatives": ("api/test_transforms.py", "evaluation/test_transformed.py"),
    "codegen/cache/*": ("codegen/test_disk_cache.py", "codegen/test_cache_trust.py"),
    "codegen/llvm/blas": ("codegen/test_linalg.py",),
    "codegen/llvm/nests/*": ("codegen/test_extraction.py",),
    "codegen/llvm/python_calls": ("codegen/callbacks/test_callback.py",),
    "codegen/llvm/thread_calls": ("codegen/test_parallel.py",),
    "codegen/llvm/vector_functions": ("codegen/test_vectors.py", "codegen/test_vector_loops.py"),
    "codegen/llvm/*": ("codegen/test_pipeline.py", "codegen/test_numba.py"),
    "codegen/loops/arrays/products": ("codegen/test_linalg.py",),
    "codegen/loops/arrays/undo_log": ("transforms/reverse/test_swap_log.py",),
    "codegen/loops/arrays/*": (
        "codegen/test_numba.py",
        "codegen/test_tables.py",
        "codegen/test_rules.py",
    ),
    "codegen/device/*": ("reversible/test_cuda.py",),
    "codegen/loops/facts": ("codegen/test_loop_lines.py",),
    "codegen/loops/fused_regions": ("codegen/test_fusion.py",),
    "codegen/loops/lanes": ("codegen/test_registers.py",),
    "codegen/loops/parallel_*": ("codegen/test_parallel.py",),
    "codegen/loops/terms/*": (
        "codegen/test_scalars.py",
        "codegen/test_int_conversions.py",
        "codegen/test_numba.py",
    ),
    "codegen/loops/vectors/*": ("codegen/test_vector_loops.py", "codegen/test_vector_bodies.py"),
    "codegen/loops/*": ("codegen/test_numba.py", "codegen/test_stacks.py"),
    "codegen/numpy_backend/*": ("ir/test_printer.py",),
    "codegen/passes/*": ("codegen/test_decompositions.py", "codegen/test_rules.py"),
    "codegen/runtime/lapack": ("codegen/test_linalg.py",),
    "codegen/runtime/libmvec": ("codegen/test_vectors.py",),
    "codegen/runtime/lookups": ("codegen/test_tables.py",),
    "codegen/runtime/*": ("codegen/test_scalars.py", "codegen/test_registers.py"),
    "codegen/*": ("codegen/test_numba.py",),
    "colouring/*": ("colouring/test_colouring.py", "colouring/test_search.py"),
    "compat/autograd/*": ("compat/test_autograd.py",),
    "compat/jax/*": ("compat/test_jax.py",),
    "compat/conventions": ("compat/test_autograd.py", "compat/test_jax.py"),
    "core/*": ("frontend/test_programs.py",),
    "display/text": ("display/test_source.py",),
    "drivers/cotangents": ("drivers/test_refused_cotangents.py", "drivers/test_pullback.py"),
    "drivers/executable": ("api/test_jit.py",),
    "drivers/initial_values/*": ("scipy/test_initial_values.py",),
    "drivers/sparse/*": (
        "drivers/sparse/test_sparse_jacobian.py",
        "drivers/sparse/test_detection.py",
    ),
    "transforms/sparsity/cells": ("transforms/sparsity/test_interpreter.py",),
    "drivers/tapes_on_duals": ("frontend/test_tapes.py",),
    "drivers/solver_call": ("scipy/test_initial_values.py", "drivers/test_implicit_roots.py"),
    "drivers/jacobian": ("drivers/test_jacobian_rows.py",),
    "drivers/jacobian_operator": ("drivers/test_linearized.py",),
    "drivers/jitted_function": ("api/test_jit.py",),
    "drivers/linearize": ("drivers/test_linearized.py",),
    "drivers/memory_profiler": ("api/test_memory_report.py",),
    "drivers/numba_interop_source": ("drivers/test_numba_interop.py",),
    "drivers/residual_store": ("drivers/test_pullback.py",),
    "drivers/strategy": ("api/test_explain.py",),
    "eager/calls/c_functions": ("eager/test_callbacks.py",),
    "eager/calls/classes": ("cases/test_programs.py",),
    "eager/calls/creation": ("eager/test_makers.py",),
    "eager/calls/effectful": ("cases/world/test_one_call.py",),
    "eager/calls/iteration": ("eager/test_builtins.py",),
    "eager/calls/missing": ("cases/test_errors.py",),
    "eager/calls/outputs": ("cases/world/test_one_call.py",),
    "eager/calls/refusals": ("cases/test_leaks.py",),
    "eager/calls/sparse*": ("tangents/test_sparse.py", "cases/test_sparse_made_inside.py"),
    "eager/calls/ufunc_names": ("eager/test_numpy_calls.py",),
    "eager/calls/wrappers": ("eager/test_dispatch.py",),
    "eager/calls/writers": ("cases/test_mutation.py",),
    "eager/duals/*": ("eager/test_methods.py", "cases/test_mutation.py", "cases/test_programs.py"),
    "eager/effects": ("cases/world/test_one_call.py",),
    "eager/hooks/*": ("eager/test_hooks.py",),
    "eager/lifting/reached": ("eager/test_carried.py",),
    "eager/lifting/*": ("eager/test_lift.py", "eager/test_matching.py"),
    "eager/memory/containers": ("eager/test_commit.py",),
    "eager/memory/draws": ("cases/test_randomness.py",),
    "eager/memory/stale": ("cases/world/test_kept_results.py",),
    "eager/threads": ("cases/test_threads.py",),
    "eager/*": ("cases/test_chunks.py", "eager/test_one_array.py"),
    "eager_reverse/define": ("rules/test_reverse_rules.py",),
    "eager_reverse/reverse_rules": ("rules/test_reverse_rules.py",),
    "eager_reverse/fingerprints": ("eager_reverse/test_segments.py",),
    "eager_reverse/surroundings": ("eager_reverse/test_segments.py",),
    "eager_reverse/*": ("eager_reverse/test_rules.py", "eager_reverse/test_memory.py"),
    "evaluation/signatures": ("typing/test_checkers.py",),
    "evaluation/*": ("cases/test_chunks.py", "api/test_public_surface.py"),
    "examples/reversible/*": ("reversible/test_examples.py",),
    "examples/*": ("test_main.py",),
    "frontend/appended": ("frontend/test_growing_lists.py",),
    "frontend/calls/checkpointed_call": ("transforms/reverse/test_checkpoints.py",),
    "frontend/calls/grids": ("frontend/test_numpy_helpers.py",),
    "frontend/calls/growing_arrays": ("frontend/test_growing_lists.py",),
    "frontend/calls/outputs": ("cases/world/test_compiled_effects.py",),
    "frontend/calls/*": ("frontend/test_programs.py", "frontend/test_numpy_sources.py"),
    "frontend/captures": ("frontend/test_captured_kinds.py",),
    "frontend/derivatives/pulled": ("frontend/test_pullbacks.py",),
    "frontend/derivatives/*": ("frontend/test_directions.py", "frontend/test_captured_argument.py"),
    "frontend/guards": ("frontend/test_captured_kinds.py",),
    "frontend/numpy_sources/roots": ("drivers/test_implicit_roots.py",),
    "frontend/numpy_sources/vectorized": ("frontend/test_vectorize.py",),
    "frontend/numpy_sources/*": ("frontend/test_numpy_sources.py",),
    "frontend/retrace": ("frontend/test_growing_lists.py", "frontend/test_recursion.py"),
    "frontend/syntax/growing_lists/*": (
        "frontend/test_growing_lists.py",
        "frontend/test_random_growing.py",
    ),
    "frontend/syntax/*": ("frontend/test_programs.py",),
    "frontend/*": ("frontend/test_programs.py", "frontend/test_derivatives_of_objects.py"),
    "ir/abstract_eval/image_shapes": ("rules/test_scipy_ndimage.py",),
    "ir/abstract_eval/rule_trials": (
        "rules/test_contract.py",
        "rules/test_returned_memory.py",
    ),
    "ir/abstract_eval/*": ("transforms/forward/test_rules.py",),
    "ir/analysis/indices": ("transforms/reverse/test_programs.py",),
    "ir/analysis/reassociation": ("codegen/test_vector_loops.py",),
    "ir/analysis/*": ("transforms/passes/test_passes.py",),
    "ir/builder/*": ("frontend/test_programs.py", "transforms/forward/test_rules.py"),
    "ir/drawing/*": ("ir/test_graph.py",),
    "ir/primitives/broadcast_sums": ("transforms/reverse/test_lengths.py",),
    "ir/primitives/opaque_call": ("transforms/forward/test_rules.py",),
    "ir/primitives/outer_products": ("codegen/test_outer_products.py",),
    "ir/primitives/ranges": ("frontend/test_programs.py",),
    "ir/primitives/running_extremes": ("transforms/passes/test_extremes.py",),
    "ir/primitives/view_mirrors": ("ir/test_layout.py",),
    "ir/primitives/*": (
        "transforms/reverse/test_programs.py",
        "transforms/reverse/test_swap_log.py",
    ),
    "ir/*": ("ir/test_printer.py", "transforms/passes/test_passes.py"),
    "ops/*": ("ops/test_record.py",),
    "reversible/arguments/*": ("reversible/test_calls.py", "reversible/test_operands.py"),
    "reversible/containers/*": ("reversible/test_stack.py", "reversible/test_dictionary.py"),
    "reversible/cuda_kernel": ("reversible/test_cuda.py",),
    "reversible/kernel_program": ("reversible/test_cuda.py",),
    "reversible/insertion": ("reversible/test_dictionary.py",),
    "reversible/language/*": ("reversible/test_language.py", "reversible/test_refusals.py"),
    "reversible/lowering/*": ("reversible/test_language.py", "reversible/test_calls.py"),
    "reversible/numbers/*": ("reversible/test_numbers.py",),
    "reversible/*": ("reversible/test_language.py",),
    "rules/core/adjoints": ("rules/test_transposes.py",),
    "rules/core/*lapack": ("rules/test_lapack.py", "rules/test_scipy_linalg.py"),
    "rules/core/partials": ("rules/test_elementary.py",),
    "rules/core/*": ("rules/test_define.py",),
    "rules/cosine": ("rules/test_fft.py",),
    "rules/einsum": ("rules/test_products.py",),
    "rules/eigenvalues": ("rules/test_decompositions.py",),
    "rules/matrix_functions": ("rules/test_scipy_linalg.py",),
    "rules/scipy_*": ("rules/test_scipy_linalg.py",),
    "rules/spectra": ("rules/test_decompositions.py",),
    "rules/triangles": ("rules/test_decompositions.py",),
    "scipy/derivatives": ("scipy/test_filling.py", "scipy/test_minimisation.py"),
    "scipy/programs": ("scipy/test_minimisation.py", "scipy/test_constraints.py"),
    "tangents/adjugate": ("rules/test_linear_systems.py",),
    "tangents/alike": ("ir/test_layout.py",),
    "tangents/kinds": ("tangents/test_vectors.py", "tangents/test_registry.py"),
    "tangents/laws/*": ("tangents/test_laws.py",),
    "tangents/linear_map": ("rules/test_linear_map.py",),
    "tangents/namespaces": ("tangents/test_composite.py",),
    "tangents/placed": ("transforms/forward/test_placing.py",),
    "tangents/quiet": ("rules/test_elementary.py",),
    "tangents/seeds": ("api/test_public_surface.py", "cases/test_chunks.py"),
    "tangents/shapes": ("transforms/forward/test_rules.py",),
    "tangents/straight": ("rules/test_straight.py",),
    "tangents/symbolic": ("transforms/forward/test_rules.py",),
    "tangents/*": ("tangents/test_chunk.py", "tangents/test_laws.py"),
    "testing/*": ("testing/test_frules.py", "testing/test_contract.py"),
    "transforms/reverse/whole_program": ("scipy/test_initial_values.py",),
    "transforms/forward/calls": ("frontend/test_recursion.py",),
    "transforms/forward/*": ("transforms/forward/test_push.py", "transforms/forward/test_rules.py"),
    "transforms/passes/carried": ("transforms/passes/test_simplify.py",),
    "transforms/passes/inline": ("transforms/passes/test_copies.py",),
    "transforms/passes/small/*": ("transforms/passes/test_small.py",),
    "transforms/reverse/bar_stacks": ("transforms/reverse/test_nested.py",),
    "transforms/reverse/checkpointing/*": ("transforms/reverse/test_checkpoints.py",),
    "transforms/reverse/normalize/*": (
        "transforms/reverse/test_array_phis.py",
        "transforms/reverse/test_recursion.py",
    ),
    "transforms/reverse/opaque_call": ("transforms/reverse/test_rules.py",),
    "transforms/reverse/*": (
        "transforms/reverse/test_programs.py",
        "transforms/reverse/test_nested.py",
    ),
}


def file_of_its_name(module):
    """The test file that is named after a module, None if there is none; paths without the root."""
    for folder in module.parents:
        file = folder / f"test_{module.stem.strip('_')}.py"
        if (TESTS / file).is_file() and (folder.parts or module.parent == folder):
            return file
    return None


def group_of(module):
    """The pattern of a module's group, None if it is in none."""
    name = module.with_suffix("").as_posix()
    return next((pattern for pattern in GROUPS if fnmatch(name, pattern)), None)


def files_of(module):
    """The test files of a module, which is given as in ``Path("ir/ops.py")``."""
    file = file_of_its_name(module)
    return (str(file),) if file is not None else GROUPS.get(group_of(module), ())
