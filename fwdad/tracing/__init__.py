"""From a function's source to a tape: its ``ast`` is evaluated on symbols."""
