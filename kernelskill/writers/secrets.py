"""Keeps API keys out of everything that is stored, sent or shown."""

from __future__ import annotations

import os
import re

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
SHORTEST = 8
"""Shorter values of such variables are settings (`MAX_TOKENS=4096`), and would be found in any text."""


def redact(text: str) -> str:
    """The text without the values of environment variables that are named like secrets; their names stand instead."""
    for name, value in os.environ.items():
        if len(value) >= SHORTEST and SECRET_NAME.search(name) and not value.isdigit():
            text = text.replace(value, f"[{name}]")
    return text
