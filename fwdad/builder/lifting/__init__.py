"""From a function's own source to the function with hooks in it."""
