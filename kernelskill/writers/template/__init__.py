"""The built-in deterministic writer: a plan says what the code does, a method changes the plan, a template renders it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelskill.writers.template.writer import TemplateWriter

__all__ = ["TemplateWriter"]


def __getattr__(name: str) -> Any:
    """The writer, imported when it is asked for: it needs every family, and the families need this package's expressions."""
    if name != "TemplateWriter":
        raise AttributeError(name)
    from kernelskill.writers.template.writer import TemplateWriter

    return TemplateWriter
