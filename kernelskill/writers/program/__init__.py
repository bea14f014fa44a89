"""Torch models as programs: stages over named axes, each stage one kernel (or one permitted library call)."""
