"""What is called while a function is traced: in line, as an operation, or by its meaning."""
