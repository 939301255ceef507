"""Programs as data: operations, their types, the checker, the printer and the passes."""
