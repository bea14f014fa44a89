"""Solutions and their evaluations as files under the digest of the solution. Writing is atomic."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import tempfile
from pathlib import Path

from kernelskill.errors import RunError

DIGEST_BYTES = 10


def digest_of(text: str) -> str:
    """Hex blake2b digest (20 characters) of a text."""
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()


def solution_digest(source: str) -> str:
    """Digest of what a solution does: comments, docstrings and layout count neither in Python nor in its CUDA C."""
    return digest_of(_normalised(source))


def _normalised(source: str) -> str:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = _squeezed(node.value)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return _dump(tree)


def _dump(node: object) -> str:
    """As `ast.dump`, less what is empty: Python versions differ in the fields they add, not in those a solution fills."""
    if isinstance(node, ast.AST):
        fields = (f"{name}={_dump(value)}" for name, value in ast.iter_fields(node) if value is not None and value != [])
        return f"{type(node).__name__}({', '.join(fields)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    return repr(node)


def _squeezed(text: str) -> str:
    if "__global__" not in text:
        return text
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return " ".join(bare.split())


class Store:
    """A folder of texts by digest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str, suffix: str) -> Path:
        """Where an object lies."""
        return self.folder / f"{digest}{suffix}"

    def put(self, digest: str, text: str, suffix: str, *, replace: bool = False) -> Path:
        """Write atomically; an existing object stays as it is unless it is to be replaced.

        A solution is what its digest says. An evaluation that a kill kept out of the journal is made again and may differ.
        """
        target = self.path(digest, suffix)
        if replace or not target.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".new-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        return target

    def get(self, digest: str, suffix: str) -> str:
        """The text; raises RunError when the object is gone."""
        try:
            return self.path(digest, suffix).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise RunError(f"the run's store has no object {digest}{suffix}",
                           hint="the folder was changed by hand; start a new run") from None
