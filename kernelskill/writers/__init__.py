"""Code writers: they turn one chosen method into a complete solution module."""

from kernelskill.writers.base import CodeWriter, WriteRequest

__all__ = ["CodeWriter", "WriteRequest"]
