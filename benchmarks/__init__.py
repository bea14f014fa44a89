"""Measurements that back the numbers in README and docs; each module is a command that writes its result beside it."""
