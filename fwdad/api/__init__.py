"""What users call beside the evaluators, and nothing else: transformers, ``jit``, reports.

In come functions of the user's; out go functions with the same signature, or reports. The work is
done in ``drivers``.
"""
