"""Small kernels, one a feature: what the simulator and the hardware make of them can be compared output by output."""
