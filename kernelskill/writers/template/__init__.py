"""The built-in deterministic writer: a plan says what the code does, a method changes the plan, a template renders it."""

from kernelskill.writers.template.writer import TemplateWriter

__all__ = ["TemplateWriter"]
