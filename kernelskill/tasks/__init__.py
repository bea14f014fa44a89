"""Tasks: a reference computation with its inputs, sizes, tolerance and starting kernel, loaded without executing it."""

from kernelskill.tasks.loading import load_task

__all__ = ["load_task"]
