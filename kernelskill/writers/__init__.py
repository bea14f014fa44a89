"""Code writers: they turn one chosen method into a complete solution module."""

from kernelskill.writers.base import CodeWriter
from kernelskill.writers.request import Request

__all__ = ["CodeWriter", "Request"]
