"""What a call may change besides returning outputs: a model's buffers, and inputs that the reference itself writes into.

Where it does, expected and returned data are `{"result": outputs, "buffers": {name: array}}`.
"""

from __future__ import annotations


def effect_name(path: str) -> str:
    """What the input at `path` is called among the buffers."""
    return f"input {path}"
