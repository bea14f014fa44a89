"""How well `kernelskill check` finds planted faults, how small it makes them, and whether it leaves right kernels alone."""
