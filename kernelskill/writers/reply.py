"""A model's answer as a module: found in JSON or in a code block, or what is wrong with it in words that can be sent back."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

FaultKind = Literal["truncated", "empty", "refused", "no_code", "not_python", "no_entry"]
FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*\n(.*?)^[ \t]*\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)
OPEN_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
REFUSAL = re.compile(r"\b(I can(?:'|no)t|I(?:'m| am) (?:not able|unable|sorry)|I (?:won't|must decline)|as an AI)\b", re.I)
NOT_OURS = frozenset({"cuda", "cu", "c", "cpp", "c++", "cc", "bash", "sh", "text", "diff", "json", "toml", "console"})


@dataclass(frozen=True)
class Reply:
    """An answer that holds one module."""

    code: str
    notes: str = ""


@dataclass(frozen=True)
class Fault:
    """An answer that does not."""

    kind: FaultKind
    message: str
    """What was wrong and what is wanted, as it is told to the model."""


def read_reply(text: str, finish_reason: str = "stop", entry: str = "", refusal: str = "") -> Reply | Fault:
    """The module in an answer. `entry`: what it must define, `run` or `ModelNew`; "" for anything."""
    if refusal or finish_reason == "content_filter":
        return Fault("refused", "The answer was a refusal. Nothing but the Python module is needed.")
    if finish_reason == "length":
        return Fault("truncated", "The answer was cut off at its length limit. Answer with the module alone, without notes, "
                     "and keep the module short.")
    if not text.strip():
        return Fault("empty", "The answer was empty. Answer with one ```python block that holds the whole module.")
    found = _from_json(text) or _from_blocks(text, entry)
    if found is None:
        return _without_code(text)
    return _checked(found, entry)


def _from_json(text: str) -> Reply | None:
    """`{"code": ..., "notes": ...}`, alone or in a block."""
    bare = text.strip()
    blocks = [body for _, language, body in FENCE.findall(text) if language == "json"]
    for candidate in (bare, *blocks):
        try:
            data = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(data, dict) and isinstance(data.get("code"), str) and data["code"].strip():
            inner = _from_blocks(data["code"], "")
            return Reply(inner.code if inner else data["code"], str(data.get("notes", "")))
    return None


def _from_blocks(text: str, entry: str) -> Reply | None:
    """The Python block: the one that defines `entry` where there are several, else the longest."""
    blocks = [(language.lower(), body) for _, language, body in FENCE.findall(text)]
    ours = [body for language, body in blocks if language not in NOT_OURS and body.strip()]
    if not ours and not OPEN_FENCE.search(text) and _defines(text, entry):
        return Reply(text)
    if not ours:
        return None
    complete = [body for body in ours if entry and _defines(body, entry)]
    code = max(complete or ours, key=len)
    return Reply(code, FENCE.sub("", text).strip())


def _without_code(text: str) -> Fault:
    if REFUSAL.search(text[:400]):
        return Fault("refused", "The answer was a refusal. Nothing but the Python module is needed.")
    if OPEN_FENCE.search(text):
        return Fault("no_code", "The answer held no complete ```python block. Put the whole module into one, and close it.")
    return Fault("no_code", "The answer held no code block. Answer with one ```python block that holds the whole module.")


def _checked(reply: Reply, entry: str) -> Reply | Fault:
    try:
        ast.parse(reply.code)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        return Fault("not_python", f"The block is no Python module: {getattr(error, 'msg', error)}"
                     f"{f' in line {line}' if line else ''}. Answer with the whole corrected module.")
    if entry and not _defines(reply.code, entry):
        return Fault("no_entry", f"The module does not define `{entry}`. Answer with the whole module, not with a part of it.")
    return reply


def _defines(text: str, entry: str) -> bool:
    try:
        return not entry or entry in set(_defined(ast.parse(text)))
    except (SyntaxError, ValueError):
        return False


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
