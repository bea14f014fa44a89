"""Where rules and knowledge are: inside the installed package first, beside it in a checkout second; and the user's own files.

The order matters: site-packages may hold a foreign top-level `rules` folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from kernelskill.errors import KernelSkillError

PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """The folder `rules` or `knowledge`; raises KernelSkillError when the installation lacks it."""
    for folder in (PACKAGE / name, PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise KernelSkillError(f"the installation has no folder {name!r} (looked in {PACKAGE} and beside it)",
                           hint="reinstall with `pip install .` from a complete checkout")


def rules_folder() -> Path:
    """The built-in expert rules."""
    return data_folder("rules")


def methods_folder() -> Path:
    """The method cards."""
    return data_folder("knowledge") / "methods"


def user_experience() -> Path:
    """The per-user store of experience, in the data folder of the XDG base directory specification."""
    home = os.environ.get("XDG_DATA_HOME", "")
    base = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "share"
    return base / "kernelskill" / "experience.sqlite"
