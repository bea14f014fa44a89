"""Running CUDA C without a GPU: PTX interpreter, time model, cupy stand-in."""
