"""Measurements on a real GPU. Every part writes `benchmarks/results/h200/<part>.json` with its provenance."""
