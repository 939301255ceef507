"""``jvp``, ``grad`` and the like inside a traced function."""
