"""Measurements on a real GPU (made for an H200). Every part writes `benchmarks/results/h200/<part>.json` with its provenance."""
