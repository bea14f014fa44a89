"""From CUDA text and launch code to one Python module: the native form (`run`) or the KernelBench form (`ModelNew`)."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

FOLDER = Path(__file__).parent
TIDY = [(re.compile(r"[ \t]+$", re.MULTILINE), ""), (re.compile(r"\n{3,}"), "\n\n"),
        (re.compile(r"^[ \t]+(?=#pragma)", re.MULTILINE), "")]


@dataclass(frozen=True)
class Code:
    """What a family renders: device code and the host code around it, each line without its indentation."""

    summary: str
    """One line: what is computed and how."""
    cuda: str
    inputs: tuple[str, ...]
    """Parameter names of `run`, or attribute/argument names of `forward`, in order."""
    sizes: tuple[str, ...]
    """Statements that set the sizes from the inputs' shapes."""
    output: str
    """Output shape, a Python expression over the sizes."""
    launch: tuple[str, ...]
    """Statements that launch the kernels on the inputs and `out`."""

    def module(self, title: str, methods: tuple[str, ...], plan_line: str, torch_module: TorchModule | None) -> str:
        """The whole solution module."""
        return render("module.py.j2", code=self, cuda=tidy(self.cuda), title=title, methods=methods, plan_line=plan_line,
                      torch_module=torch_module)


@dataclass(frozen=True)
class ProgramText:
    """What a program renders: device code, and all of `forward`."""

    summary: str
    cuda: str
    host: tuple[str, ...]

    def module(self, title: str, methods: tuple[str, ...], plan_line: str, torch_module: TorchModule | None) -> str:
        """The whole solution module."""
        return render("program.py.j2", summary=self.summary, host=self.host, cuda=tidy(self.cuda), title=title, methods=methods,
                      plan_line=plan_line, torch_module=torch_module)


@dataclass(frozen=True)
class TorchModule:
    """What the KernelBench form adds: how `Model` is constructed and where the inputs come from."""

    constructor: str
    """The text of `Model.__init__`, indented for a class body; "" where Model has none of its own."""
    imports: tuple[str, ...]
    """Import statements, and what else of the task's file the constructor needs: constants, classes without their forward."""
    forward: str
    """Parameters of `forward` after self, e.g. `x`."""
    bindings: tuple[str, ...]
    """Statements that bind the kernel's inputs, e.g. `bias = self.get_parameter("linear.bias")`."""


@functools.cache
def environment() -> jinja2.Environment:
    """The template environment: undefined names are errors, blocks leave no blank lines."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )


def render(template: str, **values: Any) -> str:
    """Render a template file of this folder."""
    return environment().get_template(template).render(**values)


def tidy(cuda: str) -> str:
    """The text without blanks at line ends, runs of blank lines, and indentation before `#pragma`."""
    for pattern, replacement in TIDY:
        cuda = pattern.sub(replacement, cuda)
    return cuda.strip()
