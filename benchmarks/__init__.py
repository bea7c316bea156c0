"""Measures the library against other libraries and against bare drivers: `python -m benchmarks`."""
