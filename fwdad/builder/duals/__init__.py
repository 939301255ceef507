"""The numbers and arrays that carry tangents."""
