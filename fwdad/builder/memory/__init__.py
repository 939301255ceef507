"""What a run writes: shadow memory, and the log from which the outside world is put back."""
