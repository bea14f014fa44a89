"""Fact sets that the shipped rules are tried on: recorded and modelled kernels, and every stage of runs. See README.md."""
