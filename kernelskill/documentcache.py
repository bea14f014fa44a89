"""Parsed YAML, rule sets found to be without issues, and method cards, kept between processes: most of the time of loading.

One JSON file per content digest below the user's cache folder. A cache that cannot be read or written is no cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import __version__ as yaml_version

FORMAT = "1"
"""Counted up when what is stored changes its form."""


def entry(text: str) -> Path:
    """File of the cache for a YAML text."""
    digest = hashlib.sha256("\0".join((FORMAT, yaml_version, text)).encode()).hexdigest()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kernelskill" / "yaml" / f"{digest}.json"


@lru_cache(maxsize=8)
def code_digest(*files: Path) -> str:
    """Digest of the code that judged what is kept: it counts only while that code is the same."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def fetch(path: Path) -> Any | None:
    """What was stored; None when there is nothing usable."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def store(path: Path, value: Any) -> None:
    """Stores a value that JSON can hold; anything else, and a folder that cannot be written, is left alone."""
    try:
        text = json.dumps(value)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        Path(file.name).replace(path)
    except (OSError, TypeError):
        return
