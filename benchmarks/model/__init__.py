"""The time model against kernels measured on an H200: `python -m benchmarks.model`."""
